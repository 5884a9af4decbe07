"""``transduce serve`` and ``transduce keys``: models behind HTTP, and who may ask them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from transduce.cli.models import Device, Engine, Precision, Threads
from transduce.errors import UsageError

KeysFile = Annotated[Path, typer.Option("--file", metavar="FILE", help="The file of keys.")]


def serve(  # noqa: PLR0913 - a command's parameters are its flags
    models: Annotated[
        list[str],
        typer.Argument(metavar="MODEL...", help="Model folders, each as FOLDER or en-de=FOLDER."),
    ],
    *,
    host: Annotated[str, typer.Option(help="The address to listen at; 0.0.0.0 is every one.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0: any that is free.")] = 5000,
    beam: Annotated[int, typer.Option(help="Hypotheses kept in the search; 1 is greedy.")] = 4,
    alpha: Annotated[float, typer.Option(help="Exponent of the length penalty.")] = 0.6,
    protect: Annotated[
        str, typer.Option(metavar="KINDS", help="Carry through: as of `translate`; empty: nothing.")
    ] = "all",
    keys: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keys that `transduce keys add` made.")
    ] = None,
    require_key: Annotated[bool, typer.Option("--require-key", help="Answer nobody without a key.")] = False,
    requests_per_minute: Annotated[
        int, typer.Option(metavar="N", help="Of each key or address; 0: no limit.")
    ] = 0,
    characters_per_minute: Annotated[
        int, typer.Option(metavar="N", help="Of each key or address; 0: no limit.")
    ] = 0,
    max_characters: Annotated[int, typer.Option(metavar="N", help="Of one request.")] = 20_000,
    max_texts: Annotated[int, typer.Option(metavar="N", help="Of one request.")] = 1_000,
    max_alternatives: Annotated[int, typer.Option(metavar="N", help="Other outputs of a text.")] = 10,
    max_beam: Annotated[int, typer.Option(metavar="N", help="Hypotheses or samples of a line.")] = 16,
    max_body: Annotated[int, typer.Option(metavar="BYTES", help="Of one request without a file.")] = 1 << 20,
    max_file: Annotated[int, typer.Option(metavar="BYTES", help="Of one file.")] = 10 << 20,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", help="For the answer to a request.")] = 60.0,
    drain: Annotated[
        float, typer.Option(metavar="SECONDS", help="For running requests when the server is stopped.")
    ] = 8.0,
    queue: Annotated[int, typer.Option(metavar="N", help="Requests that may wait.")] = 512,
    batch_tokens: Annotated[
        int, typer.Option(metavar="N", help="Hypotheses x tokens translated at once.")
    ] = 8_192,
    reload: Annotated[
        float, typer.Option(metavar="SECONDS", help="Between two looks at the model folders; 0: never.")
    ] = 2.0,
    cors: Annotated[
        list[str] | None,
        typer.Option("--cors", metavar="ORIGIN", help="Pages that may ask, e.g. https://example.org."),
    ] = None,
    proxy: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Of a proxy whose X-Forwarded-For is believed.")
    ] = "",
    suggestions: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where better translations that clients send go.")
    ] = None,
    no_metrics: Annotated[bool, typer.Option("--no-metrics", help="No /metrics.")] = False,
    log_text: Annotated[bool, typer.Option("--log-text", help="Write texts into the log.")] = False,
    device: Device = "auto",
    precision: Precision = "auto",
    engine: Engine = "auto",
    threads: Threads = 0,
) -> None:
    """Serve models over HTTP: the API of LibreTranslate, one of its own, and Prometheus' metrics."""
    for package in ("fastapi", "uvicorn", "httptools", "prometheus_client", "python_multipart"):
        _need(package)
    from transduce import machine
    from transduce.serving.config import ServingConfig
    from transduce.serving.run import serve as run

    config = ServingConfig(
        host=host,
        port=port,
        beam=beam,
        alpha=alpha,
        protect=protect,
        keys=keys,
        require_key=require_key,
        requests_per_minute=requests_per_minute,
        characters_per_minute=characters_per_minute,
        max_characters=max_characters,
        max_texts=max_texts,
        max_alternatives=max_alternatives,
        max_beam=max_beam,
        max_body=max_body,
        max_file=max_file,
        timeout=timeout,
        drain=drain,
        queue=queue,
        batch_tokens=batch_tokens,
        reload=reload,
        cors=tuple(cors or ()),
        proxy=proxy,
        suggestions=suggestions,
        metrics=not no_metrics,
        log_text=log_text,
    )
    machine.tune_allocator()
    code = run(models, config, device=device, precision=precision, engine=engine, threads=threads)
    if code:
        raise typer.Exit(code)


def _need(package: str) -> None:
    from importlib.util import find_spec

    if find_spec(package) is None:
        raise UsageError(
            f"serving needs the package {package}; install all it needs with `pip install 'transduce[serve]'`"
        )


keys_app = typer.Typer(rich_markup_mode=None, help="Make, list and remove the keys of a server.")


@keys_app.command("add", short_help="Make a key and print it, once.")
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose key it is.")],
    *,
    file: KeysFile,
    requests_per_minute: Annotated[
        int | None, typer.Option(metavar="N", help="Of this key, instead of the server's; 0: no limit.")
    ] = None,
    characters_per_minute: Annotated[
        int | None, typer.Option(metavar="N", help="Of this key, instead of the server's; 0: no limit.")
    ] = None,
) -> None:
    """Make a key and print it: the file holds its hash only, so it is told this once."""
    from transduce.serving.keys import add_key

    print(add_key(file, name, requests_per_minute, characters_per_minute))


@keys_app.command("list", short_help="List the names of the keys.")
def list_keys(*, file: KeysFile) -> None:
    """List the names of the keys and their limits a minute."""
    from transduce.serving.keys import read_keys

    for key in read_keys(file):
        limits = (key.requests_per_minute, key.characters_per_minute)
        print("\t".join([key.name, *("" if limit is None else str(limit) for limit in limits)]))


@keys_app.command("remove", short_help="Remove a key.")
def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose key it is.")], *, file: KeysFile
) -> None:
    """Remove a key: a running server refuses it within a second."""
    from transduce.serving.keys import remove_key

    remove_key(file, name)
