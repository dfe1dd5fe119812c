"""The errors of readers and of the writer, and what tells a refusal from a fault."""

from __future__ import annotations

import dis


class InputError(ValueError):
    """A file, or what a function gave in place of one, cannot be used. Every reader of this package raises it.

    Examples
    --------
    >>> from aircl.classifiers import FileError
    >>> from aircl.data.arrays import DataError
    >>> issubclass(FileError, InputError), issubclass(DataError, InputError)
    (True, True)
    """


class OutputError(ValueError):
    """A file cannot be written where it is asked for, or should not be."""


def is_refusal(error: Exception) -> bool:
    """Tell whether an error is an answer to what was given, rather than a fault: a `raise` here or in scikit-learn.

    What NumPy, or a conversion such as int(), has to say of a value that nobody has checked is a fault.
    """
    if isinstance(error, InputError | OutputError | ImportError):
        return True
    frame = error.__traceback__
    if not isinstance(error, ValueError) or frame is None:
        return False
    while frame.tb_next is not None:
        frame = frame.tb_next
    package = frame.tb_frame.f_globals.get("__name__", "").partition(".")[0]
    was_raised = frame.tb_frame.f_code.co_code[frame.tb_lasti] == dis.opmap["RAISE_VARARGS"]
    return was_raised and package in ("aircl", "sklearn")
