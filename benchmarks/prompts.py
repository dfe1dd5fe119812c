"""Images on a ViT for each second of a core: frozen forward passes, and training and prediction of prompt methods.

    python benchmarks/prompts.py [--backbone dinov2-s-mri] [--sizes 98,112] [--images 48] [--methods l2p,ease]

Images are noise, in one phase of ten classes and one epoch. A trained image is counted with the pass without prompts
that a method needs of it; so is a predicted one. Seconds are those of the processor, so other programs do not count.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch

from aircl.backbones import BackboneError, create_backbone
from aircl.methods import Setup, create_method, resolve_options
from aircl.methods.registry import load_methods

METHODS = "l2p,dualprompt,coda-prompt,mvp,mvp-r,dap,ease"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backbone", default="dinov2-s-mri")
    parser.add_argument("--sizes", default="98,112")
    parser.add_argument("--images", type=int, default=48)
    parser.add_argument("--methods", default=METHODS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    load_methods()
    try:
        create_backbone(arguments.backbone, device="cpu")
    except BackboneError as error:  # its weights are fetched by a command of their own
        print(error)
        return
    images = np.random.default_rng(0).integers(0, 256, (arguments.images, 32, 32, 3), np.uint8)
    labels = np.arange(len(images)) % 10
    for size in arguments.sizes.split(","):
        backbone = create_backbone(f"{arguments.backbone},size={size}", device="cpu")
        backbone.forward(backbone.prepare(images[:8]))  # the first pass is slower
        began = time.process_time()
        backbone.forward(backbone.prepare(images))
        print(f"{size} px  forward      {len(images) / (time.process_time() - began):6.1f} images/s", flush=True)
        for name in arguments.methods.split(","):
            options = resolve_options(name, {"epochs": 1}, online=False)
            setup = Setup(1, backbone.width, batch_size=16, backbone=backbone, device="cpu", options=options)
            method = create_method(name, setup)
            began = time.process_time()
            for start in range(0, len(images), 16):
                method.learn(images[start : start + 16], labels[start : start + 16])
            method.end_phase(None)
            trained = time.process_time()
            method.predict(method.encode(images))
            predicted = time.process_time()
            rates = (len(images) / (trained - began), len(images) / (predicted - trained))
            print(f"{size} px  {name:12s} {rates[0]:6.1f} trained, {rates[1]:6.1f} predicted images/s", flush=True)


if __name__ == "__main__":
    main()
