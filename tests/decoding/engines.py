"""The engines that tests of searching run on, OpenVINO where it is installed."""

from __future__ import annotations

import importlib.util

import pytest

ENGINES = [
    "torch",
    pytest.param(
        "openvino",
        marks=pytest.mark.skipif(
            importlib.util.find_spec("openvino") is None,
            reason="needs openvino: pip install 'transduce[fast]'",
        ),
    ),
]
