"""ResNet-32 for small images."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn
from torch.nn.functional import pad, relu


class ResidualBlock(nn.Module):
    """Two 3 x 3 convolutions, added to what came in.

    Parameters
    ----------
    inputs, outputs : int
        Channels. Where they differ, what came in is halved in size and filled up with zero channels.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.added = outputs - inputs
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=2 if self.added else 1, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return (n, outputs, height, width) maps; height and width are halved where channels are added."""
        change = self.norm2(self.conv2(relu(self.norm1(self.conv1(x)))))
        if self.added:
            x = pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.added // 2, self.added - self.added // 2))
        return relu(x + change)


class ResNet32(nn.Module):
    """The ResNet for CIFAR: three stages of five blocks with 16, 32 and 64 channels, then the mean over places.

    References
    ----------
    .. [1] He et al. "Deep Residual Learning for Image Recognition." CVPR 2016, section 4.2.

    Examples
    --------
    >>> import torch
    >>> from aircl.backbones.resnet import ResNet32
    >>> ResNet32()(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 64])
    """

    width = 64

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(16)
        channels = [16] * 6 + [32] * 5 + [64] * 5
        self.blocks = nn.Sequential(*(ResidualBlock(*pair) for pair in pairwise(channels)))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return features of shape (n, 64) for images of shape (n, 3, height, width)."""
        maps: torch.Tensor = self.blocks(relu(self.norm(self.conv(images))))
        return maps.mean((2, 3))
