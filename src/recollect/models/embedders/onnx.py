"""A network for text in a folder with `model.onnx` and `tokenizer.json`, run by ONNX Runtime."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from recollect.models.embedders.native import native
from recollect.runtime import imports
from recollect.values.errors import ModelError

MODEL, TOKENIZER = "model.onnx", "tokenizer.json"
_MAX_THREADS = 2
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


class Network:
    """The loaded network: tokens in, the first of its outputs out. Several threads may run it at once."""

    def __init__(self, folder: Path) -> None:
        self._session = _session(folder / MODEL)
        self._inputs = [tensor.name for tensor in self._session.get_inputs()]
        self._output = self._session.get_outputs()[0]
        strange = [name for name in self._inputs if name not in _INPUTS]
        if strange:
            wants = ", ".join(strange)
            raise ModelError(f"{folder}: the model asks for {wants}; export it as a model of text alone")

    @property
    def width(self) -> Any:
        """The size of the last axis of its output, or the name that the model has for it."""
        return self._output.shape[-1]

    def run(self, tokens: Sequence[int], second_from: int | None = None) -> Any:
        """The output for one text, or for a pair of which the second begins at that token."""
        import numpy as np

        ids = np.array([tokens], np.int64)
        types = np.zeros_like(ids)
        if second_from is not None:
            types[:, second_from:] = 1
        feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": types}
        try:
            with native:
                return self._session.run([self._output.name], {name: feeds[name] for name in self._inputs})[0]
        except ModelError:
            raise
        except Exception as error:  # what it raises has no common name
            raise ModelError(
                f"ONNX Runtime cannot run the model; does tokenizer.json belong to it? ({error})"
            ) from None


def _session(path: Path) -> Any:
    # ONNX Runtime reports to its maker unless it is told not to before it is imported.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    imports.load("onnxruntime")
    import onnxruntime  # pyright: ignore[reportMissingTypeStubs]

    runtime: Any = onnxruntime
    runtime.disable_telemetry_events()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1  # several texts at once make more of several cores than several threads a text
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # what it raises has no common name
        problem = " ".join(str(error).split())
        raise ModelError(f"{path}: ONNX Runtime cannot load it; install the model again ({problem})") from None


def abandon(network: object) -> None:
    """After a fork: never free a network that the parent process had loaded.

    Its threads stayed in the parent. To run it here, or only to free it, would wait for them for ever.
    """
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(network))


def check_folder(folder: Path) -> None:
    for name in (MODEL, TOKENIZER):
        if not (folder / name).is_file():
            raise ModelError(f"there is no {folder / name}; run `recollect models pull`, or give a model's folder")
    if find_spec("onnxruntime") is None:
        raise ModelError("onnxruntime is not installed; run `pip install onnxruntime`")


def usual_threads() -> int:
    return min(_MAX_THREADS, _cores())


def _cores() -> int:
    """Those that this process may use, which in a container are often fewer than there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
