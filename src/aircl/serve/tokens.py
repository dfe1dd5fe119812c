"""Who may do what: bearer tokens with scopes, of which only hashes are kept."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path

from aircl.storage.errors import InputError
from aircl.storage.records import build, parse_json
from aircl.storage.text import json_text
from aircl.storage.writing import write_text

FILE = "tokens.json"
FORMAT = 1
SCOPES = ("predict", "learn", "admin")


@dataclass(frozen=True)
class Token:
    """What is kept of a token.

    Attributes
    ----------
    name : str
        Whose it is.
    scopes : tuple of str
        Of "predict", "learn" and "admin"; none of them implies another.
    sha256 : str
        Of the token. A token has 256 random bits, so a plain hash of it tells nothing.
    """

    name: str
    scopes: tuple[str, ...]
    sha256: str


class Tokens:
    """The tokens of a file, read again whenever it changes: who is taken out of it is out.

    Parameters
    ----------
    path : Path
        A file that need not be there yet: from the moment it is, tokens are needed.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> place = TemporaryDirectory()
    >>> path = Path(place.name, "tokens.json")
    >>> tokens = Tokens(path)
    >>> tokens.are_needed()
    False
    >>> secret = add_token(path, "app", ("predict", "learn"))
    >>> tokens.are_needed(), tokens.find(secret).scopes, tokens.find("guess"), secret in path.read_text()
    (True, ('predict', 'learn'), None, False)
    >>> place.cleanup()
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int] | None = None
        self._tokens: tuple[Token, ...] = ()
        self._needed = False
        if self.are_needed():
            self._refresh()

    def are_needed(self) -> bool:
        """Tell whether there are tokens; once there were, they stay needed, whatever becomes of the file."""
        self._needed = self._needed or self._path.exists()
        return self._needed

    def find(self, secret: str) -> Token | None:
        """Return whose token it is. All are compared, each in constant time."""
        self._refresh()
        presented = hashlib.sha256(secret.encode()).hexdigest()
        found = None
        for token in self._tokens:
            if hmac.compare_digest(token.sha256, presented):
                found = token
        return found

    def has(self, token: Token) -> bool:
        """Tell whether a token that was found is still there."""
        try:
            self._refresh()
        except (OSError, InputError):
            return False
        return token in self._tokens

    def _refresh(self) -> None:
        status = os.stat(self._path)
        stamp = status.st_ino, status.st_mtime_ns
        if stamp != self._stamp:
            self._tokens = read_tokens(self._path)
            self._stamp = stamp


def read_tokens(path: Path) -> tuple[Token, ...]:
    """Read a file of tokens."""
    values = parse_json(path.read_bytes(), str(path))
    if not isinstance(values, dict) or values.get("format") != FORMAT or not isinstance(values.get("tokens"), list):
        raise InputError(f"{path} is not a file of tokens of format {FORMAT}. Make one: aircl token.")
    return tuple(build(Token, entry, f"{path}: a token") for entry in values["tokens"])


def add_token(path: Path, name: str, scopes: tuple[str, ...]) -> str:
    """Make a token and return it; the file gets its hash. It is for the eyes of its owner.

    Parameters
    ----------
    path : Path
        Made if it is not there.
    name : str
        One that is not in the file yet.
    scopes : tuple of str

    Returns
    -------
    secret : str
    """
    tokens = read_tokens(path) if path.exists() else ()
    if any(token.name == name for token in tokens):
        raise InputError(f"{path} has a token for {name!r} already. Remove it first: --remove.")
    secret = secrets.token_urlsafe(32)
    _write(path, (*tokens, Token(name, scopes, hashlib.sha256(secret.encode()).hexdigest())))
    return secret


def remove_token(path: Path, name: str) -> None:
    """Take a token out of the file: a running service refuses it from then on."""
    tokens = read_tokens(path)
    left = tuple(token for token in tokens if token.name != name)
    if len(left) == len(tokens):
        known = ", ".join(token.name for token in tokens) or "none"
        raise InputError(f"{path} has no token for {name!r}. It has: {known}.")
    _write(path, left)


def _write(path: Path, tokens: tuple[Token, ...]) -> None:
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))  # the mode stays
    write_text(path, json_text({"format": FORMAT, "tokens": [asdict(token) for token in tokens]}) + "\n")
