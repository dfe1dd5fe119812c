"""A client of a service; it needs nothing but Python and NumPy."""

from __future__ import annotations

import http.client
import json
import threading
import time
import uuid
from base64 import b64encode
from os import PathLike
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import numpy as np

# Answers after which the same request may do better, and the longest pause before it is sent again.
_TRY_AGAIN = (502, 503, 504, 507)
_LONGEST_PAUSE = 5.0


class ServiceError(ValueError):
    """A service refuses a request.

    Attributes
    ----------
    status : int
        That of HTTP. 401 and 403: not allowed; 409 and 422: a wrong request; 413: too much; 503 and 507: try again.

    Examples
    --------
    >>> error = ServiceError(422, "there are 2 rows but 3 labels.")
    >>> error.status, str(error)
    (422, '422: there are 2 rows but 3 labels.')
    """

    def __init__(self, status: int, detail: Any) -> None:
        super().__init__(f"{status}: {detail}")
        self.status = status


class Client:
    """Asks a service that `aircl serve` runs. A request that is repeated after a failure is done once.

    Every change gets a key, and is sent again with it until it is answered or `patience` is over: after a broken
    connection, a restart of the service or a full disk. Threads may share a client. Samples are an array of features of
    shape (n_samples, n_features), a list of texts, or a list of images: paths (`pathlib.Path`) or contents of files.

    Parameters
    ----------
    url : str
        Such as "http://127.0.0.1:8000".
    token : str or None, default=None
    timeout : float, default=60
        Seconds to wait for one answer.
    patience : float, default=60
        Seconds within which a request is sent again.

    Examples
    --------
    >>> client = Client("http://127.0.0.1:8000", token="a secret")
    >>> client
    Client('http://127.0.0.1:8000')
    >>> Client("ftp://example.org")
    Traceback (most recent call last):
    ValueError: 'ftp://example.org' is no address of a service: http://HOST:PORT or https://HOST is.
    """

    def __init__(self, url: str, token: str | None = None, *, timeout: float = 60.0, patience: float = 60.0) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is no address of a service: http://HOST:PORT or https://HOST is.")
        self.url, self.timeout, self.patience = url.rstrip("/"), timeout, patience
        self._parts, self._token, self._local = parts, token, threading.local()

    def __repr__(self) -> str:
        """Show the address, not the token."""
        return f"Client({self.url!r})"

    def __enter__(self) -> Self:
        """Give the client, which is closed at the end."""
        return self

    def __exit__(self, *problem: object) -> None:
        """Close the connection of this thread."""
        self.close()

    # -- predictions --
    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """Return the best class of every row.

        Parameters
        ----------
        X : samples

        Returns
        -------
        y : array of shape (n_samples,)
        """
        return np.array([entry["label"] for entry in self.ask(X)["predictions"]])

    def ask(self, X: Any, *, top: int = 1, confidence: float = 0.0, novelty: float | None = None) -> dict[str, Any]:
        """Return predictions as the service tells them, with probabilities, `version` and `rows_behind`.

        Parameters
        ----------
        X : samples
        top : int, default=1
            Classes per row.
        confidence : float, default=0
            The least probability of an answer: below it, the label of a row is None, and the `reason` "doubtful".
        novelty : float, default=None
            Tell the novelty of every row; below this one, the label is None, and the `reason` "unknown". 0: only tell.

        Returns
        -------
        answer : dict
        """
        asked = {**_rows(X), "top": top, "confidence": confidence}
        return self._send("POST", "/predict", asked if novelty is None else asked | {"novelty": novelty})

    # -- changes --
    def learn(
        self, X: Any, y: Any, *, sample_weight: Any = None, ids: Any = None, on_duplicate: str = "error",
        key: str | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Learn rows; what is returned has been made durable.

        Parameters
        ----------
        X : samples
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
        ids : array-like of shape (n_samples,), default=None
            What rows are known by, if the model keeps a ledger.
        on_duplicate : {"error", "skip"}, default="error"
            What becomes of rows that the ledger has.
        key : str, default=None
            By which the same change is known if another client, or this one after a restart, asks for it again.

        Returns
        -------
        answer : dict
            `version`: predictions of this version or a later one know these rows.
        """
        asked = _labelled(X, y, sample_weight, ids)
        return self._change("/learn", asked if on_duplicate == "error" else asked | {"on_duplicate": on_duplicate}, key)

    def correct(
        self, X: Any = None, y: Any = None, new_y: Any = None, *, ids: Any, new_X: Any = None, key: str | None = None
    ) -> dict[str, Any]:
        """Learn rows in place of others, in one change; for a model that keeps a ledger.

        Parameters
        ----------
        X : samples, default=None
            As they were learned; the service answers 409 if they were not. None: a service that keeps rows knows them.
        y : array-like of shape (n_samples,), default=None
            As they were learned.
        new_y : array-like of shape (n_samples,)
            As they should be.
        ids : array-like of shape (n_samples,)
            As they were learned.
        new_X : samples, default=None
            None: as they were.
        key : str, default=None

        Returns
        -------
        answer : dict
        """
        if new_y is None:
            raise ValueError("correct needs new_y, the labels as they should be.")
        new_X = X if new_X is None else new_X
        asked = {"new": _labelled(new_X, new_y, None, ids)}
        return self._change("/correct", asked if X is None else {"old": _labelled(X, y, None, ids), **asked}, key)

    def forget(
        self, X: Any = None, y: Any = None, *, sample_weight: Any = None, ids: Any = None, classes: Any = None,
        purge: bool = False, key: str | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Forget rows, as they were learned, or whole classes.

        Parameters
        ----------
        X : samples, default=None
            None: `ids` are enough for a service that keeps rows.
        y : array-like of shape (n_samples,), default=None
        sample_weight : array-like of shape (n_samples,), default=None
        ids : array-like of shape (n_samples,), default=None
            As they were learned, if they had ids.
        classes : array-like, default=None
        purge : bool, default=False
            Remove older versions too, which hold what is forgotten.
        key : str, default=None

        Returns
        -------
        answer : dict
        """
        asked = {"classes": _plain(classes)} if classes is not None else _labelled(X, y, sample_weight, ids)
        return self._change("/forget", {**asked, "purge": purge}, key)

    def merge(self, path: str | Path, *, key: str | None = None) -> dict[str, Any]:
        """Add everything that a model file has learned.

        Parameters
        ----------
        path : str or path
        key : str, default=None

        Returns
        -------
        answer : dict
        """
        return self._change("/merge", Path(path).read_bytes(), key)

    def rollback(self, version: int, *, key: str | None = None) -> dict[str, Any]:
        """Go back to a version.

        Parameters
        ----------
        version : int
        key : str, default=None

        Returns
        -------
        answer : dict
        """
        return self._change("/rollback", {"version": version}, key)

    def undo(self, version: int, *, key: str | None = None) -> dict[str, Any]:
        """Take back the last change, bit by bit; an error if another one came after it.

        Parameters
        ----------
        version : int
            Of the answer to that change.
        key : str, default=None

        Returns
        -------
        answer : dict
        """
        return self._change("/undo", {"version": version}, key)

    # -- what there is --
    def classes(self) -> dict[Any, float]:
        """Return the classes, with the rows learned of each.

        Returns
        -------
        rows : dict
        """
        return {entry["label"]: entry["rows"] for entry in self._send("GET", "/classes")["classes"]}

    def versions(self) -> list[dict[str, Any]]:
        """Return the versions, the current one last.

        Returns
        -------
        versions : list of dict
        """
        listed: list[dict[str, Any]] = self._send("GET", "/versions")["versions"]
        return listed

    def expected_accuracy(self) -> dict[str, Any]:
        """Return the expected accuracy, also by class with what it is taken for, and the progressive accuracy.

        Returns
        -------
        accuracy : dict
        """
        return self._send("GET", "/expected-accuracy")

    def drift(self) -> dict[str, Any]:
        """Return the figures of drift: the share of novel rows, and how far accuracy is below what was expected.

        Returns
        -------
        figures : dict
        """
        return self._send("GET", "/drift")

    def health(self) -> dict[str, Any]:
        """Return whether the service works as it should.

        Returns
        -------
        status : dict
        """
        return self._send("GET", "/healthz")

    # -- requests --
    def _change(self, path: str, body: Any, key: str | None) -> dict[str, Any]:
        return self._send("POST", path, body, key=uuid.uuid4().hex if key is None else key)

    def _send(self, method: str, path: str, body: Any = None, *, key: str | None = None) -> dict[str, Any]:
        """Send a request, again and again while that may help: all of them may be repeated."""
        headers = {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
        if key is not None:
            headers["Idempotency-Key"] = key
        data = None
        if isinstance(body, bytes):
            data, headers["Content-Type"] = body, "application/octet-stream"
        elif body is not None:
            data, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
        until, pause = time.monotonic() + self.patience, 0.05
        while True:
            try:
                connection = self._connection()
                connection.request(method, self._parts.path.rstrip("/") + path, data, headers)
                answer = connection.getresponse()
                content, status = answer.read(), answer.status
                if status not in _TRY_AGAIN or time.monotonic() >= until:
                    return _result(status, content)
            except (OSError, http.client.HTTPException) as error:
                self.close()
                if time.monotonic() >= until:
                    if isinstance(error, OSError):
                        raise
                    raise ConnectionError(f"{self.url} did not answer in full ({error!r}).") from error
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _connection(self) -> http.client.HTTPConnection:
        """Return the connection of this thread, which stays open."""
        connection: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        if connection is None:
            https = self._parts.scheme == "https"
            kind = http.client.HTTPSConnection if https else http.client.HTTPConnection
            connection = kind(self._parts.hostname or "", self._parts.port, timeout=self.timeout)
            self._local.connection = connection
        return connection

    def close(self) -> None:
        """Close the connection of this thread; the next request opens another one."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._local.connection = None


def _result(status: int, content: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(content)
    except ValueError:
        answer = {"detail": content[:200].decode(errors="replace")}
    if status >= 400:
        raise ServiceError(status, answer.get("detail", answer) if isinstance(answer, dict) else answer)
    if not isinstance(answer, dict):
        raise ServiceError(status, "the answer is not one of an aircl service.")
    return answer


def _rows(X: Any) -> dict[str, Any]:
    first = X[0] if isinstance(X, list | tuple) and len(X) else None
    if isinstance(first, bytes | PathLike):
        files = [Path(image).read_bytes() if isinstance(image, PathLike) else image for image in X]
        return {"images": [b64encode(file).decode() for file in files]}
    rows = _plain(X)
    return {"texts" if len(rows) and isinstance(rows[0], str) else "features": rows}


def _labelled(X: Any, y: Any, weight: Any, ids: Any) -> dict[str, Any]:
    asked = {"labels": _plain(y), "sample_weight": _plain(weight), "ids": _plain(ids)}
    return (_rows(X) if X is not None else {}) | {name: value for name, value in asked.items() if value is not None}


def _plain(values: Any) -> Any:
    return None if values is None else np.asarray(values).tolist()
