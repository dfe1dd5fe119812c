"""Rehearsal: every batch is accompanied by samples of a memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import ceil
from typing import TYPE_CHECKING, Any

from aircl.methods import gradient
from aircl.methods.gradient.method import GradientMethod
from aircl.methods.method import Setup

if TYPE_CHECKING:
    import torch

    from aircl.methods.gradient import Memory, Optimiser, Rows
    from aircl.methods.gradient.prior import Counts

# Samples of a memory that are looked at in one piece.
AT_A_TIME = 1024


class Rehearsal(GradientMethod):
    """A gradient method with a memory, alone or in front of another one.

    Its options have `replay` and those of `AdjustOptions`; `memory`, `policy` and `draw` too, unless it makes a memory
    of another kind.
    """

    options: Any
    kept = "memory window"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.memory = self.make_memory()
        self.window = gradient.LabelWindow(self.options.window)
        # Of a pass over known samples: how often each class is met.
        self._expected: Counts = {}
        # Of a step: what each sample weighs in the cross-entropy; None: all the same.
        self._weights: torch.Tensor | None = None

    def make_memory(self) -> Memory:
        """Return an empty memory, with the size and by the policy that the options say."""
        return gradient.make_memory(self.options, self.directions, self.losses)

    @property
    def samples_kept(self) -> int:
        """The samples in memory."""
        return len(self.memory)

    @property
    def n_replayed(self) -> int:
        """Samples of the memory beside every batch."""
        replay: int = self.options.replay
        return replay

    def shares(self, stream: float, replayed: float) -> tuple[float, float] | None:
        """Return what the samples of both kinds weigh together, given their numbers; None: what they count."""
        return None

    # -- training --
    def accompany(self, rows: Rows) -> Rows:
        """Add samples of the memory, others at every step; "slot" is their place in memory, -1 for the stream's."""
        import torch

        rows = {**rows, "slot": torch.full_like(rows["labels"], -1)}
        return gradient.join([rows, self.drawn()]) if self.n_replayed else rows

    def drawn(self) -> Rows:
        """Return samples of the memory for one step."""
        balanced = getattr(self.options, "draw", "uniform") == "balanced"
        return self.memory.draw(self.n_replayed, self.generator, balanced=balanced)

    def update(self, batch: Rows) -> None:
        """Make one step, and let the memory know of it."""
        self._weights = self._weigh(batch)
        if self.options.adjust == "las" and not self._expected:
            self.window.note(batch["labels"].tolist(), None if self._weights is None else self._weights.tolist())
        super().update(batch)
        self.memory.follow(batch)

    def cross_entropy(self, logits: torch.Tensor, labels: torch.Tensor, reduction: str = "mean") -> torch.Tensor:
        """Return the cross-entropy, in which samples of stream and memory may weigh differently."""
        if self._weights is None or reduction == "none":
            return super().cross_entropy(logits, labels, reduction)
        return super().cross_entropy(logits, labels, "none") @ gradient.send(self._weights, logits.device)

    def adjusted(self, logits: torch.Tensor) -> torch.Tensor:
        """Return logits as they are compared in training, with the logarithms of classes' shares if asked for."""
        logits = super().adjusted(logits)
        counts = self._expected or self.window.counts()
        if self.options.adjust == "none" or not self.options.tau or not counts:
            return logits
        prior = self.options.tau * gradient.log_prior(counts, self.student.head.classes)
        return logits + gradient.send(prior, logits.device)

    def pass_over(
        self,
        rows: Rows,
        epochs: int,
        share: Callable[[int], float],
        *,
        accompanied: bool = True,
        balanced: bool = False,
    ) -> None:
        """Train on samples; how often each class will be met is known."""
        if self.options.adjust == "las":
            self._expected = self.expected_counts(rows, accompanied=accompanied, balanced=balanced)
        super().pass_over(rows, epochs, share, accompanied=accompanied, balanced=balanced)
        self._expected = {}

    def pass_again(
        self,
        rows: Rows,
        epochs: int,
        share: Callable[[int], float],
        optimiser: Optimiser,
        *,
        balanced: bool = False,
    ) -> None:
        """Train on samples by themselves, with an optimiser of its own: of all parameters, or of some."""
        stream, self.optimiser = self.optimiser, optimiser
        self.pass_over(rows, epochs, share, accompanied=False, balanced=balanced)
        self.optimiser = stream

    def expected_counts(self, rows: Rows, *, accompanied: bool = True, balanced: bool = False) -> Counts:
        """Return what each class weighs in the mean step of a pass over samples."""
        n, evenly = gradient.count(rows), getattr(self.options, "draw", "uniform") == "balanced"
        stream = n / ceil(n / self.setup.batch_size)
        held = min(self.n_replayed, len(self.memory)) if accompanied else 0
        weights = (self.shares(stream, held) if held else None) or (stream, held)
        counts: dict[int, float] = {}
        for weight, part, equal in zip(weights, (rows, self.memory.rows), (balanced, evenly), strict=True):
            members = gradient.by_class(part) if weight else {}
            for label, places in members.items():
                share = 1 / len(members) if equal else len(places) / gradient.count(part)
                counts[label] = counts.get(label, 0.0) + weight * share
        return counts

    def absorb(self, rows: Rows) -> None:
        """Offer the samples to the memory, with all that is known of them."""
        super().absorb(rows)
        self.memory.add(rows, self.generator)

    # -- what policies want to know of samples --
    def losses(self, rows: Rows) -> torch.Tensor:
        """Return the cross-entropy of each sample as the network is now, shape (n,)."""
        import torch
        from torch.nn.functional import cross_entropy

        with torch.no_grad():
            parts = [
                cross_entropy(self.look(part)[1], self.student.head.columns(part["labels"]), reduction="none")
                for part in _in_pieces(rows)
            ]
        return gradient.send(torch.cat(parts), rows["labels"].device)

    def directions(self, rows: Rows) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the two factors of each sample's gradient by the head, (p - y) and (x, 1), at length 1."""
        import torch
        from torch.nn.functional import normalize, one_hot

        errors, inputs = [], []
        with torch.no_grad():
            for part in _in_pieces(rows):
                features, logits = self.look(part)
                truth = one_hot(self.student.head.columns(part["labels"]), logits.shape[1])
                errors.append(normalize(logits.softmax(1) - truth))
                inputs.append(normalize(torch.cat([features, torch.ones_like(features[:, :1])], dim=1)))
        near = rows["labels"].device
        return gradient.send(torch.cat(errors), near), gradient.send(torch.cat(inputs), near)

    def _weigh(self, batch: Rows) -> torch.Tensor | None:
        """Return what each sample of a step weighs, or None."""
        import torch

        if "slot" not in batch:
            return None
        replayed = batch["slot"] >= 0
        held = int(replayed.sum())
        stream = len(replayed) - held
        shares = self.shares(stream, held) if held and stream else None
        return None if shares is None else torch.where(replayed, shares[1] / held, shares[0] / stream)


def _in_pieces(rows: Rows) -> Iterator[Rows]:
    for start in range(0, gradient.count(rows), AT_A_TIME):
        yield {name: tensor[start : start + AT_A_TIME] for name, tensor in rows.items()}
