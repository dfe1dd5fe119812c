"""Experience replay (ER)."""

from __future__ import annotations

from aircl.methods.gradient.options import ReplayOptions
from aircl.methods.gradient.rehearsal import Rehearsal
from aircl.methods.registry import register_method


@register_method("er")
class ExperienceReplay(Rehearsal):
    """ER: every batch is accompanied by samples of a reservoir memory.

    References
    ----------
    .. [1] Rolnick et al. "Experience Replay for Continual Learning." NeurIPS 2019.
    """

    Options = ReplayOptions
    options: ReplayOptions
