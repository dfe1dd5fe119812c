"""Prompts that are sums of components, of which every phase adds some and leaves the earlier ones alone."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import normalize

from aircl.backbones.device import send
from aircl.backbones.vit import Prefix


class Components(nn.Module):
    """The prompt components of CODA-Prompt [1]_ in the first blocks of a ViT.

    Parameters
    ----------
    blocks : int
        Each has components of its own.
    components : int
        That every phase adds.
    length : int
        Of a component; one half are keys, the other values.
    width : int
    generator : torch.Generator

    Attributes
    ----------
    P : parameter of shape (blocks, components, length, width)
        The newest components.
    K, A : parameters of shape (blocks, components, width)
        Their keys, and what of a query they look at.
    old_P, old_K, old_A : tensors of shape (blocks, m, ...)
        Those of earlier phases, which do not learn.

    References
    ----------
    .. [1] Smith et al. "CODA-Prompt: COntinual Decomposed Attention-based Prompting for Rehearsal-Free Continual
       Learning." CVPR 2023.
    """

    def __init__(self, blocks: int, components: int, length: int, width: int, *, generator: torch.Generator) -> None:
        super().__init__()
        self.P = nn.Parameter(torch.empty(blocks, components, length, width))
        self.K = nn.Parameter(torch.empty(blocks, components, width))
        self.A = nn.Parameter(torch.empty(blocks, components, width))
        for name in "PKA":
            self.register_buffer(f"old_{name}", torch.empty(blocks, 0, *getattr(self, name).shape[2:]))
        self._renew(generator)

    def grow(self, generator: torch.Generator) -> None:
        """Set the newest components aside, and take new ones that are orthogonal to all of them."""
        for name in "PKA":
            # The parameters stay the same objects, as in a head that grows.
            setattr(self, f"old_{name}", torch.cat([getattr(self, f"old_{name}"), getattr(self, name).detach()], 1))
        self._renew(generator)

    def whole(self, name: str) -> torch.Tensor:
        """Return P, K or A of all phases; gradients reach the newest alone."""
        return torch.cat([getattr(self, f"old_{name}"), getattr(self, name)], 1)

    def weights(self, queries: torch.Tensor) -> torch.Tensor:
        """Return a_m = cos(q * A_m, K_m) of queries, shape (n, width), for each block; shape (n, blocks, m).

        With q * A_m written out, neither its product with K_m nor its length needs a tensor of shape (n, m, width).
        """
        A, K = self.whole("A"), normalize(self.whole("K"), dim=-1)
        queries = send(queries, A.device)
        product = torch.einsum("nw,bmw->nbm", queries, A * K)
        square = torch.einsum("nw,bmw->nbm", queries.square(), A.square())
        return product / square.clamp_min(1e-12).sqrt()

    def prefixes(self, queries: torch.Tensor) -> dict[int, Prefix]:
        """Return keys and values by block, the halves of sum_m a_m P_m."""
        prompts = torch.einsum("nbm,bmlw->nblw", self.weights(queries), self.whole("P"))
        keys, values = prompts.chunk(2, dim=2)
        return {block: (keys[:, block], values[:, block]) for block in range(keys.shape[1])}

    def crookedness(self) -> torch.Tensor:
        """Return how far K, A and P are from orthonormal: the mean square of T T' - I, summed over blocks and kinds."""
        total = torch.zeros((), device=self.P.device)
        for name in "PKA":
            T = self.whole(name).flatten(2)
            total = total + (T @ T.mT - torch.eye(T.shape[1], device=T.device)).square().mean((1, 2)).sum()
        return total

    def _renew(self, generator: torch.Generator) -> None:
        for name in "PKA":
            new, old = getattr(self, name).data, getattr(self, f"old_{name}")
            for block in range(len(new)):
                # On the CPU, where the generator is.
                drawn = orthogonal_to(send(old[block].flatten(1), generator.device), new.shape[1], generator)
                new[block] = drawn.view_as(new[block])


def orthogonal_to(old: torch.Tensor, n: int, generator: torch.Generator) -> torch.Tensor:
    """Draw n vectors of length 1 that are orthogonal to given ones, shape (m, d), and to one another.

    In d dimensions no more than d directions are orthogonal: vectors for which there is no room are only random.

    Examples
    --------
    >>> import torch
    >>> old = torch.tensor([[1.0, 1.0, 0.0]])
    >>> new = orthogonal_to(old, 2, torch.Generator().manual_seed(0))
    >>> bool((new @ old.T).abs().max() < 1e-6), bool((new @ new.T - torch.eye(2)).abs().max() < 1e-6)
    (True, True)
    """
    drawn = torch.randn(n, old.shape[1], generator=generator, dtype=torch.float64)
    taken = drawn[:0]
    vectors = []
    for place, vector in enumerate([*old.double(), *drawn]):
        rest = vector
        for _ in range(2):  # twice, as once leaves rounding errors of the size of what was taken away
            rest = rest - taken.T @ (taken @ rest)
        # What lies in the span of the others leaves nothing but rounding errors.
        free = bool(rest.norm() > 1e-6 * vector.norm())
        if free:
            taken = torch.cat([taken, normalize(rest, dim=0)[None]])
        if place >= len(old):
            vectors.append(normalize(rest if free else vector, dim=0))
    return torch.stack(vectors).float()
