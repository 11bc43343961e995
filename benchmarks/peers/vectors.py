"""all-MiniLM-L6-v2 as a function from texts to vectors, for products that take one and ship none."""

from __future__ import annotations

import numpy as np
import onnxruntime
from adapter import MODEL
from tokenizers import Tokenizer

BATCH = 32


class MiniLM:
    def __init__(self) -> None:
        self.session = onnxruntime.InferenceSession(f"{MODEL}/model.onnx")
        self.tokenizer = Tokenizer.from_file(f"{MODEL}/tokenizer.json")
        self.tokenizer.enable_truncation(256)
        self.tokenizer.enable_padding()

    def __call__(self, texts: list[str]) -> list[list[float]]:
        """Vectors of length one. Texts of like length share a batch, so that little is padded."""
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        vectors: dict[int, list[float]] = {}
        for start in range(0, len(order), BATCH):
            places = order[start : start + BATCH]
            encoded = self.tokenizer.encode_batch([texts[place] for place in places])
            ids = np.array([each.ids for each in encoded])
            mask = np.array([each.attention_mask for each in encoded])
            inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            hidden = self.session.run(None, inputs)[0]
            means = (hidden * mask[..., None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
            means /= np.linalg.norm(means, axis=1, keepdims=True)
            vectors.update(zip(places, means.tolist(), strict=True))
        return [vectors[place] for place in range(len(texts))]
