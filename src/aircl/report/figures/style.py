"""How figures look: one colour, marker and dash a method, the same in every figure and on the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Twelve colours as far apart as they get (0.16 in OKLab at least) with a contrast of 3 on white, the first three after
# Okabe and Ito; for a dark ground lighter ones, of near hues where that is possible. Twelve markers say the same
# without colour: two methods share both only from the thirteenth on, when dashes and hollow markers tell them apart.
COLOURS = ("#c84a00", "#0067a5", "#00845f", "#d35bee", "#610030", "#003f17", "#180b96", "#8515bb", "#9a839f",
           "#cc0a87", "#72480b", "#9f8d0e")  # fmt: skip
DARK_COLOURS = ("#ff8a4c", "#5cb3f2", "#3ecfa0", "#e790fa", "#f12848", "#3884a5", "#7370fa", "#cd3ec6", "#f6d2e9",
                "#bc7b9a", "#7e7f3c", "#f4f521")  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "p", "h")
DASHES = ("-", "--", ":", "-.")


def line_style(style: int) -> dict[str, Any]:
    """Return what distinguishes the line of a method; when the colours are used up, dashes and hollow markers do."""
    round_number = style // len(COLOURS)
    return {
        "color": COLOURS[style % len(COLOURS)],
        "marker": MARKERS[style % len(MARKERS)],
        "linestyle": DASHES[round_number % len(DASHES)],
        "fillstyle": "none" if round_number % 2 else "full",
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
