"""Marian's own files, against Marian itself where it is installed, and CTranslate2's reader of them."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from opus import pieces_of, spm

from tiny_translator import save_tiny, sentences
from transduce.bundle import load_bundle
from transduce.decoding.translator import Translator
from transduce.errors import BundleError, TransduceError, UsageError
from transduce.interchange.exporting import export_model
from transduce.interchange.importing import import_model
from transduce.interchange.marian_vocabulary import listing_text, read_listing

needs_reader = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("ctranslate2", "yaml"))),
    reason="needs ctranslate2 and yaml: pip install 'transduce[export]'",
)
needs_marian = pytest.mark.skipif(
    importlib.util.find_spec("_pymarian") is None, reason="needs Marian itself: pip install pymarian"
)
LINES = sentences(6, seed=5, words=(1, 20))
SHAPES: list[dict[str, Any]] = [
    {"attention_bias": True, "activation": "swish"},
    {"norm": "pre", "tying": "decoder", "output_bias": True},
    {"tying": "none", "norm_epsilon": 1e-5},
]


def marian(*arguments: object) -> str:
    """What a program of Marian's writes."""
    call = "import sys, _pymarian; sys.exit(_pymarian.main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", call, *map(str, arguments)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@needs_reader
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "-".join(map(str, shape.values())))
def test_log_p_is_ours_and_the_way_back_gives_the_same_model(tmp_path: Path, shape: dict[str, Any]) -> None:
    save_tiny(tmp_path / "ours", positions="t2t", **shape)
    exported = export_model(tmp_path / "ours", tmp_path / "marian", to="marian")
    assert exported.comparison.largest < 5e-4
    import_model(tmp_path / "marian", tmp_path / "back", origin="marian")
    ours, back = load_bundle(tmp_path / "ours"), load_bundle(tmp_path / "back")
    assert back.tokenizer.sha256 == ours.tokenizer.sha256
    stored = back.model.state_dict()
    for name, tensor in ours.model.state_dict().items():
        if name in stored and not name.startswith("embeddings."):
            assert torch.equal(stored[name], tensor), name
    assert torch.equal(stored["embeddings.target"][3:], ours.model.embeddings.target[3:])


@needs_marian
def test_marian_scores_our_export_as_we_do(tmp_path: Path) -> None:
    save_tiny(tmp_path / "ours", positions="t2t", attention_bias=True, output_bias=True)
    export_model(tmp_path / "ours", tmp_path / "marian", to="marian")
    tokenizer = load_bundle(tmp_path / "ours").tokenizer
    for name, lines in (("a", LINES), ("b", LINES[::-1])):
        text = "\n".join(" ".join(tokenizer.pieces(line)) for line in lines)
        (tmp_path / name).write_text(text + "\n")
    found = scores_of(tmp_path / "marian" / "model.npz", tmp_path / "marian" / "vocab.yml", tmp_path)
    expected = Translator.load(tmp_path / "ours", engine="torch").score(
        list(zip(LINES, LINES[::-1], strict=True))
    )
    for one, other in zip(found, expected, strict=True):
        assert one == pytest.approx(other.token_log_probabilities, abs=1e-3)


@needs_marian
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_model_that_marian_trained_is_computed_as_marian_does(tmp_path: Path, norm: str) -> None:
    pieces = list(dict.fromkeys(["</s>", "<unk>", *pieces_of(spm(1)), *pieces_of(spm(2))]))
    (tmp_path / "vocab.yml").write_text(listing_text(pieces))
    (tmp_path / "source.spm").write_bytes(spm(1))
    (tmp_path / "target.spm").write_bytes(spm(2))
    (tmp_path / "decoder.yml").write_text(
        "models: [model.npz]\nvocabs: [vocab.yml, vocab.yml]\nbeam-size: 6\n"
    )
    for name, model, seed in (("a", spm(1), 1), ("b", spm(2), 2)):
        (tmp_path / name).write_text(
            "\n".join(" ".join(cut(model, line)) for line in sentences(200, seed=seed)) + "\n"
        )
    orders = {
        "post": ["--tied-embeddings-all", "--transformer-preprocess", "", "--transformer-postprocess", "dan"],
        "pre": ["--tied-embeddings", "--transformer-preprocess", "n", "--transformer-postprocess", "da",
                "--transformer-postprocess-top", "n", "--transformer-ffn-activation", "relu"],
    }  # fmt: skip
    vocabulary = tmp_path / "vocab.yml"
    shape = ["--dim-emb", 16, "--transformer-heads", 2, "--transformer-dim-ffn", 24, "--enc-depth", 2]
    marian(
        "train", "--type", "transformer", *shape, "--dec-depth", 1, *orders[norm], "--cpu-threads", 1,
        "--train-sets", tmp_path / "a", tmp_path / "b", "--vocabs", vocabulary, vocabulary, "--after", "6u",
        "--workspace", 128, "--learn-rate", 0.02, "--seed", 3, "--model", tmp_path / "model.npz",
    )  # fmt: skip
    import_model(tmp_path, tmp_path / "ours", origin="marian")
    translator = Translator.load(tmp_path / "ours", engine="torch")
    assert translator.bundle.model.config.norm == norm
    sources, targets = LINES, sentences(6, seed=7)
    for name, model, lines in (("a", spm(1), sources), ("b", spm(2), targets)):
        (tmp_path / name).write_text("\n".join(" ".join(cut(model, line)) for line in lines) + "\n")
    found = scores_of(tmp_path / "model.npz", tmp_path / "vocab.yml", tmp_path)
    expected = translator.score(list(zip(sources, targets, strict=True)))
    unknown = unknown_share(translator, sources, targets)
    for one, other, less in zip(found, expected, unknown, strict=True):
        ours = [gain + lost for gain, lost in zip(other.token_log_probabilities, less, strict=True)]
        assert one == pytest.approx(ours, abs=1e-3)


def cut(model: bytes, line: str) -> list[str]:
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [str(piece) for piece in processor.encode(line, out_type=str)]


def scores_of(model: Path, vocabulary: Path, folder: Path) -> list[list[float]]:
    """Log P of each token of each pair in the files a and b, as Marian's scorer says it."""
    said = marian(
        "score", "--model", model, "--vocabs", vocabulary, vocabulary, "--cpu-threads", 1,
        "--train-sets", folder / "a", folder / "b", "--word-scores", "--mini-batch", 2,
    )  # fmt: skip
    return [[float(one) for one in line.partition("=")[2].split()] for line in said.splitlines()]


def unknown_share(translator: Translator, sources: list[str], targets: list[str]) -> list[list[float]]:
    """What each token's log P loses where the unknown may be chosen, as Marian's scorer has it."""
    model, tokenizer = translator.bundle.model, translator.bundle.tokenizer
    found = []
    for source, target in zip(sources, targets, strict=True):
        ids = [*tokenizer.encode_target(target), 1]
        with torch.no_grad():
            logits = model(torch.tensor([[*tokenizer.encode(source), 1]]), torch.tensor([[0, *ids[:-1]]]))[0]
        logits[:, [0, 2]] = -torch.inf
        known = logits.clone()
        known[:, 3] = -torch.inf
        found.append((known.logsumexp(1) - logits.logsumexp(1)).tolist())
    return found


@needs_reader
@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ({}, "model.positions is sinusoid, and Marian's sinusoids are those of t2t"),
        ({"positions": "t2t", "decoder_start": "bos"}, "model.decoder_start is bos"),
        ({"positions": "t2t", "activation": "gelu"}, "model.activation is gelu"),
        ({"positions": "t2t", "d_k": 4, "d_v": 8}, "model.d_k and model.d_v are 4 and 8"),
    ],
)
def test_what_cannot_be_expressed_is_refused_by_name(
    tmp_path: Path, shape: dict[str, Any], message: str
) -> None:
    save_tiny(tmp_path / "ours", **shape)
    with pytest.raises(UsageError, match=message):
        export_model(tmp_path / "ours", tmp_path / "marian", to="marian")
    assert [file.name for file in tmp_path.iterdir()] == ["ours"]


@needs_reader
def test_what_is_wrong_in_a_folder_is_named(tmp_path: Path) -> None:
    save_tiny(tmp_path / "ours", positions="t2t")
    export_model(tmp_path / "ours", tmp_path / "marian", to="marian")
    folder = tmp_path / "marian"
    for name, content, message in (
        ("vocab.yml", "no colon\n", "vocab.yml:1: expected a subword, a colon and its id"),
        ("source.spm", "", "source.spm: cannot be read"),
        ("model.npz", "PK", "model.npz: is no model of Marian"),
        ("decoder.yml", "models: 3\n", "decoder.yml: names no models and vocabs"),
    ):
        before = (folder / name).read_bytes()
        (folder / name).write_text(content)
        with pytest.raises(TransduceError, match=message):
            import_model(folder, tmp_path / "back", origin="marian")
        (folder / name).write_bytes(before)
    (folder / "decoder.yml").unlink()
    with pytest.raises(BundleError, match=r"has no decoder\.yml"):
        import_model(folder, tmp_path / "back", origin="marian")


def test_vocabulary_files_hold_any_subword(tmp_path: Path) -> None:
    pieces = [
        "</s>",
        "<unk>",
        "▁a",
        '"',
        "\\",
        "'",
        ":",
        "- b",
        "#",
        "\x01",
        "日",
        "\u2028",
        "a: 3",
        "? x",
        "~",
        "null",
        "1",
    ]
    (tmp_path / "vocab.yml").write_text(listing_text(pieces))
    assert read_listing(tmp_path / "vocab.yml") == {piece: i for i, piece in enumerate(pieces)}
    if importlib.util.find_spec("yaml") is not None:
        import yaml

        assert yaml.safe_load(listing_text(pieces)) == {piece: i for i, piece in enumerate(pieces)}
    written = "'it''s': 0\n? \"long\"\n: 1\nplain: 2\n\"\\xe9\": 3\n"
    (tmp_path / "vocab.yml").write_text(written)
    assert read_listing(tmp_path / "vocab.yml") == {"it's": 0, "long": 1, "plain": 2, "é": 3}
