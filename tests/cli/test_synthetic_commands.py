"""`transduce backtranslate` and `transduce distill`: files in, files out, line by line, and going on."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tiny_translator import sentences, tiny_bundle
from transduce.bundle import save_bundle
from transduce.cli import synthetic
from transduce.cli.main import main
from transduce.decoding.translator import Translator

LINES = ["", *sentences(9, seed=3), "  a\tb ", *sentences(4, seed=4)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, and text in one language and its translation."""
    folder, bundle = tmp_path_factory.mktemp("synthetic"), tiny_bundle()
    save_bundle(folder / "model", bundle.model, bundle.model.config, bundle.tokenizer, {})
    (folder / "mono").write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    references = Translator(bundle).translate_detailed(LINES, n_best=3, beam=4)
    texts = [t.alternatives[-1].text for t in references]
    (folder / "real").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return folder


def _call(folder: Path, command: str, *arguments: str) -> int:
    how = ("--device", "cpu", "--precision", "fp32", "--engine", "torch")
    return main([command, str(folder / "model"), *arguments, *how])


def _lines(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    assert text.endswith("\n")
    return text.split("\n")[:-1]


def test_lines_stay_in_place_and_what_makes_no_pair_is_counted(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mono, output = str(folder / "mono"), tmp_path / "back"
    assert _call(folder, "backtranslate", "--input", mono, "--output", str(output)) == 0
    expected = Translator(tiny_bundle()).translate(LINES)
    assert _lines(output) == expected
    told = f"14 pairs, 1 line without text made none; train with --source {output} --target {mono}"
    assert told in capsys.readouterr().out


def test_a_folder_gets_both_sides(folder: Path, tmp_path: Path) -> None:
    mono = str(folder / "mono")
    arguments = ("--method", "sample", "--top-k", "5", "--seed", "3", "--drop-words", "0.2")
    assert _call(folder, "backtranslate", "--input", mono, "--output", f"{tmp_path}/both/", *arguments) == 0
    sources, targets = _lines(tmp_path / "both" / "source.txt"), _lines(tmp_path / "both" / "target.txt")
    assert len(sources) == len(LINES)
    assert targets == [line if source else "" for line, source in zip(LINES, sources, strict=True)]
    assert (
        _call(folder, "backtranslate", "--input", mono, "--output", str(tmp_path / "one.gz"), *arguments) == 0
    )
    assert (
        gzip.decompress((tmp_path / "one.gz").read_bytes()) == (tmp_path / "both" / "source.txt").read_bytes()
    )


@pytest.mark.parametrize("command", ["backtranslate", "distill"])
def test_a_run_that_was_stopped_goes_on_to_the_same_bytes(
    command: str,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(synthetic, "CHUNK", 4)
    monkeypatch.setattr("transduce.cli.partial.NOTE_EVERY", 0.0)
    where = ("--input" if command == "backtranslate" else "--source", str(folder / "mono"))
    more = ("--target", str(folder / "real"), "--n-best", "3") if command == "distill" else ()
    assert _call(folder, command, *where, *more, "--output", str(tmp_path / "whole")) == 0
    plain, chunks = Translator.translate_detailed, []

    def killed(self: Translator, texts: list[str], **named: object) -> object:
        chunks.append(texts)
        if len(chunks) == 3:
            raise KeyboardInterrupt
        return plain(self, texts, **named)  # type: ignore[arg-type]

    output = ("--output", str(tmp_path / "parts"))
    with monkeypatch.context() as patch:
        patch.setattr(Translator, "translate_detailed", killed)
        assert _call(folder, command, *where, *more, *output) == 130
    assert not (tmp_path / "parts").exists()
    capsys.readouterr()
    assert _call(folder, command, *where, *more, *output) == 2
    assert "add --resume to go on" in capsys.readouterr().err
    assert _call(folder, command, *where, *more, *output, "--beam", "5", "--resume") == 2
    assert "was written with beam 4, now it is 5" in capsys.readouterr().err
    assert _call(folder, command, *where, *more, *output, "--resume") == 0
    assert (tmp_path / "parts").read_bytes() == (tmp_path / "whole").read_bytes()


def test_the_closest_to_the_real_target_is_written(folder: Path, tmp_path: Path) -> None:
    source, real, output = str(folder / "mono"), str(folder / "real"), tmp_path / "closest"
    arguments = ("--source", source, "--target", real, "--n-best", "3", "--output", str(output))
    assert _call(folder, "distill", *arguments) == 0
    assert _lines(output) == _lines(folder / "real")
    assert _call(folder, "distill", "--source", source, "--output", str(tmp_path / "first")) == 0
    assert _lines(tmp_path / "first") == Translator(tiny_bundle()).translate(LINES)


def test_mistakes_are_said_in_one_line(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, real = str(folder / "mono"), str(folder / "real")
    (tmp_path / "short").write_text("one\n", encoding="utf-8")
    short, where = str(tmp_path / "short"), ("--source", source, "--output")
    for command, arguments, message in (
        ("distill", (*where, "o", "--n-best", "3"), "--n-best and --target belong"),
        ("distill", (*where, source), "is the input as well"),
        ("distill", (*where, "o", "--target", short, "--n-best", "2"), "has 1 line but"),
        ("distill", (*where, real, "--target", real, "--n-best", "2"), "is the input as well"),
        ("backtranslate", ("--input", source, "--output", "o", "--top-k", "4"), "are of sampling; set"),
        ("backtranslate", ("--input", source, "--output", "o", "--to", "de"), "trained without languages"),
    ):  # fmt: skip
        assert _call(folder, command, *arguments) in (1, 2)
        said = capsys.readouterr().err
        assert message in said
        assert said.count("\n") == 1
    assert not list(Path.cwd().glob("o.partial*"))


@pytest.mark.parametrize(
    "arguments",
    [
        ("--top-k", "4"),
        ("--to", "de"),
        ("--drop-words", "2"),
        ("--input", "none"),
        ("--engine", "nothing"),
    ],
)
@pytest.mark.parametrize("name", ["new/", "new/er/"])
def test_a_call_that_fails_leaves_no_empty_folder(
    folder: Path, tmp_path: Path, arguments: tuple[str, ...], name: str
) -> None:
    call = ["backtranslate", str(folder / "model"), "--input", str(folder / "mono")]
    assert main([*call, "--output", f"{tmp_path}/{name}", "--device", "cpu", *arguments]) in (1, 2)
    assert list(tmp_path.iterdir()) == []
