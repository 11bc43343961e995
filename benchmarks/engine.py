"""The engine against the least SQLite work that could do the same, in one run.

The floor is bare apsw: the statements that store or read the same row, text index entry and blob, with the same
durability. Ours and the floor take turns, so that a noisy machine disturbs both alike. No model takes part.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import apsw
from corpus import questions, sentences

from recollect import Memory
from recollect.stores.sqlite.match import match_expression as expression
from recollect.text.query_parser import parse_query
from recollect.text.segment import segment
from recollect.values.record import new_id, pack

os.environ["RECOLLECT_EMBEDDER"] = "none"

_ROW = """INSERT INTO memories (id, tier, kind, lifetime, importance, created_at, accessed_at, access_count, checksum,
    schema_version, text) VALUES (?, 'workspace', 'fact', 'long_term', 0.5, ?, ?, 0, ?, 1, ?)"""
_VECTOR = [0.01] * 384
_BLOB = pack(_VECTOR)
# Bytecode is cached as for any user, even where a build machine has that switched off.
_ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
_CHECKSUM = "sha256:" + "0" * 64


class Floor:
    """The same schema without the engine."""

    def __init__(self, folder: str) -> None:
        migrations = Path(__file__).parent.parent / "src/recollect/stores/sqlite/migrations"
        self.db = apsw.Connection(f"{folder}/floor.db")
        self.db.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA secure_delete = ON").fetchall()
        self.db.execute((migrations / "001_memories.sql").read_text())

    def insert(self, text: str, blob: bytes | None = None) -> str:
        ident, now = new_id(), time.time_ns() // 1000
        self.db.execute(_ROW, (ident, now, now, _CHECKSUM, text))
        seq = self.db.last_insert_rowid()
        self.db.execute("INSERT INTO memories_text (rowid, text) VALUES (?, ?)", (seq, text))
        if blob:
            self.db.execute("INSERT INTO embeddings (seq, model, vector) VALUES (?, NULL, ?)", (seq, blob))
        return ident

    def remember(self, text: str, blob: bytes | None = None) -> str:
        self.db.execute("BEGIN IMMEDIATE")
        ident = self.insert(text, blob)
        self.db.execute("COMMIT")
        return ident

    def remember_many(self, texts: list[str], blob: bytes | None = None) -> None:
        self.db.execute("BEGIN IMMEDIATE")
        for text in texts:
            self.insert(text, blob)
        self.db.execute("COMMIT")

    def get(self, ident: str) -> object:
        sql = "SELECT *, (SELECT vector FROM embeddings e WHERE e.seq = m.seq) FROM memories m WHERE id = ?"
        return self.db.execute(sql, (ident,)).fetchone()

    def recall(self, match: str) -> object:
        sql = """SELECT m.*, t.rank FROM memories_text t CROSS JOIN memories m ON m.seq = t.rowid
            WHERE memories_text MATCH ? ORDER BY t.rank LIMIT 10"""
        return self.db.execute(sql, (match,)).fetchall()


def turns(
    ours: Callable[[int], object], floor: Callable[[int], object], *rounds: int
) -> tuple[list[float], list[float]]:
    """Seconds of each, taken alternately, in these rounds."""
    mine: list[float] = []
    bare: list[float] = []
    for number in range(*rounds):
        for action, seconds in ((ours, mine), (floor, bare)) if number % 2 else ((floor, bare), (ours, mine)):
            start = time.perf_counter()
            action(number)
            seconds.append(time.perf_counter() - start)
    return mine, bare


def singles(memory: Memory, floor: Floor) -> dict[str, object]:
    texts = sentences(1000, seed=11)
    mine, bare = turns(lambda n: memory.remember(texts[n]), lambda n: floor.remember(texts[n]), 1000)
    return report("remember, p50", mine, bare, "≤ 1.5")


def singles_with_blob(memory: Memory, floor: Floor) -> dict[str, object]:
    texts = sentences(500, seed=12)
    ours = lambda n: memory.remember(texts[n], embedding=_VECTOR)  # noqa: E731
    mine, bare = turns(ours, lambda n: floor.remember(texts[n], _BLOB), 500)
    return report("remember with 384 dims, p50", mine, bare, "≤ 1.5")


def bulk() -> dict[str, object]:
    texts = sentences(10_000, seed=13)
    mine: list[float] = []
    bare: list[float] = []
    for number in range(8):
        with tempfile.TemporaryDirectory() as folder, Memory(folder) as memory:
            memory.remember("warm")
            one, two = once(memory, Floor(folder), texts, number)
            mine += one
            bare += two
    return report("remember_many of 10,000", mine, bare, "≤ 1.67 (rate ≥ 0.6×)")


def once(memory: Memory, floor: Floor, texts: list[str], number: int) -> tuple[list[float], list[float]]:
    return turns(lambda _: memory.remember_many(texts), lambda _: floor.remember_many(texts), number, number + 1)


def gets(memory: Memory, floor: Floor) -> dict[str, object]:
    mine_ids = [record.id for record in memory.list(limit=2000)]
    bare_ids = [row[0] for row in floor.db.execute("SELECT id FROM memories LIMIT 2000")]
    mine, bare = turns(lambda n: memory.get(mine_ids[n]), lambda n: floor.get(bare_ids[n]), 2000)
    return report("get, p50", mine, bare, "≤ 2")


def recalls(memory: Memory, floor: Floor, texts: list[str]) -> dict[str, object]:
    asked = questions(400, texts)
    matches = [expression(parse_query(question)) for question in asked]
    mine, bare = turns(lambda n: memory.recall(asked[n], limit=10), lambda n: floor.recall(matches[n]), 400)
    return report("recall 10 of 10,000 by text, p50", mine, bare, "≤ 1.5")


def report(what: str, mine: list[float], bare: list[float], goal: str) -> dict[str, object]:
    ours, floor = statistics.median(mine), statistics.median(bare)
    return {"what": what, "ours_us": ours * 1e6, "floor_us": floor * 1e6, "ratio": ours / floor, "goal": goal}


def process(what: str, command: list[str], goal: str) -> dict[str, object]:
    """Whole commands, beside an interpreter that does nothing."""
    mine, bare = turns(
        lambda _: subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=_ENVIRONMENT),
        lambda _: subprocess.run([sys.executable, "-c", "pass"], check=True, env=_ENVIRONMENT),
        31,
    )
    row = report(what, mine, bare, goal)
    row["what"] = f"{what} (floor: python -c pass)"
    return row


def imports() -> dict[str, object]:
    script = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"

    def seconds(module: str) -> float:
        command = [sys.executable, "-c", script.format(module)]
        return float(subprocess.run(command, check=True, capture_output=True, text=True, env=_ENVIRONMENT).stdout)

    mine, bare = [], []
    for _ in range(31):
        mine.append(seconds("recollect"))
        bare.append(seconds("msgspec, apsw"))
    return report("import recollect (floor: import msgspec, apsw)", mine, bare, "≤ 80,000 µs")


def main() -> None:
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder, Memory(f"{folder}/ours") as memory:
        floor = Floor(folder)
        texts = sentences(10_000)
        rows.append(singles(memory, floor))
        rows.append(singles_with_blob(memory, floor))
        memory.remember_many(texts[1500:])
        floor.remember_many([segment(text) for text in texts[1500:]])
        rows.append(gets(memory, floor))
        rows.append(recalls(memory, floor, texts[1500:]))
        rows.append(bulk())
        rows.append(imports())
        command = [sys.executable, "-m", "recollect", "recall", "--store", f"{folder}/ours", "x"]
        if (Path(__file__).parent.parent / "src/recollect/__main__.py").exists():
            rows.append(process("recollect recall x, whole command", command, "≤ 250,000 µs"))
    if "--json" in sys.argv:
        print(json.dumps(rows))
        return
    print(f"{'':52}{'ours':>12}{'floor':>12}{'ratio':>8}  goal")
    for row in rows:
        times = f"{row['ours_us']:>9,.0f} µs{row['floor_us']:>9,.0f} µs{row['ratio']:>8.2f}"
        print(f"{row['what']:52}{times}  {row['goal']}")


if __name__ == "__main__":
    main()
