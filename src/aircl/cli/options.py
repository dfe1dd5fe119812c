"""Arguments that several commands share, described once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

FILE_TYPES = "csv, tsv, jsonl, parquet, npz or safetensors"

FILES_HELP = (
    f"Files of features or texts ({FILE_TYPES}), or patterns in quotes; folders of images; or Python functions, "
    "module:function."
)
Files = Annotated[list[str], typer.Argument(metavar="FILES", help=FILES_HELP)]
ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help="A file that `aircl learn` or `save` wrote.")]
Label = Annotated[
    str | None,
    typer.Option(
        "--label",
        metavar="COL",
        help="Column or array of the labels.",
        show_default="the model's; a column named label, class, category, target, intent or y",
    ),
]
Features = Annotated[
    str | None,
    typer.Option(
        "--features",
        metavar="NAME",
        help="Columns of features: names and patterns such as 'emb_*', separated by commas, or one parquet column of "
        "lists; for npz and safetensors, an array.",
        show_default="all but the label; the array X or the only 2-d one",
    ),
]
Text = Annotated[
    list[str] | None,
    typer.Option(
        "--text",
        metavar="COL",
        help="Column of texts; may be repeated, and the texts of a row are joined.",
        show_default="the model's; all but the label, if they are texts",
    ),
]
Image = Annotated[
    str | None,
    typer.Option("--image", metavar="COL", help="Column of paths of images.", show_default="the model's"),
]
Id = Annotated[
    str | None,
    typer.Option(
        "--id", metavar="COL", help="Column or array that names the rows: never a feature.", show_default="the model's"
    ),
]
SampleWeight = Annotated[
    str | None, typer.Option("--sample-weight", metavar="COL", help="Column or array of sample weights.")
]
PriorsOption = Annotated[
    str | None,
    typer.Option(
        "--priors",
        metavar="equal|count|FILE",
        help="How often classes are expected among new rows: equally, as often as learned, or a .json file of numbers.",
        show_default="as the model says",
    ),
]
BatchRows = Annotated[int, typer.Option("--batch", metavar="ROWS", min=1, help="Rows held in memory at a time.")]
ModelOutput = Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="File to write the model to.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no notes, no summary; errors only.")]
CacheDirectory = Annotated[
    Path | None,
    typer.Option("--cache", metavar="DIR", help="Where features are kept.", show_default="features below AIRCL_CACHE"),
]
Device = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="auto|cpu|cuda[:I]|mps",
        help="Where networks compute.",
        envvar="AIRCL_DEVICE",
        show_default="auto",
    ),
]
DataDirectory = Annotated[
    str | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="Directory of the datasets in their official layouts.",
        envvar="AIRCL_DATA",
        show_default=False,
    ),
]

# Enough rows for one efficient update of the second moments, few enough for wide expansions.
BATCH_ROWS = 4096
