"""Where samples come from, one file per source; `load_dataset` finds them by name."""

from aircl.data import (  # noqa: F401 (importing a source files it under its name)
    cifar100,
    cities,
    digits,
    features,
    huggingface,
    image_folder,
    imagenet_r,
    tiny_imagenet,
)
from aircl.data.arrays.source import DataError
from aircl.data.catalogue import (
    DATASETS,
    DatasetInfo,
    DataSource,
    find_datasets,
    list_datasets,
    load_dataset,
    register_dataset,
)
from aircl.data.dataset import Dataset, Split
from aircl.data.samples import ArrayInputs, ImageFiles, Texts

__all__ = [
    "DATASETS",
    "ArrayInputs",
    "DataError",
    "DataSource",
    "Dataset",
    "DatasetInfo",
    "ImageFiles",
    "Split",
    "Texts",
    "find_datasets",
    "list_datasets",
    "load_dataset",
    "register_dataset",
]
