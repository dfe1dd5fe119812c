"""A user's file, type-checked by `make test-wheel` against the installed package."""

import numpy as np
import numpy.typing as npt

from aircl import ACILClassifier, AIRClassifier, RandomReLU


def learn(stream: list[tuple[npt.NDArray[np.float32], npt.NDArray[np.str_]]]) -> AIRClassifier:
    clf = AIRClassifier(gamma="auto", weighting="inverse", store="shared", expansion=RandomReLU(256, random_state=0))
    for X, y in stream:
        clf.partial_fit(X, y)
    return clf


def use(clf: AIRClassifier, X: npt.NDArray[np.float32]) -> list[str]:
    clf.merge(learn([]))
    clf.save("model.safetensors")
    again = AIRClassifier.load("model.safetensors")
    labels: list[str] = again.predict(X).tolist()
    shares: list[float] = again.predict_proba(X).max(axis=1).tolist()
    return [label for label, share in zip(labels, shares, strict=True) if share > 0.9]


def wrong_by_design() -> None:
    ACILClassifier(gamma=[1.0])  # type: ignore[arg-type]
