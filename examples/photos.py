"""Photos in folders, one folder per class, through a frozen network: learned, saved, and asked about new ones.

Digits stand for photos: they are written to a folder on the spot. One sees a classifier that takes paths; a class that
comes later; and a model file that makes its network again when it is loaded. Features of a photo are computed once and
kept in the cache (`aircl cache`).
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from sklearn.datasets import load_digits

from aircl import AIRClassifier
from aircl.backbones import BackboneError

NETWORK = "efficientnet-lite0,size=64"  # it was trained at 224, which takes twelve times as long
PER_CLASS = 16  # of which every fourth is kept for testing


def write_photos(folder: Path) -> list[Path]:
    """Write small pictures of the digits 0 to 4, and return their paths."""
    digits = load_digits(n_class=5)
    for digit in range(5):
        (folder / f"digit {digit}").mkdir(parents=True)
        for number, image in enumerate(digits.images[digits.target == digit][:PER_CLASS]):
            Image.fromarray((image * 15).astype("uint8")).save(folder / f"digit {digit}" / f"{number:02d}.png")
    return sorted(folder.glob("*/*.png"))


def main() -> None:
    with TemporaryDirectory() as place:
        paths = write_photos(Path(place, "photos"))
        train = [path for path in paths if int(path.stem) % 4]
        test = [path for path in paths if path not in train]
        later = [path for path in train if path.parent.name == "digit 4"]
        first = [path for path in train if path not in later]
        clf = AIRClassifier(backbone=NETWORK)
        try:
            clf.fit(first, [path.parent.name for path in first])
        except BackboneError as error:
            print(f"Nothing to show: {error}")
            return
        print(f"{len(first)} photos of {len(clf.classes_)} classes learned")
        clf.partial_fit(later, [path.parent.name for path in later])
        clf.save(Path(place, "model.safetensors"))
        loaded = AIRClassifier.load(Path(place, "model.safetensors"))
        score = loaded.score(test, [path.parent.name for path in test])
        print(f"{len(later)} photos of a new class learned; accuracy on {len(test)} others: {score:.2f}")


if __name__ == "__main__":
    main()
