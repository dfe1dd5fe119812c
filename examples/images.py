"""Images through a frozen network: EfficientNet-Lite0, whose ImageNet weights come with a Python package.

One sees a network that never saw a digit turn 200 images into features, and a classifier learn them in closed form, in
two phases. On images as they are, pixels do as well; on images that are moved by a pixel, features are far ahead.
The features of a dataset of your own are extracted once: see `aircl features` and `aircl.backbones.FeatureCache`.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

from aircl import AIRClassifier
from aircl.backbones import BackboneError, create_backbone
from aircl.data import load_dataset

TRAIN, TEST = 200, 100
SIZE = 64  # the network was trained at 224, which takes twelve times as long


def main() -> None:
    try:
        backbone = create_backbone("efficientnet-lite0", size=SIZE)
    except BackboneError as error:
        print(f"Nothing to show: {error}")
        return
    digits = load_dataset("digits")
    images, y = digits.train.inputs[np.arange(TRAIN)], digits.train.labels[:TRAIN]
    test, y_test = digits.test.inputs[np.arange(TEST)], digits.test.labels[:TEST]

    def features(batch: np.ndarray) -> np.ndarray:
        return backbone.forward(backbone.prepare(batch))

    def pixels(batch: np.ndarray) -> np.ndarray:
        return batch.reshape(len(batch), -1) / 255

    began = perf_counter()
    X, X_test = features(images), features(test)
    print(f"{TRAIN + TEST} images to {backbone.width} features each, in {perf_counter() - began:.1f} s")
    clf = AIRClassifier()
    for new in (range(5), range(5, 10)):  # two phases
        rows = np.isin(y, new)
        clf.partial_fit(X[rows], y[rows])
        known = np.isin(y_test, clf.classes_)
        score = clf.score(X_test[known], y_test[known])
        print(f"{rows.sum()} images of {new[0]} to {new[-1]} learned: accuracy on 0 to {new[-1]}: {score:.2f}")

    on_pixels = AIRClassifier().fit(pixels(images), y)
    print("\naccuracy on test images   features   pixels")
    for name, shown in (("as they are", test), ("moved by a pixel", np.roll(test, 1, axis=2))):
        scores = clf.score(features(shown), y_test), on_pixels.score(pixels(shown), y_test)
        print(f"{name:24s}{scores[0]:10.2f}{scores[1]:9.2f}")


if __name__ == "__main__":
    main()
