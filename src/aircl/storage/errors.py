"""The errors of readers and of the writer."""

from __future__ import annotations


class InputError(ValueError):
    """A file, or what a function gave in the place of one, cannot be used. Every reader of this package raises it.

    Examples
    --------
    >>> from aircl.classifiers import FileError
    >>> from aircl.data.arrays import DataError
    >>> issubclass(FileError, InputError), issubclass(DataError, InputError)
    (True, True)
    """


class OutputError(ValueError):
    """A file cannot be written where it is asked for, or should not be."""
