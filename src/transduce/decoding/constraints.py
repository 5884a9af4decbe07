"""Lexical constraints: each output contains the terms that were asked of its sentence.

Two things see to it. What may not follow is forbidden: the end before all terms are there, and any token
after which the terms would no longer fit within the limit. So that they come where they belong and not at the
limit only, hypotheses compete with those that have as many of the terms' tokens: the beam is dealt out in
turn to those with all, with one less, and so on (dynamic beam allocation: Post and Vilar, 2018).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from transduce.decoding.candidates import Candidates, best_tokens, ranking
from transduce.decoding.guide import NEVER
from transduce.decoding.spelling import joins
from transduce.decoding.terms import BEGIN, DONE, Way

# Whether the last unit joins a letter, and what is there of each term.
State = tuple[bool, tuple[int, ...]]
# Where terms overlap, so many states are looked at for a way to fit them into few tokens.
_MOST_STATES = 2_000


class Constraints:
    """The terms asked of one sentence, and what each token does for them."""

    def __init__(self, ways: Sequence[Way], eos_id: int) -> None:
        """``ways`` lead to the terms, at least one, all in the spelling of one vocabulary."""
        self.terms, self.eos_id = tuple(way.sought for way in ways), eos_id
        self.ways, self._texts = tuple(ways), ways[0].spelling.texts
        self._banks: dict[State, int] = {}
        self._next: dict[tuple[State, int], State] = {}
        self._onward: dict[State, list[Tensor]] = {}
        self._allowed: dict[tuple[State, int], Tensor] = {}

    @property
    def start(self) -> State:
        """Nothing is there yet."""
        return False, (BEGIN,) * len(self.terms)

    def next(self, state: State, token: int) -> State:
        """The state after one more token."""
        key = state, token
        if key not in self._next:
            joined, places = state
            for unit in self._texts[token]:
                places = tuple(
                    term.after(at, joined, unit) for term, at in zip(self.terms, places, strict=True)
                )
                joined = joins(unit)
            self._next[key] = joined, places
        return self._next[key]

    def complete(self, state: State) -> bool:
        """Whether every term is there, whatever follows."""
        return all(at == DONE for at in state[1])

    def may_end(self, state: State) -> bool:
        """Whether every term is there if the output ends now."""
        return all(term.ends(at) for term, at in zip(self.terms, state[1], strict=True))

    def bank(self, state: State) -> int:
        """How many of the tokens that the terms take are there."""
        if state not in self._banks:
            joined, places = state
            there = 0.0
            for way, at in zip(self.ways, places, strict=True):
                missing = 0.0 if at == DONE else way.fewest(at, joined)
                there += max(0.0, way.from_nothing - missing)
            self._banks[state] = int(there)
        return self._banks[state]

    def fits(self, state: State, tokens: int) -> bool:
        """Whether so many tokens are enough for what is missing."""
        return self._simply(state) <= tokens or (self._unmet(state) > 1 and self._cleverly(state, tokens))

    def forbidden(self, state: State, left: int, vocabulary: int) -> Tensor | None:
        """Which tokens may not follow where ``left`` tokens fit before the end; None: all may.

        The end is another matter: see ``may_end``.
        """
        nothing = False, tuple(at if at == DONE else 0 for at in state[1])
        if self._simply((True, nothing[1])) <= left - 1:
            return None
        key = state, left
        if key not in self._allowed:
            fits: dict[State, bool] = {}
            for token in range(vocabulary):
                after = self.next(state, token)
                if after not in fits:
                    fits[after] = self.fits(after, left - 1)
            self._allowed[key] = torch.tensor(
                [not fits[self.next(state, token)] for token in range(vocabulary)]
            )
        return self._allowed[key]

    def onward(self, state: State) -> list[Tensor]:
        """For each missing term, the tokens that begin it or go on with it."""
        if state not in self._onward:
            joined, places = state
            found = []
            for number, (way, at) in enumerate(zip(self.ways, places, strict=True)):
                tokens = [] if at == DONE else way.onward(at, joined)
                useful = [token for token in sorted(tokens) if self.next(state, token)[1][number] != 0]
                if useful:
                    found.append(torch.tensor(useful))
            self._onward[state] = found
        return self._onward[state]

    def _unmet(self, state: State) -> int:
        return len(state[1]) - state[1].count(DONE)

    def _simply(self, state: State) -> float:
        """Tokens that are enough: the term that is nearest is completed, the others are begun afterwards."""
        joined, places = state
        ways = [(way, at) for way, at in zip(self.ways, places, strict=True) if at != DONE]
        from_nothing = sum((way.from_nothing for way, _ in ways), start=0.0)
        saved = (way.fewest(at, joined) - way.from_nothing for way, at in ways)
        return from_nothing + min(saved, default=0.0)

    def _cleverly(self, state: State, tokens: int) -> bool:
        """Whether there is a way in so many tokens, overlapping terms included."""
        seen, layer = {state}, [state]
        for _ in range(max(0, tokens) + 1):
            if any(self.may_end(one) for one in layer):
                return True
            following = {
                self.next(one, int(token))
                for one in layer
                for way, at in zip(self.ways, one[1], strict=True)
                if at != DONE
                for token in way.onward(at, one[0])
            }
            layer = list(following - seen)
            seen |= following
            if len(seen) > _MOST_STATES:
                break
        return False


@dataclass(frozen=True)
class ConstraintGuide:
    """Each row's terms and how much of them is there; ``left`` tokens fit before the end."""

    places: tuple[tuple[Constraints, State] | None, ...]
    left: tuple[int, ...]

    @classmethod
    def start(cls, terms: Sequence[Constraints | None], limits: Sequence[int]) -> ConstraintGuide:
        """The guide of sentences with these terms and limits (the end included)."""
        places = tuple(None if one is None else (one, one.start) for one in terms)
        return cls(places, tuple(limit - 1 for limit in limits))

    def guided(self, log_p: Float[Tensor, "rows vocabulary"]) -> Float[Tensor, "rows vocabulary"]:
        """See `Guide.guided`."""
        guided = None
        for row, (place, left) in enumerate(zip(self.places, self.left, strict=True)):
            if place is None or place[0].complete(place[1]):
                continue
            guided = log_p.clone() if guided is None else guided
            constraints, state = place
            end = guided[row, constraints.eos_id].clone()
            if left <= 0:
                guided[row] = NEVER
            elif (forbidden := constraints.forbidden(state, left, log_p.shape[1])) is not None:
                guided[row].masked_fill_(forbidden.to(log_p.device), NEVER)
            guided[row, constraints.eos_id] = end if constraints.may_end(state) else NEVER
        return log_p if guided is None else guided

    def extended(self, rows: Int[Tensor, " new"], tokens: Int[Tensor, " new"]) -> ConstraintGuide:
        """See `Guide.extended`."""
        places: list[tuple[Constraints, State] | None] = []
        chosen = rows.tolist()
        for row, token in zip(chosen, tokens.tolist(), strict=True):
            place = self.places[row]
            places.append(None if place is None else (place[0], place[0].next(place[1], token)))
        return ConstraintGuide(tuple(places), tuple(self.left[row] - 1 for row in chosen))

    def choose(
        self,
        best: Candidates,
        log_p: Float[Tensor, "rows vocabulary"],
        alive: Float[np.ndarray, "sentences slots"],
        beam: int,
    ) -> Candidates:
        """``best``; where there are terms, the beam dealt out to hypotheses with more and fewer of them."""
        slots = alive.shape[1]
        with_terms = [s for s in range(len(alive)) if self.places[s * slots] is not None]
        if beam == 1 or not with_terms:
            return best
        best = best.padded(2 * beam)
        sums, tokens, parents = best.log_p, best.tokens, best.parents
        for sentence in with_terms:
            rows = slice(sentence * slots, (sentence + 1) * slots)
            found = self._dealt(sentence * slots, log_p[rows], alive[sentence], beam)
            sums[sentence], tokens[sentence], parents[sentence] = NEVER, 0, 0
            for at, (total, token, slot) in enumerate(found):
                sums[sentence, at], tokens[sentence, at], parents[sentence, at] = total, token, slot
        return Candidates(sums, tokens, parents)

    def _dealt(
        self, first: int, log_p: Tensor, alive: Float[np.ndarray, " slots"], beam: int
    ) -> list[tuple[float, int, int]]:
        """Log P, token and slot of the continuations of one sentence: a beam that goes on, and all ends."""
        vocabulary = log_p.shape[1]
        count = min(2 * beam, vocabulary)
        likely = best_tokens(log_p, count, min(beam, count - 1))[1].tolist()
        banks: dict[tuple[int, int], int] = {}
        for slot in range(len(alive)):
            place = self.places[first + slot]
            if place is None or alive[slot] == NEVER:
                continue
            constraints, state = place
            onward = [int(ids[log_p[slot, ids].argmax()]) for ids in constraints.onward(state)]
            for token in {*likely[slot], *onward, constraints.eos_id}:
                banks[token, slot] = constraints.bank(constraints.next(state, token))
        tokens, slots = (np.array(column) for column in zip(*banks, strict=True))
        sums = log_p[slots, tokens].cpu().double().numpy() + alive[slots]
        order = ranking(sums[None], (tokens * len(alive) + slots)[None], vocabulary * len(alive))[0].tolist()
        keys, totals = list(banks), sums.tolist()
        ranked = [(totals[at], *keys[at]) for at in order if totals[at] > NEVER]
        ends = [one for one in ranked if one[1] == self._eos_id(first)]
        going_on = [one for one in ranked if one[1] != self._eos_id(first)]
        return _in_turn(going_on, [banks[token, slot] for _, token, slot in going_on], beam) + ends

    def _eos_id(self, row: int) -> int:
        place = self.places[row]
        assert place is not None
        return place[0].eos_id


def _in_turn(
    ranked: Sequence[tuple[float, int, int]], banks: Sequence[int], count: int
) -> list[tuple[float, int, int]]:
    """``count`` of the ``ranked``: of each bank in turn, the fullest first; they are still best first."""
    seen: dict[int, int] = {}
    turns = []
    for rank, bank in enumerate(banks):
        seen[bank] = seen.get(bank, 0) + 1
        turns.append((seen[bank], -bank, rank))
    return [ranked[rank] for rank in sorted(rank for _, _, rank in sorted(turns)[:count])]
