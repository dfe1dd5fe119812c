"""Files of embeddings, read in batches: csv, parquet, npz, npy and safetensors, each in constant memory."""

from aircl.data.arrays.files import agree_on_labels, expand_patterns, open_files
from aircl.data.arrays.generated import is_entry, open_entry
from aircl.data.arrays.source import Batch, DataError, LabelKind, Request, Source

__all__ = [
    "Batch",
    "DataError",
    "LabelKind",
    "Request",
    "Source",
    "agree_on_labels",
    "expand_patterns",
    "is_entry",
    "open_entry",
    "open_files",
]
