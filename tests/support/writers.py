"""Those who write on while things go wrong, and know afterwards what must be there.

Run as a script, one is a process of its own: `python -m support.writers URL NAME` writes until a line comes.
"""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable

from recollect import Memory, RecollectError


class Writer:
    def __init__(self, memory: Memory, name: str) -> None:
        self.memory, self.name = memory, name
        self.acknowledged: list[str] = []
        self.refused: list[str] = []
        """Their error said that nothing was written."""
        self.unknown: list[str] = []
        """Their error said that nobody knows."""
        self.errors: list[str] = []

    def write(self, stopping: Callable[[], bool]) -> None:
        number = 0
        while not stopping():
            number += 1
            text = f"{self.name} wrote number {number}"
            try:
                self.memory.remember(text)
            except RecollectError as error:
                self.errors.append(f"{type(error).__name__}: {error}")
                (self.unknown if "look before" in str(error) else self.refused).append(text)
            else:
                self.acknowledged.append(text)

    def outcome(self) -> dict[str, list[str]]:
        return {name: getattr(self, name) for name in ("acknowledged", "refused", "unknown", "errors")}


def check(memory: Memory, outcomes: Iterable[dict[str, list[str]]]) -> None:
    """What was acknowledged is there once, what was refused is not, and the log is whole and tells of just these."""
    stored = Counter(record.text for record in memory.list(limit=1_000_000))
    outcomes = list(outcomes)
    acknowledged = [text for outcome in outcomes for text in outcome["acknowledged"]]
    unknown = {text for outcome in outcomes for text in outcome["unknown"]}
    assert [text for text in acknowledged if stored[text] != 1] == []
    assert [text for outcome in outcomes for text in outcome["refused"] if stored[text]] == []
    assert {text: times for text, times in stored.items() if times > 1} == {}
    assert set(stored) - set(acknowledged) <= unknown
    assert all(log.ok for log in memory.audit.verify())
    assert len(memory.audit.search(limit=10_000)) == len(stored)


def main(url: str, name: str) -> None:
    stop = threading.Event()
    with Memory(url) as memory:
        writer = Writer(memory, name)
        work = threading.Thread(target=writer.write, args=(stop.is_set,))
        memory.list()
        print("ready", flush=True)
        sys.stdin.readline()
        work.start()
        sys.stdin.readline()
        stop.set()
        work.join()
    print(json.dumps(writer.outcome()))


if __name__ == "__main__":
    main(*sys.argv[1:])
