"""Learning on many cores and machines: shards are learned apart and merged, and the result is that of one process.

>>> import numpy as np
>>> from aircl import AIRClassifier
>>> from aircl.distributed import fit_joblib
>>> X, y = np.eye(4)[[0, 1, 2, 3, 0, 1]], np.array(list("abcdab"))
>>> clf = fit_joblib(AIRClassifier(0.1), [(X[:3], y[:3]), (X[3:], y[3:])], workers=1)
>>> clf.predict(np.eye(4)).tolist()
['a', 'b', 'c', 'd']
"""

from aircl.distributed.dask import fit_dask
from aircl.distributed.joblib import fit_joblib
from aircl.distributed.learning import Known, LostWorkersError, NothingToLearnError, Progress
from aircl.distributed.shard import Shard
from aircl.distributed.torch import fit_torch

__all__ = [
    "Known",
    "LostWorkersError",
    "NothingToLearnError",
    "Progress",
    "Shard",
    "fit_dask",
    "fit_joblib",
    "fit_torch",
]
