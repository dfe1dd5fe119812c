"""From patterns on a command line to files that agree with each other."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from glob import glob, has_magic
from pathlib import Path

from aircl.data.arrays.delimited import DelimitedSource
from aircl.data.arrays.jsonlines import JsonLinesSource
from aircl.data.arrays.npz import NpySource, NpzSource
from aircl.data.arrays.parquet import ParquetSource
from aircl.data.arrays.source import LABEL_KINDS, DataError, LabelKind, Request, Source, check_width
from aircl.data.arrays.tensors import SafetensorsSource

READERS: dict[str, Callable[[Path, Request], Source]] = {
    ".csv": DelimitedSource,
    ".tsv": DelimitedSource,
    ".jsonl": JsonLinesSource,
    ".parquet": ParquetSource,
    ".npz": NpzSource,
    ".npy": NpySource,
    ".safetensors": SafetensorsSource,
}


def expand_patterns(patterns: Iterable[str]) -> list[Path]:
    """Return the files that paths and patterns stand for.

    Parameters
    ----------
    patterns : iterable of str
        Paths, or patterns with ``*``, ``?``, ``[..]`` or ``**``, whose matches are sorted.

    Returns
    -------
    paths : list of Path
        In the order of the patterns, each file once.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from aircl.data.arrays import expand_patterns
    >>> with TemporaryDirectory() as folder:
    ...     for name in ("monday.npz", "tuesday.npz", "notes.txt"):
    ...         Path(folder, name).touch()
    ...     [path.name for path in expand_patterns([f"{folder}/*.npz"])]
    ['monday.npz', 'tuesday.npz']
    """
    paths: list[Path] = []
    for pattern in patterns:
        if Path(pattern).exists() or not has_magic(pattern):
            found = [Path(pattern)]
        else:
            found = [Path(match) for match in sorted(glob(pattern, recursive=True)) if Path(match).is_file()]
            if not found:
                raise DataError(f"no file matches {pattern!r}.")
        for path in found:
            if not path.is_file():
                raise DataError(f"{path} is not a file." if path.exists() else f"{path} does not exist.")
        paths += found
    seen: dict[tuple[int, int], Path] = {}
    for path in paths:
        status = path.stat()
        same = seen.setdefault((status.st_dev, status.st_ino), path)  # a hard link is the same file too
        if same is not path:
            also = "" if same == path else f", also as {same}"
            raise DataError(f"{path} is given more than once{also}, and its rows would be counted as often.")
    return paths


def check_type(path: Path) -> None:
    """Refuse a file whose name says that it cannot be read."""
    if path.suffix.lower() not in READERS:
        raise DataError(f"{path}: files of type {path.suffix!r} cannot be read. Use {', '.join(READERS)}.")


def open_files(
    paths: Iterable[str | os.PathLike[str]], request: Request, n_features: int | None = None
) -> list[Source]:
    """Look into files and check that they fit together. No row is read but perhaps a first one.

    Parameters
    ----------
    paths : iterable of paths
    request : Request
        If it knows no names, those of the first file are asked of the others.
    n_features : int or None
        The width to expect; None: that of the first file.

    Returns
    -------
    sources : list of Source

    Examples
    --------
    From a file to a classifier, two rows at a time:

    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from aircl import AIRClassifier
    >>> from aircl.data.arrays import Request, open_files
    >>> clf = AIRClassifier(gamma=0.1)
    >>> with TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/rows.npz", X=np.eye(5), y=[3, 4, 3, 3, 4])
    ...     (source,) = open_files([f"{folder}/rows.npz"], Request(label="y"))
    ...     for batch in source.batches(2, "integers"):
    ...         _ = clf.partial_fit(batch.X, batch.y)
    >>> source.n_rows, source.n_features, clf.classes_, clf.class_count_
    (5, 5, array([3, 4]), array([3., 2.]))
    """
    sources: list[Source] = []
    expected = "are expected"
    for path in map(Path, paths):
        check_type(path)
        source = READERS[path.suffix.lower()](path, request)
        check_width(path, source.n_features)
        if source.n_features is not None:
            if n_features is None:
                n_features, expected = source.n_features, f"in {path}"
            elif source.n_features != n_features:
                raise DataError(
                    f"{path} has {source.n_features} features, but {n_features} {expected}. Say which columns are "
                    "features with --features, and which is the label with --label."
                )
        if request.names is None and source.feature_names is not None:
            request = replace(request, names=source.feature_names)
        sources.append(source)
    return sources


def agree_on_labels(sources: Sequence[Source], known: LabelKind | None = None) -> LabelKind:
    r"""Return what the labels of all files can be read as: integers if possible, else strings, else booleans.

    Parameters
    ----------
    sources : sequence of Source
        Opened with a label.
    known : {"integers", "strings", "booleans"} or None
        What labels were so far, if there were any.

    Returns
    -------
    kind : {"integers", "strings", "booleans"}

    Notes
    -----
    The labels of text files are all read for this, unless typed labels or `known` have decided before.

    Examples
    --------
    Labels that could be numbers in one file are not in the other:

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from aircl.data.arrays import Request, agree_on_labels, open_files
    >>> with TemporaryDirectory() as folder:
    ...     for name, label in (("a.csv", "1"), ("b.csv", "2b")):
    ...         _ = Path(folder, name).write_text(f"x,y\n0.5,{label}\n")
    ...     sources = open_files([f"{folder}/a.csv", f"{folder}/b.csv"], Request(label="y"))
    ...     agree_on_labels(sources[:1]), agree_on_labels(sources)
    ('integers', 'strings')
    """
    left: set[LabelKind] = {known} if known else set(LABEL_KINDS)
    for source in sorted(sources, key=lambda source: isinstance(source, DelimitedSource)):
        remaining = source.label_kinds(left)
        if not remaining:
            so_far = " or ".join(kind for kind in LABEL_KINDS if kind in left)
            raise DataError(
                f"{source.path}: its labels are not {so_far}, as "
                f"{'those of the model' if known else 'those of the other files'} are. Labels need one type."
            )
        left = remaining
    return next(kind for kind in LABEL_KINDS if kind in left)
