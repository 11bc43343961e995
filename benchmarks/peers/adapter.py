"""What every peer's process has in common: one JSON object a line in, one a line out.

    {"do": "open"}                              {"ok": true, "seconds": 1.2}
    {"do": "add", "items": [{"id", "text", "time", "session", "role"?, "replaces"?}, …], "now": "…"}
    {"do": "settle"}                            wait until all that was added can be found
    {"do": "search", "query": "…", "k": 10, "now": "…"}   {"ids": ["a", "b"], …}
    {"do": "present", "ids": […]}               {"ids": those that are stored}
    {"do": "close"}

Seconds are those of the call alone. Only the standard library is imported here: a peer's venv has nothing else of ours.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

Item = dict[str, Any]


class Peer:
    """The store in the folder PEERS_FOLDER. A subclass says how its product does each of these."""

    def __init__(self) -> None:
        self.now = ""
        """The time at which a call is meant to happen, or empty: now. Only some products take it."""

    def add(self, items: list[Item]) -> None:
        """Store them, durably when this returns; of several, with the batch call if the product has one."""
        raise NotImplementedError

    def search(self, query: str, k: int) -> list[str]:
        raise NotImplementedError

    def present(self, ids: list[str]) -> list[str]:
        raise NotImplementedError

    def settle(self) -> None:
        """Products that make vectors while they add have nothing to wait for."""

    def close(self) -> None:
        pass


FOLDER = os.environ.get("PEERS_FOLDER", "")
MODEL = os.environ.get("PEERS_MODEL", "")
"""A folder with all-MiniLM-L6-v2: model.onnx and its tokenizer."""
VARIANT = os.environ.get("PEERS_VARIANT", "")


# Stdout is the protocol's; what the product prints goes to stderr. MemPalace moves stdout away as well when it is
# imported, so adapters import this module first.
_OUT = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)
sys.stdout = sys.stderr


def serve(peer_class: type[Peer]) -> None:
    peer: Peer | None = None
    for line in sys.stdin:
        request = json.loads(line)
        begun, answer = time.perf_counter(), {}
        try:
            if request["do"] == "open":
                peer = peer_class()
            else:
                assert peer is not None, "open it first"
                peer.now = request.get("now", "")
                answer = perform(peer, request)
            answer = {"ok": True, "seconds": time.perf_counter() - begun, **answer}
        except Exception as error:
            answer = {"ok": False, "error": f"{type(error).__name__}: {error}"[:500]}
        print(json.dumps(answer), file=_OUT, flush=True)


def perform(peer: Peer, request: dict[str, Any]) -> dict[str, Any]:
    match request["do"]:
        case "add":
            peer.add(request["items"])
        case "settle":
            peer.settle()
        case "search":
            return {"ids": peer.search(request["query"], request["k"])}
        case "present":
            return {"ids": peer.present(request["ids"])}
        case "close":
            peer.close()
        case other:
            raise ValueError(f"no such request: {other}")
    return {}
