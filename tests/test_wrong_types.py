"""Arguments of a wrong type, as users meet them: without the type checks that pytest adds to every call."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CALLS = """
import sys
from tiny_translator import tiny_bundle
from transduce import Transformer, Translator, train
calls = (
    lambda: train(sys.argv[1], source=3, target="x"),
    lambda: Translator(tiny_bundle()).translate(["a", 3]),
    lambda: Translator(tiny_bundle()).translate(text for text in ["a", "b"]),
    lambda: Transformer(None),
    lambda: Translator(tiny_bundle()).score(["ab"]),
    lambda: Translator(tiny_bundle()).score([("a", "b"), ("a", 3)]),
)
for call in calls:
    try:
        call()
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
"""


def test_each_is_refused_with_what_was_expected(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
    }
    words = [sys.executable, "-c", CALLS, str(tmp_path / "run")]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=120, check=True)
    assert done.stdout.splitlines() == [
        "UsageError: source is 3; it must be the name of a file, or a list of names",
        "UsageError: line 2 is 3, not a string; translate takes a list of strings",
        "UsageError: translate takes a list of lines and got a generator; write translate(list(...))",
        "TypeError: a Transformer is made of a ModelConfig, not None; see ModelConfig.named",
        "UsageError: pair 1 is 'ab'; score takes a list of (source, target)",
        "UsageError: pair 2 is ('a', 3); score takes a list of (source, target)",
    ]
    assert not (tmp_path / "run").exists()
