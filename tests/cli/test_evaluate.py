import json

import pytest
import sacrebleu

from tiny_translator import sentences, tiny_bundle
from transduce.bundle import save_bundle
from transduce.cli.main import main
from transduce.decoding.translator import Translator


@pytest.fixture
def files(tmp_path, monkeypatch):
    (tmp_path / "out.de").write_bytes("Der Hund bellt laut.\nDie Kuh schläft heute.\n".encode())
    (tmp_path / "ref.de").write_bytes("Der Hund bellt laut.\nDie Katze schläft heute nicht.\n".encode())
    (tmp_path / "tokenised.de").write_bytes(b"ein Te@@ xt\nnoch ein Te@@ xt\n")
    monkeypatch.chdir(tmp_path)


SCORE = ["evaluate", "--hypotheses", "out.de", "--reference", "ref.de"]


def test_scores_with_their_signatures_and_the_recipe(files, capsys):
    assert main(SCORE) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    names = [line.split()[0] for line in captured.out.splitlines()]
    assert names == ["BLEU", "chrF2", "TER", "2", "recipe:"]
    assert "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp" in captured.out
    assert "recipe: transduce evaluate --hypotheses out.de --reference ref.de | " in captured.out


def test_json_is_exactly_one_object_on_stdout(files, capsys):
    assert main([*SCORE, "--json"]) == 0
    captured = capsys.readouterr()
    values = json.loads(captured.out)
    assert captured.out.count("\n") == 1
    assert 0 < values["bleu"] < 100
    assert {"bleu", "chrf", "ter", "signature", "recipe"} <= set(values)


def test_the_papers_bleu_is_labelled(files, capsys):
    pytest.importorskip("sacremoses")
    assert main([*SCORE, "--paper-bleu"]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("paper BLEU"))
    assert "not comparable with sacreBLEU" in line


def test_several_references(files, capsys):
    assert main([*SCORE, "--reference", "out.de", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["bleu"] == pytest.approx(100)
    assert "nrefs:2" in values["signature"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--reference", "ref.de"], "nothing to score: name a model folder"),
        (["model", "--reference", "ref.de"], "--source is missing: the file that model is to translate"),
        (["model", "--hypotheses", "out.de", "--reference", "ref.de"], "--hypotheses is scored as it is"),
        (["m", "--source", "s", "--reference", "r", "--output", "no/x"], "no/x: there is no folder no"),
        (["--hypotheses", "out.de", "--reference", "ref.de", "--output", "x"], "leave out the models"),
    ],
)
def test_arguments_that_do_not_go_together_are_refused(arguments, message, files, capsys):
    assert main(["evaluate", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert captured.err.count("\n") == 1


def test_files_that_cannot_be_scored_exit_with_1(files, capsys):
    assert main(["evaluate", "--hypotheses", "none.de", "--reference", "ref.de"]) == 1
    assert capsys.readouterr().err.startswith("transduce: error: none.de: ")


def test_tokenised_text_brings_a_warning(files, capsys):
    with pytest.warns(UserWarning, match=r"tokenised\.de looks tokenised"):
        assert main(["evaluate", "--hypotheses", "tokenised.de", "--reference", "ref.de"]) == 0


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A model folder, a source, and a reference that agrees with the model's output here and there."""
    bundle = tiny_bundle()
    training = {"steps": 700, "averaged": ["a", "b", "c"]}
    save_bundle(tmp_path / "model", bundle.model, bundle.model.config, bundle.tokenizer, training)
    source = sentences(12, seed=5)
    translations = Translator.load(tmp_path / "model", device="cpu").translate(source, beam=2, alpha=0.9)
    reference = [line if number % 3 else line[: len(line) // 2] for number, line in enumerate(translations)]
    for name, lines in (("in.en", source), ("ref.de", reference)):
        (tmp_path / name).write_bytes("".join(f"{line}\n" for line in lines).encode())
    monkeypatch.chdir(tmp_path)
    return translations


@pytest.mark.filterwarnings("ignore:.*looks tokenised")
def test_a_model_its_written_output_and_the_library_agree(model, capsys):
    flags = ["--source", "in.en", "--reference", "ref.de", "--beam", "2", "--alpha", "0.9", "--device", "cpu"]
    assert main(["evaluate", "model", *flags, "--output", "out.de", "--json"]) == 0
    captured = capsys.readouterr()
    values = json.loads(captured.out)
    with open("out.de", "rb") as file:
        written = file.read().decode().split("\n")
    assert written == [*model, ""]
    with open("ref.de", "rb") as file:
        reference = file.read().decode().split("\n")[:-1]
    library = sacrebleu.corpus_bleu(written[:-1], [reference], force=True)
    assert values["bleu"] == pytest.approx(library.score, abs=0.01)
    assert 0 < values["bleu"] < 100
    assert "--beam 2 --alpha 0.9 | 700 updates | average of 3 checkpoints | cpu " in values["recipe"]

    assert main(["evaluate", "--hypotheses", "out.de", "--reference", "ref.de", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert {name: again[name] for name in ("bleu", "chrf", "ter", "signature")} == {
        name: values[name] for name in ("bleu", "chrf", "ter", "signature")
    }


@pytest.mark.filterwarnings("ignore:.*looks tokenised")
def test_an_ensemble_is_scored_and_named_in_the_recipe(model, capsys):
    flags = ["--source", "in.en", "--reference", "ref.de", "--beam", "2", "--alpha", "0.9", "--device", "cpu"]
    assert main(["evaluate", "model", *flags, "--json"]) == 0
    alone = json.loads(capsys.readouterr().out)
    assert main(["evaluate", "model", "--ensemble", "model", *flags, "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["bleu"] == alone["bleu"]
    assert values["recipe"].startswith(
        "transduce evaluate model --ensemble model --ensemble-by mean --source in.en --reference ref.de"
    )
    assert "| model 1: 700 updates | model 1: average of 3 checkpoints | model 2: 700" in values["recipe"]
    assert main(["evaluate", "--hypotheses", "in.en", "--ensemble", "model", "--reference", "ref.de"]) == 2
    assert "leave out the models" in capsys.readouterr().err
