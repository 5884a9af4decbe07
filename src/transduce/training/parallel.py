"""The gradients of all workers made one: the model replicated by DDP, or sharded by FSDP2.

Both average over the workers, so `step.update` weighs each worker's loss by their number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from transduce.errors import ConfigError, TrainingError
from transduce.model.transformer import Transformer
from transduce.training.distributed import Workers
from transduce.training.sharding import whole
from transduce.training.step import Batch, Learner, batch_loss


def learner(model: Transformer, workers: Workers, *, how: str, device: str) -> Learner:
    """``model`` as it learns: alone, replicated on every worker, or in parts of which each holds one."""
    if workers.count == 1:
        return Learner(model)
    return Sharded(model, workers, device) if how == "sharded" else Replicated(model, workers, device)


class _Losses(nn.Module):
    """The module whose forward pass is a training step's: what DDP and FSDP2 watch."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: Batch | None, smoothing: float, scale: float) -> tuple[Tensor, Tensor]:
        """The smoothed loss times ``scale``, and the plain one; without a batch both are 0."""
        if batch is None:
            nothing = _nothing(self.model.parameters())
            return nothing, nothing
        return batch_loss(self.model, batch, smoothing=smoothing, scale=scale)


class Replicated(Learner):
    """Every worker holds the whole model; DDP sums gradients while the last backward pass still runs.

    A worker that runs out of memory gives the gradients that it still owes as zeros. So DDP's sums, which the
    others may have begun, come to their end on all; then all hear of it and leave the update out.
    """

    def __init__(self, model: Transformer, workers: Workers, device: str) -> None:
        super().__init__(model, workers)
        self.module = nn.parallel.DistributedDataParallel(
            _Losses(model),
            device_ids=[device] if device.startswith("cuda") else None,
            gradient_as_bucket_view=True,
        )
        # Parameters whose gradients DDP still waits for; None while it does not wait for any yet.
        self._owed: dict[int, nn.Parameter] | None = None
        for number, parameter in enumerate(model.parameters()):
            # Called before DDP takes the gradient, so that what is not owed any more was given.
            parameter.register_post_accumulate_grad_hook(self._given(number))  # type: ignore[no-untyped-call]

    def losses(self, batch: Batch, *, smoothing: float, scale: float) -> tuple[Tensor, Tensor]:
        """As in one process."""
        smoothed, nll = self.module(batch, smoothing, scale)
        if self.module.require_backward_grad_sync:
            self._owed = dict(enumerate(self.model.parameters()))
        return smoothed, nll

    @contextmanager
    def accumulating(self, *, last: bool) -> Iterator[None]:
        """Within, gradients are summed over the workers only if this is the update's ``last`` part."""
        self._owed = None
        with nullcontext() if last else self.module.no_sync():
            yield

    def make_up(self) -> None:
        """Nothing; the gradients that were still to come on this worker have come as zeros."""
        if self._owed is None:  # DDP waits from a forward pass on
            self.module(None, 0.0, 0.0)[0].backward()
        elif self._owed:
            _nothing(list(self._owed.values())).backward()  # type: ignore[no-untyped-call]

    def _given(self, number: int) -> Callable[[Tensor], None]:
        def given(_: Tensor) -> None:
            if self._owed is not None:
                self._owed.pop(number, None)

        return given


def _nothing(parameters: Iterable[nn.Parameter]) -> Tensor:
    """0, of which the gradient of each parameter is 0 as well."""
    return torch.stack([parameter.sum() for parameter in parameters]).sum() * 0.0


class Sharded(Learner):
    """Every worker holds one part of each parameter, gradient and moment (FSDP2).

    A layer is gathered before it is used and its gradients are summed after each part, so that no worker ever
    holds all gradients. The decoder's projections of the memory are used before its layers are, and so are
    gathered on their own. ``group`` takes the place of that of all workers.
    """

    def __init__(
        self, model: Transformer, workers: Workers, device: str, *, group: dist.ProcessGroup | None = None
    ) -> None:
        super().__init__(model, workers)
        try:
            from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
            from torch.distributed.fsdp import fully_shard
        except ImportError as error:
            raise ConfigError(
                f"training.parallel = 'sharded' needs torch 2.6 or newer, this is {torch.__version__}; "
                "update torch or use 'replicated'"
            ) from error
        self.device = device
        self._plain: Transformer | None = None
        kind = device.partition(":")[0]
        if group is None:
            mesh = init_device_mesh(kind, (workers.count,))
        else:  # under a name: PyTorch takes meshes for one whose workers and names are the same
            mesh = DeviceMesh.from_group(group, kind, mesh_dim_names=("other",))
        self.module = _Losses(model)
        decoder_layers: list[Any] = list(model.decoder.layers)
        for layer in decoder_layers:
            fully_shard(layer.cross_attention.kv, mesh=mesh)
        for layer in [*model.encoder.layers, *decoder_layers]:
            fully_shard(layer, mesh=mesh)
        fully_shard(self.module, mesh=mesh)

    def losses(self, batch: Batch, *, smoothing: float, scale: float) -> tuple[Tensor, Tensor]:
        """As in one process."""
        smoothed, nll = self.module(batch, smoothing, scale)
        return smoothed, nll

    def make_up(self) -> None:
        """Raises TrainingError: in the middle of a pass the others wait for this worker's part of a layer."""
        raise TrainingError(
            f"memory ran out on worker {self.workers.rank}, and an update of a sharded model cannot be left "
            "out by the others; lower training.micro_batch_tokens, or free memory, then --resume "
            "--accept-changes"
        )

    def plain(self) -> Transformer:
        """A model of this worker's own, with parameters that are whole."""
        if self._plain is None:
            self._plain = Transformer(self.model.config).to(self.device)
        return self._plain

    def gathered(self) -> Transformer:
        """The model as it stands, whole on worker 0; all workers must ask for it at once."""
        full = {name: whole(parameter.detach()) for name, parameter in self.model.named_parameters()}
        if not self.workers.primary:
            return self.model
        plain = self.plain()
        with torch.no_grad():
            for name, parameter in plain.named_parameters():
                parameter.copy_(full[name])
        return plain
