"""OpenVINO, imported so that it tells nobody of it.

Its package for telemetry, which pip installs beside it, would send an event to a web service at every import,
from a process of its own. While OpenVINO is imported that package cannot be, and OpenVINO does without it.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

_TELEMETRY = "openvino_telemetry"


def _imported() -> ModuleType:
    modules: dict[str, Any] = sys.modules
    known = modules.get(_TELEMETRY)
    modules[_TELEMETRY] = None
    try:
        import openvino
    finally:
        if known is None:
            del modules[_TELEMETRY]
        else:
            modules[_TELEMETRY] = known
    return openvino  # type: ignore[no-any-return]


openvino: Any = _imported()
PartialShape: Any = openvino.PartialShape
Type: Any = openvino.Type
opset13: Any = importlib.import_module("openvino.opset13")
