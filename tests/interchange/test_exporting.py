"""An export is kept if it computes what the model does; else nothing stays, and the first tensor is named."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tiny_translator import save_tiny, sentences, tiny_bundle
from transduce import TransduceError, Translator, export_model, verify
from transduce.bundle import Bundle, load_bundle
from transduce.cli.main import main
from transduce.errors import BundleError, DataError, UsageError
from transduce.interchange import exporting
from transduce.interchange.formats import FORMATS
from transduce.interchange.native import Native, Safetensors
from transduce.interchange.verification import LENGTHS, built_in_pairs, first_difference


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(save_tiny(tmp_path_factory.mktemp("models") / "tiny"))


def test_a_model_is_itself(model: Path) -> None:
    found = verify(model, model)
    assert found.good
    assert (found.largest, found.pairs) == (0.0, len(LENGTHS))
    assert found.tokens == sum(LENGTHS)
    assert found.sizes == (sum(file.stat().st_size for file in model.iterdir()),) * 2


def test_built_in_pairs_have_1_to_90_tokens_that_an_output_may_hold(model: Path) -> None:
    ours = Native(load_bundle(model))
    pairs = built_in_pairs(ours, most=256)
    assert pairs == built_in_pairs(ours, most=256)
    assert sorted(len(source) for source, _ in pairs) == list(LENGTHS)
    assert sorted(len(target) for _, target in pairs) == list(LENGTHS)
    inner = {token for source, target in pairs for token in (*source, *target[:-1])}
    assert not inner & {*ours.forbidden, ours.eos_id}
    assert {target[-1] for _, target in pairs} == {ours.eos_id}
    assert max(max(len(s), len(t)) for s, t in built_in_pairs(ours, most=20)) == 19


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_half_of_the_bytes_is_the_same_model_within_its_bounds(
    model: Path, tmp_path: Path, precision: str
) -> None:
    output = tmp_path / "half"
    found = export_model(model, output, to="safetensors", precision=precision).comparison
    assert 0 < found.largest <= found.bound
    assert found.sizes[1] < 0.7 * found.sizes[0]
    assert Translator.load(output, device="cpu").translate(["ab de."])


def test_a_test_set_adds_bleu(model: Path, tmp_path: Path) -> None:
    lines = sentences(4, seed=3)
    (tmp_path / "in").write_text("\n".join(lines) + "\n", encoding="utf-8")
    reference = Translator.load(model, device="cpu", engine="torch").translate(lines)
    (tmp_path / "out").write_text("\n".join(reference) + "\n", encoding="utf-8")
    found = verify(model, model, source=tmp_path / "in", reference=tmp_path / "out")
    assert found.equal_lines == (4, 4)
    assert found.bleu == (pytest.approx(100), pytest.approx(100))
    (tmp_path / "out").write_text("one\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"has 4 lines and .* has 1"):
        verify(model, model, source=tmp_path / "in", reference=tmp_path / "out")
    with pytest.raises(UsageError, match="give both, or neither"):
        verify(model, model, source=tmp_path / "in")


class Wrong(Safetensors):
    """A format that damages one tensor, or the arithmetic."""

    tensor = "decoder.layers.1.feed_forward.w_2.weight"

    def write(self, bundle: Bundle, path: Path, precision: str) -> list[str]:
        super().write(bundle, path, precision)
        return ["the weather cannot be expressed; it is left out"]

    def open(self, path: Path) -> Native:
        opened = super().open(path)
        with torch.no_grad():
            opened.bundle.model.get_parameter(self.tensor)[3, 5] += 1.0
            opened.bundle.model.decoder.layers[1].add_norm_3.norm.bias[0] += 1.0
        return opened


class WrongArithmetic(Wrong):
    def open(self, path: Path) -> Native:
        opened = Safetensors.open(self, path)
        opened.bundle.model.embeddings.scale *= 2
        return opened


@pytest.mark.parametrize(
    ("form", "said"),
    [
        (
            Wrong,
            r"first tensor that differs is decoder\.layers\.1\.feed_forward\.w_2\.weight, by 1 at \[3, 5\]",
        ),
        (WrongArithmetic, "no stored tensor differs"),
    ],
)
def test_a_wrong_export_is_removed_and_the_first_tensor_named(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: type[Wrong], said: str
) -> None:
    monkeypatch.setattr(exporting, "find_format", lambda name: form())
    told: list[str] = []
    with pytest.raises(TransduceError, match=rf"is not kept: log P differs by up to .*{said}"):
        export_model(model, tmp_path / "out", to="safetensors", say=told.append)
    assert told[0] == "the weather cannot be expressed; it is left out"
    assert not list(tmp_path.iterdir())


def test_a_model_that_gives_no_numbers_is_no_good(model: Path) -> None:
    from transduce.interchange.verification import compare

    class NoNumbers(Native):
        def forced(self, sources: object, targets: list[tuple[int, ...]]) -> list[list[float]]:
            return [[float("nan")] * len(target) for target in targets]

    found = compare(Native(load_bundle(model)), NoNumbers(load_bundle(model)), paths=(model, model))
    assert not found.good


def test_shapes_that_differ_are_named(model: Path) -> None:
    class Narrow(Native):
        def weights(self) -> Iterator[tuple[str, torch.Tensor]]:
            yield from ((name, tensor[:3]) for name, tensor in super().weights())

    bundle = load_bundle(model)
    assert first_difference(Native(bundle), Narrow(bundle)) == (
        "embeddings.target, of shape [3, 32] instead of [320, 32]"
    )


def test_what_lies_there_is_not_overwritten_and_what_is_unknown_is_refused(
    model: Path, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="is there already"):
        export_model(model, tmp_path, to="safetensors")
    with pytest.raises(UsageError, match=r"no folder .*missing; make it first"):
        export_model(model, tmp_path / "missing" / "out", to="safetensors")
    with pytest.raises(UsageError, match=r"unknown format 'pickle': choose one of .*safetensors"):
        export_model(model, tmp_path / "out", to="pickle")
    with pytest.raises(UsageError, match="precision is 'int4'; the format safetensors is written in float32"):
        export_model(model, tmp_path / "out", to="safetensors", precision="int4")
    with pytest.raises(BundleError, match="is no model of a format that is known"):
        verify(tmp_path, model)
    with pytest.raises(BundleError, match="there is no such file or folder"):
        verify(model, tmp_path / "none")


def test_a_missing_package_is_one_line_with_the_remedy(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(FORMATS, "moon", ("transduce.interchange.native:Safetensors", ("no_such_package",)))
    with pytest.raises(UsageError, match=r"moon needs no_such_package.*pip install 'transduce\[export\]'"):
        export_model(model, tmp_path / "out", to="moon")


def test_models_of_other_vocabularies_are_not_one_model(model: Path, tmp_path: Path) -> None:
    class Renamed(Native):
        def __init__(self) -> None:
            super().__init__(dataclasses.replace(tiny_bundle(), path=None))
            self.pieces[300] = "xyz"

    from transduce.interchange.verification import compare

    with pytest.raises(DataError, match=r"subword 300 is .* and 'xyz' in"):
        compare(Native(load_bundle(model)), Renamed(), paths=(model, tmp_path))


def test_the_commands(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small, other = str(tmp_path / "small"), save_tiny(tmp_path / "other", seed=5)
    assert (
        main(["export", str(model), "--to", "safetensors", "--precision", "bfloat16", "--output", small]) == 0
    )
    assert capsys.readouterr().out == f"{small}: safetensors, bfloat16, verified\n"
    assert main(["verify", str(model), small]) == 0
    assert "log P of 724 tokens of 20 pairs: differs by at most" in capsys.readouterr().out
    assert main(["verify", str(model), other]) == 1
    assert capsys.readouterr().err == f"transduce: error: {model} and {other} are not the same model\n"
    assert main(["import", str(model), "--from", "moses", "--output", str(tmp_path / "new")]) == 2
    assert "unknown origin 'moses'" in capsys.readouterr().err
