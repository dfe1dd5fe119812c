"""What the FILES of a command stand for: files of features or texts, folders of images, Python functions."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from aircl.cli.console import say
from aircl.cli.modelfile import inputs_of, label_kind, take_backbone, take_feature_names
from aircl.storage.writing import check_output

if TYPE_CHECKING:
    from aircl.classifiers.stream import StreamClassifier
    from aircl.data.arrays import LabelKind, Source
    from aircl.data.arrays.generated import GeneratedSource
    from aircl.data.arrays.tables import Table
    from aircl.raw.columns import Columns
    from aircl.raw.frozen import FrozenBackbone

# Files that hold numbers only.
_FEATURES_ONLY = (".npz", ".npy", ".safetensors")


@dataclass(frozen=True)
class Asked:
    """What a command was told about columns, and what the model remembers where it was told nothing.

    Attributes
    ----------
    label, features, weight, id, image : str or None
    text : tuple of str
    names : tuple of str or None
        The features by name, of a model that knows them.
    labelled : bool
        Whether labels are read.
    """

    label: str | None = None
    features: str | None = None
    weight: str | None = None
    id: str | None = None
    text: tuple[str, ...] = ()
    image: str | None = None
    names: tuple[str, ...] | None = None
    labelled: bool = True


@dataclass(frozen=True)
class Opened:
    """What was opened.

    Attributes
    ----------
    sources : list of Source
    backbone : FrozenBackbone or None
        What texts or images go through.
    columns : dict
        What the model should remember.
    id_name : str or None
        What the ids of the rows are called.
    kind : {"integers", "strings", "booleans"} or None
        What labels are read as.
    names : tuple of str or None
        What the model calls its features.
    replaced : tuple of Source
        Old rows.
    """

    sources: list[Source]
    backbone: FrozenBackbone | None = None
    columns: dict[str, Any] = field(default_factory=dict)
    id_name: str | None = None
    kind: LabelKind | None = None
    names: tuple[str, ...] | None = None
    replaced: tuple[Source, ...] = ()


def open_rows(
    files: list[str],
    asked: Asked,
    model: StreamClassifier,
    *,
    output: Path | None = None,
    backbone: str | None = None,
    device: str | None = None,
    replaced: list[str] | None = None,
    quiet: bool = True,
) -> Opened:
    """Open what a command reads for a model, which from then on takes rows of numbers without names.

    Parameters
    ----------
    files : list of str
    asked : Asked
        Without names: they are the model's.
    model : StreamClassifier
    output : Path or None
        What must be none of the files.
    backbone, device, quiet
        See `open_sources`.
    replaced : list of str or None
        Files of old rows, of the same columns.

    Returns
    -------
    opened : Opened
    """
    from aircl.data.arrays import agree_on_labels

    asked = replace(asked, names=take_feature_names(model))
    opened = open_sources(files, asked, model, backbone=backbone, device=device, quiet=quiet)
    if output is not None:
        check_output(output, inputs=[*input_paths(files, opened.sources), *weight_files(backbone)])
    old = open_sources(replaced, asked, model, backbone=backbone, device=device).sources if replaced else []
    take_backbone(model)
    reads_labels = asked.labelled or asked.label is not None
    kind = agree_on_labels(opened.sources, label_kind(model)) if reads_labels else None
    return replace(opened, kind=kind, names=asked.names, replaced=tuple(old))


def open_sources(
    arguments: list[str],
    asked: Asked,
    model: StreamClassifier,
    *,
    backbone: str | None = None,
    device: str | None = None,
    quiet: bool = True,
) -> Opened:
    """Look into everything that is to be read, as far as it takes to know that it fits the model and each other.

    Parameters
    ----------
    arguments : list of str
        Files or patterns; folders of images; Python functions, `module:function`.
    asked : Asked
    model : StreamClassifier
        For its width, its backbone and the columns that it remembers.
    backbone : str or None
        Name of what texts or images go through; None: the model's, or the default one.
    device : str or None
        Where it computes.
    quiet : bool
        Whether the choice of a backbone is not told.

    Returns
    -------
    opened : Opened
    """
    from aircl.data.arrays import DataError, expand_patterns, is_entry, open_entry
    from aircl.raw.folders import is_image

    if twice := [text for text in arguments if arguments.count(text) > 1]:
        raise DataError(f"{twice[0]} is given more than once, and its rows would be counted as often.")
    if asked.text and asked.image:
        raise typer.BadParameter("texts and images are not learned together.", param_hint="--image")
    folders = [Path(text) for text in arguments if Path(text).is_dir()]
    entries = [text for text in arguments if is_entry(text)]
    paths = expand_patterns([text for text in arguments if text not in entries and not Path(text).is_dir()])
    functions: list[GeneratedSource] = [source for entry in entries for source in open_entry(entry)]  # type: ignore[misc]
    images = [path for path in paths if is_image(path.name)]
    if images and asked.labelled:
        raise DataError(f"{images[0]} is one image, without a label. Put images into one folder per class.")
    tables = [path for path in paths if path not in images]
    said = {"--label": asked.label, "--features": asked.features, "--sample-weight": asked.weight, "--id": asked.id}
    said |= {"--text": " ".join(asked.text), "--image": asked.image}
    if not tables and (option := next((option for option, name in said.items() if name), None)):
        raise typer.BadParameter("it names a column, and folders, images and functions have none.", param_hint=option)
    return _Opening(asked, model, backbone, device, quiet).open(folders, images, tables, functions)


class _Opening:
    """One command's look into its files."""

    def __init__(
        self, asked: Asked, model: StreamClassifier, backbone: str | None, device: str | None, quiet: bool
    ) -> None:
        self.noted: dict[str, str] | None = getattr(model, "backbone_", None)
        self.is_raw = getattr(model, "backbone", None) is not None
        self.n_features: int | None = getattr(model, "n_features_in_", None)
        known: dict[str, Any] = getattr(inputs_of(model), "columns_", None) or {}
        self.known = known
        if asked.labelled and asked.label is None:
            asked = replace(asked, label=known.get("label"))
        if not asked.text and asked.image is None:
            asked = replace(asked, text=tuple(known.get("text", ())), image=known.get("image"))
        self.asked, self.backbone, self.device, self.quiet = asked, backbone, device, quiet
        self.frozen: FrozenBackbone | None = None
        self.is_remote = self.is_raw and getattr(model, "is_remote", False)

    def open(
        self, folders: list[Path], images: list[Path], paths: list[Path], functions: list[GeneratedSource]
    ) -> Opened:
        """Return all sources; rows of numbers and texts or images are not mixed."""
        from aircl.data.arrays import DataError

        tables = self._tables(paths)
        if self.n_features is not None and not self.is_raw and self.noted is None:
            self._check_numbers(tables)
        is_raw = bool(folders or images or self.asked.text or self.asked.image or self.is_raw)
        raw_functions = [source for source in functions if source.first is not None]
        if not is_raw and not raw_functions:
            if self.backbone is not None and tables:
                raise self._no_column(tables[0])
            if self.backbone is not None:
                raise typer.BadParameter(
                    "it is for texts and images, and these are rows of features.", param_hint="--backbone"
                )
            return self._features(paths, functions)
        numbers = [path for path in paths if path.suffix.lower() in _FEATURES_ONLY]
        numbers += [source.path for source in functions if source.first is None and source.n_features is not None]
        if numbers or self.asked.features is not None:
            given = f"{numbers[0]} holds features" if numbers else "--features names columns of features"
            by = f" by {self.noted['name']}" if self.noted else ""
            raise DataError(f"{given}, but the features are made of texts or images{by}. Give those.")
        sources: list[Source] = []
        sources += self._folders(folders, images)
        if tables and not (self.asked.text or self.asked.image):
            raise self._no_column(tables[0])
        columns = self._columns(tables)
        for table in tables:
            sources.append(self._table(table, columns))
        sources += self._functions(functions)
        id_name = columns.id if tables else "file" if folders or images else None
        return Opened(sources, self.frozen, self._remembered(columns.id), id_name)

    # -- tables --
    def _tables(self, paths: list[Path]) -> list[Table]:
        """Open tables, as far as texts may be in them, and find out what their columns are where nobody has said."""
        from aircl.data.arrays.files import check_type
        from aircl.data.arrays.tables import TABLES
        from aircl.raw.columns import find_label
        from aircl.raw.tables import open_table

        asked = self.asked
        for path in paths:
            check_type(path)
        tables = [open_table(path) for path in paths if path.suffix.lower() in TABLES]
        if tables and asked.labelled and asked.label is None:
            asked = replace(asked, label=find_label(tables[0].columns))
        if tables and not (asked.text or asked.image or asked.features or asked.names):
            asked = replace(asked, text=self._find_texts(tables, asked))
            if len(asked.text) > 1 and not self.quiet:
                names = ", ".join(map(repr, asked.text))
                say(f"Note: the texts are the columns {names}, joined; --text COL chooses, --id COL names rows.")
        self.asked = asked
        if paths and asked.labelled and asked.label is None:
            names = f" Its columns are {', '.join(map(repr, tables[0].columns[:8]))}." if tables else ""
            raise typer.BadParameter(
                f"say which column or array of {paths[0]} holds the labels.{names}", param_hint="--label"
            )
        return tables

    def _find_texts(self, tables: list[Table], asked: Asked) -> tuple[str, ...]:
        """Return the columns of texts of the first table that has rows; where none has, what a backbone is given."""
        from aircl.backbones.catalogue import kinds_of
        from aircl.raw.columns import find_label, find_texts

        name = self.backbone or (self.noted or {}).get("name")
        takes_texts = name is not None and "texts" in kinds_of(name)
        label = asked.label or find_label(tables[0].columns)
        if label is None if self.n_features is None else not (self.is_raw and takes_texts):
            return ()
        others = [label, asked.weight, asked.id or self.known.get("id")]
        full = next((table for table in tables if table.head(table.columns, 1)), None)
        if full is None:
            return tuple(name for name in tables[0].columns if takes_texts and name not in others)
        text = find_texts(full, others)
        self._check_not_images(full, text)
        return text if self.n_features is None or len(text) == 1 else ()  # what a model has learned is not guessed

    def _check_numbers(self, tables: list[Table]) -> None:
        """Refuse texts for a model that has learned from numbers, unless somebody says which columns they are."""
        from aircl.data.arrays import DataError
        from aircl.raw.columns import is_text

        asked = self.asked
        if asked.text or asked.image or asked.features or asked.names:
            return
        for table in tables:
            names = [name for name in table.columns if name not in (asked.label, asked.weight, asked.id)]
            rows = table.head(names, 10)
            texts = [name for place, name in enumerate(names) if is_text([row[place] for row in rows])]
            if rows and texts == names:
                raise DataError(
                    f"{table.path} holds texts ({', '.join(map(repr, texts[:4]))}), but the model has learned from "
                    f"rows of {self.n_features} features. Give it features, or --features, the columns that are."
                )

    def _check_not_images(self, table: Table, text: tuple[str, ...]) -> None:
        from aircl.data.arrays import DataError
        from aircl.raw.folders import is_image

        for place, name in enumerate(text):
            cells = [row[place] for row in table.head(text, 10)]
            if all(isinstance(cell, str) and is_image(cell) for cell in cells):
                raise DataError(f"{table.path}: column {name!r} holds paths of images ({cells[0]}): --image {name}.")

    def _no_column(self, table: Table) -> Exception:
        from aircl.data.arrays import DataError

        name = self.noted["name"] if self.noted else str(self.backbone)
        return DataError(
            f"{table.path}: say which column holds what {name} takes: --text COL for texts, --image COL for paths of "
            f"images. Its columns are {', '.join(map(repr, table.columns[:8]))}."
        )

    def _columns(self, tables: list[Table]) -> Columns:
        from aircl.raw.columns import Columns

        asked = self.asked
        label = asked.label if asked.labelled or asked.label is not None else None
        id_ = asked.id or self._known_id([table.columns for table in tables])
        return Columns(label, asked.text, asked.image, id_, asked.weight)

    def _known_id(self, columns: Sequence[Sequence[str]]) -> str | None:
        """Return the column of ids that the model remembers, if all tables have it."""
        name: str | None = self.known.get("id")
        return name if columns and all(name in names for names in columns) else None

    def _table(self, table: Table, columns: Columns) -> Source:
        from aircl.raw.tables import ImageTable, TextTable, first_image

        columns.check(table)
        if columns.image is None:
            return TextTable(table, columns, self._made("texts", ["text"]))
        example = None if self.frozen is not None else first_image(table, columns.image)
        return ImageTable(table, columns, self._made("images", example))

    # -- folders and functions --
    def _folders(self, folders: list[Path], images: list[Path]) -> list[Source]:
        import numpy as np

        from aircl.data.arrays import DataError
        from aircl.data.samples import UnnamedImages
        from aircl.raw import folders as image_folders

        sources: list[Source] = []
        places = [folder.resolve() for folder in folders]
        for folder, place in zip(folders, places, strict=True):
            if places.count(place) > 1 or any(other in place.parents for other in places):
                raise DataError(f"{folder} is given more than once, and its images would be counted as often.")
            files, labels = image_folders.open_folder(folder, labelled=self.asked.labelled)
            loose = sorted(path.name for path in folder.iterdir() if image_folders.is_image(path.name))
            if loose and labels is not None and not self.quiet:
                say(f"Note: {folder}: images beside the folders of classes are left out: {', '.join(loose[:4])}.")
            folder = folder.absolute()
            frozen = self._made("images", UnnamedImages(folder, files[:1])[np.arange(1)])
            sources += image_folders.image_shards(folder, files, labels, frozen)
        if images:
            files = [str(path) for path in images]
            here = Path.cwd()
            frozen = self._made("images", UnnamedImages(here, files[:1])[np.arange(1)])
            sources += image_folders.image_shards(here, files, None, frozen)
        return sources

    def _functions(self, functions: list[GeneratedSource]) -> list[Source]:
        import numpy as np

        from aircl.backbones.catalogue import kinds_of
        from aircl.raw.functions import FunctionSource, as_inputs, kind_of_sample

        sources: list[Source] = []
        for source in functions:
            if source.first is None:  # it yields nothing
                sources.append(source)
                continue
            kind = kind_of_sample(source.first)
            name = self.backbone or (self.noted or {}).get("name")
            if kind == "texts" and name is not None and "texts" not in kinds_of(name):
                kind = "images"  # by their paths
            example = as_inputs(str(source.path), [source.first], kind)[np.arange(1)]
            sources.append(FunctionSource(source, self._made(kind, example)))
        return sources

    # -- features --
    def _features(self, paths: list[Path], functions: list[GeneratedSource]) -> Opened:
        from aircl.data.arrays import DataError, Request, open_files

        asked = self.asked
        id_ = asked.id
        if id_ is None and self.known.get("id") is not None:
            id_ = self._known_id(_column_names(paths))
        request = Request(asked.label, asked.features, asked.names, asked.weight, id_)
        sources = open_files(paths, request, self.n_features)
        widths = [source.n_features for source in sources if source.n_features is not None]
        for source in functions:
            widths += [] if source.n_features is None else [source.n_features]
            if len(set(widths[:1] + widths[-1:]) | ({self.n_features} - {None})) > 1:
                expected = self.n_features or widths[0]
                raise DataError(f"{source.path} has {widths[-1]} features, but {expected} are expected.")
            sources.append(source)
        return Opened(sources, None, self._remembered(id_), id_)

    # -- what all have in common --
    def _made(self, kind: Any, example: Any) -> FrozenBackbone:
        """Return the backbone, made once, and the model's if it has one."""
        from aircl.data.arrays import DataError
        from aircl.raw.frozen import FrozenBackbone, RemoteBackbone, default_backbone

        if self.frozen is not None:
            if self.frozen.kind != kind:
                raise DataError("texts and images are not learned together. Give one kind.")
            return self.frozen
        if self.is_remote and self.noted is not None:
            self.frozen = RemoteBackbone(self.noted["name"], self.noted["fingerprint"], 0, kind)
            return self.frozen
        name = self.backbone or (self.noted or {}).get("name")
        chosen = name is None
        name = name or default_backbone(kind)
        frozen = FrozenBackbone.create(name, kind, example, self.device)
        if self.noted is not None and self.noted["fingerprint"] != frozen.fingerprint:
            raise DataError(
                f"the model has learned from features of {self.noted['name']} ({self.noted['fingerprint'][:12]}..), "
                f"not of {frozen.name} ({frozen.fingerprint[:12]}..). Use the same backbone, weights and versions."
            )
        if self.n_features not in (None, frozen.width):
            raise DataError(
                f"the model has learned from rows of {self.n_features} features, but {name} makes {frozen.width} of "
                f"{kind}. Give it features, or --backbone, the one that made them."
            )
        if chosen and not self.quiet:
            say(f"Note: {kind} go through the backbone {name}; --backbone NAME chooses another.")
        self.frozen = frozen
        return frozen

    def _remembered(self, id_: str | None) -> dict[str, Any]:
        """Return what the model should know about columns: what it knew, and what was said now."""
        asked = self.asked
        said = {"label": asked.label, "text": list(asked.text), "image": asked.image, "id": id_}
        return {**self.known, **{name: value for name, value in said.items() if value}}


def _column_names(paths: list[Path]) -> list[list[str]]:
    """Return the columns of tables; files that have none are in the way of ids that are only remembered."""
    from aircl.data.arrays.tables import TABLES
    from aircl.raw.tables import open_table

    return [open_table(path).columns if path.suffix.lower() in TABLES else [] for path in paths]


def input_paths(arguments: list[str], sources: Sequence[Source]) -> list[Path]:
    """Return the files and folders that rows come from, also those of Python functions."""
    from aircl.data.arrays import is_entry

    paths = [source.path for source in sources if source.path.is_file()]
    paths += [Path(text) for text in arguments if Path(text).exists()]
    for text in arguments:
        home = getattr(sys.modules.get(text.partition(":")[0]), "__file__", None)
        if home is not None and is_entry(text):
            paths.append(Path(home))
    return paths


def weight_files(backbone: str | None) -> list[Path]:
    """Return the file that a backbone has its weights from, if it is one that the user named."""
    path = Path((backbone or "").removeprefix("checkpoint:"))
    return [path] if path.is_file() else []
