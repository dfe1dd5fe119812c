"""The `pooled` store (Algorithm 1): one matrix for all closed phases, exact when phases share no class."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from aircl.engine.air import ClassMoments
from aircl.engine.backend import Array
from aircl.engine.problem import weighted_within_class_covariance
from aircl.engine.space import StoreError
from aircl.engine.statistics import ByClass, Symmetric, declare

# Folded with smaller or larger weights, second moments would leave the range of float32.
WEIGHTS = (1e-20, 1e20)


@dataclass(frozen=True, eq=False)
class Pooled(ClassMoments):
    """The open phase class by class; the closed ones folded into sum_y pi_y A_y.

    Memory f^2 + C f numbers, plus the open phase. The weight of a closed class is fixed, so a class cannot return.
    """

    name: ClassVar[str] = "pooled"
    own_moments: ClassVar[None] = None
    weighs_scatter: ClassVar[bool] = True
    cannot_forget = "store='pooled' cannot forget. Use store='per-class' to forget rows or whole classes."

    folded: Array = declare(Symmetric("folded"))  # (f, f) sum_y pi_y A_y over the classes of closed phases, lower
    folded_pi: Array = declare(ByClass("folded_pi", share=0))  # (C,) the weights in it; 0 while a class is open

    def check_update(self, slots: Array) -> None:
        """Refuse classes of closed phases."""
        known = slots[slots < self.n_classes]
        if np.any(self.folded_pi[known] != 0):
            raise StoreError(
                "store='pooled' has folded a closed phase and cannot take more samples of its classes. "
                "Use store='per-class' (exact) or store='shared' (small) when classes return in later phases."
            )

    def closed_phase(self, pi: Array) -> Self:
        """Fold the open phase: sum_y pi_y A_y of its classes joins that of the closed ones."""
        is_open = self.folded_pi == 0
        new = pi[is_open]
        if not np.all((new >= WEIGHTS[0]) & (new <= WEIGHTS[1])):
            raise StoreError(
                f"store='pooled' cannot fold a class of weight {new.min():g}. Give every class a weight between "
                f"{WEIGHTS[0]:g} and {WEIGHTS[1]:g}."
            )
        return dataclasses.replace(
            self,
            folded=self.gram(pi),
            folded_pi=np.where(is_open, pi, self.folded_pi),
            moments=self.moments.taken(np.full(self.n_classes, -1)),
        )

    def gram(self, pi: Array) -> Array:
        """Return sum_y pi_y A_y, shape (f, f), lower; closed classes must weigh what they were folded with.

        One factor for all of them is fine: it is taken out of the sum.
        """
        closed = self.folded_pi != 0
        if not closed.any():
            return super().gram(pi)
        ratio = pi[closed] / self.folded_pi[closed]
        if not np.allclose(ratio, ratio[0], rtol=1e-9, atol=0.0) or ratio[0] == 0:
            raise StoreError(
                "store='pooled' has folded closed phases with other class weights. Set weighting= back to what it "
                "was, or learn again from the start."
            )
        G = super().gram(pi)
        G += self.folded if ratio[0] == 1.0 else self.folded * float(ratio[0])
        return G

    def within_class_covariance(self, pi: Array, G: Array) -> Array:
        """Return the mean of the class covariances under the weights pi: all that the folded sum G still tells."""
        return weighted_within_class_covariance(G, self.sums, pi, self.count)

    def check_merge(self, slots: Array) -> None:
        """Refuse to merge classes that are here already."""
        if np.any(slots < self.n_classes):
            raise StoreError(
                "store='pooled' can only merge learners that share no class. "
                "Use store='per-class' or store='shared' to merge overlapping classes."
            )
