"""What every file of embeddings has in common: a width, perhaps names, perhaps labels, and batches of rows."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from aircl.storage.errors import InputError

Array = npt.NDArray[Any]

# Features, labels and weights of some rows, and perhaps their ids and what the features were made of.
Rows = tuple[Any, ...]

LabelKind = Literal["integers", "strings", "booleans"]
LABEL_KINDS: tuple[LabelKind, ...] = get_args(LabelKind)

# Bytes at the beginning and at the end of a file that it is known by.
_END = 2**16

# A file that says it is wider than this is not asked to prove it.
MAX_WIDTH = 2**22
# Characters of a label: an array of texts is as wide as its longest one.
MAX_LABEL = 4096
# A batch has fewer rows than asked for where they would take more than this.
_BATCH_BYTES = 2**28


class DataError(InputError):
    r"""A file does not hold what was asked of it.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from aircl.data.arrays import Request, open_files
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "birds.csv").write_text("beak,wing,y\n1.0,5.0,robin\n")
    ...     open_files([f"{folder}/birds.csv"], Request(label="species"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    aircl.data.arrays.source.DataError: ...birds.csv has no column 'species' for --label. Its columns are 'beak', ...
    """


@dataclass(frozen=True)
class Request:
    r"""What is asked of a file.

    Attributes
    ----------
    label : str or None
        The column or array of labels; None: labels are not read.
    features : str or None
        Names or patterns of columns, separated by commas, or the name of an array; None: what the file suggests.
    names : tuple of str or None
        The features by name, in the order they are wanted in. Files without names are taken as they are.
    weight : str or None
        The column or array of sample weights; None: there are none.
    id : str or None
        The column or array of names of rows, which is no feature; None: there is none.

    Examples
    --------
    The columns that begin with "px" are features, "digit" is the label:

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from aircl.data.arrays import Request, open_files
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "digits.csv").write_text("id,px0,px1,digit\n17,0.5,0.0,3\n")
    ...     (source,) = open_files([f"{folder}/digits.csv"], Request(label="digit", features="px*"))
    >>> source.feature_names
    ('px0', 'px1')
    """

    label: str | None = None
    features: str | None = None
    names: tuple[str, ...] | None = None
    weight: str | None = None
    id: str | None = None

    @property
    def chooses_features(self) -> bool:
        """Whether nobody has said which columns are features."""
        return self.features is None and self.names is None


@dataclass(frozen=True)
class Batch:
    """Consecutive rows of a file.

    Attributes
    ----------
    X : array of shape (n, f)
    y : array of shape (n,) or None
    start : int
        How many rows of the file come before these.
    weight : array of shape (n,) or None
        Sample weights.
    ids : list of str or None
        Names of the rows.
    raw : sequence or None
        What the features were made of: texts, or paths of images.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from aircl.data.arrays import Request, open_files
    >>> with TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/rows.npz", X=np.eye(5), y=[0, 1, 2, 0, 1])
    ...     (source,) = open_files([f"{folder}/rows.npz"], Request(label="y"))
    ...     for batch in source.batches(3, "integers"):
    ...         print(batch.start, batch.X.shape, batch.y)
    0 (3, 5) [0 1 2]
    3 (2, 5) [0 1]
    """

    X: Array
    y: Array | None
    start: int
    weight: Array | None = None
    ids: list[str] | None = None
    raw: Sequence[Any] | None = None


class Source(ABC):
    """A file that was looked into, but whose rows were not read yet.

    Attributes
    ----------
    path : Path
    n_rows : int or None
        None if only reading tells.
    n_features : int or None
        None if there is no row to tell.
    feature_names : tuple of str or None
        The names of the features, in the order of the columns of `Batch.X`.
    ignored : tuple of str
        Columns that are neither the label nor among the features asked for by name.

    Examples
    --------
    A source of one's own says what its labels are and how rows are read; checks and batches come with it:

    >>> from pathlib import Path
    >>> import numpy as np
    >>> from aircl.data.arrays import Source
    >>> class Ones(Source):
    ...     path, n_rows, n_features = Path("ones"), 5, 2
    ...     def label_kinds(self, candidates):
    ...         return candidates & {"integers"}
    ...     def _read(self, size, kind):
    ...         for start in range(0, self.n_rows, size):
    ...             n = min(size, self.n_rows - start)
    ...             yield np.ones((n, 2)), np.zeros(n, int), None
    >>> [batch.X.shape for batch in Ones().batches(3, "integers")]
    [(3, 2), (2, 2)]
    """

    path: Path
    n_rows: int | None = None
    n_features: int | None = None
    feature_names: tuple[str, ...] | None = None
    ignored: tuple[str, ...] = ()

    @abstractmethod
    def label_kinds(self, candidates: set[LabelKind]) -> set[LabelKind]:
        """Return those of the candidates that all labels of the file can be read as."""

    @abstractmethod
    def _read(self, size: int, kind: LabelKind | None) -> Iterator[Rows]:
        """Yield the features, the labels and the weights of at most `size` rows at a time; ids and raw may follow."""

    def identity(self) -> str | None:
        """Return a hash by which the file is known again: of its path, size and time, and of its two ends.

        None if nothing tells whether the rows are the same another time.
        """
        status = self.path.stat()
        digest = hashlib.sha256(f"{self.path.resolve()}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
        with self.path.open("rb") as file:
            digest.update(file.read(_END))
            file.seek(max(0, status.st_size - _END))
            digest.update(file.read(_END))
        return digest.hexdigest()

    def batches(self, size: int, kind: LabelKind | None = None) -> Iterator[Batch]:
        """Read the file from its beginning.

        Parameters
        ----------
        size : int
            Rows per batch, at most, and fewer of very wide files; no more than one batch is held at a time.
        kind : {"integers", "strings", "booleans"} or None
            What labels are read as; None if there are none to read.

        Yields
        ------
        batch : Batch
        """
        size = min(size, max(1, _BATCH_BYTES // (8 * (self.n_features or 1))))
        start = 0
        for X, y, weight, *more in self._read(size, kind):
            self._check_finite(X, start)
            if weight is not None:
                self._check_weight(weight, start)
            yield Batch(X, y, start, weight, *more)
            start += len(X)

    def _check_finite(self, X: Array, start: int) -> None:
        finite = np.isfinite(X)
        if finite.all():
            return
        row, column = np.argwhere(~finite)[0].tolist()
        name = column + 1 if self.feature_names is None else repr(self.feature_names[column])
        raise DataError(
            f"{self.path}, row {start + row + 1}, feature {name}: {X[row, column]} is not a finite number. "
            "Fill or drop such rows."
        )

    def _check_weight(self, weight: Array, start: int) -> None:
        good = np.isfinite(weight) & (weight >= 0)
        if not good.all():
            row = int(np.argmin(good))
            raise DataError(
                f"{self.path}, row {start + row + 1}: the sample weight {weight[row]} is not a number of at least 0."
            )

    def _typed_labels(self, values: Array, start: int) -> Array:
        """Return labels that have a type of their own as one of the three kinds."""
        if values.dtype.kind != "f":
            return values.astype(np.int64) if values.dtype.kind in "iu" else values
        whole = np.isfinite(values) & (values == np.floor(values))
        if not whole.all():
            row = int(np.argmin(whole))
            raise DataError(
                f"{self.path}, row {start + row + 1}: the label {values[row]} is not a whole number. "
                "Labels are integers, strings or booleans."
            )
        return values.astype(np.int64)


def kind_of(path: Path, dtype: np.dtype[Any]) -> LabelKind:
    """Return the kind of labels that an array of this dtype holds."""
    kinds: dict[str, LabelKind] = {
        "i": "integers", "u": "integers", "f": "integers", "U": "strings", "S": "strings", "b": "booleans",
    }  # fmt: skip
    if dtype.kind not in kinds:
        raise DataError(f"{path}: labels of type {dtype} cannot be used. Labels are integers, strings or booleans.")
    return kinds[dtype.kind]


def float_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return float32 for half and single precision, float64 for everything else."""
    return np.dtype(np.float32 if dtype.kind == "f" and dtype.itemsize <= 4 else np.float64)


def check_width(path: Path, width: int | None) -> None:
    """Refuse rows of no features, or of more than anybody has; None, where no row tells, is fine."""
    if width is not None and not 1 <= width <= MAX_WIDTH:
        raise DataError(f"{path} has rows of {width} features. It should be from 1 to {MAX_WIDTH:,}.")


def check_text_label(place: str, text: str) -> str:
    """Return a label, or refuse it: NumPy drops a NUL at its end, and makes all labels as long as it is."""
    if "\0" in text or len(text) > MAX_LABEL or is_broken(text):
        what = "holds a NUL character" if "\0" in text else "is not Unicode"
        what = f"has {len(text):,} characters" if len(text) > MAX_LABEL else what
        raise DataError(f"{place}: the label {text[:20]!r} {what}. Labels are texts of at most {MAX_LABEL:,} others.")
    return text


def check_id(place: str, value: Any) -> str:
    """Return the name of a row as text, or refuse one that is empty."""
    if value is None or value == "":
        raise DataError(f"{place}: the id is empty. Every row needs one, or leave --id away.")
    if is_broken(text := str(value)):
        raise DataError(f"{place}: the id {text[:20]!r} is not Unicode: half of a character.")
    return text


def is_broken(text: str) -> bool:
    """Tell whether a text has half of a character, as JSON can write it and nothing can."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
