"""Pictures, written whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from aircl.storage.errors import OutputError
from aircl.storage.writing import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_figure(figure: Figure, path: Path, mark: str) -> None:
    """Write a picture in the format that the name asks for, PNG if it asks for none; PNGs get the mark."""
    kind = path.suffix.removeprefix(".").lower() or "png"
    known = figure.canvas.get_supported_filetypes()
    if kind not in known:
        raise OutputError(f"{path}: pictures of the type {kind!r} cannot be written. Choose one of {', '.join(known)}.")
    with replacing(path) as temporary:
        figure.savefig(temporary, format=kind, dpi=150, metadata={"Software": mark} if kind == "png" else None)
