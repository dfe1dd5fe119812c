"""Character n-grams, hashed: features of short texts that need no training and no weights."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import HashingVectorizer

from aircl.backbones.backbone import Features
from aircl.backbones.fingerprint import fingerprint
from aircl.backbones.text_batch import check_texts
from aircl.inputs import Batch, Kind


class CharNgrams:
    """Counts of character n-grams within words, hashed to a fixed width with signs and scaled to length 1.

    Parameters
    ----------
    name : str
    n_features : int, default=1024
        Width of the features.
    ngram_range : tuple of (int, int), default=(1, 3)
        Shortest and longest n-gram.
    """

    kinds: tuple[Kind, ...] = ("texts",)
    batch_size = 4096

    def __init__(
        self, name: str = "char-ngrams", *, n_features: int = 1024, ngram_range: tuple[int, int] = (1, 3)
    ) -> None:
        self.name = name
        self.width = n_features
        self._vectorizer = HashingVectorizer(
            analyzer="char_wb", ngram_range=tuple(ngram_range), n_features=n_features, dtype=np.float32
        )
        self.fingerprint = fingerprint(
            {}, {"backbone": "char-ngrams", "n_features": n_features, "ngram_range": list(ngram_range)}
        )

    def prepare(self, inputs: Batch) -> csr_matrix:
        """Count and hash; a sparse matrix of shape (n, width)."""
        texts = check_texts(inputs)
        return self._vectorizer.transform(texts) if texts else csr_matrix((0, self.width), dtype=np.float32)

    def forward(self, prepared: csr_matrix) -> Features:
        """Return the counts as a dense array of shape (n, width)."""
        return np.asarray(prepared.toarray(), dtype=np.float32)
