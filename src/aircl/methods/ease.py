"""Expandable subspace ensemble (EASE): adapters of a ViT for each phase, and class means under all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from aircl.methods import gradient
from aircl.methods.gradient.options import Augment, StepOptions
from aircl.methods.gradient.phase_wise import PhaseWise
from aircl.methods.method import Floats, Labels, Setup
from aircl.methods.registry import register_method

if TYPE_CHECKING:
    import torch

    from aircl.methods.gradient import Rows, Student
    from aircl.methods.gradient.adapters import AdaptedViT
    from aircl.methods.gradient.views import ImageViews, Views


@dataclass(frozen=True)
class EASEOptions(StepOptions):
    """Options of EASE.

    Attributes
    ----------
    epochs : int
        Passes over a phase that train its adapters, with a rate that falls along a cosine; 0: they change nothing.
    augment : bool, "crop" or "rand"
        What is done to images in training.
    bottleneck : int
        Width of an adapter.
    alpha : float
        What the cosines under other adapters than a class's own weigh together.
    """

    learning_rate: float = 0.025
    augment: Augment = "crop"
    bottleneck: int = 64
    alpha: float = 0.1

    may_be_zero = StepOptions.may_be_zero | {"epochs", "alpha"}


@register_method("ease")
class Ease(PhaseWise):
    """EASE: adapters of a frozen ViT for every phase; cosines to class means under each of them; keeps no sample.

    The score of a class that came in phase i is its cosine under the adapters of phase i, plus alpha / (T - 1) times
    the sum of those under the other T - 1. Means of classes under adapters that came later are synthesised.

    Attributes
    ----------
    adapted : list of AdaptedViT
        One for each phase that had new classes.
    means, counts : tensor of shape (C, T, width), (C, T)
        Mean features of a class under each set of adapters, and of how many samples: 0 where it is to be synthesised.
    home : int64 tensor of shape (C,)
        The adapters that were trained when the class was new.

    Notes
    -----
    The samples of a class that is new are seen under all adapters; those of one that returns under the newest alone,
    where their mean needs no synthesis. A phase without a new class adds no adapters. A prediction costs T forward
    passes.

    References
    ----------
    .. [1] Zhou, Sun, Ye & Zhan. "Expandable Subspace Ensemble for Pre-Trained Model-Based Class-Incremental Learning."
       CVPR 2024.
    """

    consumes = "images"
    trial_backbone = "vit"
    forward_by_phase = True  # as a plan wants to know
    reason = "it trains adapters for each phase"
    Options = EASEOptions
    options: EASEOptions
    views: ImageViews

    kept = "means counts home"

    def __init__(self, setup: Setup) -> None:
        import torch

        super().__init__(setup)
        self.adapted: list[AdaptedViT] = []
        self.means = torch.zeros(0, 0, setup.n_features)
        self.counts = torch.zeros(0, 0)
        self.home = torch.zeros(0, dtype=torch.int64)

    @classmethod
    def inputs_for(cls, options: Mapping[str, Any]) -> Literal["features", "images"]:
        """Return "images"."""
        return "images"

    # -- learning --
    def train_phase(self, rows: Rows) -> None:
        """Train adapters for the classes of a phase, if some of them are new."""
        if self.n_new:
            options = self.options
            self.adapted.append(
                self._new_adapters().learn_classes(
                    rows, self.views, self.generator, augment=options.augment, epochs=options.epochs,
                    batch_size=self.setup.batch_size, kind=options.optimiser, learning_rate=options.learning_rate,
                    momentum=options.momentum,
                )
            )  # fmt: skip

    def absorb(self, rows: Rows) -> None:
        """Add samples to the means of their classes: under all adapters if these are new, else under the newest."""
        import torch

        n_classes, n_blocks = len(self.student.head.classes), len(self.adapted)
        means = torch.zeros(n_classes, n_blocks, self.setup.n_features, device=gradient.HOST)
        counts = torch.zeros(n_classes, n_blocks, device=gradient.HOST)
        means[: len(self.means), : self.means.shape[1]] = self.means
        counts[: len(self.counts), : self.counts.shape[1]] = self.counts
        self.home = torch.cat([self.home, torch.full((self.n_new,), n_blocks - 1, device=gradient.HOST)])
        features = torch.from_numpy(self.features(gradient.to_array(rows["inputs"])))
        columns = gradient.send(self.student.head.columns(rows["labels"]), gradient.HOST)
        for column in sorted(set(columns.tolist())):
            blocks = slice(0 if column >= self.n_old else n_blocks - 1, n_blocks)
            own = features[columns == column, blocks]
            before, counts[column, blocks] = counts[column, blocks].clone(), counts[column, blocks] + len(own)
            total = before[:, None] * means[column, blocks] + own.sum(0)
            means[column, blocks] = total / counts[column, blocks, None]
        self.means, self.counts = means, counts

    def prototypes(self) -> torch.Tensor:
        """Return a vector for each class under each set of adapters, shape (C, T, width), synthesised where unknown.

        A class with home i that is unknown under adapters j is a mixture of the classes that are known under both,
        their means under j weighed by the softmax of their cosines with it under i. It is 0 while there is none.
        """
        from torch.nn.functional import normalize

        known, vectors = self.counts > 0, self.means.clone()
        unit = normalize(self.means, dim=2)
        for j in range(len(self.adapted)):
            for i in range(j):
                wanted, given = (self.home == i) & ~known[:, j], known[:, i] & known[:, j]
                if wanted.any() and given.any():
                    shares = (unit[wanted, i] @ unit[given, i].T).softmax(1)
                    vectors[wanted, j] = shares @ self.means[given, j]
        return vectors

    # -- predicting --
    def features(self, encoded: Any) -> Floats:
        """Return the features under each set of adapters, shape (n, T, width)."""
        import torch

        def see(views: torch.Tensor) -> torch.Tensor:
            views = gradient.send(views, self.student.head.weight.device)
            return torch.stack([adapted(views) for adapted in self.adapted], dim=1)

        return self._in_parts(see, encoded, 0)

    def logits(self, encoded: Any) -> Floats:
        """Return the scores of shape (n, C), in the order in which classes came."""
        import torch
        from torch.nn.functional import normalize, one_hot

        n_blocks = len(self.adapted)
        own = one_hot(self.home, n_blocks).float()
        weights = own + (1 - own) * self.options.alpha / max(1, n_blocks - 1)
        prototypes = normalize(self.prototypes(), dim=2) * weights[..., None]
        if not len(encoded):
            return gradient.to_array(prototypes.new_zeros(0, len(prototypes)))
        unit = normalize(torch.from_numpy(self.features(encoded)), dim=2)
        return gradient.to_array(unit.flatten(1) @ prototypes.flatten(1).T)

    def scores(self, encoded: Any) -> tuple[Labels, Floats] | None:
        """Return None: cosines are no probabilities."""
        return None

    def weight_norms(self) -> tuple[Labels, Floats] | None:
        """Return None: directions have no length."""
        return None

    # -- stopping and going on --
    def get_state(self) -> dict[str, Any]:
        """Return adapters and means."""
        return {**super().get_state(), "adapted": [dict(one.state_dict()) for one in self.adapted]}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on with adapters and means."""
        super().set_state(state)
        drawn = self.generator.get_state()
        self.adapted = [self._new_adapters().eval().requires_grad_(False) for _ in state["adapted"]]
        self.generator.set_state(drawn)
        for one, weights in zip(self.adapted, state["adapted"], strict=True):
            one.load_state_dict(weights)

    # -- parts --
    def _new_adapters(self) -> AdaptedViT:
        from aircl.methods.gradient.adapters import AdaptedViT, need_vit

        vit = need_vit(self.setup.backbone, "adapters")
        return AdaptedViT(vit, self.generator, self.options.bottleneck).to(self.student.head.weight.device)

    def make_views(self) -> Views:
        """Return how images are looked at."""
        from aircl.methods.gradient.adapters import need_vit

        need_vit(self.setup.backbone, "adapters")
        return gradient.ImageViews(self._network().transform, augmented=self.options.augment)

    def make_student(self) -> Student:
        """Return a head that knows which classes there are, and nothing else."""
        return gradient.Student(0)
