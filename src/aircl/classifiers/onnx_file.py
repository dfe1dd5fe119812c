"""A classifier as an ONNX graph: the layer of its expansion, MatMul and Add for the scores, a softmax."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from aircl.classifiers.file import FileError
from aircl.engine.backend import Array, backend_of
from aircl.expansion import AutoBuffer, GaussianKernel
from aircl.storage.writing import replacing

# What runtimes of 2021 and later read.
OPSET, IR_VERSION = 13, 7

# The header of an export, among the properties of the graph.
PROPERTY = "aircl"


def layer_constants(expansion: Any) -> dict[str, Array]:
    """Return the constants of a random ReLU layer or of a kernel, or nothing if there is no expansion."""
    if expansion is None:
        return {}
    expansion = getattr(expansion, "estimator", expansion)  # of one that is frozen
    if isinstance(expansion, AutoBuffer):
        return {f"layer.{name}": array for name, array in expansion._layer().items()}
    if isinstance(expansion, GaussianKernel):
        kernel = {"origin": expansion._origin, "half_norms": expansion._half_norms}
        kernel = {name: backend_of(array).to_numpy(array) for name, array in kernel.items()}
        kernel |= {"half": np.array([0.5]), "zero": np.zeros(1), "axes": np.array([1])}
        if expansion.sigma != "median":  # else it is among what is fitted
            kernel["sigma"] = np.array([expansion.sigma_])
        return {f"kernel.{name}": array for name, array in kernel.items()}
    if type(expansion).__name__ != "RandomReLU":
        raise ValueError(
            f"{type(expansion).__name__} cannot be exported to ONNX, only transformers of aircl can. Export to "
            "safetensors."
        )
    return {"expansion.components": expansion._state_arrays()["components"]}


# exp(-|x - m|^2 / 2 sigma^2), with the origin among the centres m, as `GaussianKernel` has it.
_KERNEL = [
    ("Sub", ["X", "kernel.origin"], ["rows"]),
    ("Sub", ["expansion.centers", "kernel.origin"], ["centers"]),
    ("Transpose", ["centers"], ["columns"]),
    ("MatMul", ["rows", "columns"], ["along"]),
    ("Mul", ["rows", "rows"], ["squares"]),
    ("ReduceSum", ["squares", "kernel.axes"], ["lengths"]),
    ("Mul", ["lengths", "kernel.half"], ["half_lengths"]),
    ("Sub", ["along", "half_lengths"], ["differences"]),
    ("Sub", ["differences", "kernel.half_norms"], ["distances"]),
    ("Min", ["distances", "kernel.zero"], ["clipped"]),
    ("Div", ["clipped", "variance"], ["exponents"]),
    ("Exp", ["exponents"], ["features"]),
]


def write(
    path: Path, header: str, arrays: Mapping[str, Array], temperature: float | None, form: str = "linear"
) -> None:
    """Write a graph from `X` to `scores`, `label_index` and, with a temperature, `probabilities`.

    Parameters
    ----------
    path : Path
    header : str
        Of the export; its labels are those that `label_index` counts, in ascending order.
    arrays : mapping
        `weights`, perhaps `intercept` and what `layer_constants` returned.
    temperature : float or None
    form : {"linear", "cosine", "two-streams"}, default="linear"
        What is multiplied by the weights: the features, the same at length 1, or those after a ReLU and a tanh.
    """
    onnx = _onnx()
    helper, dtype = onnx.helper, np.dtype(arrays["weights"].dtype)
    kind = onnx.TensorProto.DOUBLE if dtype == np.float64 else onnx.TensorProto.FLOAT
    constants = {n: array if array.dtype.kind == "i" else np.asarray(array, dtype) for n, array in arrays.items()}
    components = next((name for name in ("expansion.components", "layer.components") if name in constants), None)
    width = constants[components or "weights"].shape[0]
    nodes, features = [], "X"
    if "kernel.origin" in constants:
        width, features = len(constants["kernel.origin"]), "features"
        sigma = "expansion.sigma" if "expansion.sigma" in constants else "kernel.sigma"
        nodes.append(helper.make_node("Mul", [sigma, sigma], ["variance"]))
        nodes += [helper.make_node(*node) for node in _KERNEL]
    elif components is not None:
        if components == "layer.components" and "layer.threshold" not in constants:
            nodes.append(helper.make_node("LpNormalization", ["X"], ["rows"], axis=1, p=2))
            features = "rows"
        nodes.append(helper.make_node("MatMul", [features, components], ["projected"]))
        features = "projected"
        if "layer.threshold" in constants:
            nodes.append(helper.make_node("Add", ["projected", "layer.threshold"], ["shifted"]))
            features = "shifted"
        if form == "two-streams":
            nodes.append(helper.make_node("Relu", [features], ["main"]))
            nodes.append(helper.make_node("Tanh", [features], ["compensation"]))
            nodes.append(helper.make_node("Concat", ["main", "compensation"], ["features"], axis=1))
        else:
            nodes.append(helper.make_node("Relu", [features], ["features"]))
        features = "features"
    if form == "cosine":
        nodes.append(helper.make_node("LpNormalization", [features], ["directions"], axis=1, p=2))
        features = "directions"
    has_intercept = "intercept" in constants
    nodes.append(helper.make_node("MatMul", [features, "weights"], ["products" if has_intercept else "scores"]))
    if has_intercept:
        nodes.append(helper.make_node("Add", ["products", "intercept"], ["scores"]))
    nodes.append(helper.make_node("ArgMax", ["scores"], ["label_index"], axis=1, keepdims=0))
    n_classes = constants["weights"].shape[1]
    outputs = [
        helper.make_tensor_value_info("scores", kind, ["n", n_classes]),
        helper.make_tensor_value_info("label_index", onnx.TensorProto.INT64, ["n"]),
    ]
    if temperature is not None:
        constants["temperature"] = np.array([temperature], dtype)
        nodes.append(helper.make_node("Div", ["scores", "temperature"], ["logits"]))
        nodes.append(helper.make_node("Softmax", ["logits"], ["probabilities"], axis=1))
        outputs.append(helper.make_tensor_value_info("probabilities", kind, ["n", n_classes]))
    graph = helper.make_graph(
        nodes,
        "aircl",
        [helper.make_tensor_value_info("X", kind, ["n", width])],
        outputs,
        [onnx.numpy_helper.from_array(array, name) for name, array in sorted(constants.items())],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="aircl"
    )
    helper.set_model_props(model, {PROPERTY: header})
    onnx.checker.check_model(model)
    with replacing(path) as temporary:
        temporary.write_bytes(model.SerializeToString(deterministic=True))


def read(path: Path) -> tuple[str, dict[str, Array]]:
    """Return the header and the arrays of a graph that `write` wrote; nothing of it is run."""
    onnx = _onnx()
    try:
        model = onnx.load(path, load_external_data=False)
        arrays = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    except Exception as error:  # of protobuf, whose classes differ between versions
        raise FileError(f"{path} is no whole ONNX file ({error}).") from error
    header = {entry.key: entry.value for entry in model.metadata_props}.get(PROPERTY)
    if header is None:
        raise FileError(f"{path} is an ONNX file, but not one that aircl wrote.")
    if not all(np.isfinite(array).all() for array in arrays.values() if array.dtype.kind in "fiu"):
        raise FileError(f"{path} holds numbers that are not finite (NaN or infinite).")
    arrays.pop("temperature", None)
    return header, arrays


def _onnx() -> Any:
    try:
        import onnx
        import onnx.checker
        import onnx.numpy_helper
    except ImportError as error:
        raise ImportError("files of ONNX need the package onnx: pip install 'aircl[onnx]'.") from error
    return onnx
