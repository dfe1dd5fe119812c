"""A model that a service holds, in the place of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aircl.engine.backend import Array


class ServedModel:
    """What `aircl predict` asks of a model, asked of a service.

    Parameters
    ----------
    url : str
    token : str or None

    Attributes
    ----------
    classes_ : array of shape (C,)
    n_features_in_ : int
    backbone : None
        Features are sent, not texts or images.
    """

    backbone = None

    def __init__(self, url: str, token: str | None) -> None:
        import numpy as np

        from aircl.client import Client

        self._client = Client(url, token)
        self.classes_ = np.array(list(self._client.classes()))
        if not len(self.classes_):
            raise ValueError(f"the service at {url} has learned nothing yet.")
        self.n_features_in_ = self._client.health()["features"]

    def predict(self, X: Array) -> Array:
        """Return the best class of every row."""
        return self._client.predict(X)

    def predict_proba(self, X: Array) -> Array:
        """Return the probability of every class, in the order of `classes_`."""
        import numpy as np

        column = {label: number for number, label in enumerate(self.classes_.tolist())}
        p = np.zeros((len(X), len(column)))
        answer: dict[str, Any] = self._client.ask(X, top=len(column))
        for row, entry in zip(p, answer["predictions"], strict=True):
            for best in entry.get("top", [entry]):
                row[column[best["label"]]] = best["probability"]
        return p
