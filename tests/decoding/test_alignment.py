from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tiny_translator import Echo, sentences, tiny_bundle, tokenizer
from transduce.data.tokenizer import EOS_ID
from transduce.decoding.alignment import Aligner, mutual_links, pharaoh
from transduce.decoding.translation import OutputPart
from transduce.decoding.translator import Translator
from transduce.errors import UsageError
from transduce.inspection.attention_maps import attention_maps


def naive_words(text: str) -> list[int]:
    """The word of each subword of a text without odd characters."""
    word, found = -1, []
    for piece in tokenizer().pieces(text):
        word += piece.startswith("▁")
        found.append(word)
    return found


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize("layer", [0, 1, 2])
def test_weights_are_the_attention_of_the_step_that_predicts_each_word(layer: int) -> None:
    it = Translator(tiny_bundle())
    aligner = Aligner(it.bundle.model, tokenizer(), layer)
    for translation in it.translate_detailed(sentences(4, seed=3, words=(3, 6)), max_extra=5, beam=2):
        (output,) = translation.alternatives
        # Given as text, so that tokens and text agree.
        target = tokenizer().encode(output.text)
        part = OutputPart(output.parts[0].source_ids, 0, (*target, EOS_ID), 0)
        given_text = replace(output, tokens=part.tokens, parts=(part,))
        (found,) = aligner.weights([(translation.source, given_text)])
        cross = attention_maps(it.bundle, translation.source, output.text).cross.mean(1)
        cross = cross.mean(0) if layer == 0 else cross[layer - 1]
        sources, targets = naive_words(translation.source), naive_words(output.text)
        for j in range(len(output.text.split())):
            rows = [t for t, word in enumerate(targets) if word == j]
            for i in range(len(translation.source.split())):
                columns = [s for s, word in enumerate(sources) if word == i]
                expected = sum(cross[t, s].item() for t in rows for s in columns) / len(rows)
                assert found[j, i].item() == pytest.approx(expected, abs=1e-5)


def test_links_are_mutual_and_ties_fall_to_the_first_word() -> None:
    weights = torch.tensor([[0.7, 0.1, 0.2], [0.4, 0.2, 0.3], [0.1, 0.45, 0.45 + 1e-8]])
    # Source 0 has most to do with output 0, so output 1, which looks at it too, stays without a link.
    assert mutual_links(weights) == ((0, 0), (1, 2))
    assert mutual_links(torch.zeros(0, 3)) == ()
    assert mutual_links(torch.zeros(2, 2)) == ()
    assert pharaoh(((0, 0), (1, 2))) == "0-0 1-2"


@pytest.mark.usefixtures("shapes_unchecked")
def test_neither_batch_nor_neighbours_change_an_alignment() -> None:
    it, lines = Translator(tiny_bundle()), sentences(20, seed=1, words=(1, 6))
    options: dict[str, Any] = {"n_best": 2, "max_extra": 5, "alignments": True}
    whole = it.translate_detailed(lines, **options)
    alone = [it.translate_detailed([line], batch_tokens=1, **options)[0] for line in lines]
    assert [[a.alignment for a in t.alternatives] for t in whole] == [
        [a.alignment for a in t.alternatives] for t in alone
    ]
    assert len({t.alignment for t in whole}) > 5


@pytest.mark.usefixtures("shapes_unchecked")
def test_alignments_change_nothing_else_and_are_absent_unless_asked_for() -> None:
    it, lines = Translator(tiny_bundle()), [*sentences(3, seed=1, words=(1, 3)), ""]
    plain = it.translate_detailed(lines, max_extra=3)
    aligned = it.translate_detailed(lines, max_extra=3, alignments=True)
    assert [t.text for t in plain] == [t.text for t in aligned]
    assert [t.alternatives[0].score for t in plain] == [t.alternatives[0].score for t in aligned]
    assert {t.alignment for t in plain} == {None}
    assert aligned[3].alignment == ()


@settings(max_examples=40, deadline=None)
@given(
    st.text(st.sampled_from("ab de.\u00a0é\U0001f600\t\ue000\u2581"), max_size=60),
    st.sampled_from([6, 20, 400]),
)
@pytest.mark.usefixtures("shapes_unchecked")
def test_words_are_those_of_the_text_also_where_a_line_is_split(text: str, longest: int) -> None:
    """A model that repeats the source and looks at the token it repeats aligns word i with word i."""
    echo = Echo(max_length=longest)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Aligner, "_attention", _diagonal)
        (found,) = echo.translate_detailed([text], alignments=True)
    count = len(text.split())
    assert found.text.split() == text.split()
    assert found.alignment == tuple((i, i) for i in range(count))


def _diagonal(self: Aligner, parts: Sequence[OutputPart]) -> list[Tensor]:
    draw = random.Random(0)
    found = []
    for part in parts:
        weights = torch.full((len(part.tokens), len(part.source_ids)), 0.01 * draw.random())
        for at in range(len(part.source_ids)):
            weights[at, at] = 1.0
        found.append(weights)
    return found


def test_a_layer_that_is_not_there_is_refused() -> None:
    it = Translator(tiny_bundle())
    with pytest.raises(UsageError, match="alignment_layer is 3, but the decoder has the layers 1 to 2"):
        it.translate(["ab"], alignments=True, alignment_layer=3)
    with pytest.raises(UsageError, match="alignments are not asked for"):
        it.translate(["ab"], alignment_layer=1)
