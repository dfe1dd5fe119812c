"""Draw docs/opening.svg, the first picture of README and docs: the stream, what ACIL forgets, what AIR keeps, code."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from aircl import ACILClassifier, AIRClassifier
from aircl.scenarios import make_stream

PLACE = Path(__file__).parents[1] / "docs" / "opening.svg"
INK, SOFT, LINE, GREY, ORANGE = "#1c1f23", "#5c6470", "#d9dce0", "#8b95a1", "#c84a00"
CODE = (
    "clf = AIRClassifier()",
    "for X, y in stream: clf.partial_fit(X, y)",
    "clf.predict(X_new)",
)


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


def text(x: float, y: float, words: str, size: int = 14, colour: str = INK, **more: str) -> str:
    """Return a piece of text."""
    words = words.replace("&", "&amp;").replace("<", "&lt;")
    extra = "".join(f' {key.replace("_", "-")}="{value}"' for key, value in more.items())
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{colour}"{extra}>{words}</text>'


def bars(x: float, y: float, values: list[int], colour: str, top: int, unit: str) -> list[str]:
    """Return ten bars that stand on y, with their values."""
    parts = [f'<path d="M{x} {y}h266" stroke="{LINE}"/>']
    for digit, value in enumerate(values):
        left, height = x + 4 + 26 * digit, max(1.0, 120 * value / top)
        parts.append(f'<rect x="{left:g}" y="{y - height:g}" width="20" height="{height:g}" fill="{colour}"/>')
        parts.append(text(left + 10, y - height - 5, f"{value}{unit}", 11, SOFT, text_anchor="middle"))
        parts.append(text(left + 10, y + 16, str(digit), 12, SOFT, text_anchor="middle"))
    return parts


def draw(counts: list[int], shares: dict[str, list[int]]) -> str:
    """Return the picture."""
    tail = {name: round(float(np.mean(own[5:]))) for name, own in shares.items()}
    code = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 370" role="img" font-family="system-ui, sans-serif">',
        "<title>A long-tailed stream; ACIL forgets its rare classes, AIR keeps them; three lines of code</title>",
        '<rect width="960" height="370" rx="10" fill="#ffffff"/>',
    ]
    columns = (
        (24, "The stream", "samples of each digit, rarer and rarer", counts, SOFT, max(counts), ""),
        (
            346,
            "What ACIL forgets",
            f"{tail['ACIL']} % of the rarer half is known in the end",
            shares["ACIL"],
            GREY,
            100,
            "",
        ),
        (668, "What AIR keeps", f"{tail['AIR']} %: every class has an equal weight", shares["AIR"], ORANGE, 100, ""),
    )
    for x, title, subtitle, values, colour, top, unit in columns:
        parts += [text(x, 40, title, 20, font_weight="650"), text(x, 62, subtitle, 13, SOFT)]
        parts += bars(x, 224, values, colour, top, unit)
    parts.append(f'<path d="M304 165h14m-6-6l7 6l-7 6" fill="none" stroke="{SOFT}" stroke-width="1.6"/>')
    parts.append(f'<rect x="24" y="258" width="912" height="92" rx="8" fill="#f4f5f6" stroke="{LINE}"/>')
    parts += [text(44, 284 + 26 * n, line, 16, font_family=code) for n, line in enumerate(CODE)]
    notes = ("one pass, batch by batch", "no sample is kept", "as if trained on everything at once")
    parts += [text(916, 284 + 26 * n, note, 13, SOFT, text_anchor="end") for n, note in enumerate(notes)]
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else PLACE
    place.write_text(draw(*measure()), encoding="utf-8")
    print(f"Drawn in {place}")
