"""ImageNet-R [1]_ in its official layout: art, cartoons, toys and other renditions of 200 classes of ImageNet.

References
----------
.. [1] D. Hendrycks et al., "The Many Faces of Robustness", ICCV 2021.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from aircl.data.arrays.source import DataError
from aircl.data.catalogue import register_dataset
from aircl.data.dataset import Dataset, Indices
from aircl.data.image_folder import list_classes, list_images, take
from aircl.data.layout import Layout
from aircl.data.wordnet import class_names

LAYOUT = Layout(
    dataset="imagenet-r",
    folder="imagenet-r",
    contents="<wnid>/*.jpg",
    archive="imagenet-r.tar",
    url="https://people.eecs.berkeley.edu/~hendrycks/imagenet-r.tar",
    members=r"README\.txt|n\d{8}/[^/\\]+\.jpg",
)


@register_dataset(
    "imagenet-r",
    kind="images",
    description="Art, cartoons, toys and other renditions of 200 classes: 24000 training and 6000 test images",
    needs=LAYOUT.needs,
    missing=LAYOUT.missing,
)
def load_imagenet_r(root: Path | None, *, classes: int = 200, images: int = 30_000) -> Dataset:
    """Load ImageNet-R with the 80/20 split of the literature on continual learning.

    Parameters
    ----------
    root : Path or None
        The data directory.
    classes, images : int
        How many there have to be.

    Returns
    -------
    dataset : Dataset
        The list of images, sorted by class and name, permuted as torch does with seed 0: the first four fifths are
        for training, the rest for test, both in the permuted order. Domains are the kinds of renditions, which the
        file names begin with: "art" of art_3.jpg.
    """
    return LAYOUT.open(root, lambda folder: _read(folder, classes, images))


def _read(folder: Path, n_classes: int, n_images: int) -> Dataset:
    numbers = list_classes(folder)
    files, labels = list_images(folder, numbers)
    if (len(numbers), len(files)) != (n_classes, n_images):
        raise DataError(
            f"there are {len(files)} images in {len(numbers)} folders, but {n_images} in {n_classes} are right."
        )
    kinds, domains = np.unique([Path(name).stem.rpartition("_")[0] for name in files], return_inverse=True)
    order = torch_randperm(n_images)
    cut = n_images * 4 // 5
    train, test = (take(folder, files, labels, rows, domains.astype(np.int64)) for rows in (order[:cut], order[cut:]))
    names = class_names(folder / "README.txt", numbers)
    return Dataset("imagenet-r", "images", train, test, names, tuple(kinds.tolist()))


def torch_randperm(n: int, seed: int = 0) -> Indices:
    """Return ``torch.randperm(n)`` of a CPU generator with this seed, without torch.

    Torch shuffles from the front, with numbers of the Mersenne Twister [1]_ that NumPy has too.

    Parameters
    ----------
    n : int
        Less than 2**32 / 20, beyond which torch draws in another way.
    seed : int, default=0

    Returns
    -------
    permutation : array of shape (n,)

    References
    ----------
    .. [1] M. Matsumoto and T. Nishimura, "Mersenne Twister", ACM TOMACS, 1998.

    Examples
    --------
    >>> torch_randperm(10).tolist()
    [4, 1, 7, 5, 3, 9, 0, 8, 6, 2]
    """
    drawn = np.random.RandomState(seed).randint(0, 2**32, max(n - 1, 0), np.uint32)
    jumps = drawn % np.arange(n, 1, -1, dtype=np.uint32)
    permutation = list(range(n))
    for i, jump in enumerate(jumps.tolist()):
        permutation[i], permutation[i + jump] = permutation[i + jump], permutation[i]
    return np.array(permutation, np.intp)
