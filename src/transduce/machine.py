"""What this machine offers (devices, fast bf16, cores, memory) and the few settings that make it faster.

torch is imported inside the functions, so that importing this module stays light.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import sys
import warnings
from pathlib import Path

from transduce.errors import UsageError

CGROUP_ROOT = Path("/sys/fs/cgroup")
CGROUP_TABLE = Path("/proc/self/cgroup")
NVIDIA_TRACES = (Path("/dev/nvidia0"), Path("/proc/driver/nvidia/version"), Path("/dev/dxg"))

# glibc's <malloc.h>
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4
_TOP_PAD_BYTES = 256 * 2**20


def pick_device(name: str = "auto") -> str:
    """The torch device to use: ``cuda``, ``cuda:N``, ``mps`` or ``cpu``.

    ``auto`` takes the first of CUDA, MPS and CPU that works; a GPU that is present but unusable costs a
    warning, never the run. A device that is named and does not work is a UsageError with the remedy.
    """
    if name == "cpu":
        return name
    if name == "auto":
        problem = cuda_problem()
        if problem is None:
            return "cuda"
        if gpu_present() and has_cuda_build():
            warnings.warn(f"CUDA is not used, the CPU is: {problem}", stacklevel=2)
        return "mps" if mps_problem() is None else "cpu"
    if name == "cuda" or (name.startswith("cuda:") and name[5:].isdecimal()):
        problem = cuda_problem(name)
    elif name == "mps":
        problem = mps_problem()
    else:
        raise UsageError(f"unknown device {name!r}: choose auto, cpu, cuda, cuda:N or mps")
    if problem is not None:
        raise UsageError(f"device {name!r} cannot be used: {problem}; use --device cpu or auto")
    return name


def cuda_problem(device: str = "cuda") -> str | None:
    """Why ``device`` (``cuda`` or ``cuda:N``) cannot be used, in one line; None when it works.

    A real product is computed on it: drivers and libraries that do not fit are seen at first use only.
    """
    import torch

    if not has_cuda_build():
        return "this torch is built without CUDA (pytorch.org tells how to install one with it)"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            if not torch.cuda.is_available():
                said = next((one_line(w.message) for w in caught if "CUDA" in str(w.message)), None)
                return said or "torch finds no usable CUDA device (see `nvidia-smi`)"
            count = torch.cuda.device_count()
            if device != "cuda" and int(device[5:]) >= count:
                return f"there are {count} CUDA devices, counted from 0"
            one = torch.ones(8, 8, device=device)
            torch.mm(one, one).sum().item()
        except Exception as error:  # whatever the driver raises, there is no GPU for us
            return f"{type(error).__name__}: {one_line(error)}"
    return None


def has_cuda_build() -> bool:
    """True where torch is built for NVIDIA's or AMD's GPUs."""
    import torch

    return torch.version.cuda is not None or torch.version.hip is not None


def mps_problem() -> str | None:
    """Why Apple's GPU cannot be used, in one line; None when it works."""
    import torch

    if not torch.backends.mps.is_built():
        return "this torch is built without MPS, which is for Apple silicon"
    if not torch.backends.mps.is_available():
        return "macOS offers no MPS device (it needs Apple silicon and macOS 12.3 or newer)"
    return None


def gpu_present() -> bool:
    """True where the system shows an NVIDIA GPU and CUDA_VISIBLE_DEVICES does not hide it."""
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0") in ("", "-1"):
        return False
    return any(path.exists() for path in NVIDIA_TRACES)


def fast_bf16() -> bool:
    """True where the CPU multiplies bf16 matrices in hardware (AMX tiles or AVX512-BF16).

    Elsewhere torch emulates them, about ten times slower than fp32.
    """
    import torch

    probes = [getattr(torch.cpu, f"_is_{name}_supported", None) for name in ("amx_tile", "avx512_bf16")]
    fast = any(probe is not None and probe() for probe in probes)
    return fast and bool(torch.backends.mkldnn.is_available())  # type: ignore[no-untyped-call]


def pick_precision(name: str, device: str) -> str:
    """``bf16`` or ``fp32``; ``auto`` is bf16 only where the device computes it fast."""
    if name in ("bf16", "fp32") or (name == "int8" and device == "cpu"):
        return name
    if name != "auto":
        raise UsageError(f"unknown precision {name!r}: choose auto, bf16, fp32 or (on a CPU) int8")
    if device.startswith("cuda"):
        import torch

        # Before compute capability 8.0 (Ampere), bf16 is emulated.
        return "bf16" if torch.cuda.get_device_capability(device)[0] >= 8 else "fp32"
    return "bf16" if device == "cpu" and fast_bf16() else "fp32"


def tune_waiting() -> None:
    """Nothing; OpenMP threads that wait for others soon sleep, unless the user said how they should wait.

    Only a process that has not loaded torch yet is changed. Where another program keeps one core busy,
    threads that spin hold up the one that is waited for: `docs/results.md` has the figures.
    """
    if "torch" not in sys.modules and "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "20000")


def tune_allocator() -> str:
    """One line that says what was done; freed memory stays with the process where glibc allocates.

    glibc hands every large tensor back to the kernel when it is freed, so that a training step faults in
    hundreds of thousands of fresh pages. With ``mallopt`` it keeps them for the next step. Call it before
    the first large allocation; a second call changes nothing. The price: the process stays at its peak.
    """
    if "GLIBC_TUNABLES" in os.environ:
        return "left as GLIBC_TUNABLES sets it"
    if "malloc" in os.environ.get("LD_PRELOAD", ""):
        return f"left to the preloaded {os.environ['LD_PRELOAD']}"
    if sys.platform != "linux":
        return f"left as {sys.platform} sets it"
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "gnu_get_libc_version") or not hasattr(libc, "mallopt"):
        return "left as the C library sets it (not glibc)"
    # -1 turns trimming off (mallopt(3)).
    settings = ((_M_MMAP_MAX, 0), (_M_TRIM_THRESHOLD, -1), (_M_TOP_PAD, _TOP_PAD_BYTES))
    if not all(libc.mallopt(parameter, value) for parameter, value in settings):
        return "glibc refused to be tuned"
    return "glibc, tuned to keep freed memory for the next step"


def usable_cores() -> int:
    """The CPU cores that this process may use: the affinity mask, bounded by the cgroup's quota."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cgroup_cores()
    return cores if quota is None else max(1, min(cores, math.ceil(quota)))


def set_threads(threads: int | None = None) -> int:
    """The number of threads that torch computes with from now on, never more than the usable cores.

    None or 0 keeps torch's own choice (which follows OMP_NUM_THREADS) within that bound.
    """
    import torch

    if threads is not None and threads < 0:
        raise UsageError(f"threads is {threads}: give a number of threads, or 0 for torch's own choice")
    chosen = min(threads or torch.get_num_threads(), usable_cores())
    if chosen != torch.get_num_threads():
        torch.set_num_threads(chosen)
    return chosen


def usable_memory() -> int | None:
    """Bytes of memory that this process may fill: the machine's, bounded by the cgroup; None if unknown."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
    return min([total, *_cgroup_numbers("memory", "memory.max", "memory.limit_in_bytes")])


def free_memory() -> int | None:
    """Bytes that this process may still fill, by machine, cgroup and ulimit; None if unknown."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").split("\n")
        free = [1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
        taken = 1024 * int(
            next(
                line.split()[1]
                for line in Path("/proc/self/status").read_text(encoding="ascii").split("\n")
                if line.startswith("VmSize:")
            )
        )
    except (OSError, StopIteration):
        return None
    import resource

    for folder in _cgroup_folders("memory"):
        with contextlib.suppress(OSError, ValueError, StopIteration):
            limit, used = (int((folder / f"memory.{name}").read_text()) for name in ("max", "current"))
            stat = (folder / "memory.stat").read_text().split("\n")
            cached = next(int(line.split()[1]) for line in stat if line.startswith("inactive_file "))
            free.append(limit - used + cached)
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY:
        free.append(limit - taken)
    return min(free, default=None)


def cgroup_cores() -> float | None:
    """The tightest CPU quota of this process's control groups, in cores; None without one."""
    quotas = []
    for folder in _cgroup_folders("cpu"):
        with contextlib.suppress(OSError, ValueError):
            quota, period = (folder / "cpu.max").read_text().split()
            if quota != "max":
                quotas.append(int(quota) / int(period))
        with contextlib.suppress(OSError, ValueError):
            quota, period = ((folder / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
            if int(quota) > 0:
                quotas.append(int(quota) / int(period))
    return min(quotas, default=None)


def one_line(message: object) -> str:
    """The message with its line breaks turned into spaces, cut after 200 characters."""
    text = " ".join(str(message).split())
    return text if len(text) <= 200 else text[:197] + "..."


def _cgroup_folders(controller: str) -> list[Path]:
    """The folders of this process's control groups for ``controller`` and all groups above them."""
    folders = []
    with contextlib.suppress(OSError):
        for line in CGROUP_TABLE.read_text().splitlines():
            _, names, path = line.split(":", 2)
            if names and controller not in names.split(","):
                continue
            mount = CGROUP_ROOT / controller if names else CGROUP_ROOT
            group = mount / path.lstrip("/")
            # In a container the path may be the host's: then only the mount itself is there.
            folders += [folder for folder in (group, *group.parents) if folder.is_relative_to(mount)]
    return [folder for folder in folders if folder.is_dir()]


def _cgroup_numbers(controller: str, *names: str) -> list[int]:
    """The limits (whole numbers) that files called ``names`` hold, in all groups of this process."""
    limits = []
    for folder in _cgroup_folders(controller):
        for name in names:
            with contextlib.suppress(OSError, ValueError):
                limits.append(int((folder / name).read_text()))
    return limits
