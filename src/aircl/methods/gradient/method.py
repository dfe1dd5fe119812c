"""What all gradient methods share: when they learn, from what, and how they stop and go on."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import asdict
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from aircl.inputs import Batch
from aircl.methods import gradient
from aircl.methods.gradient.options import StepOptions, TrainingOptions
from aircl.methods.gradient.stateful import Stateful
from aircl.methods.method import Floats, IncompatibleError, Labels, Method, Setup

if TYPE_CHECKING:
    import torch

    from aircl.methods.gradient import GrowingHead, Optimiser, Rows, Student
    from aircl.methods.gradient.views import Views
    from aircl.scenarios import Phase

# Rows that are predicted at a time: of features, and of images.
FEATURES_AT_A_TIME, IMAGES_AT_A_TIME = 4096, 256


class GradientMethod(Stateful, Method):
    """A network trained by gradient steps, on every batch as it comes (online) or on each phase when it ends.

    A method says what is special about it by overriding some of: `loss`, `criterion`, `adjusted`, `step`, `accompany`,
    `material`, `absorb`, `close_phase`, `train_phase`, `rate_share`; and names in `kept` what it keeps beside network,
    optimiser and random state.

    Attributes
    ----------
    Options : type
        Its options, a dataclass; `options` are those in force.
    generator : torch.Generator
        Everything random is drawn from it.
    student : Student
        The network, on the device of the backbone or, without one, of the setup.
    optimiser : Optimiser or None
        Of the stream if it is online; else of the phase that is being trained on.
    renews_optimiser : bool
        Whether every phase begins with a new optimiser; else there is one for all.

    Notes
    -----
    In a stream with phases, batches are collected until the phase ends, trained on for several epochs, and let go of.
    `samples_kept` counts what is kept beyond that: the memory. An online method trains on a batch when it comes and
    keeps nothing but its memory.
    """

    Options: ClassVar[type[StepOptions]] = TrainingOptions
    options: StepOptions
    renews_optimiser: ClassVar[bool] = True

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        if find_spec("torch") is None:
            raise IncompatibleError("it is trained with torch, which is not installed: pip install 'aircl[torch]'.")
        import torch

        self.options = self.Options.resolve(setup.options, online=setup.online)
        self.generator = torch.Generator().manual_seed(setup.seed)
        self.views: Views = self.make_views()
        self.student: Student = self.new_student()
        self.optimiser: Optimiser | None = self.make_optimiser() if setup.online else None
        # Columns of the logits that samples are told from; None: all.
        self.compared: torch.Tensor | None = None
        self._open: list[Rows] = []

    @classmethod
    def resolve_options(cls, options: Mapping[str, Any], *, online: bool) -> dict[str, Any]:
        """Return all options with their values; those that there are not are errors."""
        return asdict(cls.Options.resolve(options, online=online))

    @classmethod
    def inputs_for(cls, options: Mapping[str, Any]) -> Literal["features", "images"]:
        """Return "images" if the backbone is trained or images are augmented, else "features"."""
        return "images" if _training(cls.Options.resolve(options, online=False)).on_images else "features"

    # -- what makes a method --
    def loss(self, batch: Rows) -> torch.Tensor:
        """Return what a step makes smaller, for samples of the stream and what accompanies them."""
        views = self.views.training(batch["inputs"], self.generator)
        return self.criterion(self.student(views), batch["labels"], views)

    def criterion(self, logits: torch.Tensor, labels: torch.Tensor, views: torch.Tensor) -> torch.Tensor:
        """Return the loss of logits, shape (n, C), for samples with these labels: the cross-entropy."""
        return self.cross_entropy(logits, labels)

    def cross_entropy(self, logits: torch.Tensor, labels: torch.Tensor, reduction: str = "mean") -> torch.Tensor:
        """Return the cross-entropy of logits, shape (n, C), as they are compared in training."""
        from torch.nn.functional import cross_entropy

        return cross_entropy(self.adjusted(logits), self.student.head.columns(labels), reduction=reduction)

    def adjusted(self, logits: torch.Tensor) -> torch.Tensor:
        """Return logits as they are compared in training: those of classes that are not are minus infinity."""
        return gradient.mask_logits(logits, self.compared)

    def rate_share(self, epoch: int) -> float:
        """Return the share of the learning rate in an epoch of a phase, counted from 0."""
        return 1.0

    def accompany(self, rows: Rows) -> Rows:
        """Return what a step is made with: samples of the stream, and perhaps some of a memory."""
        return rows

    def material(self, rows: Rows) -> Rows:
        """Return what the epochs of a phase pass over: its samples, and perhaps others."""
        return rows

    def absorb(self, rows: Rows) -> None:
        """Keep what is to be kept of samples that were trained on: a batch if online, else a phase."""

    def close_phase(self) -> None:
        """Do what is done when a phase is over, after `absorb`; online, only if the method `uses_phase_ends`."""

    # -- learning --
    def learn(self, inputs: Batch, labels: Labels) -> None:
        """Train on a batch if the stream is online; else note it for the end of the phase."""
        if not len(labels):
            return
        rows = self.rows(inputs, labels)
        if not self.setup.online:
            self._open.append(rows)
            return
        self.meet(rows)
        for _ in range(self.options.updates):
            self.update(self.accompany(rows))
        self.absorb(rows)

    def end_phase(self, phase: Phase) -> None:
        """Train on the phase that was collected, and let go of it."""
        rows, self._open = gradient.join(self._open), []
        if gradient.count(rows):
            self.meet(rows)
            if getattr(self.options, "compare", "exposed") == "phase":
                self.compared = self.student.head.columns(rows["labels"])
            self.train_phase(rows)
            self.compared = None
            if self.renews_optimiser:
                self.optimiser = None
            self.absorb(rows)
        self.close_phase()

    def train_phase(self, rows: Rows) -> None:
        """Train on the samples of a phase."""
        self.optimiser = self.optimiser or self.make_optimiser()
        self.pass_over(self.material(rows), self.options.epochs, self.rate_share)

    def rows(self, inputs: Batch, labels: Labels) -> Rows:
        """Return a batch as tensors of its own."""
        import torch

        return {
            "inputs": self.views.tensor(inputs),
            "labels": torch.tensor(np.asarray(labels, np.int64), device=gradient.HOST),
        }

    def meet(self, rows: Rows) -> None:
        """Make room for classes that are new."""
        self.student.head.grow(rows["labels"].tolist())
        if self.optimiser is not None:
            self.optimiser.adapt()

    def pass_over(
        self,
        rows: Rows,
        epochs: int,
        share: Callable[[int], float],
        *,
        accompanied: bool = True,
        balanced: bool = False,
    ) -> None:
        """Train on samples, in another order in every epoch, in batches as equal in size as can be.

        Parameters
        ----------
        rows : Rows
        epochs : int
        share : callable
            From an epoch to its share of the learning rate.
        accompanied : bool, default=True
            Whether batches are accompanied by samples of a memory.
        balanced : bool, default=False
            Draw as many samples of one class as of another, in all as many as there are; else each sample once.
        """
        import torch

        assert self.optimiser is not None
        n = gradient.count(rows)
        for epoch in range(epochs):
            self.optimiser.scale(share(epoch))
            if balanced:
                order = gradient.balanced_places(rows["labels"], n, self.generator)
            else:
                order = torch.randperm(n, generator=self.generator)
            for places in order.tensor_split(ceil(n / self.setup.batch_size)):
                batch = gradient.take(rows, places)
                self.update(self.accompany(batch) if accompanied else batch)

    def update(self, batch: Rows) -> None:
        """Make one step."""
        assert self.optimiser is not None
        self.optimiser.compute_gradients(self.loss(batch))
        self.step(self.optimiser)

    def step(self, optimiser: Optimiser) -> None:
        """Move what is trained, once its gradients are known."""
        optimiser.step()

    # -- predicting --
    def encode(self, inputs: Batch) -> Any:
        """Return float32 features, or uint8 pixels of the size that the network takes."""
        return gradient.to_array(self.views.tensor(inputs))

    def predict(self, encoded: Any) -> Labels:
        """Return the class of the highest logit; before anything was trained on, one that was seen."""
        classes = self.student.head.classes
        if not classes:
            return self._first_guess(len(encoded))
        predicted: Labels = np.array(classes, np.int64)[self.logits(encoded).argmax(1)]
        return predicted

    def scores(self, encoded: Any) -> tuple[Labels, Floats] | None:
        """Return probabilities: the softmax of the logits."""
        classes = np.array(self.student.head.classes, np.int64)
        order = np.argsort(classes)
        # In float64 no two logits that differ have the same share.
        logits = self.logits(encoded)[:, order].astype(np.float64)
        shares = np.exp(logits - logits.max(axis=1, keepdims=True, initial=-np.inf)) if len(order) else logits
        return classes[order], shares / shares.sum(axis=1, keepdims=True)

    def probabilities(self, inputs: Batch) -> tuple[Labels, Floats] | None:
        """Return the softmax of what it predicts by; None before anything was trained on, or without a softmax."""
        return self.scores(self.encode(inputs)) if self.student.head.classes else None

    def weight_norms(self) -> tuple[Labels, Floats] | None:
        """Return the norm of each class's row of the head."""
        classes = np.array(self.student.head.classes, np.int64)
        order = np.argsort(classes)
        return classes[order], np.linalg.norm(gradient.to_array(self.student.head.weight), axis=1)[order]

    def logits(self, encoded: Any) -> Floats:
        """Return logits of shape (n, C), in the order in which classes came."""
        return self._in_parts(self.student, encoded, len(self.student.head.classes))

    def features(self, encoded: Any) -> Floats:
        """Return the features below the head, shape (n, width)."""
        return self._in_parts(self.student.features, encoded, self.setup.n_features)

    def look(self, rows: Rows) -> tuple[torch.Tensor, torch.Tensor]:
        """Return features and logits of samples as they are; call it without gradients."""
        features = self.student.features(self.views.plain(rows["inputs"]))
        return features, self.student.head(features)

    def _in_parts(self, network: Any, encoded: Any, width: int) -> Floats:
        import torch

        size = FEATURES_AT_A_TIME if encoded.ndim == 2 else IMAGES_AT_A_TIME
        with torch.inference_mode():
            rows = torch.tensor(encoded, device=gradient.HOST)
            parts = [gradient.to_array(network(self.views.plain(part))) for part in gradient.pieces(rows, size)]
        return np.concatenate(parts) if parts else np.zeros((0, width), np.float32)

    def _first_guess(self, n: int) -> Labels:
        """Return a class of the open phase, which was not trained on yet, n times."""
        if n and not self._open:
            raise ValueError("it has learned nothing yet, so there is no class that it could predict.")
        return np.full(n, int(self._open[0]["labels"][0]) if n else 0, np.int64)

    # -- stopping and going on --
    def save(self, directory: Path) -> None:
        """Write network, optimiser, random state, the open phase and what the method keeps."""
        from aircl.methods.gradient.state import write_state

        write_state(
            directory,
            {
                "student": self.student.state(),
                "optimiser": None if self.optimiser is None else self.optimiser.state(),
                "generator": self.generator.get_state(),
                "flip": getattr(self.views, "flip", None),
                "open": gradient.join(self._open),
                "own": self.get_state(),
            },
        )

    def restore(self, directory: Path) -> None:
        """Read what `save` wrote."""
        from aircl.methods.gradient.state import read_state

        state = read_state(directory)
        self.student.restore(state["student"])
        if state["optimiser"] is not None:
            self.optimiser = self.optimiser or self.make_optimiser()
            self.optimiser.restore(state["optimiser"])
        self.generator.set_state(state["generator"])
        if isinstance(self.views, gradient.ImageViews):
            self.views.flip = state["flip"]
        self._open = [state["open"]] if gradient.count(state["open"]) else []
        self.set_state(state["own"])

    # -- parts --
    def make_optimiser(self) -> Optimiser:
        """Return a new optimiser of what is trained."""
        options = _training(self.options)
        groups = self.student.groups(options.learning_rate, options.backbone_rate)
        return gradient.Optimiser(groups, options.optimiser, momentum=options.momentum)

    def make_views(self) -> Views:
        """Return how samples are looked at."""
        options = _training(self.options)
        if not options.on_images:
            return gradient.FeatureViews()
        return gradient.ImageViews(self._network().transform, augmented=options.augment or False)

    def new_student(self) -> Student:
        """Return a network that has learned nothing, where it is to compute."""
        from aircl.backbones.device import choose_device
        from aircl.backbones.network import Network

        backbone = self.setup.backbone
        device = backbone.device if isinstance(backbone, Network) else choose_device(self.setup.device)
        return self.make_student().to(device)

    def make_student(self) -> Student:
        """Return a network that has learned nothing."""
        options = _training(self.options)
        if not options.on_images:
            return gradient.Student(self.setup.n_features, head=self.make_head())
        # A copy: what the backbone of the setup is to other methods must not change.
        trunk = copy.deepcopy(self._network().module)
        return gradient.Student(self.setup.n_features, trunk, trained=options.unfreeze, head=self.make_head())

    def make_head(self) -> GrowingHead:
        """Return a head without classes."""
        return gradient.GrowingHead(self.setup.n_features)

    def _network(self) -> Any:
        from aircl.backbones.network import Network

        backbone = self.setup.backbone
        if not isinstance(backbone, Network):
            name = "none" if backbone is None else repr(backbone.name)
            raise IncompatibleError(
                f"to train on images it needs a backbone that is a network, such as base:resnet32; it got {name}."
            )
        return backbone


def _training(options: StepOptions) -> TrainingOptions:
    """Return the options of a method that leaves views, network and optimiser as they are here."""
    assert isinstance(options, TrainingOptions)
    return options
