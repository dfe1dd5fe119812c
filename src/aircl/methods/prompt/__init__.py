"""What prompt methods are made of. A part is imported when it is first asked for, and torch with it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aircl.methods.prompt.centre import PromptCentre
    from aircl.methods.prompt.components import Components
    from aircl.methods.prompt.dual import DualPrompts
    from aircl.methods.prompt.focus import InstanceMask, feature_scale, focal_factor, head_errors
    from aircl.methods.prompt.pool import PromptPool, contrastive_loss, most_frequent
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
    "through_block",
]

_HOMES = {
    "Components": "components",
    "DualPrompts": "dual",
    "Guidance": "prompted",
    "InstanceMask": "focus",
    "PromptCentre": "centre",
    "PromptPool": "pool",
    "PromptedViT": "prompted",
    "contrastive_loss": "pool",
    "draw_prompts": "prompted",
    "feature_scale": "focus",
    "focal_factor": "focus",
    "head_errors": "focus",
    "most_frequent": "pool",
    "through_block": "prompted",
}


def __getattr__(name: str) -> Any:
    """Import a part when it is first asked for: methods can be listed without torch."""
    if name not in _HOMES:
        raise AttributeError(f"module 'aircl.methods.prompt' has no attribute {name!r}")
    return getattr(import_module(f"aircl.methods.prompt.{_HOMES[name]}"), name)
