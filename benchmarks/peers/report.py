"""Turn the results folder into the tables of docs/benchmarks.md, between its markers.

    python benchmarks/peers/report.py [--results FOLDER] [--write]

Without --write the tables are printed. A peer or a measure that has no results has no row or no number.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from recollect.evaluation.measures import recall_at, reciprocal_rank

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "benchmarks.md"
TITLES = {
    "recollect": "recollect, its model",
    "recollect-minilm": "recollect, MiniLM",
    "recollect-words": "recollect, words only",
    "chroma": "Chroma",
    "langgraph": "LangGraph SqliteStore",
    "langgraph-memory": "LangGraph InMemoryStore",
    "mem0": "mem0, `infer=False`",
    "mempalace": "MemPalace",
    "basic-memory": "basic-memory, no floor",
    "basic-memory-floor": "basic-memory, its floor",
    "hindsight": "hindsight, no reranker",
}
MAIN_PACKAGES = {
    "recollect": "recollect",
    "chroma": "chromadb",
    "langgraph": "langgraph-checkpoint-sqlite",
    "langgraph-memory": "langgraph",
    "mem0": "mem0ai",
    "mempalace": "mempalace",
    "basic-memory": "basic-memory",
    "hindsight": "hindsight-api-slim",
}
BUDGETS = (500, 1000, 2000)
DATA = {"locomo": "LoCoMo", "longmemeval": "LongMemEval"}
SUITES = {
    "precision": "tuned on",
    "precision_words": "words, tuned on",
    "precision_held": "held out",
    "precision_words_held": "words, held out",
}

Row = dict[str, Any]
Table = tuple[list[str], list[list[str]]]


class Results:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.peers = [name for name in TITLES if (folder / name / "about.json").exists()]

    def rows(self, peer: str, suite: str) -> list[Row]:
        path = self.folder / peer / f"{suite}.jsonl"
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []

    def values(self, peer: str, part: str) -> Row | None:
        path = self.folder / peer / f"{part}.json"
        return json.loads(path.read_text()) if path.exists() else None


def percent(values: Iterable[float]) -> str:
    numbers = [*values]
    return f"{100 * sum(numbers) / len(numbers):.1f}" if numbers else ""


def complete(row: Row, budget: int) -> bool:
    """Whether all that answers is among the texts that fit, best first, as `recollect eval --budget` counts it."""
    room, fitting = budget - row["size"], set[str]()
    for id, size in zip(row["deep"], row["tokens"], strict=True):
        if size <= room:
            fitting.add(id)
            room -= size
    return fitting.issuperset(row["wanted"])


def quality(results: Results, suite: str) -> Table:
    head = ["", "questions", "R@5", "R@10", "MRR@10", *(f"{budget:,} tokens" for budget in BUDGETS)]
    body: list[list[str]] = []
    for peer in results.peers:
        rows = results.rows(peer, suite)
        ranked: list[tuple[Sequence[str], set[str]]] = [(row["found"], {*row["wanted"]}) for row in rows]
        if rows:
            body.append(
                [
                    TITLES[peer],
                    str(len(rows)),
                    *(percent(recall_at(k, *each) for each in ranked) for k in (5, 10)),
                    percent(reciprocal_rank(10, *each) for each in ranked),
                    *(percent(complete(row, budget) for row in rows) for budget in BUDGETS),
                ]
            )
    return head, body


def passes(row: Row) -> bool:
    """As benchmarks/precision.py scores it: all that is wanted, and nothing but that and what it may have."""
    return {*row["want"]} <= {*row["found"]} <= {*row["want"], *row["may"]}


def precision(results: Results) -> Table:
    head = ["", *SUITES.values(), "all passed", "recall", "precision", "hits each", "empty where nothing is known"]
    body: list[list[str]] = []
    for peer in results.peers:
        rows = results.rows(peer, "precision")
        if not rows:
            continue
        asked, unknown = [row for row in rows if row["want"]], [row for row in rows if not row["want"]]
        hits = sum(len(row["found"]) for row in asked)
        right = sum(len({*row["found"]} & {*row["want"], *row["may"]}) for row in asked)
        by_suite = [[row for row in rows if row["store"].split("/")[0] == suite] for suite in SUITES]
        body.append(
            [
                TITLES[peer],
                *(f"{sum(map(passes, some))} of {len(some)}" for some in by_suite),
                f"{percent(map(passes, rows))} %",
                percent(len({*row["want"]} & {*row["found"]}) / len(row["want"]) for row in asked),
                f"{100 * right / max(hits, 1):.1f}",
                f"{hits / len(asked):.1f}",
                f"{sum(not row['found'] for row in unknown)} of {len(unknown)}",
            ]
        )
    return head, body


def newer_first(row: Row) -> bool:
    places = {id: place for place, id in enumerate(row["found"])}
    return places.get(row["newer"], 99) < places.get(row["older"], 99)


def freshness(results: Results) -> Table:
    head = ["", "same words: adjacent", "far apart", "other words: adjacent", "far apart"]
    body: list[list[str]] = []
    for peer in results.peers:
        rows = results.rows(peer, "freshness")
        groups = [
            [row for row in rows if row["store"] == store and (row["kind"] == "reworded") == reworded]
            for reworded in (False, True)
            for store in ("adjacent", "apart")
        ]
        if rows:
            body.append([TITLES[peer], *(percent(map(newer_first, some)) for some in groups)])
    return head, body


def part(name: str, columns: dict[str, Callable[[Row], str]]) -> Callable[[Results], Table]:
    def table(results: Results) -> Table:
        body: list[list[str]] = []
        for peer in results.peers:
            if values := results.values(peer, name):
                body.append([TITLES[peer], *(show(values) for show in columns.values())])
        return ["", *columns], body

    return table


def shortened(error: str) -> str:
    """The first sentence, without folders, which are temporary."""
    line = re.sub(r"/[\w./-]+", "…", error.split("\n")[0]).replace("|", " ")
    return line.split(". ")[0][:120]


def versions(results: Results) -> Table:
    body: list[list[str]] = []
    for peer, package in MAIN_PACKAGES.items():
        about = results.values(peer, "about")
        if about:
            others = " ".join(each for each in about["packages"] if package not in each and "/" not in each)
            others = others.removeprefix("--editable").strip()
            body.append(
                [package, about["versions"].get(package, ""), about["python"], about["date"], others and f"`{others}`"]
            )
    return ["package", "version", "Python", "measured", "installed beside it"], body


TABLES: dict[str, Callable[[Results], Table]] = {
    "versions": versions,
    **{suite: lambda results, suite=suite: quality(results, suite) for suite in DATA},
    "precision": precision,
    "freshness": freshness,
    "crash": part(
        "crash",
        {
            "kills": lambda v: str(v["rounds"]),
            "writes acknowledged": lambda v: f"{v['acknowledged']:,}",
            "of these missing": lambda v: str(v["missing"]),
            "last before a kill, not found by its own text": lambda v: f"{v['unfound']} of {v['asked']}",
            "other failures": lambda v: str(len(v["failures"])),
        },
    ),
    "together": part(
        "together",
        {
            "writes": lambda v: str(v["writes"]),
            "acknowledged": lambda v: str(v["acknowledged"]),
            "refused or failed": lambda v: str(v["errors"]),
            "acknowledged and missing": lambda v: str(v["missing"]),
            "first error": lambda v: shortened((v["error_texts"] or [""])[0]),
        },
    ),
    "speed": part(
        "speed",
        {
            "single writes a second": lambda v: f"{v['singles_a_second']:,.0f}",
            "with vectors": lambda v: f"{v['singles_settled_a_second']:,.0f}",
            "in a batch": lambda v: f"{v['batch_a_second']:,.0f}",
            "with vectors ": lambda v: f"{v['batch_settled_a_second']:,.0f}",
            "recalls a second": lambda v: f"{v['recalls_a_second']:,.0f}",
            "recall p50": lambda v: f"{v['recall_p50_ms']:.1f} ms",
            "disk": lambda v: f"{v['disk_mb']:.0f} MB",
            "memory": lambda v: f"{v['resident_mb']:.0f} MB",
            "cold start": lambda v: f"{v['cold_start_s']:.1f} s",
        },
    ),
}


def markdown(table: Table) -> str:
    head, body = table
    if not body:
        return "Not measured yet."
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=HERE / "results")
    parser.add_argument("--write", action="store_true", help="into docs/benchmarks.md")
    options = parser.parse_args()
    results = Results(options.results)
    page = PAGE.read_text(encoding="utf-8") if options.write else ""
    for name, make in TABLES.items():
        table = make(results)
        text = markdown(table)
        if not options.write:
            print(f"## {name}\n\n{text}\n")
        elif not table[1]:
            print(f"{name}: no results in {options.results}; the page is left as it is")
            continue
        marker = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        page = marker.sub(lambda match, text=text: f"{match[1]}\n{text}\n\n{match[2]}", page)
    if options.write:
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
