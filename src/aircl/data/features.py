"""Files of features as a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from aircl.data.arrays import DataError, LabelKind, Request, Source, agree_on_labels, expand_patterns, open_files
from aircl.data.catalogue import below, register_dataset
from aircl.data.dataset import Dataset, Split, index_labels
from aircl.data.samples import ArrayInputs

_ROWS = 4096


@register_dataset(
    "features",
    kind="features",
    description="Features in a file with X_train, y_train, X_test, y_test, or in two files: TRAIN_FILE,TEST_FILE",
    needs="npz or safetensors; csv, tsv or parquet for two files",
    argument="FILE",
)
def load_features(root: Path | None, argument: str = "", *, label: str = "y", features: str | None = None) -> Dataset:
    """Load features from files; they are held in memory.

    Parameters
    ----------
    root : Path or None
        The data directory.
    argument : str
        A file with the arrays X_train, y_train, X_test and y_test (.npz or .safetensors), or two files of any type
        that `aircl learn` reads, separated by a comma: first training, then test. They are looked for below the data
        directory and in the current one.
    label, features : str
        Column or array of labels, and columns or array of features, of two files.

    Returns
    -------
    dataset : Dataset
        Labels of any type become class indices in their sorted order. Precision follows the files.
    """
    if not argument:
        raise DataError("no file of features was given. Say which: features:FILE or features:TRAIN_FILE,TEST_FILE.")
    single = below(root, argument)
    train_file, comma, test_file = (argument, "", "") if single.is_file() else argument.partition(",")
    if comma:
        paths = expand_patterns([str(below(root, file.strip())) for file in (train_file, test_file)])
        if len(paths) != 2:
            raise DataError(f"features:{argument} stands for {len(paths)} files. Name one for training, one for test.")
        sources = open_files(paths, Request(label, features))
    else:
        (path,) = expand_patterns([str(single)])
        if path.suffix.lower() not in (".npz", ".safetensors"):
            raise DataError(
                f"{path} alone has no training and test data. Give two files, features:TRAIN_FILE,TEST_FILE, or one "
                ".npz or .safetensors file with the arrays X_train, y_train, X_test and y_test."
            )
        sources = [open_files([path], Request(f"y_{part}", f"X_{part}"))[0] for part in ("train", "test")]
    kind = agree_on_labels(sources)
    (X_train, y_train), (X_test, y_test) = (_read(source, kind) for source in sources)
    if X_train.shape[1] != X_test.shape[1]:
        raise DataError(f"{single}: X_train has {X_train.shape[1]} columns, but X_test has {X_test.shape[1]}.")
    train_labels, test_labels, names = index_labels(y_train, y_test)
    train, test = ArrayInputs(X_train), ArrayInputs(X_test)
    return Dataset(
        f"features:{argument}",
        "features",
        Split(train, train_labels, train.fingerprint),
        Split(test, test_labels, test.fingerprint),
        names,
        files=tuple(source.path for source in sources),
    )


def _read(source: Source, kind: LabelKind) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    batches = list(source.batches(_ROWS, kind))
    if not batches:
        raise DataError(f"{source.path} has no rows. Training and test data need some.")
    return np.concatenate([batch.X for batch in batches]), np.concatenate([np.asarray(b.y) for b in batches])
