"""Fine-tuning: the baseline that forgets."""

from __future__ import annotations

from aircl.methods.gradient.method import GradientMethod
from aircl.methods.gradient.options import PhaseOptions
from aircl.methods.registry import register_method


@register_method("fine-tuning")
class FineTuning(GradientMethod):
    """Fine-tuning: cross-entropy on the samples of the present phase alone; nothing is done against forgetting."""

    Options = PhaseOptions
    options: PhaseOptions
