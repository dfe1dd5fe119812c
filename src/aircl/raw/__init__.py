"""Texts and images as sources of features: read in blocks, through a frozen backbone, each block computed once."""

from aircl.raw.columns import Columns, find_label, find_texts
from aircl.raw.encoded import EncodedSource
from aircl.raw.folders import open_folder
from aircl.raw.frozen import FrozenBackbone, default_backbone
from aircl.raw.functions import FunctionSource
from aircl.raw.tables import ImageTable, TextTable, open_table

__all__ = [
    "Columns",
    "EncodedSource",
    "FrozenBackbone",
    "FunctionSource",
    "ImageTable",
    "TextTable",
    "default_backbone",
    "find_label",
    "find_texts",
    "open_folder",
    "open_table",
]
