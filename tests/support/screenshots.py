"""Pictures of the pages for the README, taken of a memory that is made up: `make screenshots`."""

from __future__ import annotations

import os
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
os.environ["RECOLLECT_EMBEDDER"] = "none"  # the same pictures wherever they are taken

from recollect import Memory
from recollect.memory import view_of
from recollect.server.recalls import Recalls
from support.browser import Watched, browser_missing, launched
from support.common import Clock
from support.pictures import reduced
from support.served import served

_FOLDER = Path(__file__).parent.parent.parent / "docs" / "images"
_LARGEST = 90_000
_SIZE: Any = {"width": 1280, "height": 800}

# Days ago, kind, agent, tags, text.
_KNOWN: list[tuple[float, str, str | None, str, str]] = [
    (81, "fact", None, "people.mira", "Mira Okafor leads the logistics team in Rotterdam"),
    (78, "decision", "atlas", "billing", "Invoices are sent in euros; the rate of the day is kept with each one"),
    (74, "preference", None, "people.mira", "Mira wants numbers in tables, and the conclusion first"),
    (
        71,
        "procedure",
        "atlas",
        "deploy",
        "To deploy: tag the release, wait for the checks, then promote it from staging",
    ),
    (66, "fact", None, "people.jonas", "Jonas Weber is the contact at Nordwind Shipping"),
    (63, "finding", "scout", "research", "Nordwind books cold containers nine days ahead on average"),
    (59, "decision", None, "billing", "Late payments are reminded of after 14 days, and not before"),
    (55, "finding", "scout", "research", "Two of the five carriers changed their fuel surcharge in spring"),
    (52, "preference", None, "people.jonas", "Jonas prefers a phone call to an e-mail when a shipment is late"),
    (47, "fact", None, "systems", "The tracking API allows 600 requests a minute for each customer"),
    (43, "procedure", "atlas", "on-call", "When tracking lags, restart the importer before anything else"),
    (40, "finding", "atlas", "on-call", "The importer stops when a carrier sends a file without a header"),
    (36, "decision", None, "systems", "Container positions older than a year move to the archive"),
    (33, "fact", None, "people.lena", "Lena Duarte joined as the second analyst and works from Porto"),
    (
        29,
        "finding",
        "scout",
        "research",
        "Porto and Vigo share one cold store, so their capacities are not to be added",
    ),
    (26, "preference", None, "people.lena", "Lena likes short answers with a link to the source"),
    (23, "task", "atlas", "billing", "Ask Nordwind for the corrected invoice of March"),
    (19, "finding", "scout", "research", "Customers who see a position every hour call half as often"),
    (16, "decision", None, "deploy", "No deploys on Fridays after noon"),
    (14, "fact", None, "systems", "Positions come every 15 minutes from satellites, and every minute near a port"),
    (11, "procedure", "scout", "research", "Compare two sources before a surcharge counts as known"),
    (9, "finding", "atlas", "on-call", "The queue was full on Monday because two importers ran at once"),
    (7, "decision", None, "systems", "One importer for each carrier, started by the scheduler only"),
    (5, "preference", None, "people.mira", "Mira reads reports on her phone, so no wide tables"),
    (4, "fact", None, "billing", "Nordwind pays within 30 days of the end of the month"),
    (3, "task", "scout", "research", "Look up the summer timetable of the Vigo line"),
    (2, "finding", "scout", "research", "The Vigo line runs twice a week from June to September"),
    (1, "fact", None, "people.jonas", "Jonas is away until the end of the month; Pia Lund stands in for him"),
    (0.2, "decision", "atlas", "billing", "The corrected invoice counts from the day that it came"),
]
_REVISED = "Mira wants the conclusion first, then one table that fits a phone"
_SAID = [
    ("user", "The shipment to Vigo is late again. Whom do we tell?"),
    ("assistant", "Pia Lund at Nordwind, by phone: Jonas is away, and he prefers a call for late shipments."),
    ("user", "Good. And put it on the invoice?"),
    ("assistant", "Not yet. Late payments are reminded of after 14 days; this one is two days old."),
]


_SHIPMENTS = [2, 0, 1, 3, 0, 0, 2, 1, 4, 2, 0, 1, 0, 3, 5, 2, 1, 0, 0, 2, 3, 1, 4, 0, 1, 2, 0, 3, 2, 1]
"""How many were noted on each of the last days."""
_PORTS = ("Rotterdam", "Vigo", "Porto", "Gdynia", "Bergen")


def furnish(memory: Memory, clock: Clock) -> str:
    """The id of the memory that is shown by itself."""
    now = datetime.now(UTC)
    ids: dict[str, str] = {}
    for at, count in enumerate(_SHIPMENTS):
        for number in range(count):
            clock.now = now - timedelta(days=at + 1, hours=number)
            text = f"Container NWLU {448_100 + 31 * at + 7 * number} left {_PORTS[(at + number) % 5]} on schedule"
            memory.remember(text, kind="observation", tags=["shipments"], source="tracking")
    for days, kind, agent, tag, text in _KNOWN:
        clock.now = now - timedelta(days=days)
        view = memory.at(agent=agent) if agent else memory
        source = "chat" if kind == "preference" else "import" if kind == "fact" else "tracking"
        ids[text] = view.remember(text, kind=kind, tags=[tag], source=source, shared=bool(agent)).id
    clock.now = now - timedelta(days=13)
    talk = memory.conversations.start("Late shipment to Vigo")
    for role, text in _SAID:
        memory.conversations.say(talk.id, role, text)  # type: ignore[arg-type]
    clock.now = now - timedelta(days=6)
    revised = memory.revise(ids["Mira wants numbers in tables, and the conclusion first"], content=_REVISED)
    memory.archive(ids["Two of the five carriers changed their fuel surcharge in spring"], reason="of last year")
    clock.now = now - timedelta(hours=2)
    for question in ("who stands in for Jonas?", "how does Mira want reports?", "when does the Vigo line run?"):
        memory.recall(question)
    clock.now = now
    return revised.id


def taken() -> list[Path]:
    _FOLDER.mkdir(parents=True, exist_ok=True)
    made: list[Path] = []
    clock = Clock(datetime.now(UTC))
    with tempfile.TemporaryDirectory() as folder, Memory(folder, clock=clock) as memory:
        ident = furnish(memory, clock)
        pages = {
            "overview": "/",
            "memories": "/memories",
            "memory": f"/memories/{ident}?q=how+does+Mira+want+reports",
            "lab": "/lab?q=how+does+Mira+want+her+reports%3F&against=atlas&limit=5",
        }
        _asked(memory)
        with served(memory, single=True) as site, launched() as browser:
            for scheme in ("light", "dark"):
                link = f"{site.url}/enter?ticket={site.serving.ticket()}"
                watched = Watched(browser, site.url, link, viewport=_SIZE, color_scheme=scheme, device_scale_factor=1)
                for name, path in pages.items():
                    watched.go(path)
                    watched.page.wait_for_load_state("networkidle")  # what comes after the page
                    made.append(_FOLDER / f"{name}-{scheme}.png")
                    made[-1].write_bytes(reduced(browser, watched.page.screenshot()))
                watched.check()
                watched.context.close()
    return made


def _asked(memory: Memory) -> None:
    """Some recalls for each of the last days, more in the week than at its end."""
    view, now = view_of(memory), datetime.now(UTC)
    for back in range(30):
        clock = Clock(now - timedelta(days=back))
        recalls = Recalls(view.store, clock)
        for _ in range(40 + 37 * back % 23 if clock.now.weekday() < 5 else 6 + back % 4):
            recalls.count(view.place)
        recalls.write()


def main() -> None:
    if missing := browser_missing():
        sys.exit(missing)
    for file in taken():
        size = file.stat().st_size
        print(f"{file.relative_to(_FOLDER.parent.parent)}  {size:,} bytes")
        if size > _LARGEST:
            sys.exit(f"{file.name} is over {_LARGEST:,} bytes")


if __name__ == "__main__":
    main()
