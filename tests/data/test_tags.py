"""Tags in front of sources: ids that no text is turned into, put there by the label of a corpus."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiny_translator import sentences
from transduce.data.config import DataConfig
from transduce.data.corpora import without
from transduce.data.formats.pair import Pair
from transduce.data.prepare import open_prepared, prepare
from transduce.data.surfaces import surfaces
from transduce.data.tags import Label, tags_of
from transduce.data.tokenizer import EOS_ID, Tokenizer
from transduce.errors import ConfigError, DataError

TAGS = ("<2de>", "<2en>", "<bt>")
TOKENIZERS = {
    how: Tokenizer.train(sentences(300), 330, subwords=how, tags=TAGS) for how in ("bpe", "unigram")
}
TEXT = st.lists(st.sampled_from([*TAGS, "<", ">", "2de", " ", "bet", "▁", "\ue000", "ü"])).map("".join)


@pytest.mark.parametrize("how", TOKENIZERS)
@settings(max_examples=60, deadline=None)
@given(text=TEXT)
def test_text_is_never_turned_into_a_tag_and_comes_back(how: str, text: str) -> None:
    tokenizer = TOKENIZERS[how]
    ids = tokenizer.encode(text)
    assert not set(ids) & set(tokenizer.tags.values())
    assert tokenizer.decode(ids) == text
    assert tokenizer.decode([*tokenizer.tag_ids(TAGS), *ids]) == text


@pytest.mark.parametrize("how", TOKENIZERS)
def test_each_tag_is_one_id_that_stands_for_no_text(how: str) -> None:
    tokenizer = TOKENIZERS[how]
    assert tuple(tokenizer.tags) == TAGS
    assert len(set(tokenizer.tags.values())) == 3
    assert tokenizer.vocabulary == 330
    assert (tokenizer.languages, tokenizer.domains) == (("de", "en"), ("bt",))
    assert Tokenizer(tokenizer.model_bytes).tags == tokenizer.tags
    ids = [tokenizer.tags["<2de>"], *tokenizer.encode("bet tor")]
    assert surfaces(tokenizer, ids)[0] == ""
    assert "".join(surfaces(tokenizer, ids)) == "bet tor"
    with pytest.raises(DataError, match=r"no tag <2fr> \(it has: <2de>, <2en>, <bt>\)"):
        tokenizer.tag_ids(["<2fr>"])


def test_text_that_looks_like_a_tag_can_teach_subwords() -> None:
    lines = [f"<2de> {line} <bt>" for line in sentences(300)]
    tokenizer = Tokenizer.train(lines, 330, tags=TAGS)
    pieces = [tokenizer.piece(index) for index in range(tokenizer.vocabulary)]
    assert len(set(pieces)) == len(pieces)
    assert tokenizer.decode(tokenizer.encode(lines[0])) == lines[0]


def test_the_language_comes_before_the_domain() -> None:
    assert tags_of(Label("en:de", "bt")) == ("<2de>", "<bt>")
    assert tags_of(Label("en:de")) == ("<2de>",)
    assert tags_of(Label(domain="bt")) == ("<bt>",)
    assert tags_of(Label()) == ()


def _write(folder: Path, name: str, lines: list[str]) -> str:
    (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(folder / name)


def _both_ways(folder: Path, **more: object) -> DataConfig:
    one = _write(folder, "one", sentences(60, seed=1))
    other = _write(folder, "other", sentences(60, seed=2))
    values = {"languages": ("en:de", "de:en"), "domains": ("", "talk"), "vocabulary": 330, "valid_pairs": 6}
    return DataConfig(source=(one, other), target=(other, one), **{**values, **more})  # type: ignore[arg-type]


def test_sources_begin_with_the_tags_of_their_corpus(tmp_path: Path) -> None:
    prepared = prepare(_both_ways(tmp_path), tmp_path / "data", max_length=100, seed=1)
    tokenizer, shards = prepared.tokenizer, prepared.train
    into_de, into_en, talk = tokenizer.tag_ids(["<2de>", "<2en>", "<talk>"])
    first = shards.corpora[0]
    for index in range(len(shards)):
        source, target = shards.source(index).tolist(), shards.target(index).tolist()
        tags = [into_de] if index < first else [into_en, talk]
        assert source == [*tags, *tokenizer.encode(tokenizer.decode(source)), EOS_ID]
        assert not set(target) & set(tokenizer.tags.values())
    assert {(pair.languages, pair.domain) for pair in prepared.valid_pairs} == {
        ("en:de", ""),
        ("de:en", "talk"),
    }
    assert open_prepared(tmp_path / "data").valid_pairs == prepared.valid_pairs
    for index, pair in enumerate(prepared.valid_pairs):
        tags = tokenizer.tag_ids(tags_of(Label(pair.languages, pair.domain)))
        assert prepared.valid.source(index).tolist() == [*tags, *tokenizer.encode(pair.source), EOS_ID]
        assert pair.to == pair.languages[3:]


def test_the_limit_counts_tags(tmp_path: Path) -> None:
    config = _both_ways(tmp_path)
    prepared = prepare(config, tmp_path / "data", max_length=100, seed=1)
    longest = max(len(prepared.train.source(i)) for i in range(len(prepared.train)))
    limit = longest - 1
    shorter = prepare(config, tmp_path / "short", max_length=limit, seed=1)
    assert shorter.report.too_long > 0
    assert int(shorter.train.source_lengths.max()) <= limit


def test_a_text_is_held_out_in_both_directions() -> None:
    held_out = [Pair("a", "b", "f", 1, languages="en:de")]
    pairs = [*held_out, Pair("b", "a", "g", 1, languages="de:en"), Pair("c", "d", "f", 2, languages="en:de")]
    assert [pair.source for pair in without(pairs, held_out)] == ["c"]
    bare = [pair._replace(languages="") for pair in pairs]
    assert [pair.source for pair in without(bare, bare[:1])] == ["b", "c"]


def test_without_labels_nothing_is_written_that_was_not(tmp_path: Path) -> None:
    config = _both_ways(tmp_path, languages=(), domains=())
    prepared = prepare(config, tmp_path / "data", max_length=100, seed=1)
    assert not prepared.tokenizer.tags
    about = json.loads((tmp_path / "data" / "prepared.json").read_bytes())
    assert not {"languages", "domains"} & set(about)
    assert b"languages" not in (tmp_path / "data" / "valid.jsonl").read_bytes()


def test_other_labels_are_other_data(tmp_path: Path) -> None:
    prepare(_both_ways(tmp_path), tmp_path / "data", max_length=100, seed=1)
    assert prepare(_both_ways(tmp_path), tmp_path / "data", max_length=100, seed=1).reused
    for change in ({"languages": ("en:de", "de:fr")}, {"domains": ()}):
        with pytest.raises(DataError, match=f"{next(iter(change))} changed"):
            prepare(_both_ways(tmp_path, **change), tmp_path / "data", max_length=100, seed=1, unchanged=True)


def test_a_tokenizer_that_lacks_a_tag_or_needs_one_is_refused(tmp_path: Path) -> None:
    TOKENIZERS["bpe"].save(tmp_path / "tagged")
    tagged = {"tokenizer": str(tmp_path / "tagged"), "vocabulary": 0}
    with pytest.raises(DataError, match=r"no tag <talk> \(it has: <2de>, <2en>, <bt>\); learn a new one"):
        prepare(_both_ways(tmp_path, **tagged), tmp_path / "data", max_length=100, seed=1)
    bare = _both_ways(tmp_path, **tagged, languages=(), domains=())
    with pytest.raises(ConfigError, match=r"told its target language \(de, en\); give data\.languages"):
        prepare(bare, tmp_path / "data", max_length=100, seed=1)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"languages": ("en:de",)}, r"data\.languages holds 1 for 2 corpora; give one for each pair"),
        ({"languages": ("en-de", "de:en")}, r"data\.languages holds 'en-de'; write source:target, e\.g"),
        ({"languages": ("en:de", "de:e n")}, r"data\.languages holds 'de:e n'"),
        ({"domains": ("2de", "")}, r"data\.domains holds '2de'; a domain is named by letters"),
        ({"domains": ("unk", "")}, r"data\.domains holds 'unk'"),
        ({"domains": ("0x0A", "")}, r"data\.domains holds '0x0A'"),
        ({"domains": ("a>", "")}, r"data\.domains holds 'a>'"),
        ({"valid": True}, r"holds en:de, de:en: say which of them the validation files are"),
        ({"valid": True, "valid_languages": ("en:de", "de:en")}, r"valid_languages holds 2 for 1 corpus"),
        ({"valid_languages": ("en:de",), "languages": (), "valid": True}, r"without data\.languages"),
        (
            {"valid": True, "valid_languages": ("en:de",), "domains": ("a", "b")},
            r"every corpus has its domain, but the validation files have none",
        ),
    ],
)  # fmt: skip
def test_labels_that_cannot_be_are_refused(values: dict[str, object], message: str) -> None:
    given = {"languages": ("en:de", "de:en"), **values}
    if given.pop("valid", False):
        given |= {"valid_source": ("v",), "valid_target": ("w",)}
    with pytest.raises(ConfigError, match=message):
        DataConfig(source=("a", "b"), target=("c", "d"), **given)  # type: ignore[arg-type]


def test_validation_files_are_of_the_only_languages_there_are() -> None:
    config = DataConfig(
        source=("a", "b"), target=("c", "d"), languages=("en:de", "en:de"), domains=("", "bt"),
        valid_source=("v",), valid_target=("w",),
    )  # fmt: skip
    assert config.valid_labels == (Label("en:de", ""),)
    assert config.labels == (Label("en:de", ""), Label("en:de", "bt"))
