"""Damaged files, one after the other, in one process whose memory is limited.

    python cases.py FORMAT SEED CASES

A case is a good file that was changed at random, written, and read as the command line reads it. It ends in one of
three ways: it is refused by an error of our own (`refused`), read to what the good file holds (`same`), or, where
nothing in the format could tell, read to other finite values (`other`). Anything else is a failure, which is printed
with its seed: an error that is not ours, a hang, more memory than is allowed. If the process itself dies, the last line
tells during which case.
"""

from __future__ import annotations

import io
import json
import os
import random
import re
import resource
import signal
import sys
import tempfile
import traceback
import warnings
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np

from aircl import AIRClassifier, RandomReLU, load_export
from aircl.benchmark.config import RunConfig
from aircl.benchmark.results import RunDirectory
from aircl.cli.modelfile import load_fitted
from aircl.data.arrays import Request, agree_on_labels, open_files
from aircl.raw.columns import Columns
from aircl.raw.frozen import FrozenBackbone
from aircl.raw.tables import TextTable, open_table
from aircl.report import compare, read_experiments, to_csv, write_report
from aircl.storage.errors import InputError, is_refusal

GROWTH = 500 * 2**20
SECONDS = 20
X = np.random.default_rng(0).normal(size=(40, 4)).round(3)
Y = np.repeat(["ant", "bee", "cat", "dog"], 10)
NUMBERS = np.repeat(np.arange(4), 10)


class HangError(BaseException):
    """A case took too long."""


# -- changes --
def flip(content, rng):
    place = rng.randrange(len(content))
    content[place] ^= 1 << rng.randrange(8)


def set_byte(content, rng):
    content[rng.randrange(len(content))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, 0x22, 0x2C, 0x0A, 0x5B, 0x7B))


def set_number(content, rng):
    size = rng.choice((2, 4, 8))
    value = rng.choice((0, 1, 2**7, 2**15, 2**31 - 1, 2**31, 2**63 - 1, -1, rng.getrandbits(63)))
    place = rng.randrange(len(content))
    content[place : place + size] = (value % 2 ** (8 * size)).to_bytes(size, rng.choice(("little", "big")))


def cut(content, rng):
    del content[rng.randrange(len(content)) :]


def drop(content, rng):
    place = rng.randrange(len(content))
    del content[place : place + rng.randrange(1, 64)]


def repeat(content, rng):
    place = rng.randrange(len(content))
    content[place:place] = content[place : place + rng.randrange(1, 64)] * rng.choice((1, 2, 50))


def shuffle(content, rng):
    a, b = (rng.randrange(len(content)) for _ in range(2))
    size = rng.randrange(1, 64)
    content[a : a + size], content[b : b + size] = content[b : b + size], content[a : a + size]


WORDS = (
    b"-1", b"0", b"1e999", b"NaN", b"9" * 400, b"null", b"true", b"[]", b"{}", b'""', b"[" * 200, b'{"a":' * 100,
    b"Infinity", b"\xff\xfe", b"\x00", b"\r", b'"', b"'", b",", b"=", b"1_0", b"U99999999", b"O", b"(-1, 4)", b"inf",
    b"\xe2\x80\xae", b"\n", b"\t", b"1979-05-27", b"../../x", b"[[experiments]]", b".", b"#",
)  # fmt: skip


def put_word(content, rng):
    place, length = rng.randrange(len(content)), rng.choice((0, 0, 1, 2, 5))
    content[place : place + length] = rng.choice(WORDS)


def replace_number(content, rng):
    """Put another number in place of one in a text."""
    found = list(re.finditer(rb"-?\d+(?:\.\d+)?", content))
    if found:
        one = rng.choice(found)
        content[one.start() : one.end()] = rng.choice(WORDS)


CHANGES = (flip, set_byte, set_number, cut, drop, repeat, shuffle, put_word, put_word, replace_number, replace_number)


def changed(content, rng):
    content = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        if content:
            rng.choice(CHANGES)(content, rng)
    return bytes(content)


# -- formats: a good file, changed; how it is read; whether values may come out that differ --
class Format:
    detects = False  # every change of a value

    def __init__(self, folder):
        self.folder = folder
        self.good = self.make()
        self.expected = self.read(self.write(self.good))

    def write(self, content):
        self.path.write_bytes(content)
        return self.path

    def change(self, rng):
        return changed(self.good, rng)


class Model(Format):
    """A model; whatever is changed does not match its checksum."""

    detects = True

    def make(self):
        self.path = self.folder / "m.safetensors"
        clf = AIRClassifier(1.0, expansion=RandomReLU(6, random_state=0), calibrate=False).fit(X, Y)
        clf.save(self.path)
        return self.path.read_bytes()

    def read(self, path):
        clf = load_fitted(path)
        return clf.classes_.tolist(), clf.predict_proba(X).round(9).tolist()


class ForgedModel(Model):
    """A model whose header was changed and whose checksum is right."""

    detects = False

    def change(self, rng):
        from safetensors import safe_open
        from safetensors.numpy import save

        from aircl.classifiers.file import _checksum

        self.path.write_bytes(self.good)
        with safe_open(self.path, "numpy") as file:
            text = file.metadata()["aircl"]
            arrays = {name: file.get_tensor(name).copy() for name in file.keys()}  # noqa: SIM118 (not a mapping)
        if rng.random() < 0.7:
            text = self.change_header(text, rng)
        for _ in range(rng.choice((0, 0, 1, 2))):
            name = rng.choice(sorted(arrays))
            if rng.random() < 0.5 and arrays[name].size and arrays[name].dtype.kind == "f":
                arrays[name].reshape(-1)[rng.randrange(arrays[name].size)] = rng.choice(
                    (np.nan, np.inf, -np.inf, 0, -1, 1e300, 1e-300)
                )
            else:
                shape = [rng.choice((0, 1, 2, 4, 6, 7, 40)) for _ in range(rng.choice((0, 1, 1, 2, 3)))]
                arrays[name] = np.zeros(shape, rng.choice(("f8", "f4", "i8")))
        try:
            digest = _checksum(text, arrays)
        except InputError:
            digest = "not finite"
        return save(arrays, {"aircl": text, "sha256": digest})

    @staticmethod
    def change_header(text, rng):
        if rng.random() < 0.3:
            return changed(text.encode(), rng).decode(errors="replace")
        header = json.loads(text)
        place, key = header, rng.choice(sorted(header))
        while isinstance(place[key], dict) and place[key] and rng.random() < 0.8:
            place = place[key]
            key = rng.choice(sorted(place))
        place[key] = rng.choice(
            (None, 5, -1, 0, 2.5, 10**9, 2**70, True, "x", "auto", "U100000000", [], {}, [1], ["a"], {"a": 1}, [[]],
             ["ant"] * 4, list("abcd"), [1, 2, 3, 4], ["x" * 10**6, "y"], float("nan"))
        )  # fmt: skip
        return json.dumps(header)


class Export(Model):
    """What `export` writes; whatever is changed does not match its checksum."""

    def make(self):
        self.path = self.folder / "export"
        AIRClassifier(1.0, expansion=RandomReLU(6, random_state=0)).fit(X, Y).export(self.path)
        return self.path.read_bytes()

    def read(self, path):
        predictor = load_export(path)
        return predictor.classes_.tolist(), predictor.predict_proba(X).round(9).tolist()


class ForgedExport(ForgedModel):
    """An export whose header was changed and whose checksum is right."""

    make, read = Export.make, Export.read


class Rows(Format):
    suffix, label = ".npz", "y"

    def read(self, path):
        (source,) = open_files([path], Request(self.label))
        kind = None if self.label is None else agree_on_labels([source])
        batches = list(source.batches(16, kind))
        X = np.concatenate([batch.X for batch in batches]) if batches else np.zeros((0, 4))
        y = [label for batch in batches for label in batch.y.tolist()] if kind else []
        assert np.isfinite(X).all()
        assert X.shape[1] == source.n_features
        assert not kind or len(y) == len(X)
        return X.tolist(), y

    def make(self):
        self.path = self.folder / f"rows{self.suffix}"
        self.save(self.path)
        return self.path.read_bytes()


class Npz(Rows):
    def save(self, path):
        np.savez(path, X=X, y=Y)

    def change(self, rng):
        """Change the archive, or, so that its checksums are right, what is in it."""
        if rng.random() < 0.4:
            return changed(self.good, rng)
        buffer = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(self.good)) as old, zipfile.ZipFile(buffer, "w") as new:
            chosen = rng.choice(old.namelist())
            for name in old.namelist():
                content = old.read(name)
                if name == chosen:  # mostly the header, which is what is believed
                    head = changed(content[:130], rng) if rng.random() < 0.8 else content[:130]
                    content = head + (changed(content[130:], rng) if rng.random() < 0.2 else content[130:])
                methods = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
                new.writestr(name if rng.random() < 0.95 else name[:-4], content, rng.choice(methods))
        content = buffer.getvalue()
        return changed(content, rng) if rng.random() < 0.3 else content


class Npy(Rows):
    suffix, label = ".npy", None

    def save(self, path):
        np.save(path, X)

    def change(self, rng):
        head = changed(self.good[:128], rng)
        return head + self.good[128:] if rng.random() < 0.7 else changed(self.good, rng)


class Csv(Rows):
    suffix = ".csv"

    def save(self, path):
        lines = ["a,b,c,d,y", *(",".join((*map(str, row), label)) for row, label in zip(X.tolist(), Y, strict=True))]
        path.write_text("\n".join(lines) + "\n")


class JsonLines(Rows):
    suffix = ".jsonl"

    def save(self, path):
        rows = zip(X.tolist(), Y, strict=True)
        path.write_text("".join(json.dumps({**dict(zip("abcd", row, strict=True)), "y": y}) + "\n" for row, y in rows))


class TextLines(Rows):
    suffix = ".jsonl"

    def save(self, path):
        rows = [{"text": f"question {number}", "id": number, "y": label} for number, label in enumerate(Y)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def read(self, path):
        backbone = FrozenBackbone("char-ngrams", "0" * 64, 1024, "texts")
        source = TextTable(open_table(path), Columns("y", ("text",), id="id"), backbone)
        blocks = list(source._blocks(agree_on_labels([source])))
        return [(block.inputs.texts, block.y.tolist(), block.ids, block.inputs.fingerprint()) for block in blocks]


class Parquet(Rows):
    suffix = ".parquet"

    def save(self, path):
        import pyarrow as pa
        from pyarrow import parquet

        table = pa.table({"y": Y, **{name: X[:, i] for i, name in enumerate("abcd")}})
        parquet.write_table(table, path, row_group_size=16)


class Safetensors(Rows):
    suffix = ".safetensors"

    def save(self, path):
        from safetensors.numpy import save_file

        save_file({"X": X, "y": NUMBERS}, path)


class Toml(Format):
    def make(self):
        self.path = self.folder / "c.toml"
        return b"""name = "mine"
[[experiments]]
dataset = "digits"
backbone = "identity"
scenario = "long-tail"
options = {phases = 5, counts = "exp", ratio = 0.05}
orders = ["descending", ""]
methods = ["air", "acil", "ncm"]
seeds = [1, 2]
buffer = 100
gamma = 1.0
batch_size = 16
evaluate_every = 100
[experiments.method_options.acil]
"""

    def read(self, path):
        config = RunConfig.from_toml(path)
        assert RunConfig.from_mapping(json.loads(json.dumps(config.to_mapping()))) == config
        return config


class Run(Format):
    """A directory of a run: run.json, rows.jsonl or details are changed, and the report is written again."""

    def make(self):
        from aircl.benchmark.config import Experiment
        from aircl.benchmark.runner import Runner

        self.path = self.folder / "run"
        experiment = Experiment("digits", "identity", "cil", {"phases": 2}, methods=("ncm",))
        Runner(RunConfig("mine", (experiment,)), RunDirectory(self.path), cache=self.folder / "cache").run()
        job = RunDirectory(self.path).rows()[0].job
        self.names = ("run.json", "rows.jsonl", f"details/{job}.npz")
        return {name: (self.path / name).read_bytes() for name in self.names}

    def write(self, contents):
        for name, content in contents.items():
            (self.path / name).write_bytes(content)
        return self.path

    def read(self, path):
        RunConfig.from_mapping(RunDirectory(path).about.get("config", {}))
        pages = write_report(path)
        return [page.read_text() for page in pages if page.suffix == ".csv"]

    def change(self, rng):
        name = rng.choice(self.names)
        return {**self.good, name: changed(self.good[name], rng)}


class Jsonl(Run):
    """The rows of a run, and the tables that are made of them."""

    def read(self, path):
        return to_csv([compare(experiment) for experiment in read_experiments(path)])

    def change(self, rng):
        return {**self.good, "rows.jsonl": changed(self.good["rows.jsonl"], rng)}


FORMATS = {
    "model": Model, "forged-model": ForgedModel, "export": Export,
    "forged-export": ForgedExport, "npz": Npz, "npy": Npy, "csv": Csv, "parquet": Parquet,
    "json-lines": JsonLines, "text-lines": TextLines,
    "safetensors": Safetensors, "toml": Toml, "jsonl": Jsonl, "run": Run,
}  # fmt: skip


def try_case(form, number):
    """Return how a case ended."""
    try:
        read = form.read(form.write(form.change(random.Random(number))))
    except (OSError, MemoryError):
        return "refused"
    except Exception as error:
        if not is_refusal(error):  # the command line would call it a fault
            raise
        return "refused"
    same = repr(read) == repr(form.expected)
    if not same and form.detects:
        raise AssertionError("it was read to something else")
    return "same" if same else "other"


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def address_space():
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def main(name, seed, cases):
    def hang(*_):
        raise HangError

    os.environ["AIRCL_CACHE"] = tempfile.mkdtemp()
    signal.signal(signal.SIGALRM, hang)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        form = FORMATS[name](Path(folder))
        for number in range(20):  # what is imported or kept once is not growth
            try_case(form, -1 - number)
        resource.setrlimit(resource.RLIMIT_AS, (address_space() + 2 * GROWTH,) * 2)
        before = peak()
        ends = Counter()
        for number in range(seed, seed + cases):
            print(f"case {number}", flush=True)
            signal.alarm(SECONDS)
            try:
                ends[try_case(form, number)] += 1
            except BaseException as error:
                ends["failed"] += 1
                where = traceback.extract_tb(error.__traceback__)[-1]
                print(f"FAILED {number}: {type(error).__name__}: {error} ({where.filename}:{where.lineno})", flush=True)
            finally:
                signal.alarm(0)
            if peak() - before > GROWTH:
                ends["failed"] += 1
                print(f"FAILED {number}: grew by {(peak() - before) / 2**20:.0f} MiB", flush=True)
                break
        print(json.dumps(ends), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
