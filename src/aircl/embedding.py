"""A frozen backbone as a scikit-learn transformer: texts or images in, features out."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from aircl.backbones import Backbone, BackboneError, FeatureCache, Features, create_backbone
from aircl.backbones.backbone import check_backbone
from aircl.backbones.catalogue import kinds_of, needs_example
from aircl.data.samples import ArrayInputs, ImageFiles, Texts, UnnamedImages, read_image, rgb, stacked
from aircl.inputs import Batch, Inputs, Samples, raw_samples

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from aircl.backbones.cache import Progress


class Embedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Features of texts or images, from any backbone.

    Parameters
    ----------
    backbone : str or Backbone, default="wordllama"
        A name of `aircl list backbones`, with options after it if need be ("efficientnet-lite0,size=96"), or any object
        with the `Backbone` protocol.
    device : str, optional
        Where a network computes; see `create_backbone`.
    cache : bool or path, default=True
        Whether features of images are kept on disk, by their content, so that they are computed once; a path says
        where. Those of texts are not.
    progress : bool, default=False
        Show a bar on stderr, if that is a terminal and it takes more than a second.

    Attributes
    ----------
    backbone_ : Backbone
    fingerprint_ : str
        Of weights and transform. An estimator that was pickled makes its backbone again, and refuses another one.
    n_features_in_ : int
        Of a backbone that takes features; there is none for texts and images.

    Notes
    -----
    Texts are a list, an array, a Series or the only column of a frame. Images are paths, PIL images, or uint8 arrays of
    shape (height, width, channels), in a list or as one array. `fit` learns nothing: it makes the backbone.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from aircl import AIRClassifier, Embedding
    >>> questions = ["where is my card", "my card did not come", "what is the exchange rate", "which rate do you use"]
    >>> model = make_pipeline(Embedding("char-ngrams"), AIRClassifier())
    >>> model = model.fit(questions, ["card", "card", "rate", "rate"])
    >>> model.predict(["has the card been sent", "tell me the rate"]).tolist()
    ['card', 'rate']
    """

    def __init__(
        self,
        backbone: str | Backbone = "wordllama",
        *,
        device: str | None = None,
        cache: bool | str | PathLike[str] = True,
        progress: bool = False,
    ) -> None:
        self.backbone = backbone
        self.device = device
        self.cache = cache
        self.progress = progress

    def fit(self, X: Any, y: Any = None) -> Self:
        """Make the backbone, and see whether it can take the samples.

        Parameters
        ----------
        X : samples
            Texts, images or features.
        y : ignored

        Returns
        -------
        self : Embedding
        """
        values = self._values(X, reset=True)
        self.backbone_ = self._make(values)
        self.fingerprint_ = self.backbone_.fingerprint
        self._inputs(values)
        return self

    def transform(self, X: Any) -> Features:
        """Return the features.

        Parameters
        ----------
        X : samples
            Texts, images or features.

        Returns
        -------
        features : float32 array of shape (n, width)
        """
        check_is_fitted(self, "fingerprint_")
        if not isinstance(X, Samples):
            return self._transform(X, self.cache)
        if X.features is None or X.features[0] != self.fingerprint_:
            X.features = self.fingerprint_, self._transform(X, False)
        return X.features[1]

    def _transform(self, X: Any, keep: bool | str | PathLike[str]) -> Features:
        values = self._values(X, reset=False)
        self.make(values)
        inputs, backbone = self._inputs(values), self.backbone_
        if not len(inputs):
            return np.zeros((0, backbone.width), np.float32)
        with _bar(backbone.name, self.progress) as progress:
            if keep is not False and isinstance(inputs, ImageFiles | ImageList):
                cache = FeatureCache(None if keep is True else keep)
                return np.array(
                    cache.features(backbone, inputs, inputs.fingerprint(), data="Embedding", progress=progress)
                )
            parts = [np.zeros((0, backbone.width), np.float32)]
            for start in range(0, len(inputs), backbone.batch_size):
                rows = np.arange(start, min(start + backbone.batch_size, len(inputs)))
                parts.append(backbone.forward(backbone.prepare(inputs[rows])))
                progress(int(rows[-1]) + 1, len(inputs))
        return np.concatenate(parts)

    @classmethod
    def of(cls, backbone: str | Backbone, fingerprint: str | None = None) -> Self:
        """Return what a classifier embeds its samples with.

        Parameters
        ----------
        backbone : str or Backbone
        fingerprint : str or None
            Of the backbone that it was fitted with; None: it is not fitted.

        Returns
        -------
        embedding : Embedding
        """
        embedding = cls(backbone, progress=True)
        if fingerprint is not None:
            embedding.fingerprint_ = fingerprint
        return embedding

    def make(self, values: list[Any] | npt.NDArray[Any] | None = None) -> None:
        """Make the backbone again, unless it is there, and refuse another one than was fitted.

        Parameters
        ----------
        values : samples or None
            None: a backbone that is as wide as its samples is made when there are some.
        """
        if hasattr(self, "backbone_"):
            return
        if values is None and isinstance(self.backbone, str) and needs_example(self.backbone):
            return
        backbone = self._make(values)
        if backbone.fingerprint != self.fingerprint_:
            raise BackboneError(
                f"{backbone.name!r} is another backbone here ({backbone.fingerprint[:12]}..) than the one that was "
                f"fitted ({self.fingerprint_[:12]}..). Use the same weights and versions."
            )
        self.backbone_ = backbone

    @property
    def noted(self) -> dict[str, str]:
        """What a file has of it: the name and the fingerprint of the backbone."""
        return {"name": self._name, "fingerprint": self.fingerprint_}

    @property
    def _name(self) -> str:
        return self.backbone if isinstance(self.backbone, str) else self.backbone.name

    def _values(self, X: Any, reset: bool) -> list[Any] | npt.NDArray[Any]:
        """Return a list of strings, paths or images, or an array of images or of features, checked."""
        if isinstance(X, str):
            raise ValueError(f"samples are a list or a column, got one string, {X[:40]!r}. Put it in a list.")
        if (samples := raw_samples(X)) is not None:
            return samples
        if getattr(X, "ndim", 1) == 1 and hasattr(X, "__len__") and not len(X):
            return []
        kinds = kinds_of(self.backbone) if isinstance(self.backbone, str) else check_backbone(self.backbone).kinds
        if "features" not in kinds:
            raise ValueError(f"{self._name} takes {' or '.join(kinds)}, got {_described(X)}. {_ADVICE}")
        features: npt.NDArray[Any] = validate_data(self, X, reset=reset, dtype=np.float32)
        return features

    def _make(self, values: list[Any] | npt.NDArray[Any] | None) -> Backbone:
        if not isinstance(self.backbone, str):
            return check_backbone(self.backbone)
        if self.backbone.startswith("base:"):
            raise BackboneError(f"{self.backbone} is trained on a stream. Use a saved one: checkpoint:FILE.")
        example = None
        if needs_example(self.backbone) and values is not None and len(values):
            example = values[:1] if isinstance(values, np.ndarray) else _images(values[:1])[np.arange(1)]
        if example is not None or ":" in self.backbone:  # a file may be another one by now
            return create_backbone(self.backbone, example=example, device=self.device)
        key = (self.backbone, self.device, os.environ.get("AIRCL_DEVICE"))
        backbone = _IN_USE.get(key)
        if backbone is None:
            backbone = _IN_USE[key] = create_backbone(self.backbone, device=self.device)
        return backbone

    def _inputs(self, values: list[Any] | npt.NDArray[Any]) -> Inputs:
        """Return values as what the backbone takes, or say that it does not."""
        kinds = self.backbone_.kinds
        if isinstance(values, np.ndarray) and values.ndim == 2:
            if "features" in kinds:
                return ArrayInputs(values)
            given = _described(values)
        elif isinstance(values, list) and "texts" in kinds and all(isinstance(value, str) for value in values):
            return Texts(values)
        elif "images" in kinds:
            paths = [value for value in values if isinstance(value, str | PathLike)]
            if missing := [str(path) for path in paths if not Path(path).is_file()]:
                raise ValueError(
                    f"{self.backbone_.name} takes images, but there is no file {missing[0]:.80}. {_ADVICE}"
                )
            return _images(values)
        else:
            place = next((i for i, value in enumerate(values) if not isinstance(value, str)), 0)
            which = "the first" if place == 0 else f"number {place + 1}"
            given = f"a {type(values[place]).__name__} as {which} of {len(values)} samples"
        raise ValueError(f"{self.backbone_.name} takes {' or '.join(kinds)}, got {given}. {_ADVICE}")

    @property
    def _n_features_out(self) -> int:
        return self.backbone_.width

    def __getstate__(self) -> dict[str, Any]:
        """Leave out a backbone that has a name: its weights are not copied into every file."""
        state: dict[str, Any] = super().__getstate__()
        if isinstance(self.backbone, str):
            state.pop("backbone_", None)
        return state

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags


# Seconds of work from which it is shown how far it is.
LONG = 1.0

# Backbones by name that somebody holds: a clone, a copy or another fit need not load the weights again.
_IN_USE: WeakValueDictionary[tuple[str, str | None, str | None], Any] = WeakValueDictionary()

_ADVICE = (
    "Texts are strings; images are paths, PIL images or uint8 arrays of shape (height, width, channels). `aircl list "
    "backbones` says what each takes."
)


def _described(X: Any) -> str:
    """Say what somebody gave instead of texts or images."""
    shape, columns = getattr(X, "shape", None), getattr(X, "columns", None)
    if columns is not None and len(columns) > 1:
        names = [repr(str(name)) for name in columns]
        return f"a frame of {len(names)} columns, {', '.join(names[:4])}: give one, or join them to one"
    if shape is not None and getattr(getattr(X, "dtype", None), "kind", "O") in "fiubc":
        return f"an array of numbers of shape {tuple(shape)}"
    if shape is not None:
        return f"a {type(X).__name__} of shape {tuple(shape)}"
    if isinstance(X, list | tuple) and X:
        return f"a list of {type(X[0]).__name__}"
    return f"a {type(X).__name__}: put samples in a list"


def _images(values: list[Any] | npt.NDArray[Any]) -> ImageFiles | ImageList:
    if isinstance(values, list) and values and all(isinstance(value, str | PathLike) for value in values):
        return UnnamedImages(".", [str(value) for value in values])
    return ImageList(values)


class ImageList:
    """Images in memory, of any sizes.

    Parameters
    ----------
    images : uint8 array of shape (n, height, width, channels), or sequence of PIL images, uint8 arrays and paths
    """

    def __init__(self, images: Sequence[Any] | npt.NDArray[Any]) -> None:
        self.images = images

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, indices: npt.NDArray[np.intp]) -> Batch:
        if isinstance(self.images, np.ndarray):
            return self.images[indices]
        return stacked([self._pixels(i) for i in indices])

    def fingerprint(self) -> str:
        """Return a hash of sizes and pixels."""
        digest = hashlib.sha256()
        for i in range(len(self)):
            pixels = np.ascontiguousarray(self._pixels(i))
            digest.update(f"{pixels.dtype.str} {pixels.shape}".encode())
            digest.update(pixels.data)
        return digest.hexdigest()

    def _pixels(self, i: int) -> npt.NDArray[Any]:
        image = self.images[i]
        if isinstance(image, str | PathLike):
            return read_image(Path(image))
        return rgb(image) if hasattr(image, "convert") else np.asarray(image)


@contextmanager
def _bar(name: str, wanted: bool) -> Iterator[Progress]:
    """Yield what is called with the rows done and all rows."""
    if not (wanted and sys.stderr.isatty()):
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    began, bar = time.monotonic(), Bar(console=Console(stderr=True), transient=True)
    task = bar.add_task(name)

    def show(done: int, total: int) -> None:
        if time.monotonic() - began > LONG:
            bar.start()
        bar.update(task, completed=done, total=total)

    try:
        yield show
    finally:
        bar.stop()
