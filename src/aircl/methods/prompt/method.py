"""What all prompt methods share: a frozen ViT, queries that are computed once, and prompts and head that learn."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from aircl.inputs import Batch
from aircl.methods import gradient, prompt
from aircl.methods.gradient.method import IMAGES_AT_A_TIME, GradientMethod
from aircl.methods.gradient.options import StepOptions
from aircl.methods.method import Floats, IncompatibleError, Labels
from aircl.methods.prompt.options import PromptOptions, SelectionOptions

if TYPE_CHECKING:
    import torch
    from torch import nn

    from aircl.backbones.vit import VisionTransformer
    from aircl.methods.gradient import Optimiser, Rows
    from aircl.methods.gradient.views import Views
    from aircl.methods.prompt import Guidance, PromptedViT


class PromptMethod(GradientMethod):
    """Prompts and a head that are trained on a ViT that stays as it is.

    A method says what is special about it by `make_prompts`, which returns what is trained, and `guide`, which returns
    what samples are looked at with; and by overriding what a `GradientMethod` may.

    Attributes
    ----------
    queried : {"whole", "early"} or None
        Whether samples need the class token of the ViT without prompts: as it comes out, or as it enters the last
        block. It is computed when a sample comes, once, and kept beside it: with the samples of a phase, in a memory,
        and with encoded test samples.
    """

    consumes = "images"
    trial_backbone = "vit"
    Options: ClassVar[type[StepOptions]] = PromptOptions
    options: PromptOptions
    queried: ClassVar[Literal["whole", "early"] | None] = "whole"
    student: PromptedViT

    @classmethod
    def inputs_for(cls, options: Mapping[str, Any]) -> Literal["features", "images"]:
        """Return "images"."""
        return "images"

    @classmethod
    def notes_for(cls, options: Mapping[str, Any], *, online: bool) -> list[str]:
        """Say so if test samples share their prompts."""
        notes = super().notes_for(options, online=online)
        if options.get("selection") == "batch":
            notes.append(
                "Prompts are chosen for a whole batch, of test samples too: a prediction depends on the other samples "
                "of its batch, so its accuracy leaks from them and is not comparable."
            )
        return notes

    # -- what makes a method --
    @abstractmethod
    def make_prompts(self, vit: VisionTransformer) -> nn.Module:
        """Return the prompts, with whatever else is trained beside the head."""

    @abstractmethod
    def guide(self, rows: Rows, *, training: bool) -> Guidance:
        """Return what samples are looked at with; in training its penalty is added to the loss."""

    def judge(self, features: torch.Tensor, guidance: Guidance) -> torch.Tensor:
        """Return logits of shape (n, C) for features of shape (n, width)."""
        logits: torch.Tensor = self.student.head(features)
        return logits

    # -- learning --
    def loss(self, batch: Rows) -> torch.Tensor:
        """Return the cross-entropy, plus what the prompts add."""
        guidance = self.guide(batch, training=True)
        features = self.student.see(self.views.training(batch["inputs"], self.generator), guidance)
        return self.cross_entropy(self.judge(features, guidance), batch["labels"]) + guidance.penalty

    def rows(self, inputs: Batch, labels: Labels) -> Rows:
        """Return a batch as tensors of its own, with its queries."""
        rows = super().rows(inputs, labels)
        return {**rows, "queries": self._queries(rows["inputs"])} if self.queried else rows

    # -- predicting --
    def encode(self, inputs: Batch) -> Any:
        """Return uint8 pixels of the size that the ViT takes and the queries, as fields of one array of shape (n,)."""
        pixels = self.views.tensor(inputs)
        rows = {"inputs": pixels} | ({"queries": self._queries(pixels)} if self.queried else {})
        parts = {name: gradient.to_array(part) for name, part in rows.items()}
        encoded = np.empty(len(pixels), [(name, part.dtype, part.shape[1:]) for name, part in parts.items()])
        for name, part in parts.items():
            encoded[name] = part
        return encoded

    def logits(self, encoded: Any) -> Floats:
        """Return logits of shape (n, C), in the order in which classes came."""
        import torch

        # Who chooses for a whole batch does so for batches of the size that it is trained with.
        size = self.setup.batch_size if self._batchwise else IMAGES_AT_A_TIME
        parts = [np.zeros((0, len(self.student.head.classes)), np.float32)]
        with torch.inference_mode():
            for start in range(0, len(encoded), size):
                part = encoded[start : start + size]
                rows = {name: torch.tensor(part[name], device=gradient.HOST) for name in part.dtype.names}
                parts.append(gradient.to_array(self.look(rows)[1]))
        return np.concatenate(parts)

    def look(self, rows: Rows) -> tuple[torch.Tensor, torch.Tensor]:
        """Return features and logits of samples as they are, with the prompts that test samples would have."""
        guidance = self.guide(rows, training=False)
        features = self.student.see(self.views.plain(rows["inputs"]), guidance)
        return features, self.judge(features, guidance)

    def _queries(self, pixels: torch.Tensor) -> torch.Tensor:
        import torch

        from aircl.backbones.device import send

        parts = [
            # Kept beside the samples, on the CPU.
            send(self.student.query(self.views.plain(part), whole=self.queried == "whole"), pixels.device)
            for part in gradient.pieces(pixels, IMAGES_AT_A_TIME)
        ]
        return torch.cat(parts) if parts else torch.zeros(0, self.student.trunk.width, device=pixels.device)

    @property
    def _batchwise(self) -> bool:
        return isinstance(self.options, SelectionOptions) and self.options.selection == "batch"

    # -- parts --
    def make_optimiser(self) -> Optimiser:
        """Return a new optimiser of prompts and head."""
        options = self.options
        groups = self.student.groups(options.rate(self.setup.batch_size))
        return gradient.Optimiser(groups, options.optimiser, momentum=options.momentum, clip=options.clip)

    def make_views(self) -> Views:
        """Return how images are looked at."""
        self._vit()
        return gradient.ImageViews(self._network().transform, augmented=self.options.augment)

    def make_student(self) -> PromptedViT:
        """Return the ViT with prompts that have learned nothing."""
        vit = self._vit()
        return prompt.PromptedViT(vit, self.make_prompts(vit))

    def need_blocks(self, vit: VisionTransformer, needed: int, options: str) -> None:
        """Refuse a ViT that has fewer blocks than prompts are to enter."""
        if len(vit.blocks) < needed:
            raise IncompatibleError(
                f"its prompts enter {needed} blocks, but the ViT has {len(vit.blocks)}. Set the options {options}."
            )

    def _vit(self) -> VisionTransformer:
        from aircl.methods.gradient.adapters import need_vit

        return need_vit(self.setup.backbone, "prompts")
