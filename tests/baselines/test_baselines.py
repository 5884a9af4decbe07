"""The recurrent and convolutional translators: what a Transformer must keep, they must keep as well."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from tiny_translator import sentences, tokenizer
from transduce.baselines.comparison import SYSTEMS, Budget, compare_systems
from transduce.baselines.convolutional import ConvolutionalTranslator
from transduce.baselines.recurrent import RecurrentTranslator
from transduce.bundle import Bundle
from transduce.cli.main import main
from transduce.data.config import DataConfig
from transduce.decoding.translator import Translator
from transduce.errors import UsageError
from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer
from transduce.training.config import TrainingConfig

KINDS = [RecurrentTranslator, ConvolutionalTranslator]


def made(kind: type[Transformer], seed: int = 1) -> Transformer:
    torch.manual_seed(seed)
    config = ModelConfig(
        vocabulary=tokenizer().vocabulary,
        d_model=16,
        d_ff=16,
        heads=2,
        encoder_layers=2,
        decoder_layers=3,
        max_length=40,
    )
    return kind(config).eval()


SOURCE = torch.tensor([[5, 9, 7, 1, 0, 0], [8, 6, 4, 11, 12, 1]])
TARGET = torch.tensor([[0, 8, 6, 9], [0, 7, 5, 13]])


@pytest.mark.parametrize("kind", KINDS)
def test_one_token_at_a_time_equals_all_at_once(kind: type[Transformer]) -> None:
    model = made(kind)
    with torch.no_grad():
        whole = model(SOURCE, TARGET)
        state: Any = model.start(SOURCE)
        for t in range(TARGET.shape[1]):
            logits, state = model.decode(TARGET[:, t : t + 1], state)
            torch.testing.assert_close(logits[:, 0], whole[:, t], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_padding_and_the_future_never_leak(kind: type[Transformer]) -> None:
    model = made(kind)
    with torch.no_grad():
        whole = model(SOURCE, TARGET)
        alone = model(SOURCE[:1, :4], TARGET[:1])
        torch.testing.assert_close(whole[:1], alone, atol=1e-5, rtol=1e-4)
        changed = TARGET.clone()
        changed[:, 2:] = 15
        assert torch.equal(model(SOURCE, changed)[:, :2], whole[:, :2])


@pytest.mark.parametrize("kind", KINDS)
def test_every_source_token_can_be_seen(kind: type[Transformer]) -> None:
    model = made(kind)
    with torch.no_grad():
        whole = model(SOURCE, TARGET)
        for place in range(4):
            changed = SOURCE.clone()
            changed[0, place] = 17
            assert not torch.allclose(model(changed, TARGET)[0, 0], whole[0, 0], atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_hypotheses_of_a_sentence_are_rows_like_others(kind: type[Transformer]) -> None:
    model = made(kind)
    with torch.no_grad():
        _, state = model.decode(TARGET[:, :1], model.start(SOURCE))
        state = state.rows(torch.tensor([0, 0, 1, 1]))
        grown = torch.tensor([[8], [3], [7], [9]])
        logits, state = model.decode(grown, state)
        state = state.rows(torch.tensor([3, 2]), torch.tensor([1]))
        last, _ = model.decode(torch.tensor([[5], [6]]), state)
        for row, tokens in enumerate(([0, 9, 5], [0, 7, 6])):
            whole = model(SOURCE[1:], torch.tensor([tokens]))
            torch.testing.assert_close(last[row, 0], whole[0, -1], atol=1e-5, rtol=1e-4)
            torch.testing.assert_close(logits[3 - row, 0], whole[0, 1], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_they_translate_and_no_output_depends_on_its_batch(kind: type[Transformer]) -> None:
    translator = Translator(Bundle(model=made(kind), tokenizer=tokenizer(), training={}))
    texts = sentences(6, seed=4, words=(1, 5))
    together = translator.translate(texts, beam=3, max_extra=8)
    assert together == [translator.translate([text], beam=3, max_extra=8)[0] for text in texts]


@pytest.mark.parametrize("kind", KINDS)
def test_every_parameter_learns(kind: type[Transformer]) -> None:
    model = made(kind).train()
    model(SOURCE, TARGET).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert bool((parameter.grad != 0).any()), name


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    words = ["ab", "cd", "ef", "gh", "ij", "kl", "mn", "op", "qr", "st"]
    lines = [" ".join(words[(i * k) % 10] for k in range(1, 4)) for i in range(150)]
    found = {}
    for name, part in (("train", lines[:130]), ("valid", lines[130:])):
        for side, turn in (("s", 1), ("t", -1)):
            path = tmp_path / f"{name}.{side}"
            path.write_text("".join(f"{' '.join(line.split()[::turn])}\n" for line in part))
            found[f"{name}_{side}"] = str(path)
    return found


def test_all_learn_from_the_same_batches(files: dict[str, str], tmp_path: Path, monkeypatch: Any) -> None:
    from transduce.training import bare

    seen: dict[str, list[Any]] = {}
    real = bare.update

    def noted(model: Transformer, optimizer: Any, batches: Any, config: Any, **named: Any) -> Any:
        kept = seen.setdefault(type(model).__name__, [])
        kept.append([batch.source.tolist() for batch in batches])
        return real(model, optimizer, batches, config, **named)

    monkeypatch.setattr(bare, "update", noted)
    data = DataConfig(
        source=(files["train_s"],),
        target=(files["train_t"],),
        valid_source=(files["valid_s"],),
        valid_target=(files["valid_t"],),
        vocabulary=300,
    )
    rows = compare_systems(
        data,
        tmp_path / "data",
        model={"d_model": 16, "d_ff": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": 2},
        training=TrainingConfig(
            batch_tokens=200, schedule="linear", rate=5e-3, warmup=5, max_steps=1, report_every=10
        ),
        budget=Budget(steps=30),
        rates={"recurrent": 1e-2},
    )
    assert [row["system"] for row in rows] == list(SYSTEMS)
    assert [row["updates"] for row in rows] == [30] * 3
    assert rows[0]["target_tokens"] == rows[1]["target_tokens"] == rows[2]["target_tokens"]
    assert rows[1]["rate"] == 1e-2
    assert [[point["updates"] for point in row["curve"]] for row in rows] == [[10, 20, 30]] * 3
    assert all(curve[0]["perplexity"] > curve[-1]["perplexity"] for curve in (row["curve"] for row in rows))
    one, *others = seen.values()
    assert all(other == one for other in others)
    assert all(row["perplexity"] < 100 for row in rows)


def test_the_budget() -> None:
    assert Budget(steps=10).done(5, 99.0) == 0.5
    assert Budget(steps=10, seconds=4.0).done(5, 3.0) == 0.75
    with pytest.raises(UsageError, match="a budget of 0 updates and 0 s is none"):
        Budget()


def test_the_command(files: dict[str, str], tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("transduce.machine.tune_allocator", lambda: "")
    monkeypatch.setattr("transduce.machine.set_threads", lambda threads: 1)
    call = [
        "paper",
        "baselines",
        "--source",
        files["train_s"],
        "--target",
        files["train_t"],
        "--d-model",
        "16",
    ]
    call += ["--valid-source", files["valid_s"], "--valid-target", files["valid_t"], "--vocabulary", "300"]
    call += ["--output", str(tmp_path / "b"), "--steps", "2", "--layers", "1"]
    assert main([*call, "--plot", str(tmp_path / "no" / "a.svg")]) == 2
    assert "in none that exists" in capsys.readouterr().err
    assert main(call) == 0
    assert "convolutional" in capsys.readouterr().out
    assert len(json.loads((tmp_path / "b" / "baselines.json").read_bytes())["rows"]) == 3
    for wrong, said in (
        (["--rates", "1"], "--rates 1: expected 3 numbers"),
        (["--systems", "gnu", "--rates", "0.1"], "system 'gnu'; choose among transformer"),
        (["--steps", "0"], "is none; set one above 0"),
    ):
        assert main([*call, *wrong]) == 2
        assert said in capsys.readouterr().err
