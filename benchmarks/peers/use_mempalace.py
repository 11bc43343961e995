"""MemPalace: the tools of its MCP server, called in process, on its default backend (Chroma) and model (MiniLM)."""

from __future__ import annotations

import os
from pathlib import Path

from adapter import FOLDER, MODEL, Item, Peer, serve

os.environ["MEMPALACE_PALACE_PATH"] = f"{FOLDER}/palace"

from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2
from mempalace import mcp_server

# Where Chroma keeps the model that it else downloads: run.py has put the same weights there.
ONNXMiniLM_L6_V2.DOWNLOAD_PATH = Path(MODEL).parent
WING = "memories"


def checked(answer: dict) -> dict:
    if answer.get("error") or answer.get("success") is False:
        raise RuntimeError(str(answer))
    return answer


class MemPalace(Peer):
    def __init__(self) -> None:
        super().__init__()
        self.drawers: dict[str, str] = {}

    def add(self, items: list[Item]) -> None:
        for item in items:
            if "replaces" in item:
                checked(mcp_server.tool_delete_drawer(self.drawers[item["replaces"]]))
            answer = mcp_server.tool_add_drawer(
                WING, item["session"] or "general", item["text"], source_file=item["id"]
            )
            self.drawers[item["id"]] = checked(answer)["drawer_id"]

    def search(self, query: str, k: int) -> list[str]:
        hits = checked(mcp_server.tool_search(query, limit=k))["results"]
        # Long texts are stored in pieces, and each piece is a hit.
        return list(dict.fromkeys(hit["source_file"] for hit in hits))

    def present(self, ids: list[str]) -> list[str]:
        stored, offset = set[str](), 0
        while page := checked(mcp_server.tool_list_drawers(limit=100, offset=offset))["drawers"]:
            stored.update(drawer["metadata"]["source_file"] for drawer in page)
            offset += len(page)
        return [id for id in ids if id in stored]


if __name__ == "__main__":
    serve(MemPalace)
