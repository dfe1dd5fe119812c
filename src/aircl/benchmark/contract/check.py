"""The contract, applied to one method: law after law, whatever happens in any of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from threadpoolctl import threadpool_limits

from aircl.backbones.backbone import BackboneError
from aircl.benchmark.contract.exam import Exam
from aircl.benchmark.contract.laws import LAWS
from aircl.benchmark.contract.material import prepare_material
from aircl.benchmark.contract.pupil import Factory, NotApplicableError, ViolationError, describe
from aircl.benchmark.contract.randomness import global_randomness
from aircl.methods import METHODS, IncompatibleError, Method, list_methods

Result = Literal["passed", "failed", "skipped"]

# What is checked, in the order of the findings.
CHECKS: tuple[str, ...] = tuple(LAWS)

# A method may say that these are not for it; all others are asked of everyone.
MAY_DECLINE = frozenset({"learns online, also when classes come back"})


@dataclass(frozen=True)
class Finding:
    """What one check found.

    Attributes
    ----------
    name : str
        The law, one of `CHECKS`.
    result : {"passed", "failed", "skipped"}
    reason : str
        What was seen, in words.
    seconds : float

    Examples
    --------
    A method that learns one class only:

    >>> from aircl.benchmark.contract import check_method
    >>> from aircl.methods.prototypes import Ncm
    >>> class Stubborn(Ncm):
    ...     def learn(self, inputs, labels):
    ...         super().learn(inputs[labels == 0], labels[labels == 0])
    >>> (finding,) = check_method(Stubborn, checks=["learns its training data"])
    >>> print(finding.result, finding.reason, sep=": ")  # doctest: +ELLIPSIS
    failed: 10% of the test digits are right after one phase of all ten classes; it should be 50% at least, ...
    """

    name: str
    result: Result
    reason: str
    seconds: float


def check_method(
    method: str | Factory,
    *,
    checks: Sequence[str] = CHECKS,
    options: Mapping[str, Any] | None = None,
    progress: Callable[[int, str], None] | None = None,
) -> list[Finding]:
    """Check on real digits whether a method fulfils the contract of the benchmark.

    Parameters
    ----------
    method : str, or a subclass of Method
        A name of `list_methods`, or what makes a method of a `Setup`: the class, or a callable with the attributes
        `consumes`, `analytic` and `trial_backbone` of one where they are not the default.
    checks : sequence of str, optional
        Some of `CHECKS`; by default all.
    options : mapping, optional
        The method's own options, for `Setup.options`; they come before its `trial_options`.
    progress : callable, optional
        Called with the number of checks done and the name of the next one.

    Returns
    -------
    findings : list of Finding
        One for each check. An exception in a check is a failure of that check, and the others go on.

    Notes
    -----
    Samples that a method keeps are found in every array, list and string of bytes that its attributes lead to, and in
    the files it saves; as given, divided by 255, at length 1, and as encoded. Where they are disguised further, what it
    saves grows with the rows it has seen, or has numbers that depend on some rows and not on others that are the same;
    where they are in a module, they are missing in another process.

    Examples
    --------
    >>> from aircl.benchmark.contract import check_method
    >>> for finding in check_method("acil", checks=["learns its training data", "keeps no more samples than it says"]):
    ...     print(finding.result, finding.reason)
    passed 98% of the test digits are right after one phase of all ten classes (50% needed).
    passed it says 0 of 120 samples; 0 training rows were found.
    """
    if unknown := [name for name in checks if name not in LAWS]:
        raise ValueError(f"there is no check {', '.join(map(repr, unknown))}. Known: {', '.join(map(repr, CHECKS))}.")
    if isinstance(method, str):
        list_methods()
        method = METHODS[method]
    options = {**getattr(method, "trial_options", {}), **(options or {})}
    consumes = getattr(method, "consumes", "features")
    if isinstance(method, type) and issubclass(method, Method):
        consumes = method.inputs_for(options)
    if consumes not in ("features", "images"):
        return _all(checks, "failed", f"consumes is {consumes!r}; it should be 'features' or 'images'.")
    analytic = bool(getattr(method, "analytic", False))
    try:
        backbone = getattr(method, "trial_backbone", Method.trial_backbone)
        material = prepare_material(consumes, analytic=analytic, options=options, backbone=backbone)
    except BackboneError as error:
        return _all(checks, "skipped", f"a method that takes images is tried out with a backbone, but: {error}")
    exam = Exam(method, material)
    findings = []
    for number, name in enumerate(checks):
        if progress is not None:
            progress(number, name)
        began = time.perf_counter()
        # Matrices are so small that threads would spend their time waiting for each other.
        with global_randomness(0), threadpool_limits(1):
            result, reason = _try(exam, name)
        findings.append(Finding(name, result, reason, time.perf_counter() - began))
    return findings


def _try(exam: Exam, name: str) -> tuple[Result, str]:
    try:
        return "passed", LAWS[name](exam)
    except ViolationError as error:
        return "failed", str(error)
    except NotApplicableError as error:
        return "skipped", str(error)
    except IncompatibleError as error:
        if name in MAY_DECLINE:
            return "skipped", f"it declines: {error}"
        return "failed", f"it declines what every method has to do: {describe(error)}"
    except Exception as error:
        return "failed", describe(error)


def _all(checks: Sequence[str], result: Result, reason: str) -> list[Finding]:
    return [Finding(name, result, reason, 0.0) for name in checks]
