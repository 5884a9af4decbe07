"""The tree of a beam search: what was kept, what was dropped, and why it ended (section 6.1).

The search is watched through the step that it is given: its state says which hypothesis each row stands for.
The search itself is the one that translates, untouched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from transduce.bundle import Bundle
from transduce.counts import counted
from transduce.decoding.beam_search import beam_search
from transduce.decoding.config import SearchOptions
from transduce.decoding.hypothesis import Hypothesis, length_penalty
from transduce.errors import DataError

Prefix = tuple[int, ...]


@dataclass
class Node:
    """A hypothesis: its last token, log P of all its tokens, and what became of it.

    ``fate`` is kept (it was gone on with), dropped, ended (complete, but not the best), best, or cut (alive
    when the search was over).
    """

    token: int
    piece: str
    log_probability: float
    gain: float
    """Log P of this token alone."""
    fate: str
    score: float | None = None
    """Of an output that the search gives: log P over the length penalty."""
    children: list[Node] = field(default_factory=list)


@dataclass(frozen=True)
class SearchTree:
    """The tree below the start symbol, and in words why the search ended when it did."""

    source: str
    output: str
    root: Node
    steps: int
    reason: str


@dataclass(frozen=True)
class _Watched:
    """The model's state and the hypotheses that its rows stand for."""

    state: Any
    prefixes: tuple[Prefix, ...]

    def rows(self, hypotheses: Tensor, sentences: Tensor | None = None) -> _Watched:
        return _Watched(
            self.state.rows(hypotheses, sentences), tuple(self.prefixes[i] for i in hypotheses.tolist())
        )


class _Watcher:
    """A step that notes, for each hypothesis it is asked about, the log P of what may follow."""

    def __init__(self, bundle: Bundle, forbidden: Sequence[int]) -> None:
        self.model, self.forbidden = bundle.model, list(forbidden)
        self.alive: list[dict[Prefix, Tensor]] = []

    def __call__(self, tokens: Tensor, watched: _Watched) -> tuple[Tensor, _Watched]:
        first = not self.alive
        grown = [() if first else (*p, t) for p, t in zip(watched.prefixes, tokens.tolist(), strict=True)]
        logits, state = self.model.decode(tokens[:, None], watched.state)
        known = logits[:, 0].double()
        known[:, self.forbidden] = float("-inf")
        eos = self.model.config.eos_id
        # A slot whose hypothesis has ended is carried along by the search and is no hypothesis any more.
        self.alive.append(
            {p: row.log_softmax(-1) for p, row in zip(grown, known, strict=True) if eos not in p}
        )
        return logits[:, 0], _Watched(state, tuple(grown))


@torch.inference_mode()
def search_tree(
    bundle: Bundle,
    source: str,
    *,
    beam: int = 4,
    alpha: float = 0.6,
    shown: int = 0,
    tags: Sequence[int] = (),
) -> SearchTree:
    """The tree of the search for a translation of ``source``, until as many outputs as ``beam`` are certain.

    `Translator.translate` may stop sooner, when the best is certain, with the same output. Of each hypothesis
    the best ``shown`` continuations are in it (0: as many as the beam is wide), and all that were kept or
    ended. ``tags`` are the ids in front of the source by which a model of several languages is asked for one.
    Raises DataError for an empty source.
    """
    model, tokenizer = bundle.model, bundle.tokenizer
    config, device = model.config, next(model.parameters()).device
    ids = [*tags, *tokenizer.encode(source)]
    if not source.strip():
        raise DataError("the source is empty; its translation is empty, and nothing is searched")
    forbidden = sorted({config.pad_id, config.bos_id, config.unk_id, *tokenizer.tags.values()})
    watcher = _Watcher(bundle, forbidden)
    limit = len(ids) + 50
    options = SearchOptions(beam=beam, alpha=alpha, n_best=beam, min_length=1)
    start = _Watched(model.start(torch.tensor([[*ids, config.eos_id]], device=device)), ((),))
    found = beam_search(
        watcher,
        start,
        max_lengths=torch.tensor([limit], device=device),
        options=options,
        start_id=config.start_id,
        eos_id=config.eos_id,
        forbidden=forbidden,
    )[0]
    root = _grow(
        watcher.alive, found, eos=config.eos_id, beam=beam, shown=shown or beam, piece=tokenizer.piece
    )
    steps = len(watcher.alive)
    return SearchTree(
        source, tokenizer.decode(found[0].tokens), root, steps, _reason(found, root, steps, limit, alpha)
    )


def _grow(
    alive: Sequence[dict[Prefix, Tensor]],
    found: Sequence[Hypothesis],
    *,
    eos: int,
    beam: int,
    shown: int,
    piece: Callable[[int], str],
) -> Node:
    root = Node(-1, "", 0.0, 0.0, "kept")
    nodes: dict[Prefix, Node] = {(): root}
    outputs = {hypothesis.tokens: hypothesis for hypothesis in found if not hypothesis.truncated}
    best = found[0].tokens
    for step, hypotheses in enumerate(alive):
        later = alive[step + 1] if step + 1 < len(alive) else {}
        cut = set() if later else _alive_at_the_end(hypotheses, nodes, eos, beam)
        for prefix, gains in hypotheses.items():
            if prefix not in nodes:  # its parent's row went on although nothing of it could be seen
                continue
            node = nodes[prefix]
            going_on = {p[-1] for p in later if p[:-1] == prefix}
            ended = {tokens[-1] for tokens in outputs if tokens[:-1] == prefix}
            first = gains.topk(min(shown, len(gains))).indices.tolist()
            stay = {tokens[-1] for tokens in cut if tokens[:-1] == prefix}
            chosen = dict.fromkeys([*first, *sorted(going_on | ended | stay)])
            for token in chosen:
                gain = float(gains[token])
                if gain == float("-inf"):
                    continue
                tokens = (*prefix, token)
                fate = "kept" if token in going_on else "dropped"
                score = None
                if tokens in outputs:
                    fate, score = "best" if tokens == best else "ended", outputs[tokens].score
                elif tokens in cut:
                    fate = "best" if tokens == best else "cut"
                    score = found[0].score if tokens == best else None
                child = Node(token, piece(token), node.log_probability + gain, gain, fate, score)
                node.children.append(child)
                nodes[tokens] = child
            node.children.sort(key=lambda child: -child.gain)
    return root


def _alive_at_the_end(
    hypotheses: dict[Prefix, Tensor], nodes: dict[Prefix, Node], eos: int, beam: int
) -> set[Prefix]:
    """The hypotheses that would have been gone on with after the last step."""
    candidates = []
    for prefix, gains in hypotheses.items():
        if prefix in nodes:
            best = gains.topk(min(beam + 1, len(gains)))
            candidates += [
                (nodes[prefix].log_probability + gain, (*prefix, token))
                for gain, token in zip(best.values.tolist(), best.indices.tolist(), strict=True)
                if token != eos and gain > float("-inf")
            ]
    return {tokens for _, tokens in sorted(candidates, reverse=True)[:beam]}


def _reason(found: Sequence[Hypothesis], root: Node, steps: int, limit: int, alpha: float) -> str:
    """Why the search ended after its last step."""
    if found[0].truncated:
        return f"the limit of {counted(limit, 'token')} was reached before any hypothesis had ended"
    if steps == limit:
        return f"the limit of {counted(limit, 'token')} was reached"
    alive = [node.log_probability for node in _leaves(root) if node.fate == "cut"]
    worst = min(hypothesis.score for hypothesis in found)
    if not alive:
        return "every hypothesis had ended"
    flattering = max(length_penalty(limit, alpha), length_penalty(steps + 1, alpha))
    return (
        f"nothing alive could win any more: the best of it, log P {max(alive):.4f}, would have at most the "
        f"score {max(alive) / flattering:.4f}, if it went on to {counted(limit, 'token')} for free; what had "
        f"ended has {worst:.4f} or more"
    )


def _leaves(node: Node) -> list[Node]:
    return [node] if not node.children else [leaf for child in node.children for leaf in _leaves(child)]
