"""Chroma: a persistent client, one collection, its default embedding function."""

from __future__ import annotations

from pathlib import Path

import chromadb
from adapter import FOLDER, MODEL, Item, Peer, serve
from chromadb.config import Settings
from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2

# Where Chroma keeps the model that it else downloads: run.py has put the same weights there.
ONNXMiniLM_L6_V2.DOWNLOAD_PATH = Path(MODEL).parent


class Chroma(Peer):
    def __init__(self) -> None:
        super().__init__()
        self.client = chromadb.PersistentClient(FOLDER, Settings(anonymized_telemetry=False))
        self.collection = self.client.get_or_create_collection("memories")

    def add(self, items: list[Item]) -> None:
        if old := [item["replaces"] for item in items if "replaces" in item]:
            self.collection.delete(ids=old)
        metadata = [{"time": item["time"], "session": item["session"] or ""} for item in items]
        self.collection.add(
            ids=[item["id"] for item in items], documents=[item["text"] for item in items], metadatas=metadata
        )

    def search(self, query: str, k: int) -> list[str]:
        return self.collection.query(query_texts=[query], n_results=k, include=[])["ids"][0]

    def present(self, ids: list[str]) -> list[str]:
        return self.collection.get(ids=ids, include=[])["ids"]


if __name__ == "__main__":
    serve(Chroma)
