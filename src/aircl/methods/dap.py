"""Dynamically anchored prompting (DAP)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from aircl.methods import gradient, prompt
from aircl.methods.method import IncompatibleError, Setup
from aircl.methods.prompt.method import PromptMethod
from aircl.methods.prompt.options import PromptOptions
from aircl.methods.registry import register_method

if TYPE_CHECKING:
    import torch
    from torch import nn

    from aircl.backbones.vit import VisionTransformer
    from aircl.methods.gradient import Rows
    from aircl.methods.prompt import Guidance


@dataclass(frozen=True)
class DAPOptions(PromptOptions):
    """Options of DAP.

    Attributes
    ----------
    epochs : int
        Passes over a phase in each of the two stages.
    compare : {"phase", "exposed"}
        Of stage 2; stage 1 always tells samples from the classes of their phase.
    length : int
        Tokens of a prompt.
    """

    length: int = 25

    online: ClassVar[Mapping[str, Any]] = PromptOptions.online


@register_method("dap")
class DAP(PromptMethod):
    """DAP: a prompt for each phase, and a general one that is held near them and alone predicts.

    Stage 1 of a phase trains its prompt p_t and the head, stage 2 the general prompt g and the head, on the
    cross-entropy plus a (1 - cos(g, s)) + (1 - a) (1 - cos(g, p_t)). Here s is the centre of the earlier phases'
    prompts, which weigh 1 / |D_j|, and a = (|D_t| - min |D|) / (max |D| - min |D|) over the phases so far; in the first
    phase a = 0, and there is no s. The cosine is that of all tokens in a row.

    Notes
    -----
    Of earlier prompts only the centre is kept. One optimiser serves all phases, as in public code: what it knows of
    head and general prompt goes on, while the prompt of a phase begins without a past. Two stages over a phase need
    phases, which an online stream does not show.

    References
    ----------
    .. [1] Hong et al. "Dynamically Anchored Prompting for Task-Imbalanced Continual Learning." IJCAI 2024.
    """

    queried = None
    renews_optimiser = False
    stages = 2
    Options = DAPOptions
    options: DAPOptions

    kept = "earlier"

    def __init__(self, setup: Setup) -> None:
        if setup.online:
            raise IncompatibleError("it passes over a phase in two stages, but an online stream shows no phases.")
        super().__init__(setup)
        self.earlier = prompt.PromptCentre()
        self.alpha = 0.0
        self._stage = 2

    def make_prompts(self, vit: VisionTransformer) -> nn.Module:
        """Return the general prompt and that of the present phase."""
        from torch import nn

        prompts = nn.Module()
        prompts.general = prompt.draw_prompts(self.options.length, vit.width, generator=self.generator)
        prompts.phase = prompt.draw_prompts(self.options.length, vit.width, generator=self.generator)
        return prompts

    def guide(self, rows: Rows, *, training: bool) -> Guidance:
        """Return the prompt of the phase in stage 1, else the general one."""
        general, phase = self._prompts()
        n = len(rows["inputs"])
        if training and self._stage == 1:
            return prompt.Guidance(tokens=phase.expand(n, -1, -1))
        return prompt.Guidance(tokens=general.expand(n, -1, -1), penalty=self.anchoring() if training else 0.0)

    def anchoring(self) -> torch.Tensor:
        """Return a (1 - cos(g, s)) + (1 - a) (1 - cos(g, p_t))."""
        from torch.nn.functional import cosine_similarity

        general, phase = (tokens.flatten() for tokens in self._prompts())
        plasticity = 1 - cosine_similarity(general, phase.detach(), dim=0)
        centre = self.earlier.centre()
        if centre is None:
            return (1 - self.alpha) * plasticity
        stability = 1 - cosine_similarity(general, centre.flatten(), dim=0)
        return self.alpha * stability + (1 - self.alpha) * plasticity

    def train_phase(self, rows: Rows) -> None:
        """Train the prompt of the phase, then the general one, and the head with both."""
        _, phase = self._prompts()
        size = gradient.count(rows)
        self.alpha = self.earlier.alpha(size)
        phase.data.copy_(prompt.draw_prompts(*phase.shape, generator=self.generator))
        if self.optimiser is not None:
            self.optimiser.forget(phase)
        second, first = self.compared, self.student.head.columns(rows["labels"])
        for self._stage, self.compared in ((1, first), (2, second)):
            super().train_phase(rows)
        self.earlier.add(phase, size)

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on with what is known of earlier phases, where the prompts are."""
        super().set_state({**state, "earlier": gradient.sent_to(self.student.head.weight.device, state["earlier"])})

    def _prompts(self) -> tuple[nn.Parameter, nn.Parameter]:
        prompts: Any = self.student.prompts
        return prompts.general, prompts.phase
