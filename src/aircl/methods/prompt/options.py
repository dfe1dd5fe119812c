"""Options of prompt methods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from aircl.methods.gradient.options import Augment, StepOptions


@dataclass(frozen=True)
class PromptOptions(StepOptions):
    """Options that all prompt methods have.

    Attributes
    ----------
    rate_batch : int or None
        The learning rate is meant for batches of so many samples, and falls in proportion with smaller ones; None: it
        is what it is.
    clip : float or None
        Longest gradient.
    augment : bool, "crop" or "rand"
        What is done to images in training: they are moved and mirrored (true), cut out at random and mirrored ("crop",
        as L2P was published), or go through RandAugment ("rand"). Queries are those of the images as they are,
        computed once.
    compare : {"phase", "exposed"}
        Which classes a sample is told from: those of its phase, so that no other row of the head is trained, or all
        that were seen. In an online stream all, as it shows no phases.
    """

    epochs: int = 5
    optimiser: Literal["sgd", "adam"] = "adam"
    learning_rate: float = 0.03
    rate_batch: int | None = 256
    clip: float | None = 1.0
    augment: Augment = False
    compare: Literal["phase", "exposed"] = "phase"

    online: ClassVar[Mapping[str, Any]] = {
        "learning_rate": 5e-3,
        "rate_batch": None,
        "clip": None,
        "compare": "exposed",
    }

    def rate(self, batch_size: int) -> float:
        """Return the learning rate for batches of a size."""
        return self.learning_rate * (1.0 if self.rate_batch is None else batch_size / self.rate_batch)


@dataclass(frozen=True)
class PoolOptions(PromptOptions):
    """Options of methods that choose from a pool of prompts.

    Attributes
    ----------
    pool : int
        Number of prompts.
    key_loss : float
        Weight of the loss that draws chosen keys to their queries.
    """

    pool: int = 10
    key_loss: float = 0.5

    may_be_zero = PromptOptions.may_be_zero | {"key_loss"}


@dataclass(frozen=True)
class SelectionOptions(PoolOptions):
    """Options of methods that choose for a sample, or for a whole batch.

    Attributes
    ----------
    selection : {"sample", "batch"}
        Every sample has the prompts that are nearest to it; or a batch has those that most of its samples are nearest
        to. That holds for test samples as well, so with "batch" each prediction leaks from the others of its batch.
    """

    selection: Literal["sample", "batch"] = "sample"


@dataclass(frozen=True)
class DualOptions(PoolOptions):
    """Options of methods with general and expert prompts.

    Attributes
    ----------
    form : {"prefix", "prompt"}
        Prompts are keys and values of a block's attention, or tokens that enter the block and are dropped behind it.
    general_blocks, general_length : int
        How many blocks have general prompts, from the first on, and their length.
    expert_blocks, expert_length : int
        The same of expert prompts, in the blocks that follow.
    """

    key_loss: float = 1.0
    form: Literal["prefix", "prompt"] = "prefix"
    general_blocks: int = 2
    general_length: int = 5
    expert_blocks: int = 3
    expert_length: int = 5

    online: ClassVar[Mapping[str, Any]] = {**PromptOptions.online, "form": "prompt", "expert_length": 20}
