from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.data.formats.pair import Pair
from transduce.data.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID, Tokenizer
from transduce.errors import DataError

ODD = [
    "",
    " ",
    "   ",
    " The  old\tdog \u00a0sees\u202fa cat. ",
    "\u2581 \u2581\u2581 The\u2581dog",
    "\ue000 \ue0000 \ue0001 \ue000\u2581",
    "\x00 NUL \x00",
    "a\u2028b\u0085c\x0bd\x0ce\rf\r",
    "\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627 \u202erev\u202c",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467 \u10d0 \U0001f600",
    "<s> </s> <pad> <unk> <0x41> <0x0A> <bos> \u2047 \u2585",
    "\ufeffBOM \ufffd \ufffe \U0010ffff",
    "\u00c4 A\u0308 \ufb01 \uff21 \u1e9e",
    "\u201eGr\u00fcne\u201c \u2013 \u2018dogs\u2019\u2026",
]


@pytest.mark.parametrize("text", ODD)
def test_odd_text_comes_back_unchanged(any_tokenizer: Tokenizer, text: str) -> None:
    ids = any_tokenizer.encode(text)
    assert any_tokenizer.decode(ids) == text
    assert UNK_ID not in ids


TEXT = st.text(
    st.one_of(
        st.characters(codec="utf-8", exclude_characters="\n"),
        st.sampled_from("  \u00a0\u2581\ue000\ue00101<s>/\x00\t\r\u2028aedogTh"),
    ),
    max_size=40,
)


@settings(max_examples=300, deadline=None)
@given(text=TEXT)
def test_every_line_of_unicode_comes_back_unchanged(any_tokenizer: Tokenizer, text: str) -> None:
    ids = any_tokenizer.encode(text)
    assert any_tokenizer.decode(ids) == text
    assert not set(ids) & {PAD_ID, EOS_ID, BOS_ID, UNK_ID}
    assert any_tokenizer.decode([BOS_ID, *ids, EOS_ID, PAD_ID, PAD_ID]) == text


@settings(max_examples=200, deadline=None)
@given(ids=st.lists(st.integers(-3, 450), max_size=30))
def test_any_ids_give_one_line(any_tokenizer: Tokenizer, ids: list[int]) -> None:
    text = any_tokenizer.decode(ids)
    assert "\n" not in text
    assert "unk" not in text
    assert "\u2047" not in text
    text.encode()


def test_broken_bytes_and_line_feeds(tokenizer: Tokenizer) -> None:
    spelled = tokenizer.encode("\u10d0")[-3:]
    assert tokenizer.decode(spelled) == "\u10d0"
    assert set(tokenizer.decode(spelled[:2])) == {"\ufffd"}
    assert tokenizer.decode([UNK_ID]) == "\ufffd"
    assert tokenizer.decode([10_000]) == "\ufffd"
    assert tokenizer.decode(tokenizer.encode("a\nb")) == "a b"


def test_reserved_ids_and_bytes(any_tokenizer: Tokenizer) -> None:
    assert (PAD_ID, EOS_ID, BOS_ID, UNK_ID) == (0, 1, 2, 3)
    assert int(any_tokenizer.byte_pieces.sum()) == 256
    assert any_tokenizer.byte_pieces.shape == (any_tokenizer.vocabulary,)
    emoji = any_tokenizer.encode("\U0001f600")
    assert any_tokenizer.byte_pieces[emoji[-4:]].all()


def test_a_batch_equals_its_lines(any_tokenizer: Tokenizer) -> None:
    texts = ODD * 20
    assert any_tokenizer.encode_batch(texts) == [any_tokenizer.encode(text) for text in texts]
    assert any_tokenizer.encode_batch([]) == []


def test_pieces_spell_the_text(tokenizer: Tokenizer) -> None:
    pieces = tokenizer.pieces("the old dog")
    assert "".join(pieces) == "\u2581the\u2581old\u2581dog"
    assert [tokenizer.piece(i) for i in tokenizer.encode("the old dog")] == pieces


def test_a_lone_surrogate_is_named(tokenizer: Tokenizer) -> None:
    with pytest.raises(DataError, match=r"text 2, column 3: lone surrogate U\+D800"):
        tokenizer.encode_batch(["fine", "ab\ud800"])


def test_the_vocabulary_survives_odd_pieces_and_the_file(tmp_path: Path, any_tokenizer: Tokenizer) -> None:
    text = [
        'tab\there "quoted" back\\slash',
        "\u2028 \u2028 \u2028",
        "<0x41> <s> \u2585 \u2581 \x00",
        "'' ''",
    ] * 30
    trained = Tokenizer.train(text, 330, strict=False)
    trained.save(tmp_path / "tokenizer.model")
    loaded = Tokenizer.load(tmp_path / "tokenizer.model")
    assert loaded.model_bytes == trained.model_bytes
    assert loaded.sha256 == trained.sha256 != any_tokenizer.sha256
    assert [loaded.piece(i) for i in range(loaded.vocabulary)] == [
        trained.piece(i) for i in range(trained.vocabulary)
    ]
    for line in text:
        assert loaded.decode(loaded.encode(line)) == line
    assert pickle.loads(pickle.dumps(loaded)).encode("tab\t") == loaded.encode("tab\t")


def test_files_that_are_no_tokenizer(tmp_path: Path, tokenizer: Tokenizer) -> None:
    with pytest.raises(DataError, match=r"none\.model: no such tokenizer"):
        Tokenizer.load(tmp_path / "none.model")
    for content in (b"", b"hello", tokenizer.model_bytes[:5000]):
        (tmp_path / "bad.model").write_bytes(content)
        with pytest.raises(DataError, match=r"bad\.model: "):
            Tokenizer.load(tmp_path / "bad.model")
    with pytest.raises(DataError, match="cannot be read"):
        Tokenizer.load(tmp_path)


def test_a_foreign_sentencepiece_model_is_refused(tmp_path: Path, pairs: Callable[..., list[Pair]]) -> None:
    for settings_, message in (
        ({}, r"have the ids \(-1, 2, 1, 0\), expected \(0, 1, 2, 3\)"),
        ({"pad_id": 0, "eos_id": 1, "bos_id": 2, "unk_id": 3}, "has no byte fallback"),
    ):
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(p.source for p in pairs(200)),
            model_writer=model,
            vocab_size=43,
            minloglevel=4,
            **settings_,
        )
        (tmp_path / "foreign.model").write_bytes(model.getvalue())
        with pytest.raises(DataError, match=message):
            Tokenizer.load(tmp_path / "foreign.model")
