"""Images as base64: learned, predicted, replayed; and those that are refused."""

from __future__ import annotations

import base64
import struct
import zlib
from io import BytesIO

import numpy as np
import pytest

from aircl import AIRClassifier
from aircl.serve.changes import Change, Rows
from aircl.serve.samples import decode_images
from aircl.serve.versions import Directory

Image = pytest.importorskip("PIL.Image")

rng = np.random.default_rng(0)


def picture(bright, size=(6, 5), kind="PNG"):
    pixels = rng.integers(0, 40, (size[1], size[0], 3)) + (180 if bright else 0)
    file = BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(file, kind)
    return base64.b64encode(file.getvalue()).decode()


def claims(width, height):
    """Return a small file that says it is a large image."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", 13) + b"IHDR" + header + struct.pack(">I", zlib.crc32(b"IHDR" + header))
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + chunk + b"\0\0\0\0IDAT5\xaf\x06\x1e" + b"\0" * 20).decode()


@pytest.fixture
def gallery(tmp_path):
    directory = Directory(tmp_path / "gallery")
    directory.make(AIRClassifier(0.1, backbone="identity", expansion=None, ledger=True))
    return directory


def test_images_are_learned_predicted_and_forgotten(gallery, local, monkeypatch, tmp_path):
    monkeypatch.setenv("AIRCL_CACHE", str(tmp_path / "cache"))
    images, labels = [picture(i % 2) for i in range(12)], ["night", "day"] * 6
    learned = {"images": images, "labels": labels, "ids": list(range(12))}
    with local(gallery) as service:
        assert service.http.get("/healthz").json()["takes"] == ["images", "features"]
        assert service.post("/learn", learned).json()["rows"] == 12
        assert service.post("/learn", learned).status_code == 409
        service.wait()
        sent = [picture(True), "data:image/jpeg;base64," + picture(False, kind="JPEG")]
        found = service.post("/predict", {"images": sent, "novelty": 0}).json()["predictions"]
        assert [entry["label"] for entry in found] == ["day", "night"]
        assert all(0 <= entry["novelty"] <= 1 for entry in found)
        assert service.post("/learn", {"images": [picture(True)], "labels": ["day"], "ids": ["x"]}).status_code == 200
        one = {"images": images[:1], "labels": ["night"], "ids": [0]}
        assert service.post("/forget", {**one, "images": images[2:3]}).status_code == 409
        assert service.post("/forget", one).status_code == 200
        assert service.rows() == {"day": 7, "night": 5}
    assert not list(tmp_path.glob("cache/**/*.npy"))  # nothing of an image stays on the disk


def test_images_in_a_journal_are_what_was_sent():
    images = decode_images([picture(True), picture(False, (3, 9), "WEBP")], 2, 10**6)
    again = Change.unpacked(*Change("learn", Rows(images, ["a", "b"])).packed()).rows
    assert again.X.files == images.files
    for one, other in zip(again.X, images, strict=True):
        np.testing.assert_array_equal(one, other)


def test_images_that_are_refused(gallery, local):
    with local(gallery, max_rows=3, max_pixels=100) as service:

        def status(*images):
            answer = service.post("/learn", {"images": list(images), "labels": ["day"] * len(images)})
            assert "Traceback" not in answer.text
            return answer.status_code

        assert status(picture(True)) == 200
        assert status(picture(True, (11, 10))) == 413
        assert status(*[picture(True)] * 3) == 200
        assert status(*[picture(True, (8, 5))] * 3) == 413  # together
        assert status(*[picture(True)] * 4) == 413
        assert status(claims(10**5, 10**5)) in (413, 422)
        assert status(claims(5, 5)) == 422
        assert status() == 422
        assert status("no base64!") == 422
        assert status(base64.b64encode(b"GIF89a").decode()) == 422
        assert status(picture(True)[:60]) == 422
        assert service.post("/learn", {"texts": ["/etc/passwd"], "labels": ["day"]}).status_code == 422
        both = {"images": [picture(True)], "features": [1.0], "labels": ["day"]}
        assert service.post("/learn", both).status_code == 422


def test_no_text_is_taken_for_the_path_of_an_image(gallery, local, tmp_path):
    Image.new("RGB", (6, 5)).save(tmp_path / "secret.png")
    with local(gallery) as service:
        service.post("/learn", {"images": [picture(True), picture(False)], "labels": ["day", "night"]})
        service.wait()
        answer = service.post("/predict", {"texts": [str(tmp_path / "secret.png")]})
        assert answer.status_code == 422
        assert service.post("/predict", {"images": [str(tmp_path / "secret.png")]}).status_code == 422
