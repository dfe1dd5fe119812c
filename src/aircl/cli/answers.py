"""What `aircl predict` says beside a label: how sure it is, how novel the row, what comes next, or why no answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from aircl.classifiers.analytic import AnalyticClassifier


class Answers:
    """Predictions with what was asked for beside them.

    Parameters
    ----------
    classifier : AnalyticClassifier
    confidence, novelty : float or None
        The least probability and novelty of a row that is answered.
    top : int or None
        How many labels to name, the most probable first.

    Attributes
    ----------
    columns : dict of str to {"label", "number", "text"}
        Columns beside the prediction, and what is in them.
    withheld : int
        How many rows had no answer so far.
    """

    def __init__(
        self, classifier: AnalyticClassifier, confidence: float | None, novelty: float | None, top: int | None
    ) -> None:
        self.classifier, self.confidence, self.novelty = classifier, confidence, novelty
        self.top = 1 if top is None else min(top, len(classifier.classes_))
        self.withheld = 0
        decides = confidence is not None or novelty is not None
        self.columns = {}
        if decides or top is not None:
            self.columns["probability"] = "number"
        if novelty is not None:
            self.columns["novelty"] = "number"
        if decides:
            self.columns["reason"] = "text"
        for rank in range(2, self.top + 1):
            self.columns |= {f"prediction_{rank}": "label", f"probability_{rank}": "number"}

    def of(self, X: Any) -> tuple[Any, dict[str, Any]]:
        """Return the labels, a masked array if some may be withheld, and the columns beside them."""
        if not self.columns:
            return self.classifier.predict(X), {}
        P = self.classifier.predict_proba(X)
        ranked = np.argsort(-P, axis=1, kind="stable")[:, : self.top]
        labels, cells = self.classifier.classes_[ranked[:, 0]], {"probability": P.max(axis=1, initial=0.0)}
        if "reason" in self.columns:
            found = self.classifier.decide(X, confidence=self.confidence, novelty=self.novelty)
            self.withheld += int((~found.answered).sum())
            labels, cells = found.labels, cells | {"novelty": found.novelty, "reason": found.reason}
        for rank, column in enumerate(ranked.T[1:], start=2):
            cells[f"prediction_{rank}"] = self.classifier.classes_[column]
            cells[f"probability_{rank}"] = P[np.arange(len(P)), column]
        return labels, {name: cells[name] for name in self.columns}
