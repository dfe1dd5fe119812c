import numpy as np
import pytest
from sklearn.feature_extraction.text import HashingVectorizer

from aircl.backbones import create_backbone


def features_of(texts, **options):
    backbone = create_backbone("char-ngrams", **options)
    features = backbone.forward(backbone.prepare(texts))
    assert features.dtype == np.float32
    assert features.shape == (len(texts), backbone.width)
    return features


def test_features_are_scikit_learns_hashed_ngrams_of_length_one():
    texts = ["São Paulo", "san josé", "Paris"]
    expected = HashingVectorizer(analyzer="char_wb", ngram_range=(1, 3), n_features=1024).transform(texts).toarray()
    X = features_of(texts)
    np.testing.assert_allclose(X, expected, rtol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1, rtol=1e-6)


def test_names_that_sound_alike_are_near():
    hamburg, homburg, tokyo = features_of(["Hamburg", "Homburg", "Tokyo"])
    assert hamburg @ homburg > hamburg @ tokyo + 0.3


def test_a_row_depends_on_its_text_alone_and_nothing_gives_nothing():
    np.testing.assert_array_equal(features_of(["Lima", "Oslo", ""])[1:], features_of(["Oslo", ""]))
    assert features_of([]).shape == (0, 1024)
    assert not features_of([""]).any()


def test_options_change_features_and_fingerprint():
    assert features_of(["Lima"], n_features=64).shape == (1, 64)
    fingerprints = {
        create_backbone("char-ngrams", **options).fingerprint
        for options in ({}, {"n_features": 64}, {"ngram_range": (1, 2)})
    }
    assert len(fingerprints) == 3
    assert create_backbone("char-ngrams").fingerprint in fingerprints


@pytest.mark.parametrize("wrong", ["Lima", ["Lima", 3], [b"Lima"]])
def test_what_is_no_list_of_texts_is_refused(wrong):
    with pytest.raises(ValueError, match="texts are a list of strings"):
        create_backbone("char-ngrams").prepare(wrong)
