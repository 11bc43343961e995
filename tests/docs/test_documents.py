"""Every code block in the documents runs, in order, as a reader would type it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from contextlib import chdir
from pathlib import Path

import pytest
from support.command_line import forked
from support.stores import fresh_location

ROOT = Path(__file__).parent.parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)")
_SERVER = re.compile(r"postgresql://\w+@localhost/memories")
"""What documents call a database; here it is one of our own."""
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def blocks(document: Path) -> list[tuple[str, str]]:
    return _BLOCK.findall(document.read_text())


@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_block_of_a_document_runs(document: Path, tmp_path: Path) -> None:
    """Blocks of one document share a folder; each Python block is a program of its own, so nothing is left unsaid."""
    server = ""
    for number, (language, code) in enumerate(blocks(document)):
        if language in ("python", "console") and _SERVER.search(code):
            server = server or fresh_location()
            code = _SERVER.sub(server, code)
        if language == "python":
            script = tmp_path / f"block_{number}.py"
            script.write_text(code)
            run([sys.executable, str(script)], tmp_path, code)
        elif language == "console":
            for command, shown in commands(code):
                check_shown(run(["bash", "-c", command], tmp_path, command), shown, command)
        elif language == "toml":
            (tmp_path / "mine.toml").write_text(code)


def commands(block: str) -> list[tuple[str, str]]:
    """The lines after `$ `, each with what the document shows below it."""
    return [(command, shown) for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)]


def run(command: list[str], folder: Path, shown: str) -> str:
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("RECOLLECT_")},
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "100",
        "NO_COLOR": "1",
        "RECOLLECT_EMBEDDER": "none",  # a model may be installed here; blocks that are about one name it
    }
    if words := plain_command(command):
        with chdir(folder):
            done = forked(words, environment)
    else:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    expected = 1 if "# refused" in shown else 0
    assert done.returncode == expected, f"{shown}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def plain_command(command: list[str]) -> list[str]:
    """The words after `recollect`, if a line for bash is that command and needs nothing of a shell; else none.

    Most are, and a fork of a process that has imported recollect takes a tenth of the time.
    """
    if command[:2] != ["bash", "-c"] or set("$`~*|&;<>\\") & set(command[2]):
        return []
    first, *words = shlex.split(command[2], comments=True)
    return words if first == "recollect" else []


def check_shown(printed: str, shown: str, command: str) -> None:
    """What a document shows is what is printed; `…` stands for what differs from run to run."""
    for line in filter(str.strip, shown.splitlines()):
        pattern = ".*".join(re.escape(part.strip()) for part in line.split("…"))
        assert re.search(pattern, printed), f"$ {command}\nshows {line!r}, prints:\n{printed}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    for target, section in _LINK.findall(document.read_text()):
        there = document.parent / target if target else document
        assert there.exists(), target
        assert not section or section in sections(there), f"{target}#{section}"


def sections(document: Path) -> set[str]:
    """The names under which the headings of a document are reached, as GitHub makes them."""
    found: set[str] = set()
    seen: Counter[str] = Counter()
    for heading in _HEADING.findall(document.read_text()):
        name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found.add(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return found


def test_the_readme_begins_with_a_recall_that_works() -> None:
    language, code = blocks(ROOT / "README.md")[0]
    assert language == "python"
    assert ".recall(" in code
    assert (ROOT / "README.md").read_text().index(".recall(") < 2000


def test_every_command_is_in_the_document_about_them() -> None:
    from recollect.cli.app import cli

    text = (ROOT / "docs" / "cli.md").read_text()
    assert [name for name in cli.list_commands(None) if f"`{name}" not in text] == []  # type: ignore[arg-type]
