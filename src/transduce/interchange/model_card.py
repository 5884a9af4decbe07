"""What stands beside an exported model: how it was made, how good it is, and how to use it."""

from __future__ import annotations

import dataclasses
from typing import Any

from transduce import __version__
from transduce.bundle import Bundle
from transduce.counts import counted

_SCORES = (("bleu", "BLEU"), ("chrf", "chrF"), ("loss", "loss"))


def model_card(bundle: Bundle, remarks: list[str]) -> str:
    """README.md of a folder that transformers loads."""
    training = bundle.training
    recipe = training.get("recipe")
    name = "PegasusForConditionalGeneration" if bundle.model.config.norm == "pre" else "MarianMTModel"
    parts = [
        "---\nlibrary_name: transformers\npipeline_tag: translation\n---\n",
        "# A translation model\n",
        f"A Transformer of {bundle.model.parameter_count():,} parameters, trained with and exported by "
        f"transduce {__version__}.\n",
        "```python\nimport transformers\n\n"
        'tokenizer = transformers.AutoTokenizer.from_pretrained("PATH")\n'
        f'model = transformers.{name}.from_pretrained("PATH")\n'
        'batch = tokenizer(["A sentence."], return_tensors="pt")\n'
        "print(tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True))\n```\n",
        _scores(training.get("scores")),
        _listed("Where it differs", remarks),
        _listed("Shape", [f"{k} = {v}" for k, v in dataclasses.asdict(bundle.model.config).items()]),
        _listed("Recipe", [f"{k} = {v}" for k, v in _leaves(recipe)] if isinstance(recipe, dict) else []),
    ]
    return "\n".join(part for part in parts if part)


def _scores(scores: Any) -> str:
    if not isinstance(scores, dict) or "bleu" not in scores:
        return "## Scores\n\nNone are known.\n"
    found = [f"{name} {scores[key]:.2f}" for key, name in _SCORES if isinstance(scores.get(key), float)]
    lines = scores.get("lines")
    size = counted(lines, "pair") if isinstance(lines, int) else "? pairs"
    how = f"{scores.get('set', '?')} set of {size}, beam {scores.get('beam', '?')}"
    how = f"{how}, alpha {scores.get('alpha', '?')}, {scores.get('signature', '?')}"
    return f"## Scores\n\n{', '.join(found)}: {how}\n"


def _listed(title: str, lines: list[str]) -> str:
    return "" if not lines else f"## {title}\n\n" + "".join(f"- {line}\n" for line in lines)


def _leaves(values: dict[str, Any], before: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, value in values.items():
        if isinstance(value, dict):
            found += _leaves(value, f"{before}{name}.")
        elif value not in (None, [], "", 0, False):
            found.append((before + name, value))
    return found
