"""A ViT that is small enough to be trained, and to be prompted many times, while one waits."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from aircl.backbones.backbone import Backbone, BackboneError

IMAGE_SIZE, PATCH_SIZE = 8, 4
# As many blocks as prompts of the published methods enter.
WIDTH, DEPTH, HEADS = 32, 5, 4
EPOCHS = 60
RANDOM_TOKENS = 5


def train_vit(images: npt.NDArray[np.uint8], labels: npt.NDArray[np.int64], *, epochs: int = EPOCHS) -> Backbone:
    """Train a ViT of 5 blocks, 32 features and 2 x 2 patches on a few images.

    It learns to see an image with its class token and with tokens of random content beside it alike. L2P and DAP read
    what comes out in the places of such tokens; a ViT that was taught by its class token alone puts next to nothing
    there (classes lie a quarter of the common mean apart), and a few dozen steps on a phase cannot make up for it.

    Parameters
    ----------
    images : uint8 array of shape (n, height, width, channels)
    labels : array of shape (n,)
    epochs : int

    Raises
    ------
    BackboneError
        If there is no torch.
    """
    try:
        import torch
    except ImportError as error:
        raise BackboneError("torch is not installed: pip install 'aircl[torch]'.") from error
    from aircl.backbones.network import Network
    from aircl.backbones.training import train_classifier
    from aircl.backbones.transform import ImageTransform
    from aircl.backbones.vit import VisionTransformer, insert

    class Guessing(torch.nn.Module):
        """The ViT with tokens of random content after its class token; its feature is the mean over all of these."""

        def __init__(self, vit: VisionTransformer) -> None:
            super().__init__()
            self.vit, self.generator = vit, torch.Generator().manual_seed(0)

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            shape = len(images), RANDOM_TOKENS, WIDTH
            drawn = torch.empty(shape).uniform_(-1, 1, generator=self.generator) + self.vit.pos_embed[:, :1]
            seen = self.vit.forward_tokens(insert(self.vit.embed(images), drawn))
            return seen[:, : 1 + RANDOM_TOKENS].mean(1)

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = VisionTransformer(
            image_size=IMAGE_SIZE, patch_size=PATCH_SIZE, width=WIDTH, depth=DEPTH, heads=HEADS, mlp_width=2 * WIDTH
        )
    transform = ImageTransform(IMAGE_SIZE, mean=(0.3,) * 3, std=(0.4,) * 3)
    train_classifier(
        Guessing(module),
        WIDTH,
        transform.resize(images),
        torch.from_numpy(np.unique(labels, return_inverse=True)[1]),
        transform.normalise,
        generator=torch.Generator().manual_seed(0),
        epochs=epochs,
        batch_size=100,
        learning_rate=6e-3,
        shift=1,
        flip=False,
        progress=False,
        description="",
    )
    return Network("trial-vit", module, transform, width=WIDTH, architecture="trial-vit")
