"""Who says where a tensor is made, and who takes one back: torch under the eyes of a TorchFunctionMode."""

from __future__ import annotations

import sys

import torch
from torch.overrides import TorchFunctionMode

FACTORIES = {
    getattr(torch, name)
    for name in ("arange empty eye full linspace ones rand randint randn randperm tensor zeros").split()  # noqa: SIM905
}
BACK = {torch.Tensor.cpu, torch.Tensor.numpy}
# Take tensors back to the CPU, for all others: of networks, and of the engine.
THE_WAYS_BACK = {
    ("aircl.backbones.device", "to_array"),
    ("aircl.engine.torch_backend", "to_numpy"),
    ("aircl.expansion.tensors", "on_cpu"),
}
# Samples that are kept, and random views of them, are on the CPU whatever the device.
OF_SAMPLES = tuple(
    f"aircl.methods.gradient.{name}"
    for name in (
        "augmentation",
        "balanced",
        "diversity",
        "exemplars",
        "herding",
        "importance",
        "memory",
        "partitioning",
        "reservoir",
        "rows",
        "slots",
        "views",
    )
)


class Strict(TorchFunctionMode):
    """A context in which the package may not leave open where a tensor is.

    `.cpu()` and `.numpy()` are for few functions alone. A factory needs ``device=``, or a generator, which has one; or
    it is called where a module is built, that `.to` moves as a whole.
    """

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function in FACTORIES or function in BACK:
            self.check(function, kwargs)
        return function(*args, **kwargs)

    def check(self, function, kwargs):
        frame = sys._getframe(2)
        while frame.f_globals.get("__name__", "").startswith(("torch.overrides", "torch._", __name__)):
            frame = frame.f_back
        while frame.f_code.co_name in ("<genexpr>", "<listcomp>", "<dictcomp>"):  # who wrote it is behind what reads it
            frame = frame.f_back
            while frame.f_globals.get("__name__", "").startswith("torch."):
                frame = frame.f_back
        module, caller = frame.f_globals.get("__name__", ""), frame.f_code.co_name
        if not module.startswith("aircl."):
            return
        where = f"{module}.{caller}, line {frame.f_lineno}"
        if function in BACK:
            if (module, caller) not in THE_WAYS_BACK:
                allowed = " and ".join(sorted(map(".".join, THE_WAYS_BACK)))
                raise AssertionError(f"{where}: .{function.__name__}() beside {allowed}.")
        elif not (kwargs.get("device") or kwargs.get("generator") or caller == "__init__" or module in OF_SAMPLES):
            raise AssertionError(f"{where}: torch.{function.__name__} without a device.")
