"""Encoders of sentences: small BERTs made on the spot, against a forward pass of functions of torch alone."""

import json
import sys

import numpy as np
import pytest

from aircl.backbones import WEIGHTS, BackboneError, create_backbone

torch = pytest.importorskip("torch", reason="torch is not installed")
tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
import torch.nn.functional as F  # noqa: E402, N812
from safetensors.torch import load_file, save_file  # noqa: E402

WIDTH, HEADS, LONGEST = 24, 4, 8
WORDS = ["the", "a", "cat", "dog", "sat", "on", "mat", "card", "bank", "lost", "##s", "##ed"]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS]
TEXTS = ["The cat sat on a mat", "cards", "", "dog lost", "the the the the the the the the the the", "unheard sats"]


def tokenizer():
    made = tokenizers.Tokenizer(
        tokenizers.models.WordPiece({word: i for i, word in enumerate(VOCABULARY)}, unk_token="[UNK]")
    )
    made.normalizer = tokenizers.normalizers.BertNormalizer()
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    made.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return made


def weights(layers=2, mlp_width=40):
    generator = torch.Generator().manual_seed(0)

    def draw(*shape):
        return torch.randn(shape, generator=generator) * 0.3

    w = {f"embeddings.{name}_embeddings.weight": draw(n, WIDTH) for name, n in
         {"word": len(VOCABULARY), "position": 16, "token_type": 2}.items()}  # fmt: skip
    norms = ["embeddings.LayerNorm"]
    denses = {"pooler.dense": (WIDTH, WIDTH)}
    for i in range(layers):
        layer = f"encoder.layer.{i}"
        norms += [f"{layer}.attention.output.LayerNorm", f"{layer}.output.LayerNorm"]
        denses |= {f"{layer}.attention.self.{name}": (WIDTH, WIDTH) for name in ("query", "key", "value")}
        denses |= {
            f"{layer}.attention.output.dense": (WIDTH, WIDTH),
            f"{layer}.intermediate.dense": (mlp_width, WIDTH),
            f"{layer}.output.dense": (WIDTH, mlp_width),
        }
    for name in norms:
        w |= {f"{name}.weight": 1 + draw(WIDTH), f"{name}.bias": draw(WIDTH)}
    for name, shape in denses.items():
        w |= {f"{name}.weight": draw(*shape), f"{name}.bias": draw(shape[0])}
    return w


CONFIG = {
    "model_type": "bert",
    "hidden_size": WIDTH,
    "num_attention_heads": HEADS,
    "num_hidden_layers": 2,
    "intermediate_size": 40,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": 16,
    "type_vocab_size": 2,
    "vocab_size": len(VOCABULARY),
}


def make_folder(folder, *, pooling="mean", normalised=True, old=True, **config):
    """Write a model as sentence-transformers does; old: as before its version 5."""
    folder.mkdir(parents=True)
    (folder / "1_Pooling").mkdir()
    tokenizer().save(str(folder / "tokenizer.json"))
    save_file(weights(), folder / "model.safetensors")
    files = {"config.json": CONFIG | config}
    kinds = ["Transformer", "Pooling", "Normalize"][: 2 + normalised]
    files["modules.json"] = [
        {"idx": i, "name": str(i), "path": f"{i}_{kind}" if i else "", "type": f"sentence_transformers.models.{kind}"}
        for i, kind in enumerate(kinds)
    ]
    if old:
        names = {"mean": "mean_tokens", "cls": "cls_token", "max": "max_tokens"}
        modes = {f"pooling_mode_{name}": key == pooling for key, name in names.items()}
        files["1_Pooling/config.json"] = {"word_embedding_dimension": WIDTH, **modes}
        files["sentence_bert_config.json"] = {"max_seq_length": LONGEST, "do_lower_case": False}
    else:
        files["1_Pooling/config.json"] = {"embedding_dimension": WIDTH, "pooling_mode": pooling}
        files["tokenizer_config.json"] = {"model_max_length": LONGEST}
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    return folder


def plain_forward(text, pooling, normalised):
    """Return the features of one text, in double precision and without any of our modules."""
    w = {name: value.double() for name, value in weights().items()}
    ids = tokenizer().encode(text).ids
    ids = ids if len(ids) <= LONGEST else [*ids[: LONGEST - 1], 3]  # the last one stays a [SEP]

    def layer_norm(x, name):
        return F.layer_norm(x, (WIDTH,), w[f"{name}.weight"], w[f"{name}.bias"], eps=1e-12)

    def dense(x, name):
        return F.linear(x, w[f"{name}.weight"], w[f"{name}.bias"])

    words, places, types = (w[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position", "token_type"))
    x = layer_norm(words[ids] + places[: len(ids)] + types[0], "embeddings.LayerNorm")
    for i in range(2):
        layer = f"encoder.layer.{i}"
        mixing = [
            torch.cat([w[f"{layer}.attention.self.{name}.{part}"] for name in ("query", "key", "value")])
            for part in ("weight", "bias")
        ]
        seen, _ = F.multi_head_attention_forward(
            x[:, None], x[:, None], x[:, None], WIDTH, HEADS, *mixing, None, None, False, 0.0,
            w[f"{layer}.attention.output.dense.weight"], w[f"{layer}.attention.output.dense.bias"], training=False,
        )  # fmt: skip
        x = layer_norm(x + seen[:, 0], f"{layer}.attention.output.LayerNorm")
        hidden = dense(F.gelu(dense(x, f"{layer}.intermediate.dense")), f"{layer}.output.dense")
        x = layer_norm(x + hidden, f"{layer}.output.LayerNorm")
    features = x.mean(0) if pooling == "mean" else x[0]
    return (features / features.norm() if normalised else features).numpy()


def features_of(backbone, texts):
    features = backbone.forward(backbone.prepare(texts))
    assert features.dtype == np.float32
    assert features.shape == (len(texts), backbone.width)
    return features


@pytest.mark.parametrize("old", [True, False])
@pytest.mark.parametrize(("pooling", "normalised"), [("mean", True), ("mean", False), ("cls", True)])
def test_features_are_those_of_a_plain_forward(tmp_path, pooling, normalised, old):
    folder = make_folder(tmp_path / "model", pooling=pooling, normalised=normalised, old=old)
    backbone = create_backbone(f"sentence-transformers:{folder}")
    assert (backbone.kinds, backbone.width) == (("texts",), WIDTH)
    expected = np.stack([plain_forward(text, pooling, normalised) for text in TEXTS])
    np.testing.assert_allclose(features_of(backbone, TEXTS), expected, rtol=1e-5, atol=1e-5)


def test_a_row_depends_on_its_text_alone(tmp_path):
    backbone = create_backbone(f"sentence-transformers:{make_folder(tmp_path / 'model')}")
    together = features_of(backbone, TEXTS)
    for text, row in zip(TEXTS, together, strict=True):
        np.testing.assert_allclose(features_of(backbone, [text])[0], row, rtol=1e-5, atol=1e-6)
    assert features_of(backbone, []).shape == (0, WIDTH)
    with pytest.raises(ValueError, match="got one string, 'cat'"):
        backbone.prepare("cat")


def test_the_packaged_one_is_read_from_what_was_fetched(tmp_path, monkeypatch):
    monkeypatch.setenv("AIRCL_CACHE", str(tmp_path))
    with pytest.raises(BackboneError, match=r"'minilm-l6' needs weights .* aircl weights minilm-l6"):
        create_backbone("minilm-l6")
    place = make_folder(WEIGHTS["minilm-l6"].directory)
    assert {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()} == set(
        WEIGHTS["minilm-l6"].files.values()
    )
    backbone = create_backbone("minilm-l6")
    same = create_backbone(f"sentence-transformers:{place}")
    np.testing.assert_array_equal(features_of(backbone, TEXTS), features_of(same, TEXTS))
    assert (backbone.name, backbone.fingerprint) == ("minilm-l6", same.fingerprint)


def test_the_fingerprint_follows_weights_tokenizer_and_pooling(tmp_path):
    folders = [
        make_folder(tmp_path / "a"),
        make_folder(tmp_path / "b", pooling="cls"),
        make_folder(tmp_path / "c", normalised=False),
        make_folder(tmp_path / "d", num_attention_heads=2),
        make_folder(tmp_path / "e"),
        make_folder(tmp_path / "f"),
        make_folder(tmp_path / "same"),
    ]
    content = (folders[4] / "tokenizer.json").read_text()
    (folders[4] / "tokenizer.json").write_text(content.replace('"bank"', '"banc"'))
    changed = load_file(folders[5] / "model.safetensors")
    changed["embeddings.word_embeddings.weight"][5, 0] += 1
    save_file(changed, folders[5] / "model.safetensors")
    prints = [create_backbone(f"sentence-transformers:{folder}").fingerprint for folder in folders]
    assert len(set(prints[:-1])) == 6
    assert prints[-1] == prints[0]


def test_weights_that_do_not_fit_the_configuration_are_refused(tmp_path):
    folder = make_folder(tmp_path / "model", num_hidden_layers=1)
    with pytest.raises(BackboneError, match=r"weights that a plain BERT does not have: encoder.layer.1.attention"):
        create_backbone(f"sentence-transformers:{folder}")
    folder = make_folder(tmp_path / "deeper", num_hidden_layers=3)
    with pytest.raises(BackboneError, match=r"encoder.layer.2.attention.self.query.weight"):
        create_backbone(f"sentence-transformers:{folder}")


@pytest.mark.parametrize("other", [{"model_type": "mpnet"}, {"hidden_act": "silu"}, {"pooling": "max"}])
def test_other_models_are_left_to_the_library(tmp_path, monkeypatch, other):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)  # importing it fails, installed or not
    folder = make_folder(tmp_path / "model", **other)
    with pytest.raises(BackboneError, match=r"sentence-transformers is incomplete. Install it again: .*'aircl\[hf\]'"):
        create_backbone(f"sentence-transformers:{folder}")


def test_a_name_that_is_no_folder_is_sought_on_the_hub(monkeypatch, tmp_path):
    import huggingface_hub

    asked = []

    def snapshot_download(repository, allow_patterns):
        asked.append(repository)
        if repository == "me/none":
            raise OSError("no such model, or no network")
        return str(tmp_path / "model")

    make_folder(tmp_path / "model")
    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    backbone = create_backbone("sentence-transformers:all-MiniLM-L6-v2")
    assert (backbone.name, backbone.width) == ("sentence-transformers:all-MiniLM-L6-v2", WIDTH)
    create_backbone("sentence-transformers:BAAI/bge-small-en-v1.5")
    assert asked == ["sentence-transformers/all-MiniLM-L6-v2", "BAAI/bge-small-en-v1.5"]
    with pytest.raises(BackboneError, match=r"'sentence-transformers:me/none' cannot be made: no such model"):
        create_backbone("sentence-transformers:me/none")


# -- with the libraries themselves, where they are installed --
def test_the_library_computes_the_same(tmp_path):
    library = pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    from aircl.backbones.sentences import _by_the_library

    folder = make_folder(tmp_path / "model")
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer"}))
    ours = features_of(create_backbone(f"sentence-transformers:{folder}"), TEXTS)
    theirs = library.SentenceTransformer(str(folder), device="cpu").encode(TEXTS)
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
    wrapped = _by_the_library(f"sentence-transformers:{folder}", str(folder))
    np.testing.assert_allclose(features_of(wrapped, TEXTS), theirs, atol=1e-6)


def test_a_text_model_of_transformers_gives_the_mean_of_its_tokens(tmp_path):
    pytest.importorskip("transformers", reason="transformers is not installed")
    folder = make_folder(tmp_path / "model", normalised=False)
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "BertTokenizer", "model_max_length": 8})
    )
    backbone = create_backbone(f"hf:{folder}")
    assert backbone.kinds == ("texts",)
    expected = np.stack([plain_forward(text, "mean", False) for text in TEXTS])
    np.testing.assert_allclose(features_of(backbone, TEXTS), expected, rtol=1e-5, atol=1e-5)
