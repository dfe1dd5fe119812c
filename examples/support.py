"""Questions to a support team, from a csv: learned week by week, corrected, deleted, merged, and answered with care.

One sees a classifier that takes texts and learns new intents without the old questions; a wrong label and a customer
taken out again exactly; two teams that learn apart and merge; and the doubtful questions left to a human.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from aircl import AIRClassifier
from aircl.backbones import BackboneError

TABLE = Path(__file__).with_name("support-questions.csv").read_text(encoding="utf-8")
ROWS = list(csv.DictReader(TABLE.splitlines()))
WRONG = "My account is locked after three wrong passwords"  # the csv says that it is about closing an account


def questions(**wanted: str) -> tuple[list[str], list[str]]:
    """Return texts and intents of the rows that have these values."""
    rows = [row for row in ROWS if all(row[column] == value for column, value in wanted.items())]
    return [row["text"] for row in rows], [row["intent"] for row in rows]


def main() -> None:
    clf = AIRClassifier(backbone="wordllama", calibrate=True)
    try:
        clf.partial_fit(*questions(week="1", part="train"))
    except BackboneError as error:
        print(f"Nothing to show: {error}")
        return
    print(f"week 1: {len(clf.classes_)} intents, accuracy {clf.score(*questions(week='1', part='test')):.2f}")
    clf.partial_fit(*questions(week="2", part="train"))
    texts, intents = questions(part="test")
    print(f"week 2: {len(clf.classes_)} intents, accuracy {clf.score(texts, intents):.2f}")

    clf.forget([WRONG], ["close_account"]).partial_fit([WRONG], ["password"])
    print(f"corrected: {clf.predict([WRONG])[0]}")

    before = clf.class_count_.sum()
    clf.forget(*questions(customer="c31", part="train"))
    print(f"customer c31 deleted: {before - clf.class_count_.sum():.0f} questions less")

    north, south = (AIRClassifier(backbone="wordllama").fit(*questions(team=team)) for team in ("north", "south"))
    both = AIRClassifier(backbone="wordllama").fit([row["text"] for row in ROWS], [row["intent"] for row in ROWS])
    same = np.allclose(north.merge(south).decision_function(texts), both.decision_function(texts), atol=0.01)  # float32
    print(f"two teams merged: {'the same as' if same else 'not'} one that has seen all")

    sure = clf.predict_proba(texts).max(axis=1) > 0.7
    right = clf.predict(texts) == np.array(intents)
    print(f"{sure.sum()} of {len(texts)} answered at once, {right[sure].mean():.0%} of them right; the rest to a human")


if __name__ == "__main__":
    main()
