"""A knowledge base that several fill at once, that is read meanwhile, and whose filling is killed."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.common import times
from support.watchdog import STACKS, beside, ended, opened, together

from recollect import Memory
from recollect.values.filters import Filter
from recollect.values.record import Address, utc_now

if TYPE_CHECKING:
    from support.common import Script

    Start = Callable[..., Script]

PAGES = 30


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    for number in range(PAGES):
        (folder / f"{number}.md").write_text(f"# Page {number}\n\nThe lynx number {number}.\n\n## More\n\nIt sleeps.\n")
    return folder


def check(memory: Memory) -> None:
    """Every page is there once, with the passages that its document names and no others."""
    documents = memory.knowledge.list()
    assert sorted(one.title for one in documents) == sorted(f"Page {number}" for number in range(PAGES))
    assert {one.chunks for one in documents} == {2}
    store, place = memory._view.store, Address("default", " knowledge")
    records = list(store.scan(Filter(seen_from=place, now=utc_now(), state=None)))
    assert len(records) == 2 * PAGES
    assert {record.address.conversation for record in records} == {one.id for one in documents}
    assert all(record.archived_at is None for record in records)
    assert all(log.ok for log in memory.audit.verify())


def test_threads_that_add_the_same_folder_add_it_once(url: str, docs: Path) -> None:
    with opened(url, embedder="none") as memory:
        reports = []

        def add() -> None:
            reports.append(memory.knowledge.add_folder(docs, status="published"))

        together(add, add, add, seconds=60)
        assert sum(report.added for report in reports) == PAGES
        assert sum(report.unchanged for report in reports) == 2 * PAGES
        assert sum(report.changed + len(report.refused) for report in reports) == 0
        check(memory)


@pytest.mark.clause("ATL-18")
def test_tenants_that_add_the_same_folder_at_once_have_each_their_own(url: str, docs: Path) -> None:
    with opened(url, embedder="none") as memory:
        tenants = [memory.at(tenant=name) for name in ("acme", "evil")]
        together(*(lambda one=one: one.knowledge.add_folder(docs, status="published") for one in tenants), seconds=60)
        tenants[1].knowledge.remove(tenants[1].knowledge.list()[0].id)
        assert [len(one.knowledge.list()) for one in tenants] == [PAGES, PAGES - 1]
        assert [len(one.knowledge.search("lynx", limit=1000)) for one in tenants] == [PAGES, PAGES - 1]
        assert memory.knowledge.list() == memory.knowledge.search("lynx") == []


ADD = (
    STACKS.replace("exit=True", "exit=False")
    + """
import sys
from recollect import Memory
url, docs = sys.argv[1:]
with Memory(url, embedder="none") as memory:
    report = memory.knowledge.add_folder(docs, status="published", progress=lambda done: print(done, flush=True))
print(report.added)
"""
)


def test_processes_that_add_the_same_folder_add_it_once(url: str, docs: Path, start: Start) -> None:
    processes = [start(ADD, url, docs) for _ in range(2)]
    assert sum(int(ended(process, 60).split()[-1]) for process in processes) == PAGES
    with opened(url, embedder="none") as memory:
        check(memory)


@pytest.mark.parametrize("after", [1, 7, 20])
def test_one_that_is_killed_leaves_nothing_half_and_the_next_goes_on(
    url: str, docs: Path, start: Start, after: int
) -> None:
    process = start(ADD, url, docs)
    while process.line() != str(after):
        pass
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    with opened(url, embedder="none") as memory:
        there = memory.knowledge.list()
        assert after <= len(there) <= PAGES
        found = memory.knowledge.search("lynx", limit=1000)
        assert {one.document for one in found} == {one.id for one in there}
        report = memory.knowledge.add_folder(docs, status="published")
        assert report.added == PAGES - len(there)
        check(memory)


KB_ADD = """
import sys
from recollect.cli.app import cli
import recollect.documents.chunks as chunks
import time
cut = chunks.cut
def slowly(*given):
    time.sleep(0.02)
    print("cut", flush=True)
    return cut(*given)
chunks.cut = slowly
store, docs = sys.argv[1:]
cli.main(["kb", "add", docs, "--publish", "--store", store, "--json"])
"""


def test_the_command_that_is_killed_goes_on_when_it_is_run_again(url: str, docs: Path, start: Start) -> None:
    process = start(KB_ADD, url, docs)
    for _ in range(10):
        assert process.line() == "cut"
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    report = json.loads(start(KB_ADD, url, docs).finish().split("\n")[-2])
    assert 0 < report["unchanged"] < PAGES
    assert report["added"] + report["unchanged"] == PAGES
    with opened(url, embedder="none") as memory:
        check(memory)


def test_a_reader_sees_the_old_or_the_new_and_never_both_or_none(url: str) -> None:
    with opened(url, embedder="none") as memory:
        for number in range(20):
            memory.knowledge.add(f"# Other {number}\n\nAn otter.", status="published")
        memory.knowledge.add("# Page\n\nThe lynx is 0.\n\n## More\n\nThe lynx is 0.", status="published")

        def change() -> None:
            for number in times(60):
                text = f"The lynx is {number}."
                memory.knowledge.add(f"# Page\n\n{text}\n\n## More\n\n{text}")
                time.sleep(0.001)

        def read() -> None:
            texts = [one.text for one in memory.knowledge.search("lynx", limit=50)]
            assert len(texts) == 2, texts
            assert len({text.rpartition("\n")[2] for text in texts}) == 1, texts

        beside(change, read, seconds=60)


def test_publishing_and_changing_at_once_loses_neither(url: str) -> None:
    with opened(url, embedder="none") as memory:
        ident = memory.knowledge.add("# Page\n\nThe lynx is 0.").id

        def change() -> None:
            for number in range(1, 20):
                memory.knowledge.add(f"# Page\n\nThe lynx is {number}.")

        def publish() -> None:
            for _ in range(10):
                memory.knowledge.withdraw(ident)
                memory.knowledge.publish(ident)

        together(change, publish, seconds=60)
        assert memory.knowledge.get(ident).status == "published"
        assert [one.text for one in memory.knowledge.search("lynx", limit=9)] == ["Page\n\nThe lynx is 19."]
