"""Batches of texts, checked."""

from __future__ import annotations

from aircl.inputs import Batch


def check_texts(inputs: Batch) -> list[str]:
    """Return a batch of texts as a list.

    Parameters
    ----------
    inputs : sequence of str

    Returns
    -------
    texts : list of str
    """
    if isinstance(inputs, str):
        raise ValueError(f"texts are a list of strings, got one string, {inputs[:40]!r}. Put it in a list.")
    for text in inputs:
        if not isinstance(text, str):
            raise ValueError(f"texts are a list of strings, got a {type(text).__name__} among them: {text!r:.40}.")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError(f"the text {text[:40]!r} is not Unicode: half of a character.") from None
    return [str(text) for text in inputs]
