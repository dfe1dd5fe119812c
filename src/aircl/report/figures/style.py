"""How figures look: one colour, marker and dash a method, the same in every figure and on the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colours that people with the common colour deficiencies can tell apart (after Okabe and Ito, and Tol), with enough
# contrast on white, and lighter ones of the same hues for a dark ground. Markers say the same without colour.
COLOURS = (
    "#c84a00",
    "#0067a5",
    "#00845f",
    "#b0558a",
    "#a87600",
    "#3d8fc4",
    "#7a1f4f",
    "#6b6b1e",
    "#2a7f7a",
    "#4b3fa0",
    "#737a84",
    "#7a4a21",
)
DARK_COLOURS = ("#ff8a4c", "#5cb3f2", "#3ecfa0", "#e69ac4", "#e5b93c", "#9ad5f7", "#d1719f", "#c2c26a", "#74cfc7",
                "#a9a0f5", "#b3bac4", "#d0a070")  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", ":", "-.")


def line_style(style: int) -> dict[str, Any]:
    """Return what distinguishes the line of a method; when the colours are used up, dashes do."""
    return {
        "color": COLOURS[style % len(COLOURS)],
        "marker": MARKERS[style % len(MARKERS)],
        "linestyle": DASHES[style // len(COLOURS) % len(DASHES)],
        "markersize": 4,
    }


def colour(style: int) -> str:
    """Return the colour of a method."""
    return COLOURS[style % len(COLOURS)]


def new_axes() -> Axes:
    """Return the axes of a new figure of pyplot."""
    from matplotlib import pyplot

    axes: Axes = pyplot.subplots(layout="constrained")[1]
    return axes
