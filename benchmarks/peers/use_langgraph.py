"""LangGraph's stores: SqliteStore in a file, or InMemoryStore. Both index by an embedding function of one's own."""

from __future__ import annotations

import pysqlite3 as sqlite3  # the standard module, built so that it loads extensions, which not every Python's does
from adapter import FOLDER, VARIANT, Item, Peer, serve
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from vectors import MiniLM

SPACE = ("memories",)


class LangGraph(Peer):
    def __init__(self) -> None:
        super().__init__()
        index = {"dims": 384, "embed": MiniLM(), "fields": ["text"]}
        if VARIANT == "memory":
            self.store = InMemoryStore(index=index)
            return
        # As SqliteStore.from_conn_string connects.
        connection = sqlite3.connect(f"{FOLDER}/store.db", check_same_thread=False, isolation_level=None)
        self.store = SqliteStore(connection, index=index)
        self.store.setup()

    def add(self, items: list[Item]) -> None:
        for item in items:
            if "replaces" in item:
                self.store.delete(SPACE, item["replaces"])
        # SqliteStore takes no notice of `fields` above: it would embed the whole value, with its id and time.
        puts = [PutOp(SPACE, item["id"], item, index=["text"]) for item in items]
        # InMemoryStore refuses a batch in which two texts are the same.
        for some in [[put] for put in puts] if VARIANT == "memory" else [puts]:
            self.store.batch(some)

    def search(self, query: str, k: int) -> list[str]:
        return [item.key for item in self.store.search(SPACE, query=query, limit=k)]

    def present(self, ids: list[str]) -> list[str]:
        return [id for id in ids if self.store.get(SPACE, id) is not None]


if __name__ == "__main__":
    serve(LangGraph)
