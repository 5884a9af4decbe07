"""COMET: what its program is asked, what may go wrong, tests by hand; and the program itself, where it is."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from transduce.cli.main import main
from transduce.errors import DataError, UsageError
from transduce.evaluation.comet import comet_scores
from transduce.evaluation.significance import paired_segment_tests

# Scores a line by the words that it shares with the reference, as the real one answers.
PROGRAM = """#!{python}
import json, os, sys
assert os.environ["HF_HUB_OFFLINE"] == "1" and os.environ["TORCH_FORCE_WEIGHTS_ONLY_LOAD"] == "1"
given = sys.argv[1:]
if "broken" in open(given[given.index("--model") + 1]).read():
    sys.exit("Traceback: much\\nValueError: no such layer")
begin = given.index("--translations") + 1
names = given[begin:given.index("--model")]
read = lambda name: open(name, encoding="utf-8").readlines()
reference = read(given[given.index("--references") + 1])
assert len(read(given[given.index("--sources") + 1])) == len(reference)
shared = lambda one, other: len(set(one.split()) & set(other.split())) / 10
found = {{name: [{{"COMET": shared(a, b)}} for a, b in zip(read(name), reference)] for name in names}}
json.dump(found, open(given[given.index("--to_json") + 1], "w"))
"""


@pytest.fixture
def checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "bin" / "comet-score"
    program.parent.mkdir()
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    path = tmp_path / "model" / "checkpoints" / "model.ckpt"
    path.parent.mkdir(parents=True)
    path.write_text("weights")
    (tmp_path / "model" / "hparams.yaml").write_text("")
    return path


def test_each_line_of_each_system(checkpoint: Path) -> None:
    found = comet_scores([["a b", "x\ry"], ["", "c\u2028d e"]], ["1", "2"], ["a b", "x y c"], checkpoint)
    assert found == [[0.2, 0.2], [0.0, 0.1]]


def test_what_is_missing_or_fails(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint.write_text("broken")
    with pytest.raises(
        DataError, match=r"comet-score failed with .*exit code 1.*: ValueError: no such layer"
    ):
        comet_scores([["a"]], ["1"], ["a"], checkpoint)
    with pytest.raises(UsageError, match=r"wmt22-comet-da: is no COMET model on this machine"):
        comet_scores([["a"]], ["1"], ["a"], "wmt22-comet-da")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UsageError, match=r"needs the program comet-score: install it with `pipx"):
        comet_scores([["a"]], ["1"], ["a"], checkpoint)


def test_the_command(checkpoint: Path, tmp_path: Path, capsys: Any) -> None:
    lines = {"s": ["q"] * 12, "r": ["a b c"] * 12, "one": ["a", "a b"] * 6, "other": ["a b c"] * 12}
    for name, text in lines.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in text))
    call = ["compare", str(tmp_path / "one"), str(tmp_path / "other"), "--source", str(tmp_path / "s")]
    call += ["--reference", str(tmp_path / "r"), "--comet", str(checkpoint), "--samples", "100"]
    page = tmp_path / "p.html"
    assert main([*call, "--json", "--output", str(page)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [round(whole["comet"], 4) for whole in found["whole"]] == [0.15, 0.3]
    tested = [t for t in found["tests"]["bootstrap"] if t["metric"] == "comet"]
    assert tested[0]["p"] is None
    assert tested[1]["p"] == pytest.approx(1 / 101)
    assert '<th scope="col">COMET</th>' in page.read_text()
    assert main(call) == 0
    assert " 0.3000" in capsys.readouterr().out


@pytest.mark.parametrize("test", ["bootstrap", "randomisation"])
def test_significance_of_means(test: str) -> None:
    base = [0.1, 0.5, 0.3, 0.9, 0.4, 0.2, 0.7, 0.6]
    systems = [("base", base), ("same", base), ("swapped", base[::-1]), ("best", [s + 0.05 for s in base])]
    by = {t.system: t for t in paired_segment_tests(systems, "comet", test=test, samples=500)}
    assert by["base"].p is None
    assert by["same"].p == 1.0
    assert by["swapped"].score == pytest.approx(by["base"].score)
    assert (by["swapped"].p or 0) > 0.9
    # the same distance in every sentence: no sample of the bootstrap, and 2 of 2^8 swaps, go against it
    assert (by["best"].p or 1) < 0.03
    assert (by["best"].interval is None) == (test == "randomisation")
    with pytest.raises(UsageError, match="test is 't'"):
        paired_segment_tests(systems, "comet", test="t")


MAKE = """
import sys, torch, yaml, sentencepiece
from pathlib import Path
folder, text = Path(sys.argv[1]), sys.argv[2]
encoder = folder / "encoder"
encoder.mkdir(parents=True)
prefix = str(encoder / "sentencepiece.bpe")
sentencepiece.SentencePieceTrainer.train(
    input=text, model_prefix=prefix, vocab_size=60, hard_vocab_limit=False, model_type="bpe", minloglevel=2)
from transformers import XLMRobertaConfig, XLMRobertaTokenizerFast
tokenizer = XLMRobertaTokenizerFast(vocab_file=prefix + ".model")
tokenizer.save_pretrained(encoder)
config = XLMRobertaConfig(
    vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=2, intermediate_size=16, type_vocab_size=1,
    num_attention_heads=2, max_position_embeddings=130, pad_token_id=1)
config.save_pretrained(encoder)
from comet.models import RegressionMetric
import pytorch_lightning
model = RegressionMetric(encoder_model="XLM-RoBERTa", pretrained_model=str(encoder), hidden_sizes=[8],
    load_pretrained_weights=False, local_files_only=True, layer="mix", batch_size=4)
trainer = pytorch_lightning.Trainer(logger=False, enable_checkpointing=False, accelerator="cpu")
trainer.strategy.connect(model)
(folder / "checkpoints").mkdir()
trainer.save_checkpoint(folder / "checkpoints" / "model.ckpt", weights_only=True)
(folder / "hparams.yaml").write_text(yaml.dump({**model.hparams, "class_identifier": "regression_metric"}))
"""


@pytest.mark.slow
def test_the_program_itself(tmp_path: Path) -> None:
    program = shutil.which("comet-score")
    if program is None:
        pytest.skip("comet-score is not installed (pipx install unbabel-comet)")
    python = Path(program).read_text().splitlines()[0].removeprefix("#!")
    lines = [f"a little house {i} stands by the river" for i in range(40)]
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in lines))
    subprocess.run([python, "-c", MAKE, str(tmp_path / "model"), str(tmp_path / "text")], check=True)
    checkpoint = tmp_path / "model" / "checkpoints" / "model.ckpt"
    sources, other = lines[:3], [lines[3], "", lines[5]]
    found = comet_scores([sources, other], sources, sources, checkpoint)
    assert [len(scores) for scores in found] == [3, 3]
    assert found[0] != found[1]
    assert found[0] == comet_scores([sources], sources, sources, checkpoint)[0]
