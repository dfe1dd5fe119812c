"""A backbone by name, made again in every process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from aircl.backbones import Backbone, BackboneError, FeatureCache, create_backbone
from aircl.backbones.catalogue import kinds_of
from aircl.inputs import Batch, Kind

# What is used where nobody has said. They are the same on every machine, so that models learned apart can be merged.
DEFAULTS: dict[Kind, str] = {"texts": "wordllama", "images": "efficientnet-lite0"}

_networks: dict[str, Backbone] = {}  # by fingerprint, one per process


def default_backbone(kind: Kind) -> str:
    """Return the name of the backbone for texts or images where none is named.

    Parameters
    ----------
    kind : {"texts", "images"}

    Examples
    --------
    >>> from aircl.raw.frozen import default_backbone
    >>> default_backbone("texts"), default_backbone("images")
    ('wordllama', 'efficientnet-lite0')
    """
    return DEFAULTS[kind]


@dataclass(frozen=True)
class FrozenBackbone:
    """A backbone by name, made again in every process, where it must turn out to be the same.

    Attributes
    ----------
    name : str
        As in `aircl list backbones`.
    fingerprint : str
        Of weights and transform.
    width : int
    kind : {"texts", "images"}
        What it is given here.
    device : str or None
        Where it computes, in every process; see `create_backbone`.

    Examples
    --------
    >>> from aircl.raw.frozen import FrozenBackbone
    >>> frozen = FrozenBackbone.create("char-ngrams", "texts", ["where is my card"])
    >>> frozen.width, frozen.network(["where is my card"]).name
    (1024, 'char-ngrams')
    """

    name: str
    fingerprint: str
    width: int
    kind: Kind
    device: str | None = None

    @classmethod
    def create(cls, name: str, kind: Kind, example: Batch, device: str | None = None) -> FrozenBackbone:
        """Make the backbone here, and note what it is."""
        if name.startswith("base:"):
            raise BackboneError(f"{name} is trained on the first phase of a stream. Use a saved one: checkpoint:FILE.")
        if kind not in kinds_of(name):
            raise BackboneError(f"{name} does not take {kind}. `aircl list backbones` says what each takes.")
        network = create_backbone(name, example=example, device=device)
        if kind not in network.kinds:
            raise BackboneError(f"{name} takes {' or '.join(network.kinds)}, not {kind}.")
        _networks[network.fingerprint] = network
        return cls(name, network.fingerprint, network.width, kind, device)

    def network(self, example: Batch) -> Backbone:
        """Return the backbone of this process; refuse one that is another here, in weights or transform."""
        if self.fingerprint not in _networks:
            network = create_backbone(self.name, example=example, device=self.device)
            if network.fingerprint != self.fingerprint:
                raise BackboneError(
                    f"{self.name} is not the same on this worker: fingerprint {network.fingerprint[:12]}.., expected "
                    f"{self.fingerprint[:12]}... Give all workers the same weights and versions."
                )
            _networks[network.fingerprint] = network
        return _networks[self.fingerprint]

    def features(
        self, inputs: Any, *, data: str, progress: Callable[[int, int], None] | None = None
    ) -> npt.NDArray[Any]:
        """Return the features of inputs with a fingerprint, by which the cache knows them."""
        network = self.network(inputs[np.arange(1)])
        return FeatureCache().features(network, inputs, inputs.fingerprint(), data=data, progress=progress)

    @property
    def noted(self) -> dict[str, Any]:
        """What a model notes about it."""
        return {"name": self.name, "fingerprint": self.fingerprint}


class RemoteBackbone(FrozenBackbone):
    """A backbone that a service has: samples are sent as they are, and have no features here.

    Examples
    --------
    >>> from aircl.data.samples import Texts
    >>> remote = RemoteBackbone("wordllama", "", 0, "texts")
    >>> remote.features(Texts(["where is my card"]), data="").shape
    (1, 0)
    """

    def features(
        self, inputs: Any, *, data: str, progress: Callable[[int, int], None] | None = None
    ) -> npt.NDArray[Any]:
        """Return rows of nothing."""
        return np.zeros((len(inputs), 0))
