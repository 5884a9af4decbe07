"""Section 6.1: averaging checkpoints, in float64, of one model only."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from transduce.errors import BundleError, UsageError
from transduce.training.averaging import average


def _write(folder: Path, **tensors: torch.Tensor) -> Path:
    folder.mkdir()
    save_file(tensors, folder / "model.safetensors")
    return folder


def test_the_average_of_equals_is_bit_identical(tmp_path: Path) -> None:
    weights = torch.randn(50, 7, generator=torch.Generator().manual_seed(1))
    folders = [_write(tmp_path / str(i), w=weights) for i in range(20)]
    assert torch.equal(average(folders)["w"], weights)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_average_is_the_float64_mean_rounded_once(tmp_path: Path, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(2)
    all_weights = [(1 + 0.01 * torch.randn(40, generator=generator)).to(dtype) for _ in range(20)]
    folders = [_write(tmp_path / str(i), w=w) for i, w in enumerate(all_weights)]
    expected = torch.stack([w.double() for w in all_weights]).mean(0).to(dtype)
    assert torch.equal(average(folders)["w"], expected)


def test_strangers_are_refused(tmp_path: Path) -> None:
    one = _write(tmp_path / "one", w=torch.zeros(4, 2))
    with pytest.raises(BundleError, match=r"w is \[5, 2\], not \[4, 2\]"):
        average([one, _write(tmp_path / "larger", w=torch.zeros(5, 2))])
    with pytest.raises(BundleError, match="only one of them has v"):
        average([one, _write(tmp_path / "other", v=torch.zeros(4, 2))])
    with pytest.raises(BundleError, match="cannot be read"):
        average([one, tmp_path / "missing"])
    with pytest.raises(UsageError, match="nothing to average"):
        average([])
