"""Rows that are kept, encrypted: corrected and forgotten by their ids alone, through kills, rollbacks and refusals."""

from __future__ import annotations

import base64
import shutil
from io import BytesIO

import numpy as np
import pytest

pytest.importorskip("cryptography")

from aircl import AIRClassifier, Client
from aircl.serve.journal import Journal
from aircl.serve.kept import Cipher
from aircl.serve.versions import Directory

X, Y, IDS = np.eye(3), ["cat", "dog", "owl"], ["a", "b", 3]
CIPHER = Cipher(bytes(range(32)))


@pytest.fixture
def ledger(tmp_path):
    directory = Directory(tmp_path / "ledger")
    directory.make(AIRClassifier(0.1, expansion=None, calibrate=False, ledger=True))
    return directory


@pytest.fixture
def keeping(ledger, local):
    return lambda **settings: local(ledger, cipher=CIPHER, **settings)


def rows(X, labels, ids, **more):
    return {"features": np.asarray(X).tolist(), "labels": labels, "ids": ids, **more}


def kept(directory):
    """Return what is in the table, by the numbers of the changes."""
    journal = Journal(directory.path, directory.read().id, CIPHER)
    found = journal._connection.execute("SELECT added, removed FROM kept ORDER BY added, removed").fetchall()
    journal.close()
    return found


def test_rows_are_forgotten_by_their_ids(ledger, keeping):
    with keeping() as service:
        assert service.http.get("/healthz").json()["keeps_rows"]
        service.post("/learn", rows(X, Y, IDS, sample_weight=[1.0, 2.0, 0.5]))
        assert service.post("/forget", {"ids": ["a", "z"]}).status_code == 404
        assert service.post("/forget", {"ids": []}).status_code == 422
        assert service.post("/forget", {"ids": ["a", "3"]}, key="k").json()["rows"] == 2  # 3 and "3" are the same
        assert service.post("/forget", {"ids": ["a", "3"]}, key="k").json()["repeated"]
        assert service.post("/forget", {"ids": ["a"]}).status_code == 404
        assert service.rows() == pytest.approx({"dog": 2})
        assert service.post("/learn", rows(X[:1], ["fox"], ["a"])).status_code == 200  # the id is free again
        assert service.post("/forget", {"ids": ["a", "b"]}).status_code == 200
        assert service.rows() == {}


def test_rows_are_corrected_by_their_ids(ledger, keeping):
    with keeping() as service:
        service.post("/learn", rows(X, Y, IDS))
        assert service.post("/correct", {"new": {"ids": ["a", "b"], "labels": ["fox", "fox"]}}).json()["rows"] == 2
        assert service.rows() == {"fox": 2, "owl": 1}
        assert service.post("/correct", {"new": rows(5 * X[:1], ["elk"], ["a"])}).status_code == 200
        assert service.post("/correct", {"new": {"ids": ["b"], "labels": ["fox"], "sample_weight": [3.0]}}).json()
        assert service.rows() == pytest.approx({"elk": 1, "fox": 3, "owl": 1})
        shown = {"old": rows(5 * X[:1], ["elk"], ["a"]), "new": rows(X[:1], ["cat"], ["a"])}
        assert service.post("/correct", shown).status_code == 200
        for wrong, status in (
            ({"new": {"ids": ["z"], "labels": ["fox"]}}, 404),
            ({"new": {"ids": ["a"], "labels": ["fox", "fox"]}}, 422),
            ({"new": {"ids": ["a"], "labels": [1]}}, 422),
            ({"new": {"ids": ["a"], "labels": ["x"], "sample_weight": [1.0, 2.0]}}, 422),
            ({"new": {"ids": [], "labels": []}}, 422),
            ({"new": {"labels": ["fox"]}}, 422),
        ):
            assert service.post("/correct", wrong).status_code == status
        twin = AIRClassifier(0.1, expansion=None, calibrate=False).fit(X, ["cat", "fox", "owl"], [1, 3, 1])
        service.wait()
        p = service.predict(X, top=3).json()["predictions"]
        assert [entry["probability"] for entry in p] == pytest.approx(twin.predict_proba(X).max(axis=1).tolist())


def test_without_the_mode_ids_are_not_enough(ledger, local):
    with local(ledger) as service:
        service.post("/learn", rows(X, Y, IDS))
        assert service.post("/forget", {"ids": ["a"]}).status_code == 422
        assert service.post("/correct", {"new": {"ids": ["a"], "labels": ["fox"]}}).status_code == 422
        assert service.post("/correct", {"new": rows(X[:1], ["fox"], ["a"])}).status_code == 422
        assert service.rows() == {"cat": 1, "dog": 1, "owl": 1}


def test_a_rollback_finds_the_rows_of_its_version(ledger, keeping):
    with keeping(checkpoint_rows=1, keep_versions=5) as service:
        service.post("/learn", rows(X, Y, IDS))  # 1
        service.wait_for_version(1)
        service.post("/forget", {"ids": ["a"]})  # 2
        service.wait_for_version(2)
        service.post("/learn", rows(2 * X[:1], ["fox"], ["d"]))  # 3
        service.wait_for_version(3)
        assert service.post("/rollback", {"version": 1}).json()["version"] == 4
        assert service.post("/forget", {"ids": ["d"]}).status_code == 404
        assert service.post("/forget", {"ids": ["a"]}).status_code == 200  # 5
        assert service.rows() == {"dog": 1, "owl": 1}
        service.wait_for_version(5)
        service.post("/rollback", {"version": 3})
        assert service.rows() == {"dog": 1, "fox": 1, "owl": 1}
        assert service.post("/forget", {"ids": ["a"]}).status_code == 404
        assert service.post("/forget", {"ids": ["b", 3, "d"]}).status_code == 200


def test_rows_go_with_the_last_version_that_has_them(ledger, keeping):
    with keeping(checkpoint_rows=1, keep_versions=2) as service:
        service.post("/learn", rows(X, Y, IDS))
        service.post("/forget", {"ids": ["a"]})
        service.wait_for_version(2)
    assert kept(ledger) == [(1, None), (1, None), (1, 2)]
    with keeping() as service:
        service.post("/forget", {"ids": ["b"], "purge": True})
    assert kept(ledger) == [(1, None)]
    with keeping() as service:
        service.post("/forget", {"classes": ["owl"], "purge": True})
        assert service.rows() == {}
    assert kept(ledger) == []


def test_what_is_refused_is_not_kept(ledger, keeping):
    with keeping() as service:
        service.post("/learn", rows(X, Y, IDS))
        assert service.post("/learn", rows(9 * X, Y, IDS)).status_code == 409
        assert (
            service.post("/learn", rows(X[[0, 0]], ["cat", "cat"], ["a", "d"], on_duplicate="skip")).status_code == 200
        )
        assert service.post("/forget", rows(7 * X[:1], ["cat"], ["a"])).status_code == 409
        half = {"new": rows(1e200 * X[:1], ["fox"], ["a"])}  # the old row is forgotten already when it is refused
        assert service.post("/correct", half).status_code == 422
    assert [row[1] for row in kept(ledger)] == [None] * 4
    with keeping() as service:
        assert service.post("/forget", {"ids": ["a", "b", 3, "d"]}).status_code == 200
        assert service.rows() == {}


def test_every_copy_of_the_directory_can_go_on(ledger, keeping, tmp_path, local):
    """Copies as a kill would leave them: what was answered can be forgotten by its id."""
    with keeping() as service:
        for number in range(4):
            service.post("/learn", rows(X[:1] + number, ["cat"], [number]))
            service.post("/correct", {"new": {"ids": [number], "labels": ["dog"]}})
            shutil.copytree(ledger.path, tmp_path / str(number), ignore=shutil.ignore_patterns("lock"))
    for number in range(4):
        with local(Directory(tmp_path / str(number)), cipher=CIPHER) as service:
            assert service.rows() == {"dog": number + 1}
            assert service.post("/forget", {"ids": list(range(number + 1))}).status_code == 200
            assert service.rows() == {}


def test_nothing_of_a_row_is_readable_on_the_disk(ledger, keeping):
    secret = np.random.default_rng(0).standard_normal((20, 30))

    def contents():
        return b"".join(path.read_bytes() for path in ledger.path.glob("journal*"))

    with keeping(checkpoint_rows=10**6) as service:
        ids = [f"patient {number}" for number in range(20)]
        service.post("/learn", rows(secret, ["ill"] * 10 + ["well"] * 10, ids))
        content = contents()
        assert not any(row.tobytes() in content for row in secret)
        assert b"patient" not in content
        assert b"well" not in content
        sealed = CIPHER.seal(b"aircl")
        assert len(sealed) == 12 + 5 + 16
        service.post("/forget", {"ids": ids, "purge": True})
    assert kept(ledger) == []


def test_the_key_is_needed_and_has_to_be_the_right_one(ledger, keeping, local, tmp_path):
    with keeping() as service:
        service.post("/learn", rows(X, Y, IDS))
    with pytest.raises(ValueError, match="rows are kept here: give their key"), local(ledger):
        pass
    with pytest.raises(ValueError, match="by another key"), local(ledger, cipher=Cipher(bytes(32))):
        pass
    with local(ledger, drop_rows=True) as service:
        assert service.rows() == {"cat": 1, "dog": 1, "owl": 1}
    with local(ledger) as service:  # from now on it goes without
        assert service.post("/forget", rows(X[:1], ["cat"], ["a"])).status_code == 200
    (tmp_path / "short").write_bytes(bytes(31))
    for name in ("short", "absent"):
        with pytest.raises(ValueError, match=name):
            Cipher.of_file(tmp_path / name)


def test_a_model_without_a_ledger_cannot_keep_rows(place, local):
    with pytest.raises(ValueError, match="a model with a ledger"), local(place, cipher=CIPHER):
        pass


def test_texts_and_images_are_kept(tmp_path, local):
    from PIL import Image

    def picture(value):
        file = BytesIO()
        Image.new("RGB", (4, 3), (value, 0, value)).save(file, "PNG")
        return base64.b64encode(file.getvalue()).decode()

    for backbone, kind, samples in (
        ("char-ngrams", "texts", ["Paris", "Lyon", "Rome"]),
        ("identity", "images", [picture(value) for value in (0, 90, 200)]),
    ):
        directory = Directory(tmp_path / kind)
        directory.make(AIRClassifier(0.1, backbone=backbone, expansion=None, calibrate=False, ledger=True))
        with local(directory, cipher=CIPHER) as service:
            learned = service.post("/learn", {kind: samples, "labels": ["fr", "fr", "fr"], "ids": IDS})
            assert learned.status_code == 200
            assert service.post("/correct", {"new": {"ids": [3], "labels": ["it"]}}).status_code == 200
            assert service.rows() == {"fr": 2, "it": 1}
            assert service.post("/forget", {"ids": ["a", 3]}).status_code == 200
            assert service.rows() == {"fr": 1}


@pytest.mark.parametrize("settings", [{}, {"checkpoint_rows": 1}, {"journal": False}], ids=str)
def test_what_is_taken_back_is_taken_back_here_as_well(ledger, keeping, settings):
    with keeping(**settings) as service:
        service.post("/learn", rows(X[:2], Y[:2], IDS[:2]))
        version = service.post("/learn", rows(X[2:], Y[2:], IDS[2:])).json()["version"]
        assert service.post("/undo", {"version": version}).status_code == 200
        assert service.post("/forget", {"ids": [3]}).status_code == 404
        version = service.post("/forget", {"ids": ["a"]}).json()["version"]
        assert service.post("/undo", {"version": version}).status_code == 200
    with keeping(**settings) as service:
        assert service.rows() == {"cat": 1, "dog": 1}
        assert service.post("/forget", {"ids": ["a", "b"]}).status_code == 200
        assert service.rows() == {}


def test_a_client_corrects_and_forgets_images_by_their_ids_after_a_kill(tmp_path, processes):
    from PIL import Image

    paths = [tmp_path / f"{value}.png" for value in (0, 90, 200)]
    for path in paths:
        Image.new("RGB", (4, 3), (int(path.stem),) * 3).save(path)
    (tmp_path / "key").write_bytes(bytes(range(32)))
    directory = Directory(tmp_path / "images")
    directory.make(AIRClassifier(0.1, backbone="identity", expansion=None, calibrate=False, ledger=True))
    running = processes(directory.path, "--keep-rows", tmp_path / "key")
    with Client(running.url, timeout=120) as client:
        client.learn([*paths, paths[0].read_bytes()], ["dark", "dark", "dark", "dark"], ids=[1, 2, 3, 4])
        client.correct(ids=[3], new_y=["light"])
    running.kill()
    with Client(processes(directory.path, "--keep-rows", tmp_path / "key").url, timeout=120) as client:
        assert client.classes() == {"dark": 3, "light": 1}
        client.forget(ids=[1, 4])
        assert client.classes() == {"dark": 1, "light": 1}
        client.correct(ids=[2], new_y=["light"], new_X=paths[2:])
        assert client.classes() == {"light": 2}
        assert client.drift()["novel_rows"] == 0
        with pytest.raises(ValueError, match="new_y"):
            client.correct(ids=[2])


def test_a_key_is_a_small_file_elsewhere(ledger, forks, tmp_path):
    def refused(key):
        command = forks.run("serve", ledger.path, "--port", "0", "--keep-rows", key)
        assert command.code in (1, 2)
        return " ".join(command.stderr.split())

    (tmp_path / "short").write_bytes(bytes(31))
    assert "31 bytes" in refused(tmp_path / "short")
    assert "has more" in refused("/dev/zero")
    assert "cannot be read" in refused(tmp_path)
    (ledger.path / "key").write_bytes(bytes(range(32)))
    assert "keep it elsewhere" in refused(ledger.path / "key")
    assert kept_files(ledger) == {"service.json", "versions", "key"}


def kept_files(directory):
    return {path.name for path in directory.path.iterdir()} - {"lock"}
