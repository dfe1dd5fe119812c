"""Exact, additive statistics and the closed-form solution: AIR without labels, files or estimators."""

from aircl.engine.gamma import GammaPath
from aircl.engine.learner import STORES, Learner, Rule, Solution
from aircl.engine.statistics import Statistics, StoreError

__all__ = ["STORES", "GammaPath", "Learner", "Rule", "Solution", "Statistics", "StoreError"]
