"""Which device and how many threads each of several workers takes."""

from __future__ import annotations

import pytest

from transduce.errors import ConfigError
from transduce.training.distributed import Workers


def test_as_many_workers_as_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = Workers(0, 4)
    workers.local_count = 4
    with pytest.raises(ConfigError, match="name auto, cpu or cuda, and each takes one"):
        workers.device("cuda:3")
    assert workers.device("cpu") == "cpu"
    monkeypatch.setattr("transduce.training.distributed.torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("transduce.training.distributed.torch.cuda.device_count", lambda: 2)
    with pytest.raises(
        ConfigError, match=r"4 workers run on .*, which has 2 GPUs: give torchrun --nproc-per-node 2"
    ):
        workers.device("auto")


def test_threads_are_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transduce.training.distributed.machine.usable_cores", lambda: 9)
    workers = Workers(0, 8)
    for local, wanted, given in [(4, 0, 2), (4, 3, 3), (16, 0, 1)]:
        workers.local_count = local
        assert workers.threads(wanted) == given
    assert Workers().threads(0) == 0
