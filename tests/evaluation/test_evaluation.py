import json
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest

import transduce
from transduce.decoding.translator import Translator
from transduce.errors import ConfigError, DataError
from transduce.evaluation import evaluate as module
from transduce.evaluation.evaluate import evaluate, evaluate_file
from transduce.evaluation.scores import score


class UpperCase(Translator):
    """A translator that needs no model: it shouts."""

    calls: list = []  # noqa: RUF012 - emptied by the fixture

    def __init__(self, folder):
        self.bundle = SimpleNamespace(path=Path(folder), training={"steps": 1200, "averaged": ["a", "b"]})
        self.bundles = (self.bundle,)
        self.device, self.precision = "cpu", "fp32"
        self.searcher = SimpleNamespace(engine_name="torch")

    @classmethod
    def load(cls, folder, device="auto"):
        cls.calls.append(("load", str(folder), device))
        return cls(folder)

    def translate(self, lines, *, progress=None, **options):
        self.calls.append(("translate", len(lines), options))
        return [line.upper() for line in lines]


@pytest.fixture
def shouting(monkeypatch):
    monkeypatch.setattr(module.Translator, "load", UpperCase.load)
    UpperCase.calls = []
    return UpperCase.calls


@pytest.fixture
def files(tmp_path, monkeypatch):
    """source, reference and a short reference, in the current folder."""
    (tmp_path / "in.en").write_bytes("one two three four\nfive\u2028six seven eight nine\n".encode())
    (tmp_path / "ref.de").write_bytes("ONE TWO THREE FOUR\nFIVE\u2028SIX SEVEN EIGHT ten\n".encode())
    (tmp_path / "short.de").write_bytes(b"ONE TWO THREE FOUR\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_model_is_scored_on_what_it_translates(shouting, files):
    result = evaluate("model", "in.en", "ref.de", beam=2, alpha=1.0, device="cpu")
    options = {"beam": 2, "alpha": 1.0, "shortlist": False, "to": "", "domain": ""}
    assert shouting == [("load", "model", "cpu"), ("translate", 2, options)]
    assert result.hypotheses == ["ONE TWO THREE FOUR", "FIVE\u2028SIX SEVEN EIGHT NINE"]
    assert result.scores == score(result.hypotheses, ["ONE TWO THREE FOUR", "FIVE\u2028SIX SEVEN EIGHT ten"])
    assert result.paper is None


def test_the_recipe_is_one_line_that_can_be_repeated(shouting, files):
    recipe = evaluate(Path("my model"), "in.en", "ref.de", beam=2, alpha=1.0).recipe
    assert "\n" not in recipe
    command, *facts = recipe.split(" | ")
    arguments = ["my model", "--source", "in.en", "--reference", "ref.de", "--beam", "2", "--alpha", "1"]
    assert shlex.split(command) == ["transduce", "evaluate", *arguments]
    assert facts[:3] == ["1,200 updates", "average of 2 checkpoints", "cpu fp32 torch"]
    assert f"Transduce {transduce.__version__}" in facts
    assert any(fact.startswith("sacreBLEU nrefs:1|case:mixed") for fact in facts)
    assert " --alpha 0.6 --shortlist | " in evaluate("m", "in.en", "ref.de", shortlist=True).recipe
    assert shouting[-1] == (
        "translate",
        2,
        {"beam": 4, "alpha": 0.6, "shortlist": True, "to": "", "domain": ""},
    )
    with pytest.raises(ConfigError, match=r"'evaluation\.beams'; did you mean 'evaluation\.beam'"):
        evaluate("m", "in.en", "ref.de", beams=2)


def test_files_that_do_not_match_are_refused_before_anything_is_translated(shouting, files):
    with pytest.raises(DataError, match=r"in\.en has 2 lines and short\.de has 1"):
        evaluate("model", "in.en", ["ref.de", "short.de"])
    assert shouting == []


def test_a_file_of_translations_is_scored_without_a_model(files):
    result = evaluate_file("ref.de", "ref.de")
    assert result.scores.bleu == pytest.approx(100)
    assert result.recipe.startswith("transduce evaluate --hypotheses ref.de --reference ref.de | sacreBLEU ")
    with pytest.raises(DataError, match=r"ref\.de has 2 lines and short\.de has 1"):
        evaluate_file("ref.de", "short.de")


def test_the_papers_bleu_stands_beside_and_not_instead(shouting, files):
    pytest.importorskip("sacremoses")
    result = evaluate("model", "in.en", "ref.de", paper_bleu="de")
    assert result.paper is not None
    assert result.scores == evaluate("model", "in.en", "ref.de").scores
    assert "--paper-bleu --language de" in result.recipe
    assert "not comparable" in result.as_dict()["paper_bleu_signature"]


def test_the_dictionary_is_json_and_complete(files):
    values = json.loads(json.dumps(evaluate_file("ref.de", ["ref.de", "ref.de"]).as_dict()))
    assert {"bleu", "chrf", "ter", "signature", "chrf_signature", "ter_signature", "brevity_penalty"} <= set(
        values
    )
    assert {"recipe", "version", "sentences", "paper_bleu", "paper_bleu_signature"} <= set(values)
    assert values["paper_bleu"] is None
    assert "nrefs:2" in values["signature"]
