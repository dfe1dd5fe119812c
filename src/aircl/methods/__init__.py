"""The benchmark's learners, one per file, behind one small protocol."""

from aircl.methods.method import Hints, IncompatibleError, Method, Range, Setup
from aircl.methods.phase_collector import PhaseCollector
from aircl.methods.registry import (
    METHODS,
    MethodInfo,
    create_method,
    describe_method,
    list_methods,
    register_method,
    resolve_options,
)

__all__ = [
    "METHODS",
    "Hints",
    "IncompatibleError",
    "Method",
    "MethodInfo",
    "PhaseCollector",
    "Range",
    "Setup",
    "create_method",
    "describe_method",
    "list_methods",
    "register_method",
    "resolve_options",
]
