"""BERT's encoder, from the files that transformers and sentence-transformers save, without either."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal

import torch
from torch import nn
from torch.nn.functional import gelu, normalize, relu, scaled_dot_product_attention

ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "gelu": gelu,
    "gelu_new": partial(gelu, approximate="tanh"),
    "gelu_pytorch_tanh": partial(gelu, approximate="tanh"),
    "relu": relu,
}
# What a file may hold beside the encoder: not needed for sentences.
IGNORED = ("pooler.", "cls.", "embeddings.position_ids")


class BertLayer(nn.Module):
    """Attention and a two-layer perceptron; what each adds is normalised after it was added.

    Parameters
    ----------
    width, heads, mlp_width : int
    activation : str
        One of `ACTIVATIONS`.
    eps : float
        Of the layer normalisations.
    """

    def __init__(self, width: int, heads: int, mlp_width: int, activation: str, eps: float) -> None:
        super().__init__()
        self.heads = heads
        self.activation = ACTIVATIONS[activation]
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.norm1 = nn.LayerNorm(width, eps=eps)
        self.fc1 = nn.Linear(width, mlp_width)
        self.fc2 = nn.Linear(mlp_width, width)
        self.norm2 = nn.LayerNorm(width, eps=eps)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return tokens of the same shape (n, t, width)."""
        parts = self.qkv(tokens).chunk(3, dim=-1)
        query, key, value = (x.unflatten(-1, (self.heads, -1)).transpose(1, 2) for x in parts)
        seen = scaled_dot_product_attention(query, key, value)
        tokens = self.norm1(tokens + self.proj(seen.transpose(1, 2).flatten(2)))
        normalised: torch.Tensor = self.norm2(tokens + self.fc2(self.activation(self.fc1(tokens))))
        return normalised


class BertSentences(nn.Module):
    """BERT [1]_ as an encoder of sentences [2]_: the mean of its tokens, or the first one.

    Parameters
    ----------
    config : mapping
        As in the ``config.json`` of transformers.
    pooling : {"mean", "cls"}, default="mean"
    unit_length : bool, default=False
        Whether features are scaled to length 1.

    References
    ----------
    .. [1] Devlin et al. "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding." NAACL 2019.
    .. [2] Reimers & Gurevych. "Sentence-BERT: Sentence Embeddings using Siamese BERT-Networks." EMNLP 2019.
    """

    def __init__(
        self, config: Mapping[str, Any], *, pooling: Literal["mean", "cls"] = "mean", unit_length: bool = False
    ) -> None:
        super().__init__()
        self.width = int(config["hidden_size"])
        self.pooling, self.unit_length = pooling, unit_length
        eps = config.get("layer_norm_eps", 1e-12)
        self.words = nn.Embedding(config["vocab_size"], self.width)
        self.positions = nn.Embedding(config["max_position_embeddings"], self.width)
        # All tokens are of the first sentence, type 0.
        self.types = nn.Embedding(config.get("type_vocab_size", 2), self.width)
        self.norm = nn.LayerNorm(self.width, eps=eps)
        heads, mlp_width = config["num_attention_heads"], config["intermediate_size"]
        self.layers = nn.ModuleList(
            BertLayer(self.width, heads, mlp_width, config.get("hidden_act", "gelu"), eps)
            for _ in range(config["num_hidden_layers"])
        )

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return features of shape (n, width) for texts of one length, int64 tokens of shape (n, t)."""
        tokens = self.words(ids) + self.positions.weight[: ids.shape[1]] + self.types.weight[0]
        tokens = self.norm(tokens)
        for layer in self.layers:
            tokens = layer(tokens)
        features = tokens.mean(1) if self.pooling == "mean" else tokens[:, 0]
        return normalize(features, dim=1) if self.unit_length else features

    def load(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Take weights with the names that transformers gives them."""
        weights = {key.removeprefix("bert."): value.float() for key, value in weights.items()}
        weights = {key: value for key, value in weights.items() if not key.startswith(IGNORED)}
        own = {}
        for i in range(len(self.layers)):
            layer = f"encoder.layer.{i}"
            for part in ("weight", "bias"):
                joined = [weights.pop(f"{layer}.attention.self.{name}.{part}") for name in ("query", "key", "value")]
                own[f"layers.{i}.qkv.{part}"] = torch.cat(joined)
                for ours, theirs in (
                    ("proj", "attention.output.dense"),
                    ("norm1", "attention.output.LayerNorm"),
                    ("fc1", "intermediate.dense"),
                    ("fc2", "output.dense"),
                    ("norm2", "output.LayerNorm"),
                ):
                    own[f"layers.{i}.{ours}.{part}"] = weights.pop(f"{layer}.{theirs}.{part}")
        for ours, theirs in (("words", "word"), ("positions", "position"), ("types", "token_type")):
            own[f"{ours}.weight"] = weights.pop(f"embeddings.{theirs}_embeddings.weight")
        for part in ("weight", "bias"):
            own[f"norm.{part}"] = weights.pop(f"embeddings.LayerNorm.{part}")
        if weights:
            raise ValueError(f"weights that a plain BERT does not have: {', '.join(sorted(weights)[:5])}")
        self.load_state_dict(own)
