"""recollect: the default preset on SQLite, with the embedder that the variant names."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from adapter import FOLDER, MODEL, VARIANT, Item, Peer, serve
from msgspec.structs import replace

from recollect import Memory
from recollect.models.embedders import open_embedder
from recollect.presets import load
from recollect.values.errors import InputError


class Recollect(Peer):
    def __init__(self) -> None:
        super().__init__()
        embedder: Any = {"local": "local", "words": "none"}.get(VARIANT)
        if VARIANT == "minilm":
            embedder = open_embedder(f"local:{MODEL}", pooling="mean")
        self.embeds = VARIANT != "words"
        rules = load("recollect")
        # As `recollect eval` does it: a busy machine may be slow, what it finds must not depend on that.
        rules = replace(rules, recall=replace(rules.recall, patience=600.0))
        self.memory = Memory(FOLDER, preset=rules, embedder=embedder, clock=self.clock)
        self.names: dict[str, str] = {}
        """The product's id of each of ours."""

    def clock(self) -> datetime:
        return datetime.fromisoformat(self.now) if self.now else datetime.now(UTC)

    def add(self, items: list[Item]) -> None:
        for item in items:
            if "replaces" in item:
                old, changes = self.names[item["replaces"]], {"content": item["text"], "metadata": {"id": item["id"]}}
                self.names[item["id"]] = self.memory.revise(old, **changes).id
        self.store([item for item in items if "replaces" not in item])

    def store(self, items: list[Item]) -> None:
        fields = [
            {
                "content": item["text"],
                "created_at": datetime.fromisoformat(item["time"]),
                "conversation": item["session"],
                "role": item.get("role"),
                "metadata": {"id": item["id"]},
            }
            for item in items
        ]
        try:
            if len(fields) == 1:
                records = [self.memory.remember(fields[0].pop("content"), **fields[0])]
            else:
                records = self.memory.remember_many(fields) if fields else []
        except InputError as error:
            # A text that looks like a credential is refused, and with it the batch that it is in.
            if error.field != "content" or len(items) < 2:
                if error.field == "content":
                    return
                raise
            half = len(items) // 2
            self.store(items[:half])
            self.store(items[half:])
            return
        self.names.update((item["id"], record.id) for item, record in zip(items, records, strict=True))

    def settle(self) -> None:
        if self.embeds:
            self.memory.embed()

    def search(self, query: str, k: int) -> list[str]:
        return [hit.memory.metadata["id"] for hit in self.memory.recall(query, limit=k, touch=False)]

    def present(self, ids: list[str]) -> list[str]:
        stored = {record.metadata["id"] for record in self.memory.list(state=None, limit=1_000_000)}
        return [id for id in ids if id in stored]

    def close(self) -> None:
        self.memory.close()


if __name__ == "__main__":
    serve(Recollect)
