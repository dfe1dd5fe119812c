"""Logit adjusted softmax (LAS)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from aircl.methods.gradient.options import ReplayOptions
from aircl.methods.gradient.rehearsal import Rehearsal
from aircl.methods.registry import register_method


@dataclass(frozen=True)
class LASOptions(ReplayOptions):
    """Options of LAS: those of replay, with the correction switched on."""

    adjust: Literal["none", "las"] = "las"


@register_method("las")
class LogitAdjustedSoftmax(Rehearsal):
    """LAS: ER on CE(z + tau log pi), pi the shares of the classes in what is trained on; it predicts by plain logits.

    A network that is trained so learns z = log p(x | y) up to a constant, where plain cross-entropy learns that plus
    log pi: its highest logit is the best answer if all classes are equally likely.

    Notes
    -----
    pi counts the labels of stream and memory in the last `window` steps, the present one among them; with phases it is
    known beforehand, as the phase and the memory are. Logits of classes that are not counted are masked. Other methods
    with a memory have the same by ``adjust="las"``.

    References
    ----------
    .. [1] Huang, Li, Yuan, Wu & Huang. "Online Continual Learning via Logit Adjusted Softmax." TMLR 2024.
    """

    Options = LASOptions
    options: LASOptions
