"""What a request sees of the inside of a model: attention, the search's tree, the likeliest next words."""

from __future__ import annotations

from typing import Any

from transduce.counts import counted
from transduce.decoding.languages import tags_asked
from transduce.inspection.attention_maps import KINDS, attention_maps
from transduce.inspection.search_tree import Node, search_tree
from transduce.serving.models import Leg
from transduce.serving.refusals import Refused

_DIGITS = 4


def only_leg(legs: list[Leg]) -> Leg:
    """The one model of a pair; `Refused` where there is none, or two."""
    if len(legs) != 1:
        told = "the languages are the same" if not legs else "the pair passes through another language"
        raise Refused(400, f"{told}: no single model can be looked into; choose a pair that one model serves")
    return legs[0]


def attention_of(leg: Leg, text: str, translation: str, most: int) -> dict[str, Any]:
    """The weights of all layers and heads, rounded, with the labels of their rows and columns.

    Row t of ``decoder`` and ``cross`` belongs to the step that predicts ``target_out[t]``.
    """
    translator = leg.model.translator
    text = checked(leg, text, most)
    if not translation:
        translation = translator.translate([text], to=leg.to)[0]
    translation = checked(leg, translation, most)
    tags = tags_asked(translator.bundle.tokenizer, leg.to, "")
    maps = attention_maps(translator.bundle, text, translation, tags=tags)
    weights = {kind: (getattr(maps, kind) * 10**_DIGITS).round().div(10**_DIGITS).double() for kind in KINDS}
    return {
        "text": text,
        "translation": translation,
        "source": maps.source,
        "target_in": maps.target_in,
        "target_out": maps.target_out,
        **{kind: _rounded(values.tolist()) for kind, values in weights.items()},
    }


def _rounded(values: Any) -> Any:
    return [_rounded(one) for one in values] if isinstance(values, list) else round(values, _DIGITS)


def tree_of(leg: Leg, text: str, beam: int, alpha: float, shown: int, most: int) -> dict[str, Any]:
    """The tree of a search as a list of hypotheses, each with the place of its parent (-1: the start)."""
    translator = leg.model.translator
    text = checked(leg, text, most)
    tags = tags_asked(translator.bundle.tokenizer, leg.to, "")
    tree = search_tree(translator.bundle, text, beam=beam, alpha=alpha, shown=shown, tags=tags)
    nodes: list[dict[str, Any]] = []
    level: list[tuple[int, Node]] = [(-1, node) for node in tree.root.children]
    step = 1
    while level:
        following: list[tuple[int, Node]] = []
        for parent, node in level:
            following += [(len(nodes), child) for child in node.children]
            nodes.append(
                {
                    "parent": parent,
                    "step": step,
                    "piece": node.piece,
                    "log_probability": round(node.log_probability, _DIGITS),
                    "gain": round(node.gain, _DIGITS),
                    "fate": node.fate,
                    "score": None if node.score is None else round(node.score, _DIGITS),
                }
            )
        level, step = following, step + 1
    return {
        "source": tree.source,
        "output": tree.output,
        "steps": tree.steps,
        "reason": tree.reason,
        "nodes": nodes,
    }


def words_of(leg: Leg, text: str, prefix: str, count: int, options: dict[str, Any]) -> list[dict[str, Any]]:
    """The likeliest next words, and the best output with each."""
    if leg.to:
        options = {**options, "to": leg.to}
    found = leg.model.translator.alternatives(text, prefix, count=count, **options)
    return [
        {
            "word": _whole(one.word),
            "probability": one.probability,
            "text": one.completion.text,
            "score": one.completion.score,
        }
        for one in found
    ]


def _whole(word: str) -> str:
    """The word with U+FFFD for the bytes of a character that is not complete."""
    return word.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def checked(leg: Leg, text: str, most: int) -> str:
    """The text as one line of at most so many tokens; `Refused` where it is not."""
    text = text.strip()
    if not text or "\n" in text:
        raise Refused(400, "a look into the model takes one sentence: one line that is not empty")
    bundle = leg.model.translator.bundle
    length, most = len(bundle.tokenizer.encode(text)) + 1, min(most, leg.model.translator.searcher.max_length)
    if length > most:
        raise Refused(
            413, f"{counted(length, 'token')}, the end counted, but a look takes {most}: choose one sentence"
        )
    return text
