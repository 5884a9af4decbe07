from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from transduce.data.config import DataConfig
from transduce.data.corpora import count_pairs, read_corpora
from transduce.errors import ConfigError, DataError, UsageError


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"source": ("a",)}, "data.source names 1 file but data.target names 0"),
        ({"valid_target": ("a", "b")}, "data.valid_source names 0 files but data.valid_target names 2"),
        ({"tsv": ("-",)}, "data.tsv is standard input"),
        ({"valid_tsv": ("",)}, "data.valid_tsv holds an empty file name"),
        ({"vocabulary": 60}, "data.vocabulary is 60; use 300 or more .*256 bytes.*or 0 to have it chosen"),
        ({"vocabulary": -1}, "data.vocabulary is -1"),
        ({"max_length": 1}, "data.max_length is 1; use 2 or more"),
        ({"valid_pairs": -5}, "data.valid_pairs is -5"),
        ({"valid_pairs": 5, "valid_tsv": ("v",)}, "data.valid_pairs is 5, but validation files are given"),
        ({"subwords": "wordpiece"}, 'data.subwords is "wordpiece"; expected "bpe" or "unigram"'),
        (
            {"tokenizer": "t.model", "vocabulary": 8000},
            "data.vocabulary is 8000 and data.tokenizer is t.model",
        ),
        ({"tokenizer_sample": 0}, "data.tokenizer_sample is 0"),
    ],
)
def test_nonsense_is_refused_with_the_value(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        DataConfig(**settings)


def test_one_language_on_both_sides_is_refused() -> None:
    for source, target in (("en", "en"), ("de", "deu"), ("pt_BR", "pt-br")):
        with pytest.raises(UsageError, match=rf"are both '{target}'; name two languages"):
            DataConfig(source_language=source, target_language=target)
    DataConfig(source_language="en-GB", target_language="en-US")


def test_each_corpus_is_read_in_its_languages(tmp_path: Path) -> None:
    languages = ("en", "de", "fr")
    tuv = "".join(f'<tuv xml:lang="{code}"><seg>{code} {{0}}</seg></tuv>' for code in languages)
    memory, catalog = tmp_path / "m.tmx", tmp_path / "c.jsonl"
    units = "".join(f"<tu>{tuv.format(number)}</tu>" for number in range(3))
    memory.write_text(f"<tmx><body>{units}</body></tmx>")
    catalog.write_text('{"fr": "fr 9", "en": "en 9", "de": "de 9"}\n')
    (tmp_path / "t.tsv").write_text("any\tthing\n")
    config = DataConfig(
        tsv=(str(tmp_path / "t.tsv"),),
        pairs=(str(memory), str(memory), str(catalog)),
        languages=("en:de", "en:fr", "de:en", "fr:de"),
        validation=(str(catalog),),
        valid_languages=("de:fr",),
    )
    read = [(pair.corpus, pair.source, pair.target) for pair in read_corpora(*config.files)]
    assert read == [
        (0, "any", "thing"),
        *((1, f"en {n}", f"fr {n}") for n in range(3)),
        *((2, f"de {n}", f"en {n}") for n in range(3)),
        (3, "fr 9", "de 9"),
    ]
    assert count_pairs(*config.files) == 8
    assert [(pair.source, pair.target) for pair in read_corpora(*config.valid_files)] == [("de 9", "fr 9")]
    one = dataclasses.replace(config, source_language="fr", target_language="en")
    assert {pair.target[:2] for pair in read_corpora(*one.files)} == {"th", "en"}, "named for all"
    named = DataConfig(pairs=(str(memory),), languages=("en:pirate",), source_language="", tsv=())
    with pytest.raises(DataError, match="more than two languages"):
        list(read_corpora(*named.files))  # a tag that is no language says nothing of the file


def test_it_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        DataConfig().vocabulary = 5  # type: ignore[misc]
