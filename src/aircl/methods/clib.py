"""Continual learning for i-Blurry (CLIB)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from aircl.methods.gradient.options import ReplayOptions
from aircl.methods.gradient.rehearsal import Rehearsal
from aircl.methods.gradient.stateful import Stateful
from aircl.methods.method import Setup
from aircl.methods.registry import register_method

if TYPE_CHECKING:
    from aircl.methods.gradient import ImportanceMemory, Rows

# Falls of the loss that are compared for each of two rates, and the ratio of these.
RECORDS, STEP = 10, 0.95


@dataclass(frozen=True)
class CLIBOptions(ReplayOptions):
    """Options of CLIB.

    Attributes
    ----------
    replay : int
        Samples of the memory in a step, which has no others.
    measure_every : int
        Steps between measurements of the loss of the whole memory.
    rate : {"constant", "adaptive"}
        Whether the learning rate follows the falls of that loss.
    """

    policy: Literal["clib"] = "clib"  # its memory is what makes it
    measure_every: int = 1
    rate: Literal["constant", "adaptive"] = "constant"
    replay: int = 64


class AdaptiveRate(Stateful):
    """A learning rate that is tried against one 5 % lower, ten measurements in turn, and moves to the better one.

    Attributes
    ----------
    base : float
        The higher of the two rates, as a share of the first.

    Examples
    --------
    >>> from aircl.methods.clib import AdaptiveRate
    >>> rate = AdaptiveRate()
    >>> for step in range(20):  # the loss falls faster at the lower rate
    ...     rate.note(0.1 + 0.01 * (step % 3) + (rate.share < 1))
    >>> rate.base, rate.share
    (0.95, 0.95)
    """

    kept = "base _falls _measured"

    def __init__(self) -> None:
        self.base = 1.0
        self._falls: list[list[float]] = [[], []]
        self._measured = 0

    @property
    def share(self) -> float:
        """The rate to be used now, as a share of the first."""
        return self.base * (STEP if self._measured // RECORDS % 2 else 1.0)

    def note(self, fall: float) -> None:
        """Take notice of how far the loss fell by the present rate; Welch's t test at 5 % decides."""
        from scipy.stats import ttest_ind

        record = self._falls[self._measured // RECORDS % 2]
        record.append(fall)
        del record[:-RECORDS]
        self._measured += 1
        high, low = self._falls
        if len(high) == len(low) == RECORDS:
            test = ttest_ind(low, high, equal_var=False)
            if test.pvalue < 0.05:
                self.base *= STEP if test.statistic > 0 else 1 / STEP
                self._falls = [[], []]


@register_method("clib")
class CLIB(Rehearsal):
    """CLIB: every sample enters a class-balanced memory of important samples, and training is on that memory alone.

    References
    ----------
    .. [1] Koh et al. "Online Continual Learning on Class Incremental Blurry Task Configuration with Anytime Inference."
       ICLR 2022.
    """

    Options = CLIBOptions
    options: CLIBOptions
    memory: ImportanceMemory

    kept = "rate"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.rate = AdaptiveRate()

    def shares(self, stream: float, replayed: float) -> tuple[float, float]:
        """Return that the memory is all."""
        return 0.0, 1.0

    def meet(self, rows: Rows) -> None:
        """Take new samples into the memory before anything is trained."""
        super().meet(rows)
        self.memory.add(rows, self.generator)

    def absorb(self, rows: Rows) -> None:
        """Do nothing: the samples are in memory already."""

    def accompany(self, rows: Rows) -> Rows:
        """Return samples of the memory in place of those of the stream."""
        return self.drawn()

    def update(self, batch: Rows) -> None:
        """Make one step, with the rate that is tried now."""
        assert self.optimiser is not None
        adaptive, memory = self.options.rate == "adaptive", self.memory
        if adaptive:
            self.optimiser.scale(self.rate.share)
        memory.fall = None
        super().update(batch)
        if adaptive and memory.fall is not None:
            self.rate.note(memory.fall)
