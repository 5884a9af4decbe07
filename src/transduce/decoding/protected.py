"""Translating around what is not to be translated: taken out before, put back and counted after."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from jaxtyping import Float
from torch import Tensor

from transduce.decoding.alignment import Aligner
from transduce.decoding.placing import Links, Words, put_tags
from transduce.decoding.protection import Item, find_items, lost_or_doubled
from transduce.decoding.tags import PUNCTUATION, without_tags
from transduce.decoding.translation import Translation


def translate_protected(
    texts: Sequence[str],
    kinds: frozenset[str],
    aligner: Aligner,
    translate: Callable[[list[str]], list[Translation]],
    *,
    first_line: int,
) -> list[Translation]:
    """The translations of ``texts`` with their protected items of these ``kinds``.

    Lines without any are translated as ever. A warning names what is lost or doubled in a best output.
    """
    lines = [text.strip() for text in texts]
    found = translate([_bare(text) for text in texts] if "tags" in kinds else list(texts))
    concerned = [at for at, line in enumerate(lines) if any(find_items(line, kinds))]
    pairs = [(found[at].source, alternative) for at in concerned for alternative in found[at].alternatives]
    weights = iter(aligner.weights(pairs))
    for at in concerned:
        whole = [restored(lines[at], a.text, next(weights), kinds) for a in found[at].alternatives]
        alternatives = tuple(
            replace(a, text=one.text, parts=(), word_confidences=one.confidences(a.word_confidences))
            for a, one in zip(found[at].alternatives, whole, strict=True)
        )
        told = [
            f"line {first_line + at}: {message}"
            for message in (*lost_or_doubled(lines[at], whole[0].text, kinds), *whole[0].emptied)
        ]
        warnings = (*found[at].warnings, *told)
        found[at] = replace(found[at], source=lines[at], alternatives=alternatives, warnings=warnings)
    return found


@dataclass(frozen=True)
class Restored:
    """An output with its protected items.

    ``origins`` has for each of its words those of the model's output that stand in it; ``emptied`` tells of
    pairs of tags that enclose nothing any more.
    """

    text: str
    origins: Sequence[Sequence[int]]
    emptied: Sequence[str] = ()

    def confidences(self, said: tuple[float | None, ...] | None) -> tuple[float | None, ...] | None:
        """The confidence in each word from those in the model's own; None in what was put in.

        Where several of the model's words stand in one, their geometric mean.
        """
        if said is None:
            return None
        known = [[value for at in some if (value := said[at]) is not None] for some in self.origins]
        return tuple(math.prod(some) ** (1 / len(some)) if some else None for some in known)


def _bare(text: str) -> str:
    """The text without its tags, with the white space at its ends, which a document keeps."""
    line = text.strip()
    begin = text.find(line)
    return text[:begin] + without_tags(line)[0].strip() + text[begin + len(line) :]


def restored(
    line: str, output: str, weights: Float[Tensor, "output_words source_words"], kinds: frozenset[str]
) -> Restored:
    """The output with the items of ``line`` that it lacks; ``weights`` are for the line without tags."""
    bare, tags = without_tags(line) if "tags" in kinds else (line, [])
    words = Words(output)
    if not words.words:
        # Nothing was said: what must not be lost stands by itself.
        text = line if not bare.strip() else " ".join(item.text for item in find_items(line, kinds))
        return Restored(text, [()] * len(text.split()))
    begin = len(bare) - len(bare.lstrip())
    links = Links.of(bare.lstrip(), weights)
    _put_items(words, bare[begin:], links, kinds - {"tags"})
    emptied = put_tags(words, [replace(tag, at=max(0, tag.at - begin)) for tag in tags], links)
    told = [f"empty: nothing is left between {one.open.text} and its end" for one in emptied]
    return Restored(words.joined(), words.origins(), told)


def _put_items(words: Words, source: str, links: Links, kinds: frozenset[str]) -> None:
    """Nothing; items that the output lacks stand in the place of the words that came of them.

    Where there are none, before the word that has most to do with them; a number only replaces a number.
    """
    there = Counter(item.key for word in words.words for item in find_items(word, kinds))
    taken = {at for at, word in enumerate(words.words) if any(find_items(word, kinds - {"numbers"}))}
    wanted = {item.key for item in find_items(source, kinds)}
    taken |= {
        at for at, word in enumerate(words.words) if any(i.key in wanted for i in find_items(word, kinds))
    }
    for item in find_items(source, kinds):
        if there[item.key]:
            there[item.key] -= 1
            continue
        aligned = [at for at in links.within(item.begin, item.end) if at not in taken]
        if item.kind == "numbers":
            aligned = [at for at in aligned if any(character.isdecimal() for character in words.words[at])]
        if aligned:
            taken |= _replace(words, aligned, item)
        elif item.kind != "numbers":
            taken.add(_insert(words, min(links.slot(item.begin), len(words.words) - 1), item))


def _insert(words: Words, at: int, item: Item) -> int:
    """The place of the word before which the item stands now, or after that which has taken its place."""
    place = words.standing(at)
    if place == at:
        words.words[at] = f"{item.text} {words.words[at]}"
        words.put_in[at] = words.put_in.get(at, 0) + len(item.text) + 1
    else:  # all of that word was put in
        words.words[place] += f" {item.text}"
        words.put_in[place] = len(words.words[place])
    return place


def _replace(words: Words, aligned: Sequence[int], item: Item) -> set[int]:
    """The places of the words that the item stands for now: the first run of those ``aligned``."""
    run = [aligned[0]]
    while run[-1] + 1 in aligned:
        run.append(run[-1] + 1)
    first, last = words.words[run[0]], words.words[run[-1]]
    head = first[: len(first) - len(first.lstrip(PUNCTUATION))]
    tail = last[len(last.rstrip(PUNCTUATION)) :]
    words.words[run[0]] = (head if head != first else "") + item.text + (tail if tail != last else "")
    words.put_in[run[0]] = len(words.words[run[0]])
    for at in run[1:]:
        words.words[at] = words.gaps[at] = ""
    return set(run)
