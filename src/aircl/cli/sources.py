"""What the FILES of a command stand for: files, folders of images, Python functions."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from aircl.data.arrays import Request, Source


def open_sources(
    arguments: list[str],
    request: Request,
    n_features: int | None,
    backbone: str | None,
    device: str | None = None,
) -> tuple[list[Source], dict[str, str] | None]:
    """Look into everything that is to be read.

    Parameters
    ----------
    arguments : list of str
        Files or patterns; folders of images, with a backbone; Python functions, `module:function`.
    request : Request
    n_features : int or None
        The width to expect.
    backbone : str or None
    device : str or None
        Where it computes.

    Returns
    -------
    sources : list of Source
    network : dict or None
        Name and fingerprint of the backbone that images go through.
    """
    from aircl.data.arrays import DataError, expand_patterns, is_entry, open_entry, open_files

    if twice := [text for text in arguments if arguments.count(text) > 1]:
        raise DataError(f"{twice[0]} is given more than once, and its rows would be counted as often.")
    folders = [text for text in arguments if Path(text).is_dir()]
    if folders and backbone is None:
        raise typer.BadParameter(
            f"{folders[0]} is a folder. Images need one: --backbone NAME.", param_hint="--backbone"
        )
    if backbone is not None and len(folders) < len(arguments):
        raise typer.BadParameter("it is for folders of images; rows have their features.", param_hint="--backbone")
    if folders:
        return _open_folders(folders, str(backbone), n_features, device)
    entries = [text for text in arguments if is_entry(text)]
    paths = expand_patterns([text for text in arguments if text not in entries])
    if paths and request.label is None:
        raise typer.BadParameter("say which column or array holds the labels.", param_hint="--label")
    sources = open_files(paths, request, n_features)
    widths = [source.n_features for source in sources if source.n_features is not None]
    for entry in entries:
        for source in open_entry(entry):
            widths += [] if source.n_features is None else [source.n_features]
            if len(set(widths[:1] + widths[-1:]) | ({n_features} - {None})) > 1:
                raise DataError(f"{source.path} has {widths[-1]} features, but {n_features or widths[0]} are expected.")
            sources.append(source)
    return sources, None


def input_paths(arguments: list[str], sources: Sequence[Source]) -> list[Path]:
    """Return the files and folders that rows come from, also those of Python functions."""
    from aircl.data.arrays import is_entry

    paths = [source.path for source in sources if source.path.is_file()]
    paths += [Path(text) for text in arguments if Path(text).is_dir()]
    for text in arguments:
        home = getattr(sys.modules.get(text.partition(":")[0]), "__file__", None)
        if home is not None and is_entry(text):
            paths.append(Path(home))
    return paths


def weight_files(backbone: str | None) -> list[Path]:
    """Return the file that a backbone has its weights from, if it is one that the user named."""
    path = Path((backbone or "").removeprefix("checkpoint:"))
    return [path] if path.is_file() else []


def _open_folders(
    folders: list[str], backbone: str, n_features: int | None, device: str | None
) -> tuple[list[Source], dict[str, str] | None]:
    from aircl.data.arrays import DataError
    from aircl.distributed.images import open_images

    sources: list[Source] = []
    places = [Path(folder).resolve() for folder in folders]
    for folder, place in zip(folders, places, strict=True):
        if places.count(place) > 1 or any(other in place.parents for other in places):
            raise DataError(f"{folder} is given more than once, and its images would be counted as often.")
        found, frozen = open_images(Path(folder), backbone, device=device)
        if n_features not in (None, frozen.width):
            raise DataError(f"{backbone} gives {frozen.width} features, but {n_features} are expected by the model.")
        sources += found
    return sources, {"name": frozen.name, "fingerprint": frozen.fingerprint}
