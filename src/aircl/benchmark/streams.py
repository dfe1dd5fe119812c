"""What a reader of results should know of the streams of an experiment: what seeds change, and what is left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from aircl.benchmark.config import Experiment
from aircl.scenarios import Stream


def describe_streams(
    experiment: Experiment, name: str, streams: Mapping[tuple[str, int], Stream], class_names: Sequence[str]
) -> dict[str, Any]:
    """Return what `run.json` says of the streams of an experiment.

    Parameters
    ----------
    experiment : Experiment
    name : str
        What rows call the scenario.
    streams : mapping of (order, seed) to Stream
    class_names : sequence of str

    Returns
    -------
    about : dict
        `scenario`, `between_seeds` (a sentence), and `left_out`: by "order, seed", names of classes without a sample.
    """
    left_out = {
        ", ".join(part for part in (order, f"seed {seed}") if part): [
            class_names[label] if label < len(class_names) else str(label) for label in stream.dropped_classes.tolist()
        ]
        for (order, seed), stream in streams.items()
        if len(stream.dropped_classes)
    }
    return {"scenario": name, "between_seeds": _between_seeds(experiment, streams), "left_out": left_out}


def left_out_remarks(left_out: Mapping[str, Sequence[str]], most: int = 12) -> list[str]:
    """Return sentences about classes that no method was taught or asked about; streams that lack the same share one.

    Examples
    --------
    >>> left_out_remarks({"seed 1": ["cat", "dog"], "seed 2": ["cat", "dog"], "seed 3": ["eel"]})
    ['Left out in seed 1, seed 2: classes cat, dog (2).', 'Left out in seed 3: class eel.']
    """
    where: dict[tuple[str, ...], list[str]] = {}
    for stream, names in left_out.items():
        where.setdefault(tuple(names), []).append(stream)
    remarks = []
    for names, which in where.items():
        more = f" and {len(names) - most} more" if len(names) > most else ""
        kind, number = ("class", "") if len(names) == 1 else ("classes", f" ({len(names)})")
        remarks.append(f"Left out in {', '.join(which)}: {kind} {', '.join(names[:most])}{more}{number}.")
    return remarks


def _between_seeds(experiment: Experiment, streams: Mapping[tuple[str, int], Stream]) -> str:
    """Say what the seeds of the run change, found by comparing its streams, and what they do not."""
    if len(experiment.seeds) < 2:
        return "One seed, so nothing is known of how results vary between seeds."
    same = {"the training samples": True, "the classes of each phase": True, "the order in which samples arrive": True}
    for order in experiment.orders:
        first, *others = (streams[order, seed] for seed in experiment.seeds)
        for other in others:
            facts = zip(_facts(first), _facts(other), strict=True)
            same = {what: known and pair[0] == pair[1] for (what, known), pair in zip(same.items(), facts, strict=True)}
    varies = [what for what, is_same in same.items() if not is_same]
    varies += ["the random buffer"] * (experiment.buffer is not None) + ["the methods' own random numbers"]
    stays = [what for what, is_same in same.items() if is_same]
    return f"Between seeds vary {_list(varies)}" + (f"; {_list(stays)} do not." if stays else ".")


def _facts(stream: Stream) -> tuple[Any, Any, Any]:
    trains = [phase.train for phase in stream.phases]
    samples = np.sort(np.concatenate(trains)).tobytes()
    return samples, [phase.classes.tolist() for phase in stream.phases], [train.tobytes() for train in trains]


def _list(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
