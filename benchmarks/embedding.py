"""The local embedder against the bare ONNX session, in one run, with the same number of threads.

The floor is given token arrays that are ready to run, in batches of texts of one length as a program would make them
that does not care whether a text's vector depends on its batch. Ours begins with texts, embeds each by itself, and
ends with vectors of length one. They take turns on shares of the texts, so that a noisy machine disturbs both alike. A
session as it comes lets threads spin while they wait, which costs it much on a busy machine: a second floor does not.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import numpy as np
import onnxruntime
from corpus import sentences

from recollect.models.embedders import available
from recollect.models.embedders.local import LocalEmbedder
from recollect.models.embedders.wordpiece import WordPiece

_THREADS = 2
_SHARES = 20
_BATCH_TOKENS = 256


def turns(count: int = 1000) -> list[str]:
    """As people chat: some of three words, some of thirty."""
    rng = random.Random(5)
    return [" ".join(text.split()[: rng.randint(3, 30)]) for text in sentences(count)]


def session(folder: Path, spin: str | None = None) -> onnxruntime.InferenceSession:
    """With nothing set but the threads, and how many microseconds they spin."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = _THREADS
    if spin is not None:
        options.add_session_config_entry("session.intra_op.spin_duration_us", spin)
    return onnxruntime.InferenceSession(str(folder / "model.onnx"), options)


def batched(tokens: list[list[int]]) -> list[dict[str, np.ndarray]]:
    """Texts of about one length together, padded to the longest."""
    batches: list[list[list[int]]] = []
    for ids in sorted(tokens, key=len, reverse=True):
        if not batches or len(batches[-1][0]) * (len(batches[-1]) + 1) > _BATCH_TOKENS:
            batches.append([])
        batches[-1].append(ids)
    return [padded(batch) for batch in batches]


def padded(batch: list[list[int]]) -> dict[str, np.ndarray]:
    ids = np.zeros((len(batch), max(map(len, batch))), np.int64)
    mask = np.zeros_like(ids)
    for row, tokens in enumerate(batch):
        ids[row, : len(tokens)], mask[row, : len(tokens)] = tokens, 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def main() -> None:
    folder = available()
    if folder is None:
        sys.exit("the model is not there; run `recollect models pull` and `pip install 'recollect[local]'`")
    embedder = LocalEmbedder.named(threads=_THREADS)
    embedder.embed_documents(["warm"])
    bare, patient = session(folder), session(folder, "20")
    tokenizer = WordPiece(json.loads((folder / "tokenizer.json").read_bytes()), 512)
    texts = turns()
    mine: list[float] = []
    floor: list[float] = []
    still: list[float] = []
    for share in range(_SHARES):
        part = texts[share::_SHARES]
        feeds = batched([tokenizer.encode(text) for text in part])
        floor.append(seconds(lambda feeds=feeds: [bare.run(None, feed) for feed in feeds]))
        still.append(seconds(lambda feeds=feeds: [patient.run(None, feed) for feed in feeds]))
        mine.append(seconds(lambda part=part: embedder.embed_documents(part)))
    ratio = sum(floor) / sum(mine)
    shares = [f / m for f, m in zip(floor, mine, strict=True)]
    if "--json" in sys.argv:
        print(
            json.dumps(
                {
                    "texts": len(texts),
                    "ours_s": sum(mine),
                    "floor_s": sum(floor),
                    "ratio": ratio,
                    "patient_s": sum(still),
                }
            )
        )
        return
    print(f"{len(texts):,} texts on {_THREADS} threads: ours {sum(mine):.2f} s ({len(texts) / sum(mine):.0f} a second)")
    print(f"the session alone, on the same token arrays: {sum(floor):.2f} s")
    print(f"the same, without spinning: {sum(still):.2f} s; rate {sum(still) / sum(mine):.2f}× of that")
    print(f"rate {ratio:.2f}× of the floor, median of {_SHARES} shares {statistics.median(shares):.2f}× (goal ≥ 0.9×)")


if __name__ == "__main__":
    main()
