"""Times at the ends of the calendar: what lies outside is refused, and what lies just inside breaks nothing."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from support.stores import STORES, located

from recollect import InputError, Memory, tools

PRESETS = ("recollect", "atlas", "aegis", "inklings", "ledger", "journal")
FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
OUTSIDE = [
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-12:00",
    datetime.min.replace(tzinfo=timezone(timedelta(hours=1))),
    datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))),
]
ZONES = [ZoneInfo("Pacific/Kiritimati"), ZoneInfo("Etc/GMT+12"), UTC]
HERON = [{"role": "user", "content": "heron"}]
FILES = {"ledger": "sessions/default/memory.jsonl", "notebook": "memories.jsonl"}


def is_served(memory: Memory) -> bool:
    for zone in ZONES:
        memory.context(HERON, zone=zone)
        memory.at(agent="ada").context(HERON, zone=zone)
        memory.at(agent="ada").journal.context(zone)
    memory.recall("heron")
    memory.consult("heron")
    memory.stats()
    memory.maintain(early=True)
    memory.doctor()
    memory.export(io.BytesIO())
    return True


@pytest.mark.parametrize("when", OUTSIDE, ids=str)
@pytest.mark.parametrize("store", STORES)
def test_a_time_outside_the_calendar_is_refused(tmp_path: Path, store: str, when: datetime | str) -> None:
    with Memory(located(store, tmp_path / "m")) as memory:
        for field in ("created_at", "expires_at"):
            with pytest.raises(InputError, match=f"^{field}: lies outside the years 1 to 9999"):
                memory.remember("a heron", **{field: when})
        for field in ("since", "until"):
            with pytest.raises(InputError, match=f"^{field}: "):
                memory.list(**{field: when})
            with pytest.raises(InputError, match=f"^{field}: "):
                memory.recall("heron", **{field: when})
        with pytest.raises(InputError, match=r"^as_of: "):
            memory.recall("heron", as_of=when)
        assert memory.list(state=None) == []


@pytest.mark.parametrize("when", [FIRST, LAST], ids=str)
@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("store", STORES)
def test_a_memory_of_the_first_or_last_moment_breaks_nothing(
    tmp_path: Path, store: str, preset: str, when: datetime
) -> None:
    with Memory(located(store, tmp_path / "m"), preset=preset) as memory:
        record = memory.remember("a heron", kind="fact", created_at=when)
        memory.at(agent="ada").remember("a heron of hers", kind="journal", created_at=when)
        memory.journal.whiteboard.write("a heron for all")
        assert memory.get(record.id).created_at == when
        assert is_served(memory)
        assert memory.recall("heron", as_of=when) is not None


@pytest.mark.parametrize("when", [FIRST, LAST], ids=str)
@pytest.mark.parametrize("preset", PRESETS)
def test_a_clock_of_the_first_or_last_moment_breaks_nothing(tmp_path: Path, preset: str, when: datetime) -> None:
    with Memory(tmp_path / "m", preset=preset, clock=lambda: when) as memory:
        memory.remember("a heron", kind="fact")
        memory.at(agent="ada").journal.save("a heron of hers")
        assert is_served(memory)
        memory.compact()


@pytest.mark.parametrize("when", [FIRST, LAST], ids=str)
def test_the_journal_tool_says_when_an_entry_goes_even_at_the_end_of_time(tmp_path: Path, when: datetime) -> None:
    with Memory(tmp_path / "m", preset="journal", clock=lambda: when) as memory:
        said = tools.call(memory.at(agent="ada"), "save_to_journal", {"content": "a heron"})
        assert said["success"]


@pytest.mark.parametrize(
    ("when", "is_read"),
    [("0001-01-01T00:00:00Z", True), ("9999-12-31T23:59:59.999999Z", True), *((one, False) for one in OUTSIDE[:2])],
)
@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("store", FILES)
def test_a_line_of_the_first_or_last_moment_breaks_nothing(
    tmp_path: Path, store: str, preset: str, when: str, is_read: bool
) -> None:
    def line(ident: str, when: str) -> str:
        if store == "notebook":
            note = {"id": ident, "scope": "workspace", "text": f"a heron {ident}", "tags": [], "ts": when}
        else:
            note = {"id": ident, "timestamp": when, "type": "fact", "content": f"a heron {ident}", "accessed_at": when}
        return json.dumps(note) + "\n"

    file = tmp_path / FILES[store]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(line("m-1", when) + line("m-2", "2026-01-01T00:00:00Z"))
    with Memory(located(store, tmp_path), preset=preset) as memory:
        assert sorted(record.id for record in memory.list()) == (["m-1", "m-2"] if is_read else ["m-2"])
        assert bool(memory.verify()) is not is_read
        assert is_served(memory)
