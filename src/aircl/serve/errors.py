"""Why a request is not answered as asked. Anything else that is raised is a fault."""

from __future__ import annotations


class RefusedError(ValueError):
    """What is asked for is not possible.

    Attributes
    ----------
    status : int
        Of HTTP.
    """

    def __init__(self, message: str, status: int = 422) -> None:
        super().__init__(message)
        self.status = status


class BusyError(RuntimeError):
    """Nothing can be done now, or it is not known whether it was; asking again, by the same key, is right."""


class StorageError(OSError):
    """A change cannot be made durable: the disk is full, or fails."""
