"""Tensors of which each worker may hold one part (FSDP2's, PyTorch's DTensor), read and written whole."""

from __future__ import annotations

from torch import Tensor


def whole(tensor: Tensor) -> Tensor:
    """The tensor itself, or all of one of which each worker holds a part; then all workers must ask."""
    full: Tensor = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return full


def like(tensor: Tensor, full: Tensor) -> Tensor:
    """``full`` as ``tensor`` is held: on its device, and only this worker's part of it if it is shared."""
    if not hasattr(tensor, "full_tensor"):
        return full.to(tensor.device)
    from torch.distributed.tensor import DTensor, distribute_tensor

    assert isinstance(tensor, DTensor)
    # src_data_rank None: every worker has read the same file, so nothing need be sent.
    return distribute_tensor(
        full.to(tensor.device), tensor.device_mesh, tensor.placements, src_data_rank=None
    )
