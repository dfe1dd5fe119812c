"""MVP with a memory (MVP-R)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from aircl.methods.gradient.options import MemoryOptions
from aircl.methods.gradient.rehearsal import Rehearsal
from aircl.methods.mvp import MVP, MVPOptions
from aircl.methods.registry import register_method


@dataclass(frozen=True)
class MVPReplayOptions(MVPOptions, MemoryOptions):  # defaults of the former come first
    """Options of MVP-R: those of MVP, and of its memory."""

    # The memory has samples of all classes, so all can be told apart.
    compare: Literal["phase", "exposed"] = "exposed"

    online = MVPOptions.online
    may_be_zero = MVPOptions.may_be_zero | MemoryOptions.may_be_zero


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
