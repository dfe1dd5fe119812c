"""The directory of a service: its lock, and the checkpoints of the model with the list that says which is current.

A checkpoint is a model file, and `service.json` lists those that are kept, the last one being current. That list is
replaced as a whole, by one rename: this is the moment at which a checkpoint counts. The number of a version is that of
the last change in it, so a journal knows what to replay, and a prediction can say what it is made of.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from aircl.classifiers.analytic import AnalyticClassifier
from aircl.classifiers.persistence import load_any
from aircl.storage.errors import InputError
from aircl.storage.locks import BusyError, locked
from aircl.storage.records import build, parse_json
from aircl.storage.text import json_text
from aircl.storage.writing import new_directory, write_text

LIST = "service.json"
FOLDER = "versions"
FORMAT = 1
# Changes that bring rows.
LEARNING = {"learn", "correct", "merge"}


@dataclass(frozen=True)
class Version:
    """One checkpoint.

    Attributes
    ----------
    version : int
        The number of the last change in it.
    file : str
        The model, below the directory.
    rows : float
        Sum of the sample weights.
    classes : int
    made : str
        When, in UTC.
    reason : str
    changed : dict of str to int
        Rows since the version before, by what was done with them.
    """

    version: int
    file: str
    rows: float
    classes: int
    made: str
    reason: str
    changed: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Catalogue:
    """What `service.json` says; never changed, only replaced.

    Attributes
    ----------
    id : str
        Of the service: a journal has the same.
    versions : tuple of Version
        Ascending; the last one is current.
    dtype : str
        Of the features that are learned.
    """

    id: str
    versions: tuple[Version, ...]
    dtype: str = "float64"

    @property
    def current(self) -> Version:
        """The version to go on with."""
        return self.versions[-1]

    @property
    def last_learned(self) -> str | None:
        """When the last version was made that has learned something; None if none of them has."""
        return next((version.made for version in reversed(self.versions) if LEARNING & version.changed.keys()), None)

    def find(self, number: int) -> Version:
        """Return the version of this number."""
        for version in self.versions:
            if version.version == number:
                return version
        known = ", ".join(str(version.version) for version in self.versions)
        raise LookupError(f"there is no version {number}. Kept are {known}.")


class Directory:
    """The directory of a service.

    Parameters
    ----------
    path : Path

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from aircl import AIRClassifier
    >>> with TemporaryDirectory() as place:
    ...     directory = Directory(Path(place, "cats"))
    ...     directory.make(AIRClassifier())
    ...     catalogue = directory.read()
    ...     model = directory.load(catalogue.current)
    ...     catalogue.current.version, catalogue.current.reason, type(model).__name__
    (0, 'begun', 'AIRClassifier')
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def exists(self) -> bool:
        """Tell whether it was made."""
        return (self.path / LIST).is_file()

    def make(self, model: AnalyticClassifier, dtype: str = "float64") -> None:
        """Make the directory around a model; it is there as a whole or not at all, for the eyes of its owner."""
        if self.path.exists():
            raise InputError(f"{self.path} is there already. Leave --init away, or choose another directory.")
        if not isinstance(model, AnalyticClassifier):
            raise InputError(f"a {type(model).__name__} cannot be served: AIRClassifier and ACILClassifier can.")
        with new_directory(self.path) as place:
            place.chmod(0o700)
            (place / FOLDER).mkdir()
            new = Directory(place)
            version = new.save(model, 0, "begun")
            new.write(Catalogue(uuid.uuid4().hex, (version,), dtype))

    def read(self) -> Catalogue:
        """Read the list of versions."""
        try:
            text = (self.path / LIST).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            raise InputError(f"{self.path} is not the directory of a service. Make it: --init.") from None
        values = parse_json(text, str(self.path / LIST))
        if not isinstance(values, dict) or values.pop("format", None) != FORMAT:
            raise InputError(f"{self.path / LIST} is not of format {FORMAT}: it was written by another aircl.")
        versions = values.pop("versions", None)
        if not isinstance(versions, list) or not versions:
            raise InputError(f"{self.path / LIST} lists no versions.")
        read = tuple(build(Version, entry, f"{LIST}: a version") for entry in versions)
        return replace(build(Catalogue, {**values, "versions": []}, LIST), versions=read)

    def write(self, catalogue: Catalogue) -> None:
        """Replace the list: from here on its versions are those that there are."""
        write_text(self.path / LIST, json_text({"format": FORMAT, **asdict(catalogue)}) + "\n")

    def save(
        self, model: AnalyticClassifier, number: int, reason: str, changed: Mapping[str, int] | None = None
    ) -> Version:
        """Write a model file for a version, which counts when it is in the list."""
        file = f"{FOLDER}/{number:012d}.safetensors"
        model.save(self.path / file)
        rows = float(model.class_count_.sum()) if model.__sklearn_is_fitted__() else 0.0
        return Version(number, file, rows, len(getattr(model, "classes_", ())), _now(), reason, dict(changed or {}))

    def again(self, version: Version, number: int) -> Version:
        """Return a version that is what an older one was."""
        reason = f"rolled back to {version.version}"
        return replace(version, version=number, made=_now(), reason=reason, changed={})

    def load(self, version: Version) -> AnalyticClassifier:
        """Read the model of a version."""
        model: AnalyticClassifier = load_any(self.path / version.file)
        return model

    def remove_unlisted(self, catalogue: Catalogue) -> None:
        """Remove the files of versions that are not in the list."""
        listed = {Path(version.file).name for version in catalogue.versions}
        for path in (self.path / FOLDER).glob("*.safetensors"):
            if path.name not in listed:
                path.unlink(missing_ok=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Be the one process that changes it, or say that there is another."""
        try:
            with locked(self.path / "lock", create=True, wait=False):
                yield
        except BusyError:
            raise InputError(
                f"{self.path} is served by another process. Stop that one, or read along: --read-only --follow."
            ) from None

    def stamp(self) -> tuple[int, int]:
        """Return what changes whenever the list does."""
        status = os.stat(self.path / LIST)
        return status.st_ino, status.st_mtime_ns


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
