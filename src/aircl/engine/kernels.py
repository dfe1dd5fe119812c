"""BLAS and LAPACK without Python's lock: other threads go on while a matrix is factored.

SciPy's wrappers hold the lock, for seconds at f = 5000, and a process could not predict while it solves. These are the
same routines of the same library, by the pointers that SciPy exports to Cython, called by ctypes, which lets go of it.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import cython_blas, cython_lapack

Array = npt.NDArray[Any]

_capsule_name = ctypes.pythonapi.PyCapsule_GetName
_capsule_name.restype, _capsule_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def syrk(alpha: float, X: Array, A: Array) -> None:
    """Add alpha X'X to the lower triangle of A (f, f), which is in Fortran order, in place; X (n, f) is in C order."""
    n, f = X.shape
    _call("syrk", A.dtype, b"L", b"N", f, n, alpha, X.T, f, 1.0, A, f)


def sfrk(alpha: float, X: Array, P: Array) -> None:
    """Add alpha X'X to a packed matrix, in place; X (n, f) is in C order."""
    n, f = X.shape
    _call("sfrk", P.dtype, b"N", b"L", b"N", f, n, alpha, X.T, f, 1.0, P)


def symm(A: Array, B: Array) -> Array:
    """Return AB, A (f, f) being symmetric and given by its lower triangle."""
    f, k = B.shape
    A, B = np.asfortranarray(A), np.asfortranarray(B, dtype=A.dtype)
    C = np.empty((f, k), dtype=A.dtype, order="F")
    _call("symm", A.dtype, b"L", b"L", f, k, 1.0, A, f, B, f, 0.0, C, f)
    return C


def potrf(A: Array) -> bool:
    """Replace the lower triangle of A, float64 in Fortran order, by its Cholesky factor; tell whether there is one."""
    info = np.zeros(1, np.int32)
    _call("potrf", A.dtype, b"L", len(A), A, len(A), info)
    return not info[0]


def potrs(L: Array, B: Array) -> Array:
    """Return the solution of LL'W = B, float64."""
    W, info = np.array(B, dtype=np.float64, order="F"), np.zeros(1, np.int32)
    _call("potrs", L.dtype, b"L", len(L), W.shape[1], L, len(L), W, len(L), info)
    return W


def _call(name: str, dtype: np.dtype[Any], *arguments: bytes | int | float | Array) -> None:
    """Call a routine for a dtype; everything goes by its address, and arrays are as Fortran has them."""
    number = ctypes.c_float if dtype == np.float32 else ctypes.c_double
    held: list[Any] = []  # until it returns
    addresses = []
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            if not argument.flags.f_contiguous:  # what is written to its address would land elsewhere
                raise ValueError(f"{name} takes arrays in Fortran order.")
            addresses.append(argument.ctypes.data)
            continue
        kind = {bytes: ctypes.c_char, int: ctypes.c_int}.get(type(argument), number)
        held.append(kind(argument))  # type: ignore[arg-type]
        addresses.append(ctypes.addressof(held[-1]))
    _routine(("s" if dtype == np.float32 else "d") + name, len(arguments))(*addresses)


@cache
def _routine(name: str, n_arguments: int) -> Any:
    module = cython_blas if name in cython_blas.__pyx_capi__ else cython_lapack
    capsule = module.__pyx_capi__[name]
    pointer = _capsule_pointer(capsule, _capsule_name(capsule))
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * n_arguments)(pointer)
