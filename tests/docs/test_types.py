"""Every Python block in the documents passes the type checkers that readers use: a copied one breaks no build."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def blocks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one file a block, each with the line numbers of its document."""
    folder = tmp_path_factory.mktemp("blocks")
    for document in DOCUMENTS:
        for name, code in _files(document):
            (folder / name).write_text(code)
    return folder


def _files(document: Path) -> Iterator[tuple[str, str]]:
    text = document.read_text()
    for block in _BLOCK.finditer(text):
        line = text[: block.start(1)].count("\n")
        yield f"{document.stem.lower()}_{line + 1}.py", "\n" * line + block[1]


@pytest.mark.slow
def test_every_block_passes_pyright(blocks: Path) -> None:
    settings = {"extraPaths": [str(ROOT / "src")], "typeCheckingMode": "basic", "include": ["*.py"]}
    (blocks / "pyrightconfig.json").write_text(json.dumps(settings))
    told = _run(blocks, "pyright", "--pythonpath", sys.executable, "--outputjson")
    found = json.loads(told.stdout)
    assert found["summary"]["filesAnalyzed"] == len(list(blocks.glob("*.py")))
    assert not found["generalDiagnostics"], "\n".join(map(_line, found["generalDiagnostics"]))


def _line(found: dict[str, object]) -> str:
    place = found["range"]
    assert isinstance(place, dict)
    return f"{Path(str(found['file'])).name}:{place['start']['line'] + 1}: {found['message']}"


@pytest.mark.slow
def test_every_block_passes_mypy(blocks: Path) -> None:
    names = sorted(path.name for path in blocks.glob("*.py"))
    told = _run(
        blocks,
        "mypy",
        "--check-untyped-defs",
        "--follow-imports=silent",
        "--hide-error-context",
        "--cache-dir=cache",
        *names,
    )
    assert told.returncode == 0, (
        "\n".join(line for line in told.stdout.splitlines() if ": note:" not in line) + told.stderr
    )


def _run(folder: Path, checker: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "MYPYPATH": str(ROOT / "src"), "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    command = [sys.executable, "-m", checker, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240)
