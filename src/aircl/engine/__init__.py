"""Exact, additive statistics and the closed-form solution: AIR without labels, files or estimators."""

from aircl.engine.gamma import GammaPath
from aircl.engine.learner import Learner, Rule, Solution
from aircl.engine.per_class import PerClass
from aircl.engine.pooled import Pooled
from aircl.engine.ridge import GammaMemory, Ridge, RidgeSolution
from aircl.engine.shared import Shared
from aircl.engine.statistics import Statistics, StoreError

STORES: dict[str, type[Statistics]] = {store.name: store for store in (Pooled, PerClass, Shared)}

__all__ = [
    "STORES",
    "GammaMemory",
    "GammaPath",
    "Learner",
    "Ridge",
    "RidgeSolution",
    "Rule",
    "Solution",
    "Statistics",
    "StoreError",
]
