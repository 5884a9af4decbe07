"""The tokenizer of imported models: two sentencepiece models and a list of subwords."""

from __future__ import annotations

import functools
import io
import pickle

import pytest
import sentencepiece

from tiny_translator import sentences
from transduce.data.imported_tokenizer import RESERVED, ImportedTokenizer
from transduce.data.surfaces import surfaces
from transduce.data.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID, Tokenizer
from transduce.errors import DataError

ODD = [
    "",
    " ",
    "Ünïcode ﬁne",
    "emoji 😀 here",
    "</s> <unk> <pad> <s>",
    "<2de> word",
    "a\tb  c",
    "日本語",
    "▁x",
]


@functools.cache
def spm(seed: int, kind: str = "unigram") -> bytes:
    """A subword model that was trained by sentencepiece alone, with its usual settings."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences(300, seed=seed)),
        model_writer=model,
        vocab_size=90,
        model_type=kind,
        hard_vocab_limit=False,
        minloglevel=4,
    )
    return model.getvalue()


def pieces_of(model: bytes) -> list[str]:
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(i) for i in range(processor.vocab_size())]


@functools.cache
def imported() -> ImportedTokenizer:
    """A tokenizer whose sides differ, with a tag, and without some of their subwords."""
    source, target = spm(1), spm(2, "bpe")
    known = list(dict.fromkeys([*pieces_of(source)[3:], *pieces_of(target)[3:]]))
    del known[20::25]
    return ImportedTokenizer.of(source, target, [*RESERVED, *known, "<2de>"])


def looked_up(model: bytes, text: str) -> list[int]:
    """What the module promises, written plainly."""
    listed = [imported().piece(i) for i in range(imported().vocabulary)]
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    cut = [str(piece) for piece in processor.encode(text, out_type=str)]
    words = [piece for piece in listed[4:] if piece != "<2de>"]
    return [listed.index(piece) if piece in words else UNK_ID for piece in cut]


@pytest.mark.parametrize("text", [*ODD, *sentences(20, seed=3)])
def test_each_side_is_cut_by_its_model_and_looked_up_in_the_list(text: str) -> None:
    assert imported().encode(text) == looked_up(imported().source_spm, text)
    assert imported().encode_target(text) == looked_up(imported().target_spm, text)


def test_the_sides_differ_and_some_subwords_are_unknown() -> None:
    lines = sentences(40, seed=3)
    assert imported().encode_batch(lines) != imported().encode_target_batch(lines)
    assert any(UNK_ID in ids for ids in imported().encode_batch(lines))
    assert not imported().knows_all


def test_text_that_is_spelled_like_a_reserved_subword_stays_text() -> None:
    reserved = {PAD_ID, EOS_ID, BOS_ID, *imported().tags.values()}
    for text in ODD:
        assert not reserved & set(imported().encode(text))


def test_known_text_comes_back_and_what_is_unknown_is_shown() -> None:
    known = 0
    for line in sentences(20, seed=2):
        ids = imported().encode_target(line)
        known += UNK_ID not in ids
        assert UNK_ID in ids or imported().decode([*ids, EOS_ID, PAD_ID]) == line
    assert known > 5
    assert imported().decode([UNK_ID]) == "\ufffd"
    assert imported().decode([10_000, -1]) == "\ufffd\ufffd"
    ids = imported().encode_target("word 😀 x")
    assert "".join(surfaces(imported(), ids)) == imported().decode(ids)


def test_tags_are_languages_and_no_text() -> None:
    assert imported().languages == ("de",)
    (tag,) = imported().tag_ids(["<2de>"])
    assert imported().decode([tag]) == ""


def test_the_file_is_the_tokenizer(tmp_path: object) -> None:
    path = f"{tmp_path}/tokenizer.model"
    imported().save(path)
    again = Tokenizer.load(path)
    assert isinstance(again, ImportedTokenizer)
    assert again.sha256 == imported().sha256
    line = sentences(1, seed=9)[0]
    assert again.encode(line) == imported().encode(line)
    copy = pickle.loads(pickle.dumps(again))
    assert copy.encode_target(line) == imported().encode_target(line)
    parts = imported().source_spm, imported().target_spm
    listed = [imported().piece(i) for i in range(imported().vocabulary)]
    assert ImportedTokenizer.of(*parts, listed).model_bytes == imported().model_bytes


def test_bytes_spell_what_is_not_listed_where_there_are_bytes() -> None:
    trained = Tokenizer.train(sentences(300), 320).model_bytes
    listed = [*RESERVED, *pieces_of(trained)[4:]]
    both = ImportedTokenizer.of(trained, trained, listed)
    assert both.knows_all
    for text in ("日本 😀", "plain"):
        assert both.decode(both.encode(text)) == text
    assert both.bytes_of("é") == [both.encode("é")[-2], both.encode("é")[-1]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda b: b[: len(b) // 2], "not the tokenizer of an imported model"),
        (lambda b: b.replace(b'["<pad>", "</s>"', b'["<pud>", "</s>"'), "not the tokenizer|does not begin"),
    ],
)
def test_a_damaged_file_is_refused(change: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        ImportedTokenizer(change(imported().model_bytes))  # type: ignore[operator]


def test_lists_that_repeat_themselves_are_refused() -> None:
    with pytest.raises(DataError, match="repeats itself"):
        ImportedTokenizer.of(spm(1), spm(1), [*RESERVED, "a", "a"])


def test_lone_surrogates_are_refused() -> None:
    with pytest.raises(DataError, match="lone surrogate"):
        imported().encode("a\ud800")
