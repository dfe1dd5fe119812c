"""`aircl learn`: from files of embeddings to a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from aircl.cli.console import Reading, print_json, reports_problems, say
from aircl.cli.engines import Engine, check_engine, learn_apart
from aircl.cli.ledger import Command, LedgerKey, OnDuplicate, read_rows, use_key
from aircl.cli.ledger import check_usage as check_ledger_usage
from aircl.cli.modelfile import (
    changing,
    check_model_output,
    chosen_gamma,
    give_backbone,
    give_feature_names,
    load_model,
    read_priors,
    set_priors,
    write_model,
)
from aircl.cli.options import (
    BATCH_ROWS,
    FILE_TYPES,
    BatchRows,
    Device,
    Features,
    Id,
    Image,
    Json,
    Label,
    ModelOutput,
    PriorsOption,
    Quiet,
    SampleWeight,
    Text,
)
from aircl.cli.provenance import Note, files_read, record
from aircl.cli.sources import Asked, open_rows

if TYPE_CHECKING:
    from aircl.classifiers.analytic import AnalyticClassifier
    from aircl.data.arrays import Batch

Method = Literal["air", "acil"]
Store = Literal["per-class", "shared", "pooled"]
Scale = Literal["mean", "none", "balanced"]
Precision = Literal["float32", "float64"]

WEIGHTINGS = ("inverse", "uniform", "effective")


def number_or_word(option: str, text: str | None, words: tuple[str, ...]) -> str | float | None:
    """Return one of the words as it is, anything else as a number; what is neither is wrong usage."""
    if text is None or text in words:
        return text
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is neither a number nor one of {', '.join(words)}.", param_hint=option
        ) from None


@reports_problems
def learn(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILES",
            help=f"Files of features or texts ({FILE_TYPES}), or patterns in quotes; folders of images, one folder per "
            "class; or Python functions, module:function, that yield (X, y).",
        ),
    ],
    output: ModelOutput,
    label: Label = None,
    features: Features = None,
    text: Text = None,
    image: Image = None,
    id_: Id = None,
    sample_weight: SampleWeight = None,
    backbone: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What texts or images go through: a name of `aircl list backbones`.",
            show_default="wordllama for texts, efficientnet-lite0 for images",
        ),
    ] = None,
    device: Device = None,
    method: Annotated[
        Method | None,
        typer.Option(help="AIR: equal weight for every class; ACIL: for every sample.", show_default="air"),
    ] = None,
    store: Annotated[
        Store | None,
        typer.Option(
            help="How second moments are held: exact for every stream, one for all classes in 1/C of the memory, or "
            "exact for runs that share no class.",
            show_default="per-class; shared for acil",
        ),
    ] = None,
    gamma: Annotated[
        str | None, typer.Option(metavar="auto|NUMBER", help="The ridge; auto chooses it.", show_default="auto")
    ] = None,
    weighting: Annotated[
        str | None,
        typer.Option(
            metavar="|".join((*WEIGHTINGS, "NUMBER")),
            help="Weight of a class by its count; a number is the beta of count**-beta.",
            show_default="inverse",
        ),
    ] = None,
    priors: PriorsOption = None,
    scale: Annotated[Scale | None, typer.Option(help="Scale of the class weights.", show_default="mean")] = None,
    memory_limit: Annotated[
        str | None, typer.Option(metavar="SIZE", help="What the per-class store may take, such as 4GB.")
    ] = None,
    expand: Annotated[
        str | None,
        typer.Option(
            metavar="auto|none|N",
            help="Expand the features to N random ReLU features; auto: chosen by their number.",
            show_default="auto",
        ),
    ] = None,
    calibrate: Annotated[
        bool | None,
        typer.Option(
            "--calibrate/--no-calibrate",
            help="Add an intercept and calibrate probabilities, from the statistics alone.",
            show_default="calibrate",
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="S", min=0, help="Seed of the expansion.", show_default="0")
    ] = None,
    dtype: Annotated[
        Precision | None, typer.Option(help="Precision of the statistics.", show_default="that of the features")
    ] = None,
    ledger: Annotated[
        bool,
        typer.Option(
            "--ledger", help="Keep a hash of every row: none is learned twice, none forgotten that was not learned."
        ),
    ] = False,
    ledger_key: LedgerKey = None,
    on_duplicate: OnDuplicate = None,
    replaced: Annotated[
        list[str] | None,
        typer.Option(
            "--replaced", metavar="FILE", help="The old rows for --on-duplicate replace; others in it are left alone."
        ),
    ] = None,
    append: Annotated[
        Path | None,
        typer.Option(metavar="MODEL", help="Continue a saved model; it stays as it is unless -o names it."),
    ] = None,
    engine: Annotated[
        Engine | None, typer.Option(help="Learn by several processes, file by file.", show_default="this process")
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="A Dask scheduler, such as tcp://10.0.0.1:8786.", show_default="a local one"
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Processes of the engine.", show_default="one per core")
    ] = None,
    parts: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Runs of consecutive files that the work is divided into; the last bits of the model depend on it.",
            show_default="64, or one per file",
        ),
    ] = None,
    statistics_only: Annotated[
        bool,
        typer.Option(
            "--statistics-only",
            help="Choose no gamma and solve nothing: a file for `aircl merge`, also if there are no rows.",
        ),
    ] = False,
    note: Note = None,
    batch: BatchRows = BATCH_ROWS,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Learn a model from files, in one pass and in constant memory.

    One run is one phase. The model does not depend on the order of the rows, nor on how they are split into files,
    batches or runs.
    """
    settings = {
        "gamma": number_or_word("--gamma", gamma, ("auto",)),
        "store": store,
        "weighting": number_or_word("--weighting", weighting, WEIGHTINGS),
        "scale": scale,
        "memory_limit": memory_limit,
        "calibrate": calibrate,
    }
    settings = {name: value for name, value in settings.items() if value is not None}
    width = width_or_word(expand)
    check_ledger_usage(on_duplicate, replaced, engine)
    if append is None:
        check_usage(method, settings, width, seed)
    elif fixed := sorted({*settings, *_given(method=method, expand=expand, seed=seed, dtype=dtype)} - {"memory_limit"}):
        options = ", ".join(f"--{name}" for name in fixed)
        raise typer.BadParameter(
            f"the model has been given its own {options} when it was begun.", param_hint="--append"
        )

    read_priors(priors)  # what cannot be read is said before anything is learned
    check_engine(engine, scheduler, workers, parts)
    check_model_output(output, json)

    with changing(output, [] if append is None else [append], quiet):
        model = new_model(method, settings, width, seed) if append is None else load_model(append)
        if append is not None and memory_limit is not None:
            model.set_params(memory_limit=memory_limit)
        use_key(model, ledger, ledger_key, on_duplicate)
        is_new = not model.__sklearn_is_fitted__()
        asked = Asked(label, features, sample_weight, id_, tuple(text or ()), image)
        opened = open_rows(
            files, asked, model, output=output, backbone=backbone, device=device, replaced=replaced, quiet=quiet
        )
        sources, kind, names, old = opened.sources, opened.kind, opened.names, opened.replaced
        assert kind is not None
        reading = Reading(sources, quiet)
        by_id = opened.columns.get("id") is not None
        command = Command(model, by_id, on_duplicate, read_rows(old, batch, kind) if old else None)

        def use(part: Batch) -> None:
            command.learn(part, part.X if dtype is None else part.X.astype(dtype))

        if engine is None:
            reading.feed(use, batch, kind)
        else:
            learn_apart(command, reading, kind, dtype, batch, engine, scheduler, workers, parts)
        if not reading.rows and not statistics_only:
            raise ValueError(f"no rows in {', '.join(files)}, so there is nothing to learn.")
        model.end_phase()
        set_priors(model, priors)
        give_backbone(model, opened)
        if statistics_only and note is not None:
            record(model, "learned", note=note)  # the names of files are not for those who merge it
        elif not statistics_only and command.known(reading.rows) != reading.rows:
            record(model, "learned", note=note, files=files_read(sources, reading.rows_of))
        # A model that was begun without names stays without: nothing says that its columns were these.
        give_feature_names(model, sources[0].feature_names if is_new and names is None else names)
        if statistics_only:
            model.save(output)
        else:
            write_model(model, output)
    n_classes, width = len(getattr(model, "classes_", ())), getattr(model, "n_features_in_", None)
    gamma_ = None if statistics_only else chosen_gamma(model)
    if n_classes == 1 and not (quiet or statistics_only):
        say(f"Note: there is one class, {model.classes_[0]!s:.40}: until there is another, it is every prediction.")
    if json:
        print_json(
            {
                "model": str(output),
                "files": len(sources),
                "rows": reading.rows,
                "seconds": round(reading.seconds, 3),
                "classes": n_classes,
                "features": width,
                "gamma": gamma_,
                **({} if (known := command.known(reading.rows)) is None else {"known": known}),
            }
        )
    chosen = ", statistics only" if statistics_only else "" if gamma_ is None else f", gamma {gamma_:.3g}"
    said_known = f", {known:,} of them known before" if (known := command.known(reading.rows)) else ""
    reading.finish("Learned", f": {n_classes} classes, {width or 'no'} features{chosen}{said_known}, in {output}")


def width_or_word(text: str | None) -> str | int | None:
    """Return the width of the expansion, or the word that stands for it; what is neither is wrong usage."""
    if text in (None, "auto", "none"):
        return text
    assert text is not None
    if not text.isdecimal() or int(text) < 1:
        raise typer.BadParameter(f"{text!r} is neither auto, none nor a width such as 2000.", param_hint="--expand")
    return int(text)


def check_usage(method: Method | None, settings: dict[str, Any], expand: str | int | None, seed: int | None) -> None:
    """Refuse options of a new model that contradict each other."""
    if method == "acil" and (wrong := [name for name in ("weighting", "scale") if name in settings]):
        raise typer.BadParameter(f"ACIL weighs all samples alike and has no --{wrong[0]}.", param_hint="--method")
    if seed is not None and expand == "none":
        raise typer.BadParameter("it is the seed of the expansion, and --expand none has none.", param_hint="--seed")


def new_model(
    method: Method | None, settings: dict[str, Any], expand: str | int | None, seed: int | None
) -> AnalyticClassifier:
    """Return a classifier that has learned nothing. Expansions have a fixed seed, so that such models can be merged."""
    from aircl import ACILClassifier, AIRClassifier, RandomReLU

    cls = ACILClassifier if method == "acil" else AIRClassifier
    if isinstance(expand, int):
        return cls(**settings, expansion=RandomReLU(expand, random_state=seed or 0))
    return cls(**settings, expansion=None if expand == "none" else "auto", random_state=seed)


def _given(**options: Any) -> list[str]:
    return [name for name, value in options.items() if value is not None]
