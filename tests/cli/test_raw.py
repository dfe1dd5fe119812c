"""Texts and images on the command line: learned, predicted, evaluated and forgotten without saying anything twice."""

from __future__ import annotations

import csv
import json

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from pyarrow import parquet

from aircl import AIRClassifier
from aircl.backbones.identity import Identity
from aircl.backbones.ngrams import CharNgrams

QUESTIONS = [
    ("where is my card", "card"),
    ("my card did not come", "card"),
    ("card still not here", "card"),
    ("what is the exchange rate", "rate"),
    ("which rate do you use", "rate"),
    ("tell me the rate, please", "rate"),
]
TEXTS, INTENTS = map(list, zip(*QUESTIONS, strict=True))
NAME = "char-ngrams,n_features=64"
NGRAMS = ("--backbone", NAME)


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("AIRCL_CACHE", str(tmp_path / "cache"))


def write(path, columns):
    """Write columns as a table of the type that the path names."""
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    if path.endswith(".jsonl"):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        with open(path, "w") as file:
            file.write(text)
    elif path.endswith(".parquet"):
        parquet.write_table(pa.table(columns), path)
    else:
        with open(path, "w", newline="") as file:
            table = csv.DictWriter(file, list(columns), delimiter="\t" if path.endswith(".tsv") else ",")
            table.writeheader()
            table.writerows(rows)


@pytest.fixture
def questions():
    write("q.csv", {"text": TEXTS, "category": INTENTS})


@pytest.fixture
def counted(monkeypatch):
    """Return how many samples each call of the backbone was given."""
    calls = []
    for cls in (CharNgrams, Identity):
        original = cls.forward

        def forward(self, prepared, original=original):
            calls.append(prepared.shape[0])
            return original(self, prepared)

        monkeypatch.setattr(cls, "forward", forward)
    return calls


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_every_command_takes_texts_of_every_type_and_says_nothing_twice(suffix, run):
    write(f"q{suffix}", {"question": TEXTS, "topic": INTENTS, "n": list(range(6))})
    write(f"new{suffix}", {"question": ["a card", "the rate"]})
    run("learn", f"q{suffix}", "--text", "question", "--label", "topic", *NGRAMS, "--gamma", 0.1, "-o", "m")
    model, reference = AIRClassifier.load("m"), AIRClassifier(0.1, backbone=NAME).fit(TEXTS, INTENTS)
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-4, atol=1e-5)
    assert run("predict", "m", f"new{suffix}").stdout == "card\nrate\n"
    assert json.loads(run("evaluate", "m", f"q{suffix}", "--json").stdout)["accuracy"] == 1
    run("learn", f"q{suffix}", "--append", "m", "-o", "twice")
    assert AIRClassifier.load("twice").class_count_.tolist() == [6, 6]
    run("forget", "twice", f"q{suffix}", "-o", "once")
    assert AIRClassifier.load("once").class_count_.tolist() == [3, 3]
    assert AIRClassifier.load("once").predict(["a card"]).tolist() == ["card"]  # it has its backbone again
    run("merge", "m", "once", "-o", "merged", code=1)  # the same samples


def test_a_table_of_texts_and_a_label_needs_no_word(questions, run):
    pytest.importorskip("wordllama")
    result = run("learn", "q.csv", "-o", "m")
    assert "Note: texts go through the backbone wordllama" in result.stderr
    assert json.loads(run("evaluate", "m", "q.csv", "--json").stdout)["rows"] == 6
    assert "256 of wordllama" in run("info", "m").stdout
    assert run("learn", "q.csv", "-q", "-o", "m").stderr == ""


def test_columns_of_texts_are_joined(run):
    write("q.csv", {"subject": ["a", "", "c"], "body": ["x", "y", "z"], "label": ["u", "v", "u"]})
    told = run("learn", "q.csv", *NGRAMS, "--gamma", 1, "-o", "found").stderr
    assert told.startswith("Note: the texts are the columns 'subject', 'body', joined; --text COL chooses")
    run("learn", "q.csv", "--text", "subject", "--text", "body", *NGRAMS, "--gamma", 1, "-o", "said")
    reference = AIRClassifier(1.0, backbone=NAME).fit(["a\nx", "y", "c\nz"], ["u", "v", "u"])
    for name in ("found", "said"):
        np.testing.assert_allclose(AIRClassifier.load(name).coef_, reference.coef_, atol=1e-6)
    run("learn", "q.csv", "--text", "body", *NGRAMS, "--gamma", 1, "-o", "one")
    assert not np.allclose(AIRClassifier.load("one").coef_, reference.coef_, atol=1e-3)


def test_features_are_computed_once(questions, run, counted):
    run("learn", "q.csv", *NGRAMS, "--batch", 4, "-o", "m")
    assert sum(counted) == 6
    run("evaluate", "m", "q.csv")
    run("predict", "m", "q.csv", "--batch", 1)
    run("forget", "m", "q.csv", "-o", "empty")
    assert sum(counted) == 6
    write("new.csv", {"text": ["something new"]})
    run("predict", "m", "new.csv")
    assert sum(counted) == 7


def test_ids_are_passed_through_and_remembered(run):
    write("q.csv", {"ticket": ["=A1", "A2", "A3", "A4", "A5", "A6"], "text": TEXTS, "category": INTENTS})
    run("learn", "q.csv", "--id", "ticket", *NGRAMS, "-o", "m")
    lines = run("predict", "m", "q.csv", "-q").stdout.splitlines()
    assert lines[:3] == ["ticket,prediction", "'=A1,card", "A2,card"]
    assert run("predict", "m", "q.csv", "-q", "--raw").stdout.splitlines()[1] == "=A1,card"
    for suffix in (".csv", ".parquet", ".npz"):
        run("predict", "m", "q.csv", "--proba", "--label", "category", "-o", f"out{suffix}")
    table = parquet.read_table("out.parquet")
    assert table.column_names == ["ticket", "prediction", "label", "p_card", "p_rate"]
    assert table["ticket"].to_pylist()[:2] == ["=A1", "A2"]
    with np.load("out.npz") as arrays:
        assert arrays["id"].tolist()[-1] == "A6"
    with open("out.csv") as file:
        assert file.readline() == "ticket,prediction,label,p_card,p_rate\n"
    write("new.csv", {"text": ["a card"]})  # without ids
    assert run("predict", "m", "new.csv", "-q").stdout == "card\n"
    assert "no column 'ticket' for --id" in run("predict", "m", "new.csv", "--id", "ticket", code=1).stderr


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_ids_of_rows_of_numbers_are_no_features(suffix, run):
    rng = np.random.default_rng(0)
    columns = {"id": list(range(120)), "u": rng.normal(size=120).tolist(), "v": rng.normal(size=120).tolist()}
    write(f"rows{suffix}", columns | {"y": ["a", "b"] * 60})
    error = run("learn", f"rows{suffix}", "-o", "m", code=1).stderr
    assert "column 'id' is named like an id" in error
    assert "--id 'id'" in error
    assert "--features" in error
    run("learn", f"rows{suffix}", "--id", "id", "-o", "m")
    assert AIRClassifier.load("m").feature_names_in_.tolist() == ["u", "v"]
    assert run("predict", "m", f"rows{suffix}", "-q").stdout.startswith("id,prediction\n0,")
    run("learn", f"rows{suffix}", "--features", "id,u,v", "-o", "all")  # who says so, means it
    assert AIRClassifier.load("all").n_features_in_ == 3


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_column_that_counts_up_is_no_feature(suffix, run):
    rng = np.random.default_rng(0)
    columns = {"u": rng.normal(size=120).tolist(), "nr": [3 * i for i in range(120)], "y": ["a", "b"] * 60}
    write(f"rows{suffix}", columns)
    error = run("learn", f"rows{suffix}", "-o", "m", code=1).stderr
    assert "column 'nr' counts up over 100 rows" in error
    assert "--id 'nr'" in error
    write(f"few{suffix}", {name: values[:99] for name, values in columns.items()})
    run("learn", f"few{suffix}", "-o", "m")
    columns["nr"][50] = 0
    write(f"other{suffix}", columns)
    run("learn", f"other{suffix}", "-o", "m")


def test_ids_of_arrays(run):
    np.savez("rows.npz", X=np.eye(3), y=["a", "b", "c"], key=[7, 8, 9])
    run("learn", "rows.npz", "--label", "y", "-o", "m")
    assert run("predict", "m", "rows.npz", "--id", "key", "-q").stdout == "key,prediction\n7,a\n8,b\n9,c\n"
    assert "no array 'keys' for --id" in run("predict", "m", "rows.npz", "--id", "keys", code=1).stderr


def test_the_label_is_remembered_for_rows_of_numbers(run):
    write("rows.csv", {"u": [0.0, 1.0, 0.1], "v": [1.0, 0.0, 0.9], "species": ["a", "b", "a"]})
    assert "--label" in run("learn", "rows.csv", "-o", "m", code=2).stderr
    run("learn", "rows.csv", "--label", "species", "-o", "m")
    assert json.loads(run("evaluate", "m", "rows.csv", "--json", "-q").stdout)["accuracy"] == 1
    run("forget", "m", "rows.csv", "-o", "m")
    assert not AIRClassifier.load("m").__sklearn_is_fitted__()


# -- images --
@pytest.fixture
def photos(tmp_path):
    rng = np.random.default_rng(0)
    rows = []
    for label, name in enumerate(["cat", "dog"]):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(4):
            pixels = (rng.integers(0, 60, (6, 6, 3)) + 150 * label).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / name / f"{i}.png")
            rows.append((f"photos/{name}/{i}.png", name))
    write("photos.csv", {"photo": [row[0] for row in rows], "kind": [row[1] for row in rows]})
    return [row[0] for row in rows]


def test_folders_are_learned_predicted_evaluated_and_forgotten(photos, run, counted, tmp_path):
    run("learn", "photos", "--backbone", "identity", "--gamma", 0.1, "-o", "m")
    assert json.loads(run("evaluate", "m", "photos", "--json").stdout)["accuracy"] == 1
    (tmp_path / "flat").mkdir()
    for number, path in enumerate(photos[::4]):
        (tmp_path / "flat" / f"{number}.png").write_bytes((tmp_path / path).read_bytes())
    assert run("predict", "m", "flat", "-q").stdout == "file,prediction\n0.png,cat\n1.png,dog\n"
    assert "photos/dog/0.png,dog" in run("predict", "m", photos[4], "-q").stdout
    run("forget", "m", "photos", "-o", "empty")
    assert sum(counted) == 8 + 2 + 1  # what was learned, evaluated and forgotten, what is flat, and the one
    assert AIRClassifier.load("m").predict([photos[0]]).tolist() == ["cat"]


def test_paths_in_a_table(photos, run):
    run("learn", "photos.csv", "--image", "photo", "--label", "kind", "--backbone", "identity", "--gamma", 1, "-o", "m")
    run("learn", "photos", "--backbone", "identity", "--gamma", 1, "-o", "folder")
    np.testing.assert_allclose(AIRClassifier.load("m").coef_, AIRClassifier.load("folder").coef_, atol=1e-5)
    assert json.loads(run("evaluate", "m", "photos.csv", "--json").stdout)["accuracy"] == 1
    assert run("predict", "m", "photos.csv", "-q").stdout == "cat\n" * 4 + "dog\n" * 4
    assert "--image photo" in run("learn", "photos.csv", "--label", "kind", "-o", "x", code=1).stderr
    write("gone.csv", {"photo": ["nowhere.png"]})
    assert "gone.csv, line 2: there is no image 'nowhere.png'" in run("predict", "m", "gone.csv", code=1).stderr


# -- functions --
MODULE = """
import numpy as np
from PIL import Image

TEXTS = {texts!r}
INTENTS = {intents!r}

def rows():
    yield TEXTS[:2], INTENTS[:2]
    yield TEXTS[2:], INTENTS[2:]

def alone():
    yield ["a card", "the rate"]

def images():
    yield [Image.new("RGB", (2, 2), shade) for shade in ("black", "white")], ["dark", "light"]

def numbers():
    yield np.eye(2), ["a", "b"]
"""


@pytest.fixture
def functions(tmp_path):
    (tmp_path / "raw_rows.py").write_text(MODULE.format(texts=TEXTS, intents=INTENTS))


def test_functions_work_wherever_files_do(functions, run):
    run("learn", "raw_rows:rows", *NGRAMS, "--gamma", 0.1, "-o", "m")
    reference = AIRClassifier(0.1, backbone=NAME).fit(TEXTS, INTENTS)
    np.testing.assert_allclose(AIRClassifier.load("m").coef_, reference.coef_, rtol=1e-4, atol=1e-5)
    assert run("predict", "m", "raw_rows:alone").stdout == "card\nrate\n"
    assert json.loads(run("evaluate", "m", "raw_rows:rows", "--json").stdout)["rows"] == 6
    run("forget", "m", "raw_rows:rows", "-o", "empty")
    run("learn", "raw_rows:images", "--backbone", "identity", "-o", "i")
    assert run("predict", "i", "raw_rows:images").stdout == "dark\nlight\n"
    run("learn", "raw_rows:numbers", "-o", "n")
    assert run("predict", "n", "raw_rows:numbers").stdout == "a\nb\n"
    assert "yields X alone" in run("evaluate", "m", "raw_rows:alone", code=1).stderr
    assert "holds features" in run("predict", "m", "raw_rows:numbers", code=1).stderr


# -- what cannot be --
def test_models_of_two_backbones_are_not_merged(questions, run):
    run("learn", "q.csv", *NGRAMS, "-o", "a")
    run("learn", "q.csv", "--backbone", "char-ngrams,n_features=64,ngram_range=(2, 2)", "-o", "b")
    assert f"backbone: '{NAME}' against '{NAME},ngram_range=(2, 2)'" in run("merge", "a", "b", "-o", "c", code=1).stderr


def test_a_model_of_another_version_of_the_backbone_is_refused(questions, run):
    run("learn", "q.csv", *NGRAMS, "-o", "m")
    model = AIRClassifier.load("m")
    model.backbone_ = {"name": NAME, "fingerprint": "0" * 64}
    model.save("other")
    assert "same backbone" in run("predict", "other", "q.csv", code=1).stderr
    assert "of other weights" in run("merge", "m", "other", "-o", "x", code=1).stderr
    assert "0 of" not in run("info", "other").stdout  # needs no backbone


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"text": ["a", "b"], "label": ["u", "v"]}, ("--text", "body"), "no column 'body' for --text"),
        ({"text": ["a", "b"], "label": ["u", "v"]}, ("--text", "label"), "given for both --text and --label"),
        ({"text": ["a", " "], "label": ["u", "v"]}, (), "line 3: there is no text in 'text'"),
        ({"text": ["a", "b"], "label": ["u", ""]}, (), "line 3: the label is empty"),
        ({"text": ["a", "b"], "label": ["u", "v"], "id": ["1", ""]}, ("--id", "id"), "line 3: the id is empty"),
        ({"text": ["a", "b"], "label": ["u", "v"], "user_id": ["1", "2"]}, (), "--id 'user_id'"),
        ({"text": ["a", "b"], "label": ["u", "v"], "user_id": ["1", "2"]}, (), "say which columns count with --text"),
        ({"text": ["a", "b"], "label": ["u", "v"], "size": [1, 2]}, (), "--text COL"),
        ({"text": ["a", "b"], "label": ["u", "v"]}, ("--backbone", "identity"), "identity does not take texts"),
        ({"text": ["a", "b"], "label": ["u", "v"]}, ("--backbone", "base:resnet32"), "checkpoint:FILE"),
    ],
)
def test_tables_that_do_not_fit(columns, options, message, run, tmp_path):
    write("t.csv", columns)
    result = run("learn", "t.csv", *(options if "--backbone" in options else (*options, *NGRAMS)), "-o", "m", code=None)
    assert result.exit_code in (1, 2)
    assert message in result.stderr
    assert not (tmp_path / "m").exists()


def test_lines_of_json_that_are_none(run, tmp_path):
    (tmp_path / "t.jsonl").write_text('{"text": "a", "label": "u"}\n[1]\n')
    assert (
        "t.jsonl, line 2 holds a list" in run("learn", "t.jsonl", "--text", "text", *NGRAMS, "-o", "m", code=1).stderr
    )
    (tmp_path / "t.jsonl").write_text('{"text": "a", "label": "u"}\n{"text": \n')
    assert (
        "t.jsonl, line 2: it is not JSON"
        in run("learn", "t.jsonl", "--text", "text", *NGRAMS, "-o", "m", code=1).stderr
    )
    (tmp_path / "t.jsonl").write_text('{"text": "a", "label": "u"}\n{"label": "v", "text": 5}\n')
    assert "line 2: 5 is not a text" in run("learn", "t.jsonl", "--text", "text", *NGRAMS, "-o", "m", code=1).stderr
    (tmp_path / "t.jsonl").write_text('{"text": "a", "label": "u"}\n{"label": 1, "text": "b"}\n')
    assert "does not fit labels" in run("learn", "t.jsonl", "--text", "text", *NGRAMS, "-o", "m", code=1).stderr


TEXT, NUMBER, LIST = '{"text": "b", "label": "v", "id": 1}', '{"u": 0.5, "label": 1}', '{"u": [1, 2], "label": 1}'


@pytest.mark.parametrize(
    ("first", "line", "message"),
    [
        (TEXT, r'{"text": "\ud800", "label": "u", "id": 2}', "is not Unicode"),
        (TEXT, r'{"text": "a", "label": "\ud800", "id": 2}', "is not Unicode"),
        (TEXT, r'{"text": "a", "label": "u", "id": "\ud800"}', "is not Unicode"),
        (TEXT, r'{"text": "a", "label": null, "id": 2}', "None is no label"),
        (NUMBER, '{"u": [1, 2], "label": 1}', "line 2: [1, 2] is not a number"),
        (NUMBER, '{"u": "x", "label": 1}', "line 2: 'x' is not a number"),
        (NUMBER, '{"u": 1e999, "label": 1}', "inf is not a finite number"),
        (NUMBER, '{"u": ' + "9" * 400 + ', "label": 1}', "line 2: there is a number that is too large"),
        (NUMBER, '{"u": 1, "label": ' + "9" * 400 + "}", "is too large"),
        (LIST, '{"u": 1, "label": 1}', "line 2: 1 is not a list of 2 numbers"),
        (LIST, '{"u": [1], "label": 1}', "line 2: [1] is not a list of 2 numbers"),
        (LIST, '{"u": [1, null], "label": 1}', "line 2: None is not a number"),
    ],
)
def test_hostile_lines_of_json(first, line, message, run, tmp_path):
    (tmp_path / "t.jsonl").write_text(f"{first}\n{line}\n")
    options = ("--text", "text", "--id", "id", *NGRAMS) if first == TEXT else ()
    assert message in run("learn", "t.jsonl", *options, "-o", "m", code=1).stderr
    assert not (tmp_path / "m").exists()


def test_features_for_a_model_of_texts_are_refused(questions, run):
    run("learn", "q.csv", *NGRAMS, "-o", "m")
    np.savez("x.npz", X=np.zeros((2, 64)))
    assert "made of texts or images by char-ngrams" in run("predict", "m", "x.npz", code=1).stderr


@pytest.mark.slow
def test_engines_learn_texts(questions, run):
    write("r.csv", {"text": TEXTS[:3], "category": INTENTS[:3]})
    for engine in ("joblib", "dask"):
        run("learn", "q.csv", "r.csv", *NGRAMS, "--gamma", 0.1, "--engine", engine, "--workers", 2, "-o", engine)
        reference = AIRClassifier(0.1, backbone=NAME).fit(TEXTS + TEXTS[:3], INTENTS + INTENTS[:3])
        model = AIRClassifier.load(engine)
        np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-4, atol=1e-5)
        assert model.predict(["a card"]).tolist() == ["card"]


@pytest.mark.parametrize(
    ("name", "contents", "message"),
    [
        ("a.csv", "text,label\nw\xe4re gut,a\n".encode("latin-1"), "Save it as UTF-8, or convert it"),
        ("a.csv", b"text;label\nhello;a\n", "separated by ';', not by ','"),
        ("a.tsv", b"text,label\nhello,a\n", "separated by ',', not by '\\t'"),
        ("a.txt", b"hello", "files of type '.txt' cannot be read"),
        ("a.json", b"[]", "files of type '.json' cannot be read"),
        ("a.csv", b"", "is empty"),
        ("a.csv", b"text,label\nhello,\n", "the label is empty"),
        ("a.csv", b"text,label\nhello,a\n,b\n", "no text in 'text'"),
    ],
)
def test_what_a_first_file_is_often_like(name, contents, message, run, tmp_path):
    (tmp_path / name).write_bytes(contents)
    assert message in run("learn", name, *NGRAMS, "-o", "m", code=1).stderr


def test_images_without_folders_of_classes(photos, run, tmp_path):
    (tmp_path / "flat").mkdir()
    for number in range(3):
        Image.new("RGB", (4, 4)).save(f"flat/{number}.png")
    refused = run("learn", "flat", "--backbone", "identity", "-o", "m", code=1).stderr
    assert refused.startswith("Error: flat has 3 images, but no folders with images")
    (tmp_path / "flat" / "cat").mkdir()
    (tmp_path / "flat" / "0.png").rename("flat/cat/0.png")
    told = run("learn", "flat", "--backbone", "identity", "-o", "m").stderr
    assert "Note: flat: images beside the folders of classes are left out: 1.png, 2.png." in told


def test_files_without_rows(questions, run):
    for name in ("none.csv", "void.csv"):
        write(name, {"text": [], "category": []})
    nothing = "Error: no rows in none.csv, so there is nothing to learn.\n"
    for backbone in (NGRAMS, ()):
        assert run("learn", "none.csv", *backbone, "-o", "m", code=1).stderr == nothing
    run("learn", "none.csv", "q.csv", "void.csv", *NGRAMS, "-o", "m")  # the first that has rows tells what is what
    assert AIRClassifier.load("m").class_count_.tolist() == [3, 3]
    write("new.csv", {"text": []})
    assert run("predict", "m", "new.csv").stdout == ""
    assert "Forgot 0 rows" in run("forget", "m", "none.csv", "-o", "m").stderr
    run("learn", "void.csv", *NGRAMS, "--statistics-only", "-o", "none")
    run("merge", "m", "none", "-o", "m")


def test_a_model_of_python_finds_its_one_column_of_texts(questions, run):
    AIRClassifier(0.1, backbone=NAME).fit(TEXTS, INTENTS).save("m")
    assert run("predict", "m", "q.csv").stdout.split() == INTENTS  # the label is none of the texts
    assert json.loads(run("evaluate", "m", "q.csv", "--json").stdout)["accuracy"] == 1
    write("two.csv", {"subject": TEXTS, "body": TEXTS})
    assert "say which column holds what char-ngrams" in run("predict", "m", "two.csv", code=1).stderr


def test_options_of_columns_are_for_what_has_columns(photos, functions, run):
    for option in ("--text", "--image", "--id", "--label", "--features", "--sample-weight"):
        for given in ("photos", "raw_rows:rows"):
            assert option in run("learn", given, option, "name", "-o", "m", code=2).stderr


def test_the_same_images_elsewhere_are_not_computed_again(photos, run, counted, tmp_path):
    run("learn", "photos", "--backbone", "identity", "-o", "m")
    assert sum(counted) == 8
    (tmp_path / "photos").rename("archive")
    for path in (tmp_path / "archive").glob("*/*.png"):
        path.rename(path.with_name(f"2026-{path.name}"))
    run("evaluate", "m", "archive")
    write("table.csv", {"path": sorted(map(str, (tmp_path / "archive").glob("*/*.png")))})
    run("predict", "m", "table.csv", "--image", "path")
    AIRClassifier.load("m").predict(sorted((tmp_path / "archive").glob("*/*.png")))
    assert sum(counted) == 8
    Image.new("RGB", (6, 6), (9, 9, 9)).save(next((tmp_path / "archive").glob("*/*.png")))
    run("evaluate", "m", "archive")
    assert sum(counted) == 16


def test_one_class_is_learned_and_said(run):
    write("one.csv", {"text": TEXTS[:3], "label": ["card"] * 3})
    assert "Note: there is one class, card" in run("learn", "one.csv", *NGRAMS, "-o", "m").stderr
    assert "Note" not in run("learn", "one.csv", *NGRAMS, "-o", "m", "--quiet").stderr


def test_texts_and_images_for_a_model_of_features_are_refused(questions, photos, run):
    np.savez("f.npz", X=np.eye(6), y=INTENTS)
    run("learn", "f.npz", "--label", "y", "-o", "m")
    write("t.csv", {"text": TEXTS})
    assert (
        "holds texts ('text'), but the model has learned from rows of 6 features"
        in run("predict", "m", "t.csv", code=1).stderr
    )
    refused = run("learn", "photos", "--backbone", "identity", "--append", "m", "-o", "m", code=1).stderr
    assert "learned from rows of 6 features, but identity makes" in refused
