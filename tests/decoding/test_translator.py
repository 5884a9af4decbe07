from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from tiny_translator import Echo, sentences, tiny_bundle, tiny_model, tiny_translator, tokenizer
from transduce import machine
from transduce.bundle import Bundle, save_bundle
from transduce.data.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from transduce.decoding.batches import batches
from transduce.decoding.hypothesis import length_penalty
from transduce.decoding.translation import Translation
from transduce.decoding.translator import Translator
from transduce.errors import ConfigError, DataError, UsageError


def same(one: Sequence[Translation], other: Sequence[Translation]) -> bool:
    """Whether tokens are equal, and scores up to 1e-4."""
    return all(
        [x.tokens for x in a.alternatives] == [y.tokens for y in b.alternatives]
        and [x.score for x in a.alternatives] == pytest.approx([y.score for y in b.alternatives], abs=1e-4)
        for a, b in zip(one, other, strict=True)
    )


@pytest.mark.usefixtures("shapes_unchecked")
def test_neither_batch_size_nor_order_nor_neighbours_change_an_output() -> None:
    it, lines = tiny_translator(), sentences(50, seed=1, words=(1, 4))
    options: dict[str, Any] = {"n_best": 3, "max_extra": 5}
    whole = it.translate_detailed(lines, batch_tokens=10**9, **options)
    assert len({translation.text for translation in whole}) > 30
    assert same(whole, it.translate_detailed(lines, batch_tokens=1, **options))
    assert same(whole, it.translate_detailed(lines, batch_tokens=3 * 4 * 16, **options))
    assert same(whole, it.translate_detailed(lines[::-1], batch_tokens=10**9, **options)[::-1])


@pytest.mark.usefixtures("shapes_unchecked")
def test_a_neighbour_of_200_tokens_does_not_change_a_line_of_3() -> None:
    it = tiny_translator()
    short, long = "de", " ".join(sentences(40, seed=5))[:330]
    assert len(tokenizer().encode(short)) <= 3
    assert len(tokenizer().encode(long)) > 200
    (alone,) = it.translate_detailed([short], beam=2)
    together = it.translate_detailed([long, short, long], beam=2, batch_tokens=10**6)
    assert same([alone], [together[1]])


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize("budget", [1, 400, 0])
@pytest.mark.parametrize("n_best", [1, 2])
def test_empty_lines_stay_empty_and_in_their_place(budget: int, n_best: int) -> None:
    it = tiny_translator()
    lines = [sentences(1, seed=3)[0], "", "  \t\u00a0", sentences(1, seed=4)[0], ""]
    together = it.translate_detailed(lines, batch_tokens=budget, n_best=n_best, max_extra=5)
    assert [bool(translation.text) for translation in together] == [True, False, False, True, False]
    for at in (0, 3):
        assert same([together[at]], it.translate_detailed([lines[at]], n_best=n_best, max_extra=5))
    for at in (1, 2, 4):
        assert [a.text for a in together[at].alternatives] == [""]
        assert together[at].alternatives[0].score == 0.0


def test_no_empty_line_reaches_the_model() -> None:
    echo = Echo()
    assert echo.translate(["", " ", "\u2003"]) == ["", "", ""]
    assert echo.translate([]) == []
    assert echo.heard == []


@pytest.mark.usefixtures("shapes_unchecked")
def test_output_i_is_the_translation_of_line_i() -> None:
    lines = [" ".join(["ab"] * n) for n in range(1, 102)]
    random.Random(2).shuffle(lines)
    assert Echo(max_length=400).translate(lines, batch_tokens=700) == lines
    it, short = tiny_translator(), [line for line in lines if len(line) < 40]
    together = it.translate(short, beam=1, max_extra=0, batch_tokens=7 * 15)
    assert together == [it.translate([line], beam=1, max_extra=0)[0] for line in short]


def test_batches_hold_each_index_once_within_the_budget() -> None:
    lengths = [random.Random(1).randint(1, 60) for _ in range(200)]
    found = list(batches(lengths, 1_000, 4))
    assert sorted(i for batch in found for i in batch) == list(range(200))
    for batch in found:
        assert len(batch) * 4 * (max(lengths[i] for i in batch) + 1) <= 1_000
    assert [len(batch) for batch in batches([5, 5, 5], 1, 4)] == [1, 1, 1]


def test_scores_are_those_of_teacher_forcing() -> None:
    bundle = tiny_bundle()
    config = bundle.model.config
    lines = sentences(5, seed=9, words=(1, 4))
    found = Translator(bundle).translate_detailed(lines, n_best=4, max_extra=12)
    for line, translation in zip(lines, found, strict=True):
        source = torch.tensor([[*tokenizer().encode(line), EOS_ID]])
        for alternative in translation.alternatives:
            target = torch.tensor([alternative.tokens])
            shifted = torch.cat([torch.tensor([[config.start_id]]), target[:, :-1]], 1)
            with torch.no_grad():
                logits = bundle.model(source, shifted)
            logits[..., [PAD_ID, BOS_ID, UNK_ID]] = -torch.inf
            log_p = logits.log_softmax(-1).gather(2, target[..., None]).sum().item()
            assert alternative.log_probability == pytest.approx(log_p, abs=1e-4)
            assert alternative.score == pytest.approx(
                log_p / length_penalty(len(alternative.tokens), 0.6), abs=1e-4
            )


def test_a_source_ends_in_the_end_symbol_and_pads_stand_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    it, seen = tiny_translator(), []
    start = it.bundle.model.start
    monkeypatch.setattr(
        it.bundle.model, "start", lambda source: (seen.append(source.tolist()), start(source))[1]
    )
    it.translate(["ab de", "ab"], beam=1, max_extra=0)
    long, short = (tokenizer().encode(text) for text in ("ab de", "ab"))
    assert seen == [[[*long, EOS_ID], [*short, EOS_ID, *[PAD_ID] * (len(long) - len(short))]]]


@pytest.mark.usefixtures("shapes_unchecked")
def test_reserved_ids_never_come_out_and_the_padding_row_never_counts() -> None:
    lines = sentences(8, seed=8, words=(1, 5))
    usual = tiny_translator().translate_detailed(lines, max_extra=10, beam=3)
    bundle = tiny_bundle()
    with torch.no_grad():
        bundle.model.embeddings.target[PAD_ID] = 1e3
        bundle.model.embeddings.target[BOS_ID] = 1e3
        bundle.model.embeddings.target[UNK_ID] = 1e3
    changed = Translator(bundle).translate_detailed(lines, max_extra=10, beam=3)
    assert same(usual, changed)
    for translation in changed:
        assert not set(translation.alternatives[0].tokens) & {PAD_ID, BOS_ID, UNK_ID}


@pytest.mark.parametrize("odd", ["\U0001f680", "\u10d0\u10d1\u10d2", "a\x00b", "\u2581", "\u2028x", "\ue000"])
def test_unknown_characters_are_bytes_and_never_unknown(odd: str) -> None:
    line = f"de {odd} ab"
    echo = Echo()
    assert echo.translate([line]) == [line]
    assert UNK_ID not in echo.heard[0]
    assert "\ufffd" not in echo.translate([line])[0]
    assert "<unk>" not in tiny_translator().translate([line], beam=1, max_extra=5)[0]


@pytest.mark.parametrize(
    "line",
    [
        'it\'s "5 < 6" & <b>x</b> &amp; &#39;',
        "one\ttab",
        "a\u00a0b\u202fc",
        "\u65e5\u672c\u8a9e\u3002",
        "\u05e9\u05dc\u05d5\u05dd",
        "a  b",
        "e\u0301 \u00e9",
        "x\ry",
        "\u200bzero",
    ],
)
def test_text_comes_back_byte_by_byte_from_a_model_that_repeats_it(line: str) -> None:
    assert Echo().translate([line]) == [line]


def test_ends_of_lines_are_stripped_and_line_feeds_never_come_out() -> None:
    assert Echo().translate(["  ab de \u00a0", "ab\n\nde", "ab\r"]) == ["ab de", "ab  de", "ab"]


def test_the_model_is_in_evaluation_mode_meanwhile_and_as_before_afterwards() -> None:
    bundle = tiny_bundle(dropout=0.5)
    bundle.model.train()
    modes = []
    bundle.model.decoder.layers[0].register_forward_hook(lambda module, *_: modes.append(module.training))
    it, lines = Translator(bundle), sentences(3, seed=1, words=(1, 3))
    first = it.translate_detailed(lines, beam=2, max_extra=3)
    assert same(first, it.translate_detailed(lines, beam=2, max_extra=3))
    assert modes
    assert not any(modes)
    assert bundle.model.training


def test_half_precision_gives_outputs_of_the_same_form() -> None:
    it = Translator(tiny_bundle(), precision="bf16")
    lines = sentences(2, seed=2, words=(1, 2))
    outputs = it.translate_detailed(lines, beam=2, max_extra=5)
    assert all(output.text for output in outputs)
    assert same(outputs, it.translate_detailed(lines, beam=2, max_extra=5))


def test_progress_counts_lines_up_to_the_last() -> None:
    calls: list[tuple[int, int]] = []
    lines = ["", *sentences(9, seed=1), ""]
    Echo().translate(lines, progress=lambda done, total: calls.append((done, total)), batch_tokens=200)
    assert calls[-1] == (11, 11)
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)
    assert len(calls) > 1


def test_unusual_outputs_are_flagged_on_request_only() -> None:
    line = "ab de gh il mn"
    assert Echo().translate_detailed([line])[0].warnings == ()
    (flagged,) = Echo().translate_detailed(["x", line], flag_unusual=True, first_line=4)[1:]
    assert flagged.warnings == ("line 5: 100% of the output's words are copied from the source",)
    assert flagged.text == line


def test_wrong_calls_are_refused_with_a_remedy() -> None:
    it = Echo()
    with pytest.raises(UsageError, match=r"write translate\(\[text\]\)"):
        it.translate("one string")
    with pytest.raises(ConfigError, match=r"'translation\.beams'; did you mean 'translation\.beam'"):
        it.translate(["a"], beams=4)
    for options, message in (
        ({"long_lines": "drop"}, "long_lines is 'drop'; choose one of split, truncate, error"),
        ({"batch_tokens": -1}, "batch_tokens is -1"),
        ({"max_extra": -1}, "max_extra is -1"),
        ({"n_best": 9}, "n_best is 9; it must lie between 1 and the beam, 4"),
    ):
        with pytest.raises(UsageError, match=message):
            it.translate(["a"], **options)
    with pytest.raises(DataError, match=r"text 2.*lone surrogate"):
        it.translate(["a", "\ud800"])


def test_a_model_in_memory_may_be_translated_with() -> None:
    model = tiny_model()
    bundle = Bundle(model=model, tokenizer=tokenizer(), training={}, path=None)
    assert Translator(bundle, device="cpu").translate(["ab de"], max_extra=3)[0]


def test_a_folder_is_loaded_onto_the_device_with_so_many_threads(tmp_path: Path) -> None:
    bundle, before = tiny_bundle(), torch.get_num_threads()
    save_bundle(tmp_path, bundle.model, bundle.model.config, bundle.tokenizer, {})
    try:
        loaded = Translator.load(tmp_path, device="cpu", precision="fp32", threads=1)
        assert torch.get_num_threads() == 1
        Translator.load(tmp_path, device="cpu", threads=10_000)
        assert torch.get_num_threads() <= machine.usable_cores()
    finally:
        torch.set_num_threads(before)
    assert (loaded.device, loaded.precision) == ("cpu", "fp32")
    assert loaded.translate(["ab de"], max_extra=3) == Translator(bundle).translate(["ab de"], max_extra=3)
    with pytest.raises(UsageError, match="unknown precision 'fp8'"):
        Translator.load(tmp_path, device="cpu", precision="fp8")


def test_several_outputs_are_not_given_up_silently() -> None:
    with pytest.raises(UsageError, match="translate_detailed gives n_best or samples"):
        tiny_translator().translate(["a"], n_best=2)
