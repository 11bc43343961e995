"""How fast a folder of documents is added to the knowledge base, beside reading and cutting it alone, the floor.

python benchmarks/knowledge.py [PAGES] [STORE]   # 1,000 markdown pages; sqlite, ledger or notebook
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from corpus import sentences

from recollect import Memory
from recollect.documents.chunks import cut
from recollect.documents.files import inside, load


def page(number: int, prose: Iterator[str], dice: random.Random) -> str:
    """As documentation is: a few sections, each with paragraphs, and now and then code or a table."""
    parts = [f"# Page {number}\n"]
    for section in range(dice.randint(2, 6)):
        parts.append(f"{'#' * dice.randint(2, 3)} Part {section} of page {number}\n")
        for _ in range(dice.randint(1, 4)):
            parts.append(" ".join(next(prose) for _ in range(dice.randint(2, 8))) + "\n")
        if dice.random() < 0.3:
            parts.append("```python\n" + "\n".join(f"x{at} = {at}" for at in range(dice.randint(3, 30))) + "\n```\n")
        if dice.random() < 0.2:
            rows = (f"| name {at} | {at} |" for at in range(dice.randint(3, 15)))
            parts.append("| name | value |\n|---|---|\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def generate(folder: Path, pages: int) -> None:
    dice = random.Random(7)
    told = sentences(20_000)
    prose = (told[dice.randrange(len(told))] for _ in iter(int, 1))
    for number in range(pages):
        (folder / f"{number // 100:02}").mkdir(exist_ok=True)
        (folder / f"{number // 100:02}" / f"{number}.md").write_text(page(number, prose, dice))


def timed(label: str, chunks: int, begin: float) -> float:
    seconds = time.perf_counter() - begin
    print(f"{label:34} {seconds:7.2f} s {chunks / seconds:10,.0f} passages/s")
    return seconds


def main() -> None:
    pages, store = int(sys.argv[1]) if len(sys.argv) > 1 else 1000, sys.argv[2] if len(sys.argv) > 2 else "sqlite"
    with tempfile.TemporaryDirectory() as work:
        docs = Path(work, "docs")
        docs.mkdir()
        generate(docs, pages)
        begin = time.perf_counter()
        chunks = sum(len(cut(read.title, read.blocks)) for path in inside(docs) for read in [load(path).read()])
        print(f"{pages:,} pages, {chunks:,} passages, {store}")
        floor = timed("reading and cutting alone (floor)", chunks, begin)
        with Memory(f"{store}:{work}/memory", embedder="none") as memory:
            begin = time.perf_counter()
            report = memory.knowledge.add_folder(docs, status="published")
            assert (report.added, report.chunks, report.refused) == (pages, chunks, ())
            print(f"  {timed('add_folder', chunks, begin) / floor:.1f} times the floor")
            begin = time.perf_counter()
            assert memory.knowledge.add_folder(docs).unchanged == pages
            timed("add_folder, nothing changed", chunks, begin)
            asked = [f"part {number % 5} of page {number}" for number in range(0, pages, max(pages // 50, 1))]
            memory.knowledge.search("to begin with")
            spans: list[float] = []
            for question in asked:
                begin = time.perf_counter()
                assert memory.knowledge.search(question)
                spans.append(1000 * (time.perf_counter() - begin))
            print(f"{'search of five, by words':34} {statistics.median(spans):7.1f} ms p50, {max(spans):.1f} ms most")


if __name__ == "__main__":
    main()
