"""What a command says and how it ends: results on stdout, everything else on stderr."""

from __future__ import annotations

import functools
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from aircl.storage.errors import InputError, is_refusal
from aircl.storage.text import json_text, visible

if TYPE_CHECKING:
    from rich.console import RenderableType

    from aircl.data.arrays import Batch, LabelKind, Source


# Exit codes, beside 0 and those of signals.
PROBLEM, USAGE, FAULT = 1, 2, 70

# Whether tracebacks are shown: `aircl --debug COMMAND`.
debugging = False


def reports_problems(command: Callable[..., None]) -> Callable[..., None]:
    """Turn whatever goes wrong into one line and an exit code."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except BrokenPipeError:  # the reader has had enough, as in `| head`
            _end(141)
        except KeyboardInterrupt:
            say("Interrupted.")
            _end(130)
        except MemoryError as error:
            say(f"Error: not enough memory ({error or 'no reason given'}). Try a smaller --batch, or --store shared.")
            _end(PROBLEM)
        except OSError as error:
            say(f"Error: {_explain(error)}")
            _end(PROBLEM)
        except Exception as error:
            if is_refusal(error):
                say(f"Error: {error}")
                _end(PROBLEM)
            say(
                f"Error: an unexpected {type(error).__name__}: {error}. This is a fault of aircl: please report it, "
                "with what `aircl --debug COMMAND ..` prints."
            )
            _end(FAULT)

    return run


def _explain(error: OSError) -> str:
    if error.strerror is None:
        return str(error)
    return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"


def _end(code: int) -> NoReturn:
    """Leave, with what stdout still takes; Python would try in vain to write the rest to a full or closed one."""
    if debugging:
        with suppress(OSError):
            typer.echo(traceback.format_exc(), err=True)
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise typer.Exit(code) from None


def say(message: str) -> None:
    """Write a message to stderr, one line of it; what stderr does not take is lost."""
    with suppress(OSError):
        typer.echo(visible(message), err=True)


def print_json(result: dict[str, Any]) -> None:
    """Write one JSON object to stdout."""
    typer.echo(json_text(result))


def print_rich(renderable: RenderableType) -> None:
    """Write something that rich can draw to stdout, as wide as it needs to be unless a terminal limits it."""
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else 1000)
    with console.capture() as capture:
        console.print(renderable)
    lines = (line.rstrip() for line in capture.get().splitlines())
    typer.echo("\n".join(lines).strip("\n"))


class Reading:
    """Reads files batch after batch, shows on a terminal how far it is, and counts.

    Parameters
    ----------
    sources : sequence of Source
    quiet : bool
        Neither progress nor notes nor a summary.
    """

    def __init__(self, sources: Sequence[Source], quiet: bool) -> None:
        self.sources, self.quiet = sources, quiet
        self.rows = 0
        self.rows_of = [0] * len(sources)
        self._began = time.perf_counter()
        self._fed = 0.0
        for source in sources:
            if source.ignored and not quiet:
                say(f"Note: {source.path}: columns that are not features of the model: {', '.join(source.ignored)}.")

    def feed(self, use: Callable[[Batch], None], size: int, kind: LabelKind | None, *, show: bool = True) -> None:
        """Hand every batch to `use`; what it refuses is reported with the file and the rows.

        Parameters
        ----------
        use : callable
        size : int
            Rows per batch, at most.
        kind : {"integers", "strings", "booleans"} or None
            What labels are read as.
        show : bool, default=True
            False where progress would run into the results.
        """
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        began = time.perf_counter()
        counts = [source.n_rows for source in self.sources]
        total = None if None in counts else sum(count or 0 for count in counts)
        with Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:,} rows  {task.fields[rate]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
            disable=self.quiet or not show or not sys.stderr.isatty(),
        ) as progress:
            task = progress.add_task("", total=total, rate="")
            for number, source in enumerate(self.sources, 1):
                progress.update(task, description=f"{source.path.name} ({number} of {len(self.sources)})")
                if hasattr(source, "progress"):  # a block goes through a backbone before its first batch is there
                    source.progress = lambda done, _: progress.update(task, completed=self.rows + done)
                for batch in source.batches(size, kind):
                    try:
                        use(batch)
                    except ValueError as error:
                        if not is_refusal(error):
                            raise
                        rows = f"rows {batch.start + 1} to {batch.start + len(batch.X)}"
                        raise InputError(f"{source.path}, {rows}: {error}") from error
                    self.rows += len(batch.X)
                    self.rows_of[number - 1] += len(batch.X)
                    self._fed = time.perf_counter() - began
                    progress.update(task, completed=self.rows, rate=self.rate)

    def count(self, rows: int) -> None:
        """Note how many rows others have read by now."""
        self.rows, self._fed = rows, time.perf_counter() - self._began

    @property
    def seconds(self) -> float:
        """Time since the beginning."""
        return time.perf_counter() - self._began

    @property
    def rate(self) -> str:
        """Rows per second, as people read it."""
        return f"{self.rows / self._fed:,.0f} rows/s" if self.rows else "0 rows/s"

    def finish(self, did: str, result: str) -> None:
        """Write one line of summary: '`did` 1,000 rows of 2 files in 0.3 s (3,300 rows/s)`result`.'."""
        if not self.quiet:
            files = "1 file" if len(self.sources) == 1 else f"{len(self.sources)} files"
            say(f"{did} {self.rows:,} rows of {files} in {self.seconds:.1f} s ({self.rate}){result}.")
