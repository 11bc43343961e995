"""Files that are made from the operations: `make docs` writes them, and a test compares them.

The types of AsyncMemory are a whole file; in documents it is what stands between two marks.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from datetime import tzinfo
from pathlib import Path
from typing import Any

import click

from recollect import tools
from recollect.cli.app import cli
from recollect.cli.lazy import SHARED, LazyGroup
from recollect.operations import OWNERS, Operation, Parameter, operations_of, owner_class, signature

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from support.async_stub import async_stub

ROOT = Path(__file__).resolve().parents[2]
_BEGIN = "<!-- made by `make docs` -->"
_END = "<!-- end of what `make docs` makes -->"
_SHOWN_TYPES = re.compile(r"\b(?:builtins|recollect(?:\.\w+)*|collections\.abc|datetime|typing)\.")


def operations_reference() -> str:
    """Every operation with its arguments, for reference.md."""
    parts: list[str] = []
    for owner in OWNERS:
        title = "Memory" if not owner else f"memory.{owner}"
        doc = "" if not owner else f"\n\n{_paragraph(owner_class(owner).__doc__ or '')}"
        parts.append(f"## `{title}`{doc}")
        parts += [_operation(operation) for operation in operations_of(owner).values()]
    return "\n\n".join(parts)


def _operation(operation: Operation) -> str:
    takes, left_out, gives, doc = signature(operation.name)
    shown = ", ".join(_call(takes, left_out))
    served = (
        f"`{operation.method} /v1{operation.path}`, {operation.rank}" if operation.method else "in the process only"
    )
    lines = [
        f"### `{operation.name}`",
        f"`{operation.verb}({shown})` → `{_type(gives)}` · {served}",
        *([_paragraph(doc)] if doc else []),
    ]
    if takes:
        rows = [f"| `{p.name}` | {_cell(p)} | {_default(p)} |" for p in takes]
        lines.append("\n".join(["| argument | | default |", "|---|---|---|", *rows]))
    return "\n\n".join(lines)


def _call(takes: tuple[Parameter, ...], left_out: tuple[str, ...]) -> Iterator[str]:
    plain = [p for p in takes if p.positional]
    yield from (p.name if p.is_required else f"{p.name}={_value(p.default)}" for p in plain)
    if len(plain) < len(takes) or left_out:
        yield "*"
    named = [p for p in takes if not p.positional]
    yield from (f"{p.name}={_value(p.default)}" if not p.is_required else p.name for p in named[:6])
    if len(named) > 6:
        yield "…"
    yield from (f"{name}=None" for name in left_out)


def _cell(parameter: Parameter) -> str:
    choices = ", ".join(f"`{choice}`" for choice in parameter.choices)
    words = parameter.doc.removesuffix(".") if choices else parameter.doc
    return f"{words}: {choices}." if choices else words


def _default(parameter: Parameter) -> str:
    return "" if parameter.is_required else f"`{_value(parameter.default)}`"


def _value(value: Any) -> str:
    return "UTC" if isinstance(value, tzinfo) else repr(value).replace("'", '"')


def _type(kind: Any) -> str:
    shown = getattr(kind, "__name__", "") if isinstance(kind, type) and not getattr(kind, "__args__", ()) else str(kind)
    return _SHOWN_TYPES.sub("", shown)


def _paragraph(doc: str) -> str:
    return re.sub(r"(?<!\n)\n(?!\n)\s*", " ", doc.strip())


def commands_reference() -> str:
    """Every command with its arguments and options, for cli.md."""
    parts: list[str] = []
    for title, names in {**cli._sections, **cli._further}.items():  # type: ignore[attr-defined]
        rows = [row for name in names for row in _commands(cli, name)]
        parts.append("\n".join([f"### {title}", "", "| command | | options |", "|---|---|---|", *rows]))
    return "\n\n".join(parts)


def _commands(group: click.Group, name: str, path: tuple[str, ...] = ()) -> Iterator[str]:
    context = click.Context(group)
    command = group.get_command(context, name)
    assert command is not None
    words = (*path, name)
    if isinstance(command, LazyGroup):
        for inner in command.list_commands(click.Context(command)):
            yield from _commands(command, inner, words)
        return
    context = click.Context(command)
    arguments = [param.make_metavar(context) for param in command.params if isinstance(param, click.Argument)]
    options = [
        f"`{param.opts[0]}`"
        for param in command.params
        if isinstance(param, click.Option) and param.name not in (*SHARED, "json", "help") and not param.hidden
    ]
    shown = " ".join([*words, *arguments]).replace("|", "\\|")
    yield f"| `{shown}` | {command.get_short_help_str(limit=200)} | {' '.join(options)} |"


def tools_reference() -> str:
    """Every tool with its arguments and the shape of its result, for tools.md."""
    rows: list[str] = []
    for tool in tools.all():
        required = tool.parameters["required"]
        takes = ", ".join(name if name in required else f"{name}?" for name in tool.parameters["properties"])
        rows.append(f"| `{tool.name}` | {takes} | `{_shape(tool.output)}` |")
    return "\n".join(["| tool | arguments | result |", "|---|---|---|", *rows])


def _shape(schema: dict[str, Any]) -> str:
    """The keys of a result, those inside too; `?` for one that may be missing."""
    if schema.get("type") == "array":
        return f"[{_shape(schema['items'])}]"
    if "properties" not in schema:
        return ""
    required = schema.get("required") or schema["anyOf"][0]["required"]
    parts: list[str] = []
    for name, inner in schema["properties"].items():
        if name not in ("error", "not_saved_yet"):
            shape = _shape(inner)
            key = f'"{name}"' if name in required else f'"{name}"?'
            parts.append(f"{key}: {shape}" if shape.strip("[]") else key)
    return f"{{{', '.join(parts)}}}"


def _between_marks(name: str, make: Callable[[], str]) -> Callable[[], str]:
    def whole() -> str:
        text = (ROOT / name).read_text("utf-8")
        before, begin, rest = text.partition(_BEGIN)
        _, end, after = rest.partition(_END)
        assert begin, f"{name} has no mark {_BEGIN}"
        assert end, f"{name} has no mark {_END}"
        return f"{before}{begin}\n\n{make()}\n\n{end}{after}"

    return whole


FILES: dict[str, Callable[[], str]] = {"src/recollect/aio.pyi": async_stub} | {
    name: _between_marks(name, make)
    for name, make in (
        ("docs/reference.md", operations_reference),
        ("docs/cli.md", commands_reference),
        ("docs/tools.md", tools_reference),
    )
}


def main() -> None:
    for name, make in FILES.items():
        file, text = ROOT / name, make()
        if not file.exists() or file.read_text("utf-8") != text:
            file.write_text(text, "utf-8")
            sys.stdout.write(f"wrote {name}\n")


if __name__ == "__main__":
    main()
