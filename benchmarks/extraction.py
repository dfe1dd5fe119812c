"""Feature extraction through the cache against the bare forward pass of the same backbone, in one process.

    python benchmarks/extraction.py [--backbone efficientnet-lite0] [--images 512] [--rounds 3]

The bare pass gets batches that are resized and normalised already. Extraction reads, prepares, computes, checks, writes
and logs. The rounds take turns, so that both see the same machine.
"""

from __future__ import annotations

import argparse
import tempfile
import time

import numpy as np

from aircl.backbones import create_backbone
from aircl.backbones.cache import FeatureCache


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backbone", default="efficientnet-lite0")
    parser.add_argument("--images", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    images = np.random.default_rng(0).integers(0, 256, (args.images, 32, 32, 3), dtype=np.uint8)
    backbone = create_backbone(args.backbone, example=images[:1])
    size = backbone.batch_size
    prepared = [backbone.prepare(images[start : start + size]) for start in range(0, len(images), size)]
    backbone.forward(prepared[0])  # warm up

    bare, cached = [], []
    for number in range(args.rounds):
        start = time.perf_counter()
        for batch in prepared:
            backbone.forward(batch)
        bare.append(args.images / (time.perf_counter() - start))
        with tempfile.TemporaryDirectory() as directory:
            start = time.perf_counter()
            FeatureCache(directory).features(backbone, images, f"random images {number}")
            cached.append(args.images / (time.perf_counter() - start))
    print(f"{args.backbone}, {args.images} images of 32 x 32, batches of {size}, best of {args.rounds} rounds")
    print(f"  bare forward pass   {max(bare):7.1f} images/s")
    print(f"  extraction          {max(cached):7.1f} images/s = {max(cached) / max(bare):.0%}, target >= 90%")


if __name__ == "__main__":
    main()
