import socket

import numpy as np
import pytest

from aircl.backbones import BackboneError, create_backbone

wordllama = pytest.importorskip("wordllama", reason="wordllama is not installed")


@pytest.fixture(scope="module")
def backbone():
    return create_backbone("wordllama")


def features_of(backbone, texts):
    features = backbone.forward(backbone.prepare(texts))
    assert features.dtype == np.float32
    assert features.shape == (len(texts), 256)
    return features


def test_related_words_are_nearer_than_unrelated_ones(backbone):
    cat, kitten, mortgage, loan = features_of(backbone, ["cat", "kitten", "mortgage", "loan"])

    def cosine(a, b):
        return a @ b / np.linalg.norm(a) / np.linalg.norm(b)

    assert min(cosine(cat, kitten), cosine(mortgage, loan)) > max(cosine(cat, loan), cosine(kitten, mortgage)) + 0.2


def test_a_row_depends_on_its_text_alone(backbone):
    texts = ["a short one", "", "a text that is longer than all the others by quite a few words"]
    together = features_of(backbone, texts)
    for text, row in zip(texts, together, strict=True):
        np.testing.assert_allclose(features_of(backbone, [text])[0], row, rtol=1e-6, atol=1e-7)
    assert features_of(backbone, []).shape == (0, 256)


def test_it_loads_without_a_network_and_always_the_same(backbone, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert create_backbone("wordllama").fingerprint == backbone.fingerprint


def test_missing_weights_are_reported(monkeypatch):
    def nothing(*args, **kwargs):
        raise FileNotFoundError("Weights file not found")

    monkeypatch.setattr(wordllama.WordLlama, "load", nothing)
    with pytest.raises(BackboneError, match=r"came without its weights. Install it again: Weights file"):
        create_backbone("wordllama")


def test_texts_are_checked(backbone):
    with pytest.raises(ValueError, match=r"got one string, 'cat'. Put it in a list"):
        backbone.prepare("cat")
