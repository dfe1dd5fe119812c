"""Exact, additive statistics and the closed-form solution: AIR without files or estimators."""

from aircl.engine.air import PerClass
from aircl.engine.calibration import ExpectedAccuracy
from aircl.engine.gamma import GammaPath
from aircl.engine.learner import Learner, Rule
from aircl.engine.ledger import Ledger, LedgerError, LedgerWarning
from aircl.engine.means import Shared
from aircl.engine.pooled import Pooled
from aircl.engine.ridge import GammaMemory, Ridge, RidgeSolution
from aircl.engine.solve import Solution
from aircl.engine.space import Space, StoreError
from aircl.engine.state import State
from aircl.engine.statistics import Statistics

STORES: dict[str, type[Statistics]] = {store.name: store for store in (Pooled, PerClass, Shared)}

__all__ = [
    "STORES",
    "ExpectedAccuracy",
    "GammaMemory",
    "GammaPath",
    "Learner",
    "Ledger",
    "LedgerError",
    "LedgerWarning",
    "Ridge",
    "RidgeSolution",
    "Rule",
    "Solution",
    "Space",
    "State",
    "Statistics",
    "StoreError",
]
