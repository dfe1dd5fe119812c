"""Draw the first picture of README and docs: the stream, what ACIL forgets, what AIR keeps, and the code.

``docs/opening.svg`` is for wide screens, ``docs/opening-narrow.svg`` for phones; both follow a dark theme.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits

from aircl import ACILClassifier, AIRClassifier
from aircl.scenarios import make_stream

FOLDER = Path(__file__).parents[1] / "docs"
CODE = (
    "clf = AIRClassifier()",
    "for X, y in stream: clf.partial_fit(X, y)",
    "clf.predict(X_new)",
)
NOTES = ("one pass, batch by batch", "no sample is kept", "as if trained on everything at once")
RARE = 2  # how many of the rarest digits the titles speak of
# Light and dark, by the class that elements have.
COLOURS = {
    "ground": ("#ffffff", "#171a1f"),
    "panel": ("#f4f5f6", "#22262d"),
    "track": ("#e9ebee", "#2a2f37"),
    "ink": ("#1c1f23", "#f0f2f4"),
    "soft": ("#5c6470", "#aab2bd"),
    "stream": ("#5c6470", "#7d8794"),
    "acil": ("#0068a8", "#4ea3dc"),
    "air": ("#c84a00", "#f08244"),
}


class Layout(NamedTuple):
    """Where things are: the size, left upper corners of the three charts, height of their bars, the box of code."""

    size: tuple[int, int]
    charts: tuple[tuple[int, int], ...]
    height: int
    code: tuple[int, int, int, int]
    code_size: float


WIDE = Layout((960, 400), ((24, 24), (347, 24), (670, 24)), 112, (24, 286, 912, 92), 16)
NARROW = Layout((360, 716), ((47, 12), (47, 228), (47, 424)), 66, (12, 610, 336, 94), 12.5)


def measure() -> tuple[list[int], dict[str, list[int]]]:
    """Return the training samples of each digit, and the share of its test images that each learner knows, in %."""
    X, y = load_digits(return_X_y=True)
    X = X / 16
    stream = make_stream("long-tail", y[:1200], phases=5, counts="exp", ratio=1 / 40)
    shares = {}
    # Calibration gives ACIL an intercept that its paper does not have.
    for name, clf in (("ACIL", ACILClassifier(calibrate=False)), ("AIR", AIRClassifier())):
        for phase in stream.phases:
            clf.partial_fit(X[phase.train], y[phase.train])
        right = clf.predict(X[1200:]) == y[1200:]
        shares[name] = [round(100 * float(right[y[1200:] == digit].mean())) for digit in range(10)]
    return stream.counts().sum(axis=0).tolist(), shares


def text(x: float, y: float, words: str, size: float = 13, kind: str = "soft", **more: str) -> str:
    """Return a piece of text."""
    words = words.replace("&", "&amp;").replace("<", "&lt;")
    extra = "".join(f' {key.replace("_", "-")}="{value}"' for key, value in more.items())
    return f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" class="{kind}"{extra}>{words}</text>'


def bars(x: float, y: float, values: list[int], kind: str, top: int, height: int) -> list[str]:
    """Return ten bars that stand on y, with their values; shares have what is missing behind them."""
    parts = []
    for digit, value in enumerate(values):
        left, tall = x + 4 + 26 * digit, max(1.0, height * value / top)
        if top == 100:
            parts.append(f'<rect x="{left:g}" y="{y - height}" width="20" height="{height}" class="track"/>')
        parts.append(f'<rect x="{left:g}" y="{y - tall:g}" width="20" height="{tall:g}" class="{kind}"/>')
        parts.append(text(left + 10, y - tall - 5, str(value), 11, text_anchor="middle"))
        parts.append(text(left + 10, y + 15, str(digit), 12, text_anchor="middle"))
    return parts


def phases(x: float, y: float) -> list[str]:
    """Return a line below each two digits that arrive together, and its number."""
    lines = [f'<path d="M{x + 4 + 52 * n} {y}h46" class="rule"/>' for n in range(5)]
    labels = [("phase 1" if n == 0 else str(n + 1)) for n in range(5)]
    return lines + [text(x + 27 + 52 * n, y + 14, label, 11.5, text_anchor="middle") for n, label in enumerate(labels)]


def draw(counts: list[int], shares: dict[str, list[int]], layout: Layout = WIDE) -> str:
    """Return the picture."""
    light, dark = (
        "".join(f".{kind}{{fill:{both[n]}}}" for kind, both in COLOURS.items())
        + f".rule{{stroke:{COLOURS['soft'][n]};fill:none}}"
        for n in (0, 1)
    )
    width, height = layout.size
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        'font-family="system-ui, sans-serif">',
        "<title>A long-tailed stream; ACIL forgets its rare classes, AIR keeps them; three lines of code</title>",
        f"<style>{light}@media(prefers-color-scheme:dark){{{dark}}}</style>",
        f'<rect width="{width}" height="{height}" rx="10" class="ground"/>',
    ]
    rarest = {name: f"of the two rarest, {np.mean(own[-RARE:]):.0f} % are right" for name, own in shares.items()}
    columns = (
        ("The stream", "new classes in each phase,", "ever fewer samples of each", counts, "stream", max(counts)),
        ("What ACIL forgets", "every sample weighs the same:", rarest["ACIL"], shares["ACIL"], "acil", 100),
        ("What AIR keeps", "every class weighs the same:", rarest["AIR"], shares["AIR"], "air", 100),
    )
    for (x, y), (title, first, second, values, kind, top) in zip(layout.charts, columns, strict=True):
        parts += [text(x, y + 16, title, 20, "ink", font_weight="650"), text(x, y + 37, first), text(x, y + 54, second)]
        ground = y + 86 + layout.height
        parts += bars(x, ground, values, kind, top, layout.height)
        if kind == "stream":
            parts += phases(x, ground + 22)
    x, y, width, height = layout.code
    parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" class="panel"/>')
    code = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"
    left = x + layout.code_size
    parts += [
        text(left, y + 26 + 26 * n, line, layout.code_size, "ink", font_family=code) for n, line in enumerate(CODE)
    ]
    if layout is WIDE:
        parts += [text(x + width - 20, y + 26 + 26 * n, note, text_anchor="end") for n, note in enumerate(NOTES)]
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    measured = measure()
    for name, layout in (("opening.svg", WIDE), ("opening-narrow.svg", NARROW)):
        (folder / name).write_text(draw(*measured, layout), encoding="utf-8")
        print(f"Drawn in {folder / name}")
