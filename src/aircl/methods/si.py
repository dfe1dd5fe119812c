"""Synaptic intelligence (SI), the path integral method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aircl.methods import gradient
from aircl.methods.elastic import HeldOptions
from aircl.methods.gradient.anchored import Anchored
from aircl.methods.registry import register_method

if TYPE_CHECKING:
    from aircl.methods.gradient import PathIntegral


@dataclass(frozen=True)
class SIOptions(HeldOptions):
    """Options of SI.

    Attributes
    ----------
    penalty : float
        The c of c sum Omega (theta - theta*)^2.
    xi : float
        Beside squared ways, which may be 0.
    """

    penalty: float = 100.0
    xi: float = 0.1


@register_method("si")
class SynapticIntelligence(Anchored):
    """SI: fine-tuning with a penalty on moving parameters that made the loss fall in earlier phases; keeps no sample.

    References
    ----------
    .. [1] Zenke, Poole & Ganguli. "Continual Learning Through Synaptic Intelligence." ICML 2017.
    """

    Options = SIOptions
    options: SIOptions

    def make_anchor(self) -> PathIntegral:
        """Return an anchor by falls of the loss along the way."""
        return gradient.PathIntegral(self.options.xi)
