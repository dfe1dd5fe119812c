"""A vision transformer that takes the weights of ViT, DeiT and DINOv2, and lets prompts in."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

import torch
from torch import nn
from torch.nn.functional import interpolate, scaled_dot_product_attention

# Keys and values that a block's attention sees before its own, both of shape (n, length, width).
Prefix = tuple[torch.Tensor, torch.Tensor]


class Attention(nn.Module):
    """Multi-head self-attention.

    Parameters
    ----------
    width : int
    heads : int
        They share the width evenly.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, tokens: torch.Tensor, prefix: Prefix | None = None) -> torch.Tensor:
        """Return tokens of the same shape (n, t, width), after each has looked at all of them and at the prefix."""
        query, key, value = self.qkv(tokens).chunk(3, dim=-1)
        if prefix is not None:
            key, value = torch.cat([prefix[0], key], dim=1), torch.cat([prefix[1], value], dim=1)
        query, key, value = (x.unflatten(-1, (self.heads, -1)).transpose(1, 2) for x in (query, key, value))
        seen = scaled_dot_product_attention(query, key, value)
        attended: torch.Tensor = self.proj(seen.transpose(1, 2).flatten(2))
        return attended


class LayerScale(nn.Module):
    """A learned factor for each feature.

    Parameters
    ----------
    width : int
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(width))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return tokens of the same shape (n, t, width)."""
        return tokens * self.gamma


class Block(nn.Module):
    """Attention and a two-layer perceptron, each on normalised tokens and added to them.

    Parameters
    ----------
    width, heads : int
    mlp_width : int
        Of the layer between.
    eps : float
        Of the layer normalisations.
    layer_scale : bool, default=False
        Whether what is added is scaled feature by feature.
    """

    def __init__(self, width: int, heads: int, mlp_width: int, eps: float, layer_scale: bool = False) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=eps)
        self.attn = Attention(width, heads)
        self.ls1 = LayerScale(width) if layer_scale else nn.Identity()
        self.norm2 = nn.LayerNorm(width, eps=eps)
        self.mlp = nn.Sequential(
            OrderedDict(fc1=nn.Linear(width, mlp_width), act=nn.GELU(), fc2=nn.Linear(mlp_width, width))
        )
        self.ls2 = LayerScale(width) if layer_scale else nn.Identity()

    def forward(self, tokens: torch.Tensor, prefix: Prefix | None = None) -> torch.Tensor:
        """Return tokens of the same shape (n, t, width)."""
        tokens = tokens + self.ls1(self.attn(self.norm1(tokens), prefix))
        change: torch.Tensor = self.ls2(self.mlp(self.norm2(tokens)))
        return tokens + change


class VisionTransformer(nn.Module):
    """ViT [1]_, DeiT [2]_ or DINOv2 [3]_ without its classifier; the state dict has timm's and DINOv2's names.

    Parameters
    ----------
    image_size : int
        That the position embeddings are made for; images of another size get interpolated ones.
    patch_size : int
    width : int
        Of a token, and of the features.
    depth : int
        Number of blocks.
    heads : int
    mlp_width : int, optional
        4 * width by default.
    distilled : bool, default=False
        Whether a distillation token follows the class token, as in distilled DeiT.
    registers : int, default=0
        Number of register tokens [4]_, which have no position and stand before the patches.
    layer_scale : bool, default=False
        Whether what a block adds is scaled feature by feature.
    position_offset : float, optional
        How position embeddings are interpolated to another image size. None: bicubic and antialiased, as timm and
        DINOv2 with registers do. A number: without antialiasing, sampled as if the grid had that many more patches a
        side; DINOv2 without registers has 0.1.
    eps : float, default=1e-6
        Of the layer normalisations.

    Notes
    -----
    Prompts enter in two ways, both of them differentiable: as tokens, which `insert` puts between those that `embed`
    returned, or as keys and values of chosen blocks, ``prefixes`` of `forward_tokens`. `blocks` and `norm` are there
    for whatever goes beyond.

    References
    ----------
    .. [1] Dosovitskiy et al. "An Image is Worth 16x16 Words: Transformers for Image Recognition at Scale." ICLR 2021.
    .. [2] Touvron et al. "Training data-efficient image transformers & distillation through attention." ICML 2021.
    .. [3] Oquab et al. "DINOv2: Learning Robust Visual Features without Supervision." TMLR 2024.
    .. [4] Darcet et al. "Vision Transformers Need Registers." ICLR 2024.

    Examples
    --------
    >>> import torch
    >>> from aircl.backbones.vit import VisionTransformer, insert
    >>> vit = VisionTransformer(image_size=8, patch_size=2, width=12, depth=2, heads=3)
    >>> tokens = vit.embed(torch.zeros(5, 3, 8, 8))
    >>> tokens.shape  # a class token and 4 x 4 patches
    torch.Size([5, 17, 12])
    >>> vit.forward_tokens(insert(tokens, torch.zeros(5, 4, 12))).shape
    torch.Size([5, 21, 12])
    >>> prefix = torch.zeros(5, 3, 12), torch.zeros(5, 3, 12)
    >>> vit.forward_tokens(tokens, prefixes={1: prefix}).shape
    torch.Size([5, 17, 12])
    """

    def __init__(
        self,
        *,
        image_size: int,
        patch_size: int,
        width: int,
        depth: int,
        heads: int,
        mlp_width: int | None = None,
        distilled: bool = False,
        registers: int = 0,
        layer_scale: bool = False,
        position_offset: float | None = None,
        eps: float = 1e-6,
    ) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"heads share the width evenly: {heads} heads do not divide a width of {width}.")
        if image_size % patch_size:
            raise ValueError(f"patches tile the image: {patch_size} px do not divide {image_size} px.")
        self.patch_size = patch_size
        self.width = width
        self.heads = heads
        self.position_offset = position_offset
        self.grid = image_size // patch_size
        self.patch_embed = nn.Sequential(
            OrderedDict(proj=nn.Conv2d(3, width, kernel_size=patch_size, stride=patch_size))
        )
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.dist_token = nn.Parameter(torch.zeros(1, 1, width)) if distilled else None
        self.register_tokens = nn.Parameter(torch.zeros(1, registers, width)) if registers else None
        self.pos_embed = nn.Parameter(torch.zeros(1, 1 + distilled + self.grid**2, width))
        self.blocks = nn.ModuleList(Block(width, heads, mlp_width or 4 * width, eps, layer_scale) for _ in range(depth))
        self.norm = nn.LayerNorm(width, eps=eps)
        self._initialise()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return the class tokens, shape (n, width), of images of shape (n, 3, height, width)."""
        return self.forward_tokens(self.embed(images))[:, 0]

    def embed(self, images: torch.Tensor) -> torch.Tensor:
        """Turn images into tokens with positions.

        Parameters
        ----------
        images : tensor of shape (n, 3, height, width)
            Sides that are multiples of the patch size.

        Returns
        -------
        tokens : tensor of shape (n, 1 + patches, width)
            The class token, the distillation token or registers if there are any, the patches row by row.
        """
        n, _, *sides = images.shape
        if any(side == 0 or side % self.patch_size for side in sides):
            raise ValueError(
                f"images of {sides[0]} x {sides[1]} px do not divide into patches of {self.patch_size} px. "
                "Choose an image size that is a multiple of it."
            )
        patches = self.patch_embed(images)
        leading = [token.expand(n, -1, -1) for token in (self.cls_token, self.dist_token) if token is not None]
        tokens = torch.cat([*leading, patches.flatten(2).transpose(1, 2)], dim=1)
        tokens = tokens + self._positions(patches.shape[2], patches.shape[3])
        return tokens if self.register_tokens is None else insert(tokens, self.register_tokens.expand(n, -1, -1))

    def forward_tokens(self, tokens: torch.Tensor, prefixes: Mapping[int, Prefix] | None = None) -> torch.Tensor:
        """Send tokens through all blocks and the last normalisation.

        Parameters
        ----------
        tokens : tensor of shape (n, t, width)
            From `embed`, with any number of others among them.
        prefixes : mapping of int to (keys, values), optional
            By block, counted from 0; tensors of shape (n, length, width) that the block's attention sees as keys and
            values before its own (they are not projected).

        Returns
        -------
        tokens : tensor of shape (n, t, width)
            The first one, the class token, is the feature.
        """
        prefixes = prefixes or {}
        if unknown := [block for block in prefixes if block not in range(len(self.blocks))]:
            raise ValueError(f"prefixes for blocks {unknown}, but the blocks are 0 to {len(self.blocks) - 1}.")
        for i, block in enumerate(self.blocks):
            tokens = block(tokens, prefixes.get(i))
        normalised: torch.Tensor = self.norm(tokens)
        return normalised

    def _positions(self, rows: int, columns: int) -> torch.Tensor:
        if (rows, columns) == (self.grid, self.grid):
            return self.pos_embed
        leading, patches = self.pos_embed.tensor_split([self.pos_embed.shape[1] - self.grid**2], dim=1)
        grid = patches.transpose(1, 2).reshape(1, -1, self.grid, self.grid)
        if self.position_offset is None:
            grid = interpolate(grid, size=(rows, columns), mode="bicubic", antialias=True)
        else:
            scale = tuple((side + self.position_offset) / self.grid for side in (rows, columns))
            grid = interpolate(grid, scale_factor=scale, mode="bicubic")
        return torch.cat([leading, grid.flatten(2).transpose(1, 2)], dim=1)

    def _initialise(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)
        # As large as what stands beside them, so that few samples are enough to learn where a patch is.
        for token in (self.cls_token, self.dist_token, self.pos_embed, self.register_tokens):
            if token is not None:
                nn.init.normal_(token)


def insert(tokens: torch.Tensor, prompts: torch.Tensor) -> torch.Tensor:
    """Put prompts, shape (n, length, width), after the class token of each sample's tokens, shape (n, t, width)."""
    return torch.cat([tokens[:, :1], prompts, tokens[:, 1:]], dim=1)
