"""What many GPUs would give: arithmetic from one device's speed and stated link rates, not a measurement.

python benchmarks/scaling.py [--preset paper-base] [--tokens-per-second 7234] [--enough 1000]

The formulas stand in docs/scaling.md. Speeds are target tokens per second of one device; by default those of
the paper's P100s: 8 of them took 12 hours for 100,000 updates of 25,000 tokens (base), 3.5 days for 300,000
(big).
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass

import torch

from transduce.model.config import ModelConfig
from transduce.model.transformer import Transformer
from transduce.training.log import duration

BATCH, VOCABULARY = 25_000, 37_000
PAPER_SECONDS = {"paper-base": 12 * 3600 / 100_000, "paper-big": 3.5 * 86_400 / 300_000}
UPDATES = {"paper-base": 100_000, "paper-big": 300_000}
DEVICES, HOST = (8, 64, 512), 8
CORPORA = (4_500_000, 36_000_000)


@dataclass(frozen=True, kw_only=True)
class Link:
    """What joins two neighbours of the ring: bytes per second, and seconds until the first one arrives."""

    name: str
    rate: float
    latency: float


NVLINK = Link(name="NVLink 450 GB/s", rate=450e9, latency=3e-6)
NETWORKS = (
    Link(name="InfiniBand 400 Gb/s", rate=400e9 / 8, latency=5e-6),
    Link(name="Ethernet 25 Gb/s", rate=25e9 / 8, latency=30e-6),
)


def all_reduce(size: float, devices: int, link: Link) -> float:
    """Seconds of a ring all-reduce: each device sends 2 (n - 1) / n of ``size`` bytes, in 2 (n - 1) steps."""
    return 2 * (devices - 1) / devices * size / link.rate + 2 * (devices - 1) * link.latency


@dataclass(frozen=True, kw_only=True)
class Update:
    """The seconds of one update on ``devices`` devices."""

    computing: float
    communicating: float
    exposed: float
    tokens: int

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.computing + self.exposed


def update(
    devices: int, link: Link, *, tokens: int, speed: float, enough: int, size: float, tied: float
) -> Update:
    """One update of ``tokens`` target tokens; ``size`` bytes of gradients, ``tied`` of them the embeddings'.

    A device with fewer than ``enough`` tokens takes as long as with ``enough``. Two thirds of the computing
    are the backward pass, behind which the all-reduce hides; but the tied embeddings' gradient is complete
    only at its very end.
    """
    computing = max(tokens / devices, enough) / speed
    early, late = all_reduce(size - tied, devices, link), all_reduce(tied, devices, link)
    exposed = max(0.0, early - 2 / 3 * computing) + late
    return Update(computing=computing, communicating=early + late, exposed=exposed, tokens=tokens)


def bound(one: Update, devices: int, enough: int) -> str:
    """What would have to grow next."""
    if one.exposed > one.computing:
        return "network"
    return "batch" if one.tokens / devices < enough else "devices"


def parameters(preset: str) -> tuple[int, int]:
    """The parameters of the model ``preset`` and of its tied embeddings."""
    with torch.device("meta"):
        model = Transformer(ModelConfig.named(preset, vocabulary=VOCABULARY))
    return model.parameter_count(), model.embeddings.output.numel()


def table(preset: str, given: argparse.Namespace) -> None:
    """Nothing; the lines of one model are printed."""
    total, tied = parameters(preset)
    width = 2 if given.gradients == "bf16" else 4
    speed = given.tokens_per_second or BATCH / 8 / PAPER_SECONDS[preset]
    print(
        f"\n**{preset}**: {total:,} parameters, gradients of {total * width / 1e6:,.0f} MB "
        f"({given.gradients}), {speed:,.0f} target tokens/s a device"
    )
    names = ["devices", "tokens an update", "link between hosts", "compute", "all-reduce", "exposed"]
    names += [
        "tokens/s",
        "efficiency",
        "the run",
        *(f"{pairs / 1e6:g} M pairs" for pairs in CORPORA),
        "limit",
    ]
    print("\n| " + " | ".join(names) + " |\n|" + "---|" * len(names))
    for devices in DEVICES:
        grown = devices * given.tokens_per_device
        for tokens in sorted({BATCH, grown}):
            for link in NETWORKS if devices > HOST else (NVLINK,):
                one = update(
                    devices,
                    link,
                    tokens=tokens,
                    speed=speed,
                    enough=given.enough,
                    size=total * width,
                    tied=tied * width,
                )
                rate = tokens / one.seconds
                cells = [f"{devices}", f"{tokens:,}", link.name]
                cells += [f"{x * 1e3:,.0f} ms" for x in (one.computing, one.communicating, one.exposed)]
                cells += [f"{rate:,.0f}", f"{rate / devices / speed:.0%}"]
                # As many tokens as the paper's run saw; then one epoch of each corpus.
                seen = [UPDATES[preset] * BATCH, *(pairs * given.tokens_per_pair for pairs in CORPORA)]
                cells += [duration(tokens / rate) for tokens in seen]
                print("| " + " | ".join([*cells, bound(one, devices, given.enough)]) + " |")


def main() -> int:
    """Zero."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--tokens-per-second",
        type=float,
        default=0.0,
        help="target tokens/s of one device; 0: the paper's P100",
    )
    parser.add_argument(
        "--tokens-per-device", type=int, default=3125, help="of an update that grows with the devices"
    )
    parser.add_argument("--enough", type=int, default=1000, help="so many target tokens keep a device busy")
    parser.add_argument(
        "--tokens-per-pair", type=float, default=28.0, help="target tokens of a sentence pair"
    )
    parser.add_argument("--gradients", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--preset", choices=tuple(UPDATES), action="append")
    given = parser.parse_args()
    print("Arithmetic, not measurement: docs/scaling.md has the formulas. An epoch is given for each corpus.")
    for preset in given.preset or UPDATES:
        table(preset, given)
    return 0


if __name__ == "__main__":
    sys.exit(main())
