"""What prompt methods are made of. A part is imported when it is first asked for, and torch with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aircl.lazy import on_demand

if TYPE_CHECKING:
    from aircl.methods.prompt.centre import PromptCentre
    from aircl.methods.prompt.components import Components
    from aircl.methods.prompt.dual import DualPrompts
    from aircl.methods.prompt.focus import InstanceMask, feature_scale, focal_factor, head_errors
    from aircl.methods.prompt.pool import PromptPool, contrastive_loss, most_frequent, spreading_loss
    from aircl.methods.prompt.prompted import Guidance, PromptedViT, draw_prompts, through_block

__all__ = [
    "Components",
    "DualPrompts",
    "Guidance",
    "InstanceMask",
    "PromptCentre",
    "PromptPool",
    "PromptedViT",
    "contrastive_loss",
    "draw_prompts",
    "feature_scale",
    "focal_factor",
    "head_errors",
    "most_frequent",
    "spreading_loss",
    "through_block",
]

__getattr__ = on_demand(
    __name__,
    {
        "components": "Components",
        "dual": "DualPrompts",
        "prompted": "Guidance PromptedViT draw_prompts through_block",
        "focus": "InstanceMask feature_scale focal_factor head_errors",
        "centre": "PromptCentre",
        "pool": "PromptPool contrastive_loss most_frequent spreading_loss",
    },
)
