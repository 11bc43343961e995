"""mem0 without a language model: `add(infer=False)`, its Qdrant in a folder, FastEmbed for vectors."""

from __future__ import annotations

from adapter import FOLDER, Item, Peer, serve
from mem0 import Memory

USER = "someone"
CONFIG = {
    "vector_store": {
        "provider": "qdrant",
        "config": {"path": f"{FOLDER}/qdrant", "embedding_model_dims": 384, "on_disk": True},
    },
    "embedder": {"provider": "fastembed", "config": {"model": "sentence-transformers/all-MiniLM-L6-v2"}},
    "llm": {"provider": "openai", "config": {"api_key": "never used"}},
    "history_db_path": f"{FOLDER}/history.db",
}


class Mem0(Peer):
    def __init__(self) -> None:
        super().__init__()
        self.memory = Memory.from_config(CONFIG)
        self.names: dict[str, str] = {}
        """The product's id of each of ours."""

    def add(self, items: list[Item]) -> None:
        for item in items:
            if "replaces" in item:
                self.memory.delete(self.names[item["replaces"]])
            message = {"role": item.get("role") or "user", "content": item["text"]}
            metadata = {"name": item["id"], "created_at": item["time"], "session": item["session"]}
            stored = self.memory.add([message], user_id=USER, infer=False, metadata=metadata)["results"]
            self.names.update((item["id"], each["id"]) for each in stored)

    def search(self, query: str, k: int) -> list[str]:
        results = self.memory.search(query, top_k=k, filters={"user_id": USER})["results"]
        return [each["metadata"]["name"] for each in results]

    def present(self, ids: list[str]) -> list[str]:
        everything = self.memory.get_all(filters={"user_id": USER}, top_k=1_000_000)["results"]
        stored = {each["metadata"]["name"] for each in everything}
        return [id for id in ids if id in stored]

    def close(self) -> None:
        self.memory.close()


if __name__ == "__main__":
    serve(Mem0)
