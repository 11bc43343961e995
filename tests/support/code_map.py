"""The map of the code in CONTRIBUTING.md, from the tree itself.

`PYTHONPATH=tests python -m support.code_map` writes it; `tests/docs/test_code_map.py` compares.
"""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "CONTRIBUTING.md"
_SOURCE = ROOT / "src" / "recollect"
_BEGIN, _END = "<!-- the map: lowest layer first -->\n```\n", "```\n"


def drawn() -> str:
    """A line for each module and folder at the top, in the order of the layers; what a folder holds below it."""
    return "".join(f"{line}\n" for layer in reversed(_layers()) for name in layer for line in _lines(name))


def _layers() -> list[list[str]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    layers: list[str] = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    return [layer.replace(":", "|").replace(" ", "").split("|") for layer in layers]


def _lines(name: str) -> list[str]:
    path = _SOURCE / name
    if not path.is_dir():
        return [f"{name + '.py':<14}{_sentence(path.with_suffix('.py'))}"]
    parts = sorted(
        f"{part.name}/" if part.is_dir() else part.stem
        for part in path.iterdir()
        if (part.suffix == ".py" and part.stem != "__init__") or (part / "__init__.py").exists()
    )
    return [f"{name + '/':<14}{_sentence(path / '__init__.py')}", *_wrapped(parts)]


def _wrapped(parts: list[str]) -> list[str]:
    lines = [""]
    for part in parts:
        if len(lines[-1]) + len(part) > 96:
            lines.append("")
        lines[-1] += f" {part}"
    return [f"{'':<14} {line}" for line in lines if line]


def _sentence(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
    return docstring.split("\n\n")[0].split("\n")[0]


def written() -> str:
    """The map as it stands in the document."""
    return DOCUMENT.read_text().partition(_BEGIN)[2].partition(_END)[0]


if __name__ == "__main__":
    before, _, rest = DOCUMENT.read_text().partition(_BEGIN)
    DOCUMENT.write_text(f"{before}{_BEGIN}{drawn()}{_END}{rest.partition(_END)[2]}")
