"""Runs in a process of its own: forks children that work on a memory until they are killed, or kill themselves.

A fork takes milliseconds where a new Python takes a quarter of a second, so there can be thousands of them.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from typing import Any

from recollect import Memory

_write = os.write
DEADLY = ("write", "pwrite", "fsync", "ftruncate", "rename", "unlink", "open", "mkdir")
"""The calls at which a child can be told to die."""


def tell(**message: Any) -> None:
    _write(1, json.dumps(message).encode() + b"\n")


def serve() -> None:
    """A job a line; what its child says, and then how it ended."""
    warm_up()
    for line in sys.stdin:
        job = json.loads(line)
        ready, say_ready = os.pipe()
        pid = os.fork()
        if not pid:
            try:
                work(job, say_ready)
                os._exit(0)
            except BaseException:
                tell(problem=traceback.format_exc())
                os._exit(1)
        os.close(say_ready)
        os.read(ready, 1)
        os.close(ready)
        if "delay" in job:
            time.sleep(job["delay"])
            os.kill(pid, signal.SIGKILL)
        tell(end=os.waitpid(pid, 0)[1])


def warm_up() -> None:
    """Load here what every child would have to load for itself."""
    for url, preset in (("ledger", "ledger"), ("notebook", "aegis")):
        with tempfile.TemporaryDirectory() as folder, Memory(f"{url}:{folder}", preset=preset) as memory:
            record = memory.revise(memory.remember("warm").id, content="warmer")
            memory.recall("warmer"), memory.archive(record.id), memory.forget(record.id), memory.compact()


def work(job: dict[str, Any], say_ready: int) -> None:
    memory = Memory(job["url"], preset=job["preset"])
    chance = random.Random(job["seed"])
    _write(say_ready, b".")
    calls = die_at(job["die"], job["how"]) if "die" in job else None
    for number, op in enumerate(job["ops"]):
        perform(memory, op or chance.choice(OFTEN), chance, f"{job['seed']}.{number}")
    if calls:
        tell(calls=calls())


def perform(memory: Memory, op: str, chance: random.Random, mark: str) -> None:
    """Say what is about to be done, do it, and say so."""
    live = sorted(memory.list(limit=1000), key=lambda record: record.id)
    if len(live) > 25:
        op = "forget_many"
    elif op not in ("remember", "batch", "compact", "close") and not live:
        op = "batch"
    chosen = chance.choice(live) if live else None
    texts, call = _plan(memory, op, chance, mark, live, chosen.id if chosen else "")
    tell(intent=op, **texts)
    result = call()
    tell(done=result)


OFTEN = (
    *("remember", "remember", "remember", "batch", "batch", "batch", "revise", "revise", "archive"),
    *("forget", "forget", "erase", "compact", "recall", "close"),
)


def _plan(
    memory: Memory, op: str, chance: random.Random, mark: str, live: list[Any], ident: str
) -> tuple[dict[str, Any], Callable[[], Any]]:
    if op == "remember":
        text = f"<heron {mark}>"
        return {"add": [text]}, lambda: [memory.remember(text, tags=["bird"]).id]
    if op == "prune":
        text, quota = f"<heron {mark}>", memory.preset.retention.quota
        assert quota is not None
        oldest = [record.id for record in memory.list(newest_first=False)][: len(live) + 1 - quota]
        assert oldest
        return {"add": [text], "gone": oldest}, lambda: [memory.remember(text).id]
    if op == "batch":
        many = [f"<flock {mark} {n}>" for n in range(chance.randint(2, 6))]
        return {"add": many}, lambda: [record.id for record in memory.remember_many(many)]
    if op == "revise":
        text = f"<revised {mark}>"
        return {"add": [text], "become": {ident: "superseded"}}, lambda: [memory.revise(ident, content=text).id]
    if op == "archive":
        return {"become": {ident: "archived"}}, lambda: bool(memory.archive(ident))
    if op in ("forget", "erase"):
        gone = [record.id for record in memory.history(ident)]
        return {"gone": gone}, lambda: memory.forget(ident, erase=op == "erase").count
    if op == "forget_many":
        ids = [record.id for record in live[:20]]
        gone = sorted({record.id for chosen_id in ids for record in memory.history(chosen_id)})
        return {"gone": gone}, lambda: memory.forget(ids).count
    if op == "recall":
        return {}, lambda: len(memory.recall("heron flock"))
    return {}, {"compact": memory.compact, "close": memory.close}[op]


def die_at(number: int, how: str) -> Callable[[], int]:
    """Have the call of that number be the last: before it is made, after it, or with half of its bytes written.

    Returns a function that counts the calls so far.
    """
    left = number

    def deadly(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left:
                return real(*arguments, **options)
            if how == "half" and name in ("write", "pwrite"):
                fd, data, *rest = arguments
                real(fd, bytes(data)[: len(data) // 2], *rest)
            elif how == "after":
                real(*arguments, **options)
            os.kill(os.getpid(), signal.SIGKILL)
            return None

        return call

    for name in DEADLY:
        setattr(os, name, deadly(name, getattr(os, name)))
    return lambda: number - left


if __name__ == "__main__":
    serve()
