"""Feature expansions: the buffer between a frozen backbone and the analytic classifier."""

from aircl.expansion.auto import AutoBuffer
from aircl.expansion.gaussian import GaussianKernel
from aircl.expansion.random_relu import RandomReLU

__all__ = ["AutoBuffer", "GaussianKernel", "RandomReLU"]
