"""``transduce doctor``: what this machine offers, and what is missing, with the remedy."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import shutil
from typing import Annotated, Any

import typer

from transduce import __version__, machine

_GIB = 2**30
_REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z0-9._-]+)[^;]*(?:;\s*extra\s*==\s*['\"](?P<extra>[^'\"]+)['\"])?$"
)


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object for machines.")] = False,
) -> None:
    """Say what this machine offers (devices, precision, cores, memory, extras) and what is missing."""
    report = examine()
    print(json.dumps(report) if as_json else describe(report))


def examine() -> dict[str, Any]:
    """What was found: sizes in bytes, None for what is not there, ``missing`` a list of lines with remedies.

    It never raises: what cannot be found out becomes a line of ``missing``.
    """
    missing: list[str] = []
    return {
        "transduce": __version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        **_torch(missing),
        "cores": machine.usable_cores(),
        "cores_of_machine": os.cpu_count(),
        "memory": machine.usable_memory(),
        "disk_free": _disk_free(missing),
        "allocator": machine.tune_allocator(),
        "extras": _packages(missing),
        "missing": missing,
    }


def describe(report: dict[str, Any]) -> str:
    """The report of ``examine`` as a few lines of text."""
    lines = {
        "transduce": f"{report['transduce']}, Python {report['python']} on {report['platform']}",
        "torch": report["torch"] or "cannot be used",
        "device": _device_line(report),
        "precision": _precision_line(report),
        "cores": f"{report['cores']} usable of {report['cores_of_machine']}; torch uses {report['threads']}",
        "memory": f"{_size(report['memory'])} usable",
        "disk": f"{_size(report['disk_free'])} free in this folder",
        "allocator": report["allocator"],
        "extras": ", ".join(f"{name} {at or 'not there'}" for name, at in report["extras"].items()) or "none",
    }
    rows = [*lines.items(), *(("missing", line) for line in report["missing"])]
    return "\n".join(f"{name:11}{text}" for name, text in rows if text is not None)


def _torch(missing: list[str]) -> dict[str, Any]:
    """What torch says about the machine; all None where it does not load or breaks while asked."""
    nothing = dict.fromkeys(("torch", "device", "cuda", "mps", "precision", "fast_bf16", "threads"))
    try:
        import torch

        problems = {"cuda": machine.cuda_problem(), "mps": machine.mps_problem()}
        device = next((name for name, problem in problems.items() if problem is None), "cpu")
        if problems["cuda"] is not None and machine.gpu_present():
            missing.append(f"CUDA: an NVIDIA GPU is here, but {problems['cuda']}")
        return {
            "torch": str(torch.__version__),
            "device": device,
            "gpus": _gpus() if problems["cuda"] is None else [],
            **problems,
            "precision": machine.pick_precision("auto", device),
            "fast_bf16": machine.fast_bf16(),
            "threads": min(torch.get_num_threads(), machine.usable_cores()),
        }
    except Exception as error:  # not installed, or a library or driver that does not load
        why = f"{type(error).__name__}: {machine.one_line(error)}"
        missing.append(f"torch: {why}; pip install --force-reinstall torch")
        return nothing | {"gpus": []}


def _gpus() -> list[dict[str, Any]]:
    import torch

    found = [torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count())]
    return [{"name": gpu.name, "memory": gpu.total_memory} for gpu in found]


def _device_line(report: dict[str, Any]) -> str | None:
    gpus = ", ".join(f"{gpu['name']} with {_size(gpu['memory'])}" for gpu in report["gpus"])
    if report["device"] == "cpu":
        other = "mps" if report["platform"].startswith("Darwin") else "cuda"
        return f"cpu; no {other}: {report[other]}"
    return f"{report['device']}: {gpus}" if gpus else report["device"]


def _precision_line(report: dict[str, Any]) -> str | None:
    if report["device"] is None:
        return None
    if report["precision"] == "bf16":
        return "bf16, fast here"
    if report["device"] == "cpu":
        return "fp32: this CPU only emulates bf16, about ten times slower"
    return "fp32: bf16 is not fast on this device"


def _size(number: int | None) -> str:
    return "an unknown size" if number is None else f"{number / _GIB:.1f} GiB"


def _disk_free(missing: list[str]) -> int | None:
    try:
        free = shutil.disk_usage(".").free
    except OSError:
        return None
    if free < _GIB:
        missing.append(f"disk: {_size(free)} is free in this folder, a training run may fill it; make room")
    return free


def _packages(missing: list[str]) -> dict[str, str | None]:
    """The version of each optional package, None for those that are not there; notes what is missing."""
    try:
        requirements = importlib.metadata.requires("transduce") or []
    except importlib.metadata.PackageNotFoundError:
        missing.append("transduce is on the path but not installed: pip install -e . in its folder")
        return {}
    optional: dict[str, str | None] = {}
    for found in filter(None, map(_REQUIREMENT.match, requirements)):
        name, extra = found["name"], found["extra"]
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            version = None
            wanted = f"'transduce[{extra}]'" if extra else name
            missing.append(f"{name}{' (optional)' if extra else ''}: pip install {wanted}")
        if extra:
            optional[name] = version
    return optional
