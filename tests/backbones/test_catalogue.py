import subprocess
import sys

import numpy as np
import pytest

from aircl.backbones import BACKBONES, BackboneEntry, BackboneError, create_backbone, list_backbones

NAMES = {
    "identity",
    "char-ngrams",
    "efficientnet-lite0",
    "dinov2-s-mri",
    "wordllama",
    "minilm-l6",
    "sentence-transformers:NAME",
    "base:resnet32",
    "base:vit-micro",
    "checkpoint:FILE",
    "timm:NAME",
    "hf:NAME",
}


def test_the_list_names_every_backbone_and_says_what_it_takes():
    infos = {info.name: info for info in list_backbones()}
    assert infos.keys() >= NAMES
    assert infos["identity"].available
    assert infos["char-ngrams"].kinds == ("texts",)
    assert infos["efficientnet-lite0"].width == 1280
    assert infos["efficientnet-lite0"].needs == "torch"
    assert all(info.description and info.kinds for info in infos.values())


def test_importing_the_list_imports_no_framework():
    program = (
        "import sys; from aircl.backbones import list_backbones; list_backbones(); "
        "print([name for name in ('torch', 'sklearn', 'wordllama', 'timm', 'transformers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_misspelt_name_is_answered_with_near_ones():
    with pytest.raises(ValueError, match="Did you mean 'efficientnet-lite0'"):
        create_backbone("efficientnet-lite")
    with pytest.raises(ValueError, match="there is no backbone 'tim:resnet50'"):
        create_backbone("tim:resnet50")


@pytest.mark.parametrize(
    "entry",
    [
        BackboneEntry(create=None, description="d", kinds=("images",), needs="extra", packages=("no_such_package",)),
        BackboneEntry(create=None, description="d", kinds=("images",), packages=("no_such_package",)),
    ],
)
def test_a_missing_package_is_named_with_what_installs_it(entry, monkeypatch):
    monkeypatch.setitem(BACKBONES._entries, "mine", entry)
    assert [info.available for info in list_backbones() if info.name == "mine"] == [False]
    install = r"pip install 'aircl\[extra\]'" if entry.needs else "pip install no_such_package"
    with pytest.raises(BackboneError, match=f"backbone 'mine' needs no_such_package. Install it: {install}"):
        create_backbone("mine")


def test_options_follow_a_name():
    backbone = create_backbone("char-ngrams,n_features=64,ngram_range=(2, 3)")
    assert (backbone.name, backbone.width) == ("char-ngrams,n_features=64,ngram_range=(2, 3)", 64)
    assert backbone.fingerprint == create_backbone("char-ngrams", n_features=64, ngram_range=(2, 3)).fingerprint
    with pytest.raises(ValueError, match="backbone 'char-ngrams' has no option 'nfeatures', which 'char-ngrams,nf"):
        create_backbone("char-ngrams,nfeatures=64")
    with pytest.raises(ValueError, match="'char-ngrams' has no precision to choose: it is not a network"):
        create_backbone("char-ngrams", precision="bfloat16")
    # What computes on the CPU alone takes any device for granted.
    assert create_backbone("char-ngrams", device="auto").width == 1024


def test_a_backbone_of_ones_own_is_one_registration(monkeypatch):
    class Mine:
        def __init__(self, name, *, width):
            self.name, self.width = name, width

    monkeypatch.setattr(BACKBONES, "_entries", dict(BACKBONES._entries))
    BACKBONES.register("mine:NAME")(BackboneEntry(Mine, "my own", ("images",)))
    backbone = create_backbone("mine:special", width=3, example=np.zeros((1, 3)))
    assert (backbone.name, backbone.width) == ("mine:special", 3)
