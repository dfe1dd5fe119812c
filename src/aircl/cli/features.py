"""`aircl features`: from a dataset through a frozen backbone to features in the cache."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aircl.cli.console import print_json, reports_problems, say
from aircl.cli.datasets import open_dataset
from aircl.cli.options import CacheDirectory, DataDirectory, Device, Json, Quiet
from aircl.cli.sources import weight_files
from aircl.storage.writing import check_output, replacing

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from aircl.backbones import Backbone
    from aircl.backbones.cache import Progress
    from aircl.data import Dataset


@reports_problems
def features(
    dataset: Annotated[
        str | None,
        typer.Argument(
            metavar="[DATASET]", help="A name of `aircl list datasets`; without one, every dataset in --data."
        ),
    ] = None,
    data: DataDirectory = None,
    backbone: Annotated[
        str, typer.Option(metavar="NAME", help="A name of `aircl list backbones`.")
    ] = "efficientnet-lite0",
    scenario: Annotated[
        str | None,
        typer.Option(
            metavar="STREAM", help="The stream whose first phase a base: backbone is trained on: cil,base=0.5,phases=6."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="S", min=0, help="Seed of the stream and of a base: backbone.")] = 0,
    epochs: Annotated[int, typer.Option(metavar="N", min=0, help="Epochs that a base: backbone is trained for.")] = 30,
    device: Device = None,
    cache: CacheDirectory = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Also write X_train, y_train, X_test, y_test (.npz, .safetensors)."
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Extract the features of a dataset once, and keep them. If it is killed, the next call continues."""
    if output is not None:
        check_output(output)
        if output.suffix.lower() not in _WRITERS:
            raise ValueError(f"{output}: features are written to {' or '.join(_WRITERS)}.")
    source = open_dataset(dataset, data)
    if output is not None:
        check_output(output, inputs=[*source.files, *weight_files(backbone)])
    network = _open_backbone(backbone, source, scenario, seed, epochs, quiet, device)
    if source.kind not in network.kinds:
        raise ValueError(f"{source.name} has {source.kind}, but {backbone} takes {' or '.join(network.kinds)}.")
    extracted, facts = _extract(source, network, cache, quiet)
    if output is not None:
        _write(output, source, extracted)
    if json:
        print_json({"dataset": source.name, "backbone": backbone, **facts})
    elif not quiet:
        for split, fact in facts["splits"].items():
            typer.echo(f"{split}: {fact['rows']:,} x {fact['width']} in {fact['file']}")


def _open_backbone(
    name: str, source: Dataset, scenario: str | None, seed: int, epochs: int, quiet: bool, device: str | None
) -> Backbone:
    """Make the backbone; one that is trained on a base phase gets that of the scenario."""
    import numpy as np

    from aircl.backbones import create_backbone

    if not name.startswith("base:"):
        if scenario is not None:
            raise ValueError(f"--scenario is for backbones that are trained on its first phase (base:), not {name}.")
        return create_backbone(name, example=source.train.inputs[np.arange(1)], device=device)
    if scenario is None:
        raise ValueError(f"{name} is trained on the first phase of a stream. Say which: --scenario cil,phases=10.")
    from aircl.backbones.base_cache import base_backbone
    from aircl.cli.streams import parse_stream
    from aircl.scenarios import make_stream

    def training(n_images: int, n_classes: int) -> None:
        if not quiet:
            say(f"{name}: training on the {n_images:,} images of {n_classes} classes of phase 1.")

    train = source.train
    stream_name, options = parse_stream(scenario)
    base = make_stream(stream_name, train.labels, seed=seed, domains=train.domains, **options).phases[0].train
    return base_backbone(
        name,
        train.inputs,
        train.labels,
        train.fingerprint,
        base,
        training=training,
        progress=not quiet,
        device=device,
        seed=seed,
        epochs=epochs,
    )


def _extract(
    source: Dataset, backbone: Backbone, cache: Path | None, quiet: bool
) -> tuple[dict[str, npt.NDArray[np.float32]], dict[str, Any]]:
    from aircl.backbones.cache import FeatureCache

    store = FeatureCache(cache)
    extracted, facts = {}, {}
    for split_name, split in (("train", source.train), ("test", source.test)):
        with extraction_progress(f"{source.name}, {split_name}", quiet) as progress:
            extracted[split_name] = X = store.features(
                backbone,
                split.inputs,
                split.fingerprint,
                data=f"{source.name}/{split_name}",
                progress=progress,
                waiting=None if quiet else _say_waiting,
            )
        facts[split_name] = {"rows": len(X), "width": backbone.width, "file": str(getattr(X, "filename", ""))}
    return extracted, {"fingerprint": backbone.fingerprint, "splits": facts}


def _say_waiting() -> None:
    say("Another process is extracting the same features: waiting for it.")


@contextmanager
def extraction_progress(what: str, quiet: bool) -> Iterator[Progress]:
    """Show on a terminal how far an extraction is, and say on stderr at the end what it took."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    began = time.perf_counter()
    there: int | None = None
    done = 0
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,} of {task.total:,}  {task.fields[rate]}"),
        TimeRemainingColumn(elapsed_when_finished=True),
        console=Console(stderr=True),
        transient=True,
        disable=quiet or not sys.stderr.isatty(),
    ) as bar:
        task = bar.add_task(what, total=0, rate="")

        def progress(rows: int, total: int) -> None:
            nonlocal there, done
            there, done = rows if there is None else there, rows
            seconds = time.perf_counter() - began
            bar.update(task, completed=rows, total=total, rate=f"{(rows - there) / seconds:,.0f}/s" if seconds else "")

        yield progress
    if not quiet:
        seconds, new = time.perf_counter() - began, done - (there or 0)
        known = f"{there:,} were there, " if there else ""
        rate = f" ({new / seconds:,.1f}/s)" if new else ""
        say(f"{what}: {known}{new:,} extracted in {seconds:,.1f} s{rate}.")


def _write(path: Path, source: Dataset, extracted: dict[str, npt.NDArray[np.float32]]) -> None:
    arrays: dict[str, Any] = {f"X_{split}": X for split, X in extracted.items()}
    arrays |= {"y_train": source.train.labels, "y_test": source.test.labels}
    with replacing(path) as temporary:
        _WRITERS[path.suffix.lower()](temporary, arrays)


def _write_npz(path: Path, arrays: dict[str, Any]) -> None:
    from aircl.data.arrays.npz import write_arrays

    write_arrays(path, arrays)


def _write_safetensors(path: Path, arrays: dict[str, Any]) -> None:
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    try:
        save_file(arrays, path)
    except SafetensorError as error:  # how it says that the disk is full
        raise OSError(f"the features cannot be written: {error}") from error


_WRITERS = {".npz": _write_npz, ".safetensors": _write_safetensors}
