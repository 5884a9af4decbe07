"""The end of a run: an average of its weights, scored, and written as a model folder (section 6.1)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from transduce.bundle import Bundle, save_bundle
from transduce.counts import counted
from transduce.data.config import NO_FILES
from transduce.data.prepare import Prepared
from transduce.decoding.translator import Translator
from transduce.evaluation.scores import score
from transduce.files import write_json
from transduce.model.transformer import Transformer
from transduce.training.averaging import average
from transduce.training.ema import read_average
from transduce.training.log import RunLog
from transduce.training.settings import RunSettings
from transduce.training.trainer import Trainer
from transduce.training.validation import (
    first_of_each,
    lines_by_languages,
    outputs_of,
    scores_by_languages,
    validation_loss,
)

BEAM, ALPHA = 4, 0.6


def finish(
    trainer: Trainer, data: Prepared, settings: RunSettings, folder: Path, *, reason: str, log: RunLog
) -> dict[str, Any]:
    """The final model's scores on the validation set, empty after a signal; ``folder`` holds the model."""
    model, p = trainer.learner.plain(), trainer.progress
    averaged = [] if trainer.ema else trainer.checkpoints.last(settings.training.average)
    weights = read_average(trainer.checkpoints.last(1)[0]) if trainer.ema else average(averaged)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weights[name])
    recipe = {**settings.as_dict(), "precision": trainer.precision, "device": trainer.device}
    for name, value in recipe["data"].items():
        if isinstance(value, list) and name not in NO_FILES:  # names, without the folders of this machine
            recipe["data"][name] = [Path(path).name for path in value]
    if settings.start:
        recipe["start"]["folder"] = Path(settings.start["folder"]).name
    training = {
        "recipe": recipe,
        "start": recipe.get("start"),
        "ended": reason,
        "steps": p.step,
        "epochs": round(p.target_tokens / max(1, trainer.batching.target_tokens(1)), 3),
        "seconds": round(p.seconds, 1),
        "workers": trainer.workers.count,
        "source_tokens": p.source_tokens,
        "target_tokens": p.target_tokens,
        "averaged": [path.name for path in averaged],
        "ema": settings.training.ema,
        "scores": {},
        "data": data.report.to_dict(),
    }
    # First of all the model: whoever loses patience while it is scored has it nevertheless.
    save_bundle(folder, model, model.config, data.tokenizer, training)
    what = f"the average of the last {counted(len(averaged), 'checkpoint')}"
    if trainer.ema:
        what = f"the moving average of the weights with decay {trainer.ema.decay:g}"
    log.say(f"model, {what}: {folder}")
    scores: dict[str, Any] = {}
    if trainer.interrupted is None:
        scores = final_scores(
            model, data, settings.training.valid_lines, device=trainer.device, precision=trainer.precision
        )
        log.say(
            f"validation, beam {BEAM}: BLEU {scores['bleu']:.2f}, chrF {scores['chrf']:.2f}, "
            f"exact {scores['exact']:.1%} ({scores['signature']})"
        )
        for line in lines_by_languages(scores.get("languages", {})):
            log.say(line)
        write_json(folder / "training.json", {**training, "scores": scores})
    log.write("end", {"reason": reason, "step": p.step, "seconds": p.seconds, "scores": scores})
    return scores


def final_scores(
    model: Transformer, data: Prepared, lines: int, *, device: str, precision: str
) -> dict[str, Any]:
    """Scores on the validation set's first ``lines`` pairs, as `transduce evaluate` would give them."""
    model.eval()
    pairs = first_of_each(data.valid_pairs, lines)
    bundle = Bundle(model=model, tokenizer=data.tokenizer, training={}, path=None)
    translator = Translator(bundle, device=device, precision=precision)
    outputs = outputs_of(translator, pairs, beam=BEAM, alpha=ALPHA)
    result = score(outputs, [pair.target for pair in pairs], ter=False)
    return {
        "set": "validation",
        "lines": len(pairs),
        "bleu": result.bleu,
        "chrf": result.chrf,
        "exact": sum(o == pair.target for o, pair in zip(outputs, pairs, strict=True)) / len(pairs),
        "loss": validation_loss(model, data.valid, device=device, precision=precision),
        "signature": result.signature,
        "beam": BEAM,
        "alpha": ALPHA,
        **({"languages": languages} if (languages := scores_by_languages(outputs, pairs)) else {}),
    }
