"""hindsight without a language model: texts are kept as chunks. Its engine in process, its PostgreSQL beside it."""

from __future__ import annotations

import asyncio
import os
from datetime import datetime
from typing import Any

from adapter import MODEL, Item, Peer, serve

os.environ |= {
    "HINDSIGHT_API_LLM_PROVIDER": "none",
    # Its own model and its cross-encoder are on the model hub only.
    "HINDSIGHT_API_EMBEDDINGS_PROVIDER": "onnx",
    "HINDSIGHT_API_EMBEDDINGS_ONNX_MODEL_PATH": f"{MODEL}/model.onnx",
    "HINDSIGHT_API_EMBEDDINGS_ONNX_TOKENIZER_NAME_OR_PATH": MODEL,
    "HINDSIGHT_API_EMBEDDINGS_ONNX_MAX_TOKENS": "256",
    "HINDSIGHT_API_EMBEDDINGS_ONNX_QUERY_PREFIX": "",
    "HINDSIGHT_API_EMBEDDINGS_ONNX_PASSAGE_PREFIX": "",
    "HINDSIGHT_API_RERANKER_PROVIDER": "rrf",
}

from hindsight_api import MemoryEngine
from hindsight_api.models import RequestContext

BANK = "memories"


class Hindsight(Peer):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.engine = MemoryEngine()
        self.loop.run_until_complete(self.engine.initialize())

    def run(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    def add(self, items: list[Item]) -> None:
        for item in items:
            if "replaces" in item:
                self.run(self.engine.delete_document(item["replaces"], BANK, request_context=RequestContext()))
        contents = [
            {"content": item["text"], "event_date": datetime.fromisoformat(item["time"]), "document_id": item["id"]}
            for item in items
        ]
        self.run(self.engine.retain_batch_async(BANK, contents, request_context=RequestContext()))

    def search(self, query: str, k: int) -> list[str]:
        date = datetime.fromisoformat(self.now) if self.now else None
        recalled = self.run(
            self.engine.recall_async(
                BANK, query, max_tokens=100_000, question_date=date, request_context=RequestContext()
            )
        )
        return list(dict.fromkeys(fact.document_id for fact in recalled.results))[:k]

    def present(self, ids: list[str]) -> list[str]:
        documents = [self.run(self.engine.get_document(id, BANK, request_context=RequestContext())) for id in ids]
        return [id for id, document in zip(ids, documents, strict=True) if document is not None]

    def close(self) -> None:
        self.run(self.engine.close())


if __name__ == "__main__":
    serve(Hindsight)
