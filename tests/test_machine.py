import os
import subprocess
import sys
import textwrap

import pytest
import torch

from transduce import machine
from transduce.errors import UsageError


@pytest.fixture
def gpu_machine(monkeypatch, tmp_path):
    """A torch built for CUDA on a machine with an NVIDIA GPU; whether it works is up to the test."""
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(machine, "NVIDIA_TRACES", (tmp_path,))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)


def broken_driver():
    import warnings

    warnings.warn("CUDA initialization: the driver is too old\n(found version 9)", stacklevel=1)
    return False


def test_a_broken_driver_costs_a_warning_and_not_the_run(gpu_machine, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", broken_driver)
    with pytest.warns(UserWarning, match="the CPU is: CUDA initialization: the driver is too old"):
        assert machine.pick_device("auto") == "cpu"


def test_a_library_that_fails_at_first_use_is_noticed(gpu_machine, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("libcublas.so.13: cannot open shared object file")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch, "ones", fail)
    with pytest.warns(UserWarning, match=r"libcublas\.so"):
        assert machine.pick_device("auto") == "cpu"


def test_a_hidden_gpu_is_left_alone_without_a_word(gpu_machine, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert machine.pick_device("auto") == "cpu"


def test_a_working_gpu_is_taken(gpu_machine, monkeypatch):
    monkeypatch.setattr(machine, "cuda_problem", lambda *_: None)
    assert machine.pick_device("auto") == "cuda"
    assert machine.pick_device("cuda:1") == "cuda:1"


def test_a_device_number_beyond_the_last_is_refused(gpu_machine, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(UsageError, match="'cuda:2' cannot be used: there are 2 CUDA devices"):
        machine.pick_device("cuda:2")


def test_mps_comes_after_cuda_and_before_the_cpu(monkeypatch):
    monkeypatch.setattr(machine, "cuda_problem", lambda *_: "none here")
    monkeypatch.setattr(machine, "gpu_present", lambda: False)
    monkeypatch.setattr(machine, "mps_problem", lambda: None)
    assert machine.pick_device("auto") == "mps"


@pytest.mark.parametrize("name", ["cuda", "cuda:0", "mps"])
def test_a_named_device_that_does_not_work_is_refused_with_the_remedy(name, monkeypatch):
    monkeypatch.setattr(machine, "cuda_problem", lambda *_: "no driver")
    monkeypatch.setattr(machine, "mps_problem", lambda: "no Apple silicon")
    with pytest.raises(UsageError, match=f"device '{name}' cannot be used: no .*; use --device cpu"):
        machine.pick_device(name)


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:x", "CPU", ""])
def test_an_unknown_device_is_refused(name):
    with pytest.raises(UsageError, match=r"unknown device .*choose auto, cpu"):
        machine.pick_device(name)


@pytest.mark.parametrize(("amx", "avx"), [(True, False), (False, True), (False, False)])
def test_auto_precision_is_bf16_only_where_the_cpu_has_it(amx, avx, monkeypatch):
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: True)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx, raising=False)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: avx, raising=False)
    assert machine.fast_bf16() == (amx or avx)
    assert machine.pick_precision("auto", "cpu") == ("bf16" if amx or avx else "fp32")
    assert machine.pick_precision("bf16", "cpu") == "bf16"
    assert machine.pick_precision("auto", "mps") == "fp32"


def test_a_torch_without_the_probes_has_no_fast_bf16(monkeypatch):
    monkeypatch.delattr(torch.cpu, "_is_amx_tile_supported", raising=False)
    monkeypatch.delattr(torch.cpu, "_is_avx512_bf16_supported", raising=False)
    assert not machine.fast_bf16()


@pytest.mark.parametrize(("capability", "precision"), [((9, 0), "bf16"), ((8, 0), "bf16"), ((7, 5), "fp32")])
def test_auto_precision_on_cuda_follows_the_generation(capability, precision, monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    assert machine.pick_precision("auto", "cuda:0") == precision


def test_an_unknown_precision_is_refused():
    with pytest.raises(UsageError, match="unknown precision 'fp16': choose auto, bf16, fp32 or"):
        machine.pick_precision("fp16", "cpu")


def cgroups(monkeypatch, tmp_path, table: str, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = tmp_path / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "table").write_text(table)
    monkeypatch.setattr(machine, "CGROUP_ROOT", tmp_path / "cgroup")
    monkeypatch.setattr(machine, "CGROUP_TABLE", tmp_path / "table")


@pytest.mark.parametrize(
    ("table", "files", "cores"),
    [
        ("0::/box\n", {"box/cpu.max": "150000 100000\n"}, 1.5),
        ("0::/box/inner\n", {"box/cpu.max": "50000 100000\n", "box/inner/cpu.max": "max 100000\n"}, 0.5),
        ("0::/elsewhere\n", {"cpu.max": "200000 100000\n"}, 2.0),
        (
            "4:cpu,cpuacct:/box\n3:memory:/\n0::/\n",
            {"cpu/box/cpu.cfs_quota_us": "300000\n", "cpu/box/cpu.cfs_period_us": "100000\n"},
            3.0,
        ),
        ("4:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ("0::/\n", {"cpu.max": "nonsense\n"}, None),
    ],
)
def test_the_cgroup_quota_is_read_in_both_versions(table, files, cores, monkeypatch, tmp_path):
    cgroups(monkeypatch, tmp_path, table, files)
    assert machine.cgroup_cores() == cores


def test_no_cgroups_no_quota(monkeypatch, tmp_path):
    monkeypatch.setattr(machine, "CGROUP_TABLE", tmp_path / "none")
    assert machine.cgroup_cores() is None


@pytest.mark.parametrize(("quota", "cores"), [(None, 6), (1.5, 2), (0.2, 1), (64.0, 6)])
def test_usable_cores_are_the_mask_within_the_quota(quota, cores, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)), raising=False)
    monkeypatch.setattr(machine, "cgroup_cores", lambda: quota)
    assert machine.usable_cores() == cores


def test_the_memory_limit_of_the_cgroup_counts(monkeypatch, tmp_path):
    whole = machine.usable_memory()
    cgroups(monkeypatch, tmp_path, "0::/box\n", {"box/memory.max": "1000\n", "memory.max": "max\n"})
    assert machine.usable_memory() == 1000
    cgroups(monkeypatch, tmp_path, "0::/box\n", {"box/memory.max": f"{2**63}\n"})
    assert whole is None or machine.usable_memory() >= whole


def test_threads_never_exceed_the_usable_cores(monkeypatch):
    before = torch.get_num_threads()
    try:
        monkeypatch.setattr(machine, "usable_cores", lambda: 2)
        assert machine.set_threads(64) == torch.get_num_threads() == 2
        assert machine.set_threads(1) == torch.get_num_threads() == 1
        assert machine.set_threads() == 1
        with pytest.raises(UsageError, match="threads is -1"):
            machine.set_threads(-1)
    finally:
        torch.set_num_threads(before)


def test_the_allocator_is_left_to_the_user_who_tuned_it(monkeypatch):
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.mmap_max=0")
    assert "GLIBC_TUNABLES" in machine.tune_allocator()
    monkeypatch.delenv("GLIBC_TUNABLES")
    monkeypatch.setenv("LD_PRELOAD", "/usr/lib/libtcmalloc.so.4")
    assert "libtcmalloc" in machine.tune_allocator()


@pytest.mark.parametrize(("platform", "said"), [("darwin", "darwin"), ("win32", "win32")])
def test_the_allocator_of_other_systems_is_left_alone(platform, said, monkeypatch):
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    monkeypatch.setenv("LD_PRELOAD", "")
    monkeypatch.setattr(sys, "platform", platform)
    assert said in machine.tune_allocator()


def test_a_c_library_other_than_glibc_is_left_alone(monkeypatch):
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    monkeypatch.setenv("LD_PRELOAD", "")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(machine.ctypes, "CDLL", lambda _: object())
    assert "not glibc" in machine.tune_allocator()


@pytest.mark.skipif(sys.platform != "linux", reason="page faults and glibc are Linux's")
def test_after_tuning_a_large_block_is_re_used_without_page_faults():
    program = """
        import resource, sys
        from transduce import machine
        if sys.argv[1] == "tuned" and "keep" not in machine.tune_allocator():
            print("other allocator"); sys.exit()
        def faults():
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            for _ in range(10):
                bytearray(32 * 2**20)
            return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
        faults()
        print(faults())
    """
    environment = {k: v for k, v in os.environ.items() if k not in ("GLIBC_TUNABLES", "LD_PRELOAD")}

    def run(mode: str) -> str:
        command = [sys.executable, "-c", textwrap.dedent(program), mode]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        ).stdout.strip()

    tuned = run("tuned")
    if tuned == "other allocator":
        pytest.skip("this C library is not glibc")
    assert int(tuned) < 100 < int(run("untuned"))


def test_waiting_threads_soon_sleep_unless_the_user_said_otherwise() -> None:
    import subprocess
    import sys

    code = "import os, transduce.machine as m; m.tune_waiting(); print(os.environ.get('GOMP_SPINCOUNT'))"
    said: list[tuple[dict[str, str], str]] = [
        ({}, "20000"),
        ({"GOMP_SPINCOUNT": "7"}, "7"),
        ({"OMP_WAIT_POLICY": "ACTIVE"}, "None"),
    ]
    ours = {n: v for n, v in os.environ.items() if n not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    for more, expected in said:
        done = subprocess.run(
            [sys.executable, "-c", code], env={**ours, **more}, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == expected
