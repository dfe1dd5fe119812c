"""Mask and visual prompt tuning (MVP)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from aircl.methods import gradient, prompt
from aircl.methods.dualprompt import DualMethod
from aircl.methods.gradient.options import StepOptions
from aircl.methods.prompt.options import DualOptions, PromptOptions
from aircl.methods.registry import register_method

if TYPE_CHECKING:
    import torch
    from torch import nn

    from aircl.backbones.vit import VisionTransformer
    from aircl.methods.gradient import Rows
    from aircl.methods.prompt import Guidance, InstanceMask


@dataclass(frozen=True)
class MVPOptions(DualOptions):
    """Options of MVP.

    Attributes
    ----------
    keys : {"published", "contrastive"}
        The loss of the keys: that of the authors' code, which draws keys to their queries and apart from one another,
        the less, the more they were used; or that by which a query tells its key from the others (InfoNCE).
    temperature : float
        Of the contrastive loss.
    margin : float
        Features are scaled by 1 / (1 - cos(w_y, x) + margin) in training.
    focus : float
        Share of a loss that counts as much as the sample's gradient differs from that of its batch.
    """

    learning_rate: float = 5e-3
    rate_batch: int | None = None
    clip: float | None = None
    form: Literal["prefix", "prompt"] = "prompt"
    expert_length: int = 20
    keys: Literal["published", "contrastive"] = "published"
    temperature: float = 0.1
    margin: float = 0.5
    focus: float = 0.5

    online: ClassVar[Mapping[str, Any]] = PromptOptions.online
    may_be_zero = DualOptions.may_be_zero | {"focus"}
    at_most_one = frozenset({"focus"})


@register_method("mvp")
class MVP(DualMethod):
    """MVP: general and expert prompts, a mask of the logits for each sample, more weight for unusual gradients.

    Notes
    -----
    The expert of a sample is argmin distance * (usage + 1), the usage counted in training; the same rule holds for test
    samples, which are not counted. Gradients by the head are had in closed form, without a backward pass. A query is
    the class token as it enters the last block, not normalised.

    References
    ----------
    .. [1] Moon et al. "Online Class Incremental Learning on Stochastic Blurry Task Boundary via Mask and Visual Prompt
       Tuning." ICCV 2023.
    """

    Options: ClassVar[type[StepOptions]] = MVPOptions
    options: MVPOptions
    queried = "early"

    @property
    def mask(self) -> InstanceMask:
        """The mask of the logits."""
        mask: InstanceMask = self.prompts.mask  # type: ignore[assignment]  # as make_prompts made it
        return mask

    def make_prompts(self, vit: VisionTransformer) -> nn.Module:
        """Return general and expert prompts, and the mask."""
        prompts = super().make_prompts(vit)
        prompts.mask = prompt.InstanceMask(self.options.pool)
        return prompts

    def meet(self, rows: Rows) -> None:
        """Make room for classes that are new, in the mask too."""
        self.student.head.grow(rows["labels"].tolist())
        self.mask.grow(len(self.student.head.classes))
        super().meet(rows)

    def guide(self, rows: Rows, *, training: bool) -> Guidance:
        """Return the prefixes of all blocks that have some."""
        pool = self.prompts.experts
        distances = pool.distances(rows["queries"])
        chosen = pool.least_used(distances)
        if self.options.keys == "published":
            penalty = prompt.spreading_loss(pool, distances, chosen)
        else:
            penalty = prompt.contrastive_loss(distances, chosen, self.options.temperature)
        if training:
            pool.count(chosen)
        return prompt.Guidance(
            prefixes=self.prompts.prefixes(self.student.trunk, chosen),
            chosen=chosen,
            penalty=self.options.key_loss * penalty,
        )

    def judge(self, features: torch.Tensor, guidance: Guidance) -> torch.Tensor:
        """Return logits of shape (n, C), times the mask of each sample's expert."""
        assert guidance.chosen is not None
        factors: torch.Tensor = self.mask(guidance.chosen)
        return super().judge(features, guidance) * factors

    def loss(self, batch: Rows) -> torch.Tensor:
        """Return the cross-entropy of scaled features, in which ignored samples weigh more, plus that of the keys."""
        options, head = self.options, self.student.head
        guidance = self.guide(batch, training=True)
        assert guidance.chosen is not None
        features = self.student.see(self.views.training(batch["inputs"], self.generator), guidance)
        columns = head.columns(batch["labels"])
        # How much a sample is ignored is judged by its features as they are, its loss by scaled ones.
        plain = gradient.mask_logits(self.judge(features, guidance), self.compared)
        errors = prompt.head_errors(plain, columns, self.mask(guidance.chosen))
        factor = prompt.focal_factor(errors, columns, features, options.focus)
        scaled = features * prompt.feature_scale(features, head.weight[columns], options.margin)
        losses = self.cross_entropy(self.judge(scaled, guidance), batch["labels"], "none")
        return (factor * losses).mean() + guidance.penalty
