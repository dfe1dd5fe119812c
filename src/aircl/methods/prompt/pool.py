"""A pool of prompts, each with a key: those whose keys are near a query are chosen."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import cross_entropy, normalize

from aircl.backbones.device import send
from aircl.methods.prompt.prompted import draw_prompts


class PromptPool(nn.Module):
    """Prompts with keys of the size of a query.

    Parameters
    ----------
    size : int
        Number of prompts.
    shape : tuple of int
        Of one prompt.
    width : int
        Of keys and queries.
    generator : torch.Generator

    Attributes
    ----------
    keys : parameter of shape (size, width)
    prompts : parameter of shape (size, *shape)
    usage : int64 tensor of shape (size,)
        How often each was chosen in training, as far as `count` was told.
    """

    usage: torch.Tensor

    def __init__(self, size: int, shape: tuple[int, ...], width: int, *, generator: torch.Generator) -> None:
        super().__init__()
        self.keys = draw_prompts(size, width, generator=generator)
        self.prompts = draw_prompts(size, *shape, generator=generator)
        self.register_buffer("usage", torch.zeros(size, dtype=torch.int64))

    def distances(self, queries: torch.Tensor) -> torch.Tensor:
        """Return 1 - cos of queries, shape (n, width), and keys, shape (n, size)."""
        return 1 - normalize(send(queries, self.keys.device)) @ normalize(self.keys).T

    def nearest(self, distances: torch.Tensor, k: int = 1) -> torch.Tensor:
        """Return the k prompts of the smallest distances, shape (n, k); all, if there are no more."""
        return distances.detach().topk(min(k, len(self.keys)), dim=1, largest=False).indices

    def least_used(self, distances: torch.Tensor) -> torch.Tensor:
        """Return argmin of distance * (usage + 1), shape (n, 1): who was chosen often has to be the nearer."""
        return self.nearest(distances * (self.usage + 1))

    def count(self, chosen: torch.Tensor) -> None:
        """Note that prompts were chosen."""
        self.usage += torch.bincount(chosen.flatten(), minlength=len(self.keys))

    def copy(self, old: int, new: int) -> None:
        """Let a prompt and its key be what another one's are."""
        with torch.no_grad():
            for parameter in (self.keys, self.prompts):
                parameter[new] = parameter[old]


def most_frequent(chosen: torch.Tensor) -> torch.Tensor:
    """Return one choice for all samples of a batch: the prompts that most of them chose, shape (n, k) as before.

    >>> import torch
    >>> most_frequent(torch.tensor([[0, 1], [1, 2], [1, 2]]))
    tensor([[1, 2],
            [1, 2],
            [1, 2]])
    """
    # Of equals the first, which a stable order says.
    common = torch.bincount(chosen.flatten()).argsort(descending=True, stable=True)
    return common[: chosen.shape[1]].expand(len(chosen), -1)


def contrastive_loss(distances: torch.Tensor, chosen: torch.Tensor, temperature: float) -> torch.Tensor:
    """Return how badly queries tell the chosen key, shape (n, 1), from the others: it draws near, they move away."""
    return cross_entropy(-distances / temperature, chosen[:, 0])


def spreading_loss(pool: PromptPool, distances: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """Return -log(E exp(k / m) / (E exp(d / m) + E exp(k / m)) + 1e-6), the loss of the keys of MVP as published.

    Here d is the distance of a query and its chosen key, k those of that key to all keys of the pool, and m the key's
    usage + 1; E is the mean over samples and, of k, over keys. It draws chosen keys to their queries and keys apart,
    the less, the more a key was used.

    Parameters
    ----------
    pool : PromptPool
        With the usage as it was before these samples.
    distances : tensor of shape (n, size)
        Of queries and keys.
    chosen : int64 tensor of shape (n, 1)
    """
    mass = pool.usage[chosen] + 1  # (n, 1)
    keys = (pool.distances(pool.keys)[chosen[:, 0]] / mass).exp().mean()
    queries = (distances.gather(1, chosen) / mass).exp().mean()
    return -(keys / (queries + keys) + 1e-6).log()
