"""A device that is not there: tensors that say they are on "meta", and are computed on the CPU.

Under `Elsewhere`, what is sent to "meta" becomes a tensor whose `device` is that one, and every operation that mixes it
with tensors of the CPU raises, as it would with a GPU: so do `.numpy()` and indexing of a CPU tensor by it. Nothing
here says how fast a device is, or that its kernels exist.
"""

from __future__ import annotations

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

DEVICE = torch.device("meta")
aten = torch.ops.aten
# Copies go from device to device; indices may be on the CPU.
CROSSING = {aten.copy_.default, aten._to_copy.default}
INDEXING = {aten.index.Tensor, aten.index_put_.default, aten._index_put_impl_.default, aten.index_put.default}


class Far(torch.Tensor):
    """A tensor elsewhere; `inner` has its values."""

    @staticmethod
    def __new__(cls, inner):
        far = torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, strides=inner.stride(), dtype=inner.dtype, device=DEVICE
        )
        far.inner = inner.detach()
        return far

    def __repr__(self):
        return f"Far({self.inner})"

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        return compute(function, args, kwargs or {})

    def __deepcopy__(self, memo):
        copy = Far(self.inner.clone())
        copy = torch.nn.Parameter(copy, self.requires_grad) if isinstance(self, torch.nn.Parameter) else copy
        memo[id(self)] = copy
        return copy


def compute(function, args, kwargs):
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    far = any(isinstance(tensor, Far) for tensor in tensors)
    if kwargs.get("device") is not None:
        far = torch.device(kwargs["device"]) == DEVICE
        kwargs = {**kwargs, "device": torch.device("cpu")}
    elif function in INDEXING:
        far = isinstance(args[0], Far)
        if not far and any(isinstance(tensor, Far) for tensor in tensors):
            raise RuntimeError(f"{function}: a tensor of the CPU is indexed by one that is elsewhere.")
    elif far and function not in CROSSING:
        near = [tensor for tensor in tensors if not isinstance(tensor, Far) and tensor.dim()]
        if near:
            raise RuntimeError(
                f"{function}: tensors on two devices, {[tuple(tensor.shape) for tensor in near]} on the CPU."
            )

    def inner(leaf):
        return leaf.inner if isinstance(leaf, Far) else leaf

    result = function(*tree_map(inner, args), **tree_map(inner, kwargs))
    # What is changed in place, or written into, stays the object that it was.
    by_inner = {id(tensor.inner): tensor for tensor in tensors if isinstance(tensor, Far)}

    def outer(leaf):
        if not isinstance(leaf, torch.Tensor) or not far or isinstance(leaf, Far):
            return leaf
        return by_inner[id(leaf)] if id(leaf) in by_inner else Far(leaf)

    return tree_map(outer, result)


class _Operations(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return compute(function, args, kwargs or {})


class Elsewhere(TorchFunctionMode):
    """A context in which there is the device, and where `torch.tensor` can make tensors on it."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function is torch.tensor and kwargs.get("device") is not None and torch.device(kwargs["device"]) == DEVICE:
            return torch.tensor(*args, **{**kwargs, "device": "cpu"}).to(DEVICE)
        if function is torch.Tensor.tolist and isinstance(args[0], Far):
            return args[0].inner.tolist()
        if function == torch.Tensor.data.__set__ and isinstance(args[0], Far):
            args[0].inner = args[1].inner  # the values go with the shape, which is all that torch would set
        return function(*args, **kwargs)

    def __enter__(self):
        self._operations = _Operations()
        self._operations.__enter__()
        return super().__enter__()

    def __exit__(self, *error):
        super().__exit__(*error)
        self._operations.__exit__(*error)
