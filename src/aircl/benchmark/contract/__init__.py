"""The contract every method of the benchmark has to keep, as laws that are tried out on real digits."""

from aircl.benchmark.contract.check import CHECKS, Finding, check_method
from aircl.benchmark.contract.module import load_method_class, load_method_file

__all__ = ["CHECKS", "Finding", "check_method", "load_method_class", "load_method_file"]
