"""MVP with a memory (MVP-R)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from aircl.methods.gradient.rehearsal import Rehearsal
from aircl.methods.mvp import MVP, MVPOptions
from aircl.methods.registry import register_method


@dataclass(frozen=True)
class MVPReplayOptions(MVPOptions):
    """Options of MVP-R.

    Attributes
    ----------
    memory : int
        Samples that are kept at most.
    replay : int
        Samples of the memory beside every batch.
    """

    # The memory has samples of all classes, so all can be told apart.
    compare: Literal["phase", "exposed"] = "exposed"
    memory: int = 2000
    replay: int = 32

    online = MVPOptions.online


@register_method("mvp-r")
class MVPReplay(Rehearsal, MVP):
    """MVP-R: MVP, with every batch accompanied by samples of a reservoir memory.

    References
    ----------
    .. [1] Moon et al. "Online Class Incremental Learning on Stochastic Blurry Task Boundary via Mask and Visual Prompt
       Tuning." ICCV 2023.
    """

    Options = MVPReplayOptions
    options: MVPReplayOptions
