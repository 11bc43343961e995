"""basic-memory: the tools of its MCP server, called in process; each memory is a Markdown note."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import pysqlite3
from adapter import VARIANT, Item, Peer, serve

# It needs a sqlite3 that loads extensions, which not every Python has. This is the standard module, built so.
sys.modules["sqlite3"] = pysqlite3

# Its own model, bge-small-en-v1.5, is on the model hub only. Its least similarity of 0.55 is meant for that one.
os.environ["BASIC_MEMORY_SEMANTIC_EMBEDDING_MODEL"] = "sentence-transformers/all-MiniLM-L6-v2"
os.environ["BASIC_MEMORY_SEMANTIC_MIN_SIMILARITY"] = VARIANT

import basic_memory.mcp.tools  # noqa: E402, F401  (registers the tools)
from basic_memory.mcp.server import mcp  # noqa: E402
from fastmcp import Client  # noqa: E402
from loguru import logger  # noqa: E402

logger.remove()
NOTES = "notes"


class BasicMemory(Peer):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.client = Client(mcp)
        self.loop.run_until_complete(self.client.__aenter__())

    def tool(self, name: str, **arguments: Any) -> dict[str, Any]:
        answer = self.loop.run_until_complete(self.client.call_tool(name, {**arguments, "output_format": "json"}))
        data = answer.structured_content or {}
        data = data.get("result", data)
        if not isinstance(data, dict) or data.get("error"):
            raise RuntimeError(str(data)[:400])
        return data

    def add(self, items: list[Item]) -> None:
        for item in items:
            if "replaces" in item:
                self.tool("delete_note", identifier=f"{NOTES}/{item['replaces']}")
            self.tool("write_note", title=item["id"], content=item["text"], directory=NOTES)

    def search(self, query: str, k: int) -> list[str]:
        results = self.tool("search_notes", query=query, page_size=k)["results"]
        return list(dict.fromkeys(result["title"] for result in results))

    def present(self, ids: list[str]) -> list[str]:
        return [id for id in ids if self.tool("read_note", identifier=f"{NOTES}/{id}")["title"] == id]

    def close(self) -> None:
        self.loop.run_until_complete(self.client.__aexit__(None, None, None))


if __name__ == "__main__":
    serve(BasicMemory)
