"""A model that a service holds, in place of a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from aircl.classifiers.decisions import Decisions
    from aircl.engine.backend import Array

# What is sent at a time: bytes of features as JSON, about, and numbers of rows, of images, and of probabilities.
_FEATURE_BYTES, _ROWS, _IMAGES, _PROBABILITIES = 8 * 2**20, 1000, 16, 500_000


class ServedModel:
    """What `aircl predict` asks of a model, asked of a service.

    Parameters
    ----------
    url : str
    token : str or None

    Attributes
    ----------
    classes_ : array of shape (C,)
    n_features_in_ : int or None
        None if the service makes features of texts or images itself.
    backbone : str or None
        What makes them there.
    """

    is_remote: ClassVar[bool] = True
    calibrate: ClassVar[bool] = True  # or not: the service answers as it can

    def __init__(self, url: str, token: str | None) -> None:
        import numpy as np

        from aircl.client import Client

        self._client = Client(url, token)
        self.classes_ = np.array(list(self._client.classes()))
        if not len(self.classes_):
            raise ValueError(f"the service at {url} has learned nothing yet.")
        status = self._client.health()
        self.backbone = status["backbone"]
        self.n_features_in_ = status["features"] if self.backbone is None else None
        if self.backbone is not None:
            self.backbone_ = {"name": self.backbone, "fingerprint": ""}

    def predict(self, X: Any) -> Array:
        """Return the best class of every row."""
        import numpy as np

        return np.array([entry["label"] for entry in self._ask(X)], dtype=self.classes_.dtype)

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of every class, in the order of `classes_`."""
        import numpy as np

        column = {label: number for number, label in enumerate(self.classes_.tolist())}
        p = np.zeros((len(X), len(column)))
        for row, entry in zip(p, self._ask(X, top=len(column)), strict=True):
            for best in entry.get("top", [entry]):
                row[column[best["label"]]] = best["probability"]
        return p

    def decide(self, X: Any, *, confidence: float | None, novelty: float | None) -> Decisions:
        """Return labels, but no answer for rows that are too doubtful, or unlike anything learned."""
        import numpy as np

        from aircl.classifiers.decisions import decide

        found = list(self._ask(X, **({} if novelty is None else {"novelty": 0.0})))
        labels = np.array([entry["label"] for entry in found], dtype=self.classes_.dtype)
        p = np.array([entry["probability"] for entry in found])
        share = None if novelty is None else np.array([entry["novelty"] for entry in found])
        return decide(labels, p, share, confidence, novelty)

    def _ask(self, X: Any, **options: Any) -> Iterator[dict[str, Any]]:
        """Yield the predictions of rows, which are sent a part at a time."""
        size = min(_ROWS, _PROBABILITIES // options.get("top", 1))
        if self.n_features_in_ is not None:
            size = min(size, _FEATURE_BYTES // (20 * self.n_features_in_))
        elif len(X) and not isinstance(X[0], str):
            size = min(size, _IMAGES)
        size = max(1, size)
        for start in range(0, len(X), size):
            yield from self._client.ask(X[start : start + size], **options)["predictions"]
