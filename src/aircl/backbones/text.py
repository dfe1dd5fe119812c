"""Text embeddings that come as a Python package: no download."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import wordllama

from aircl.backbones.backbone import BackboneError, Features
from aircl.backbones.fingerprint import fingerprint
from aircl.backbones.text_batch import check_texts
from aircl.inputs import Batch, Kind


class WordLlama:
    """The mean of token embeddings distilled from large language models [1]_, 256 features.

    Parameters
    ----------
    name : str

    References
    ----------
    .. [1] Miller. "WordLlama: Recycled Token Embeddings from Large Language Models." 2024,
       https://github.com/dleemiller/wordllama.
    """

    kinds: tuple[Kind, ...] = ("texts",)
    width = 256
    batch_size = 1024

    def __init__(self, name: str = "wordllama") -> None:
        # The package looks for its own tokenizer in a folder that it does not have; as its cache it finds it.
        folder = Path(wordllama.__file__).parent
        try:
            self._model = wordllama.WordLlama.load(dim=self.width, cache_dir=folder, disable_download=True)
        except FileNotFoundError as error:
            raise BackboneError(f"wordllama came without its weights. Install it again: {error}") from error
        self.name = name
        self.fingerprint = fingerprint(
            {"embedding": self._model.embedding},
            {"backbone": "wordllama", "tokenizer": self._model.tokenizer.to_str(), "pooling": "mean"},
        )

    def prepare(self, inputs: Batch) -> list[str]:
        """Return the texts; looking tokens up is all there is to do."""
        return check_texts(inputs)

    def forward(self, prepared: list[str]) -> Features:
        """Return the features, a float32 array of shape (n, 256)."""
        return np.asarray(self._model.embed(prepared), dtype=np.float32)
