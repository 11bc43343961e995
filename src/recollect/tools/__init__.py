"""What a model may call: one list of tools, in the forms that models' interfaces take, and one way to call them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any

import msgspec

from recollect.facets.scratchpad import NO_CONVERSATION
from recollect.memory import Memory
from recollect.policies.secrets import find
from recollect.presets import Preset
from recollect.tools.base import SPECS, Fault, ToolSpec, refused, schema
from recollect.values.errors import AccessError, InputError, NotFoundError, PresetError, RecollectError, SecretError

__all__ = ["Tool", "all", "anthropic", "call", "mcp", "of", "openai"]


class Tool(msgspec.Struct, frozen=True):
    """What a model is told of a tool."""

    name: str
    title: str
    """For people."""
    description: str
    parameters: dict[str, Any]
    """JSON Schema, draft 2020-12."""
    output: dict[str, Any]
    """The same of what it returns."""
    writes: bool
    """Whether a call may change what is stored, apart from counting a retrieval."""
    destructive: bool
    """Whether it may take away or replace something, rather than only add to it."""


for _module in ("memories", "knowledge", "notebook", "journal", "scratchpad", "conversations", "proposals"):
    import_module(f"recollect.tools.{_module}")  # each registers its tools, which are listed in this order

_FIELDS = frozenset(name for spec in SPECS.values() for name in spec.offer.__struct_fields__)

_UNSAVED = (
    "the disk refuses it: it is in memory only, and lost if the program ends before there is room. Tell the user."
)


_NO_NOTES = "you are not in a conversation, so there is no scratchpad: go on without notes"
"""To a model, which can choose no conversation itself, in place of the message for people."""


def all() -> list[Tool]:
    """Every tool, whatever the preset."""
    return [_tool(spec) for spec in SPECS.values()]


def of(owner: Memory | Preset) -> list[Tool]:
    """Those that the preset offers, in its order. PresetError for one that does not exist."""
    preset = owner if isinstance(owner, Preset) else owner.preset
    for name in preset.tools:
        if name not in SPECS:
            raise PresetError("tools", f"in preset {preset.name}: there is no tool `{name}`; known: {', '.join(SPECS)}")
    return [_tool(SPECS[name]) for name in preset.tools]


def _tool(spec: ToolSpec) -> Tool:
    writes, destructive = spec.facts.writes, spec.destructive
    return Tool(spec.name, spec.title, spec.words, schema(spec.offer), spec.output, writes, destructive)


def openai(owner: Memory | Preset) -> list[dict[str, Any]]:
    """For `tools=` of OpenAI's chat completions and of whatever speaks as they do."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
        }
        for tool in of(owner)
    ]


def anthropic(owner: Memory | Preset) -> list[dict[str, Any]]:
    """For `tools=` of Anthropic's messages."""
    return [{"name": tool.name, "description": tool.description, "input_schema": tool.parameters} for tool in of(owner)]


def mcp(owner: Memory | Preset) -> list[dict[str, Any]]:
    """For the answer to `tools/list` of the Model Context Protocol."""
    return [
        {
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "inputSchema": tool.parameters,
            "outputSchema": tool.output,
            "annotations": {
                "readOnlyHint": not tool.writes,
                "destructiveHint": tool.destructive,
                "openWorldHint": False,
            },
        }
        for tool in of(owner)
    ]


def call(memory: Memory, name: str, arguments: Mapping[str, Any] | str | bytes | None = None) -> dict[str, Any]:
    """Run a tool as this view, and return what to tell the model: plain JSON, with the key `error` if it was refused.

    The arguments are a dict or, as OpenAI gives them, JSON text. Nothing that a model says and nothing that a disk does
    raises: an error is a result, and then nothing was stored. What the disk has refused so far has `not_saved_yet`.
    """
    spec = SPECS.get(name) if isinstance(name, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]
    try:
        if spec is None:
            raise NotFoundError(f"there is no such tool; known: {', '.join(SPECS)}")
        result = msgspec.json.decode(msgspec.json.encode(spec.run(memory, arguments)))
        return result | {"not_saved_yet": _UNSAVED} if spec.facts.writes and memory.unsaved else result
    except RecollectError as error:
        fault = _fault(error, arguments, memory.preset)
    except OSError as error:
        fault = Fault("StoreError", None, error.strerror or "the store could not be reached")
    return refused(fault) if spec is None else spec.refused(fault)


def counts_as_recall(name: str) -> bool:
    """Whether a call of this tool is a question to the memory."""
    return name in SPECS and (SPECS[name].is_search or SPECS[name].facts.counts_as_recall)


def _fault(error: RecollectError, arguments: Any, preset: Preset) -> Fault:
    if isinstance(error, InputError | AccessError | NotFoundError) and (secret := _secret(arguments, preset)):
        # These errors quote the value, and the program that runs the model may log them.
        return Fault("SecretError", secret[0], "text appears to contain a secret — not stored", secret[1])
    if isinstance(error, InputError):
        rule = error.rule if isinstance(error, SecretError) else None
        problem = _NO_NOTES if error.problem == NO_CONVERSATION else error.problem
        return Fault(type(error).__name__, error.field, problem, rule)
    return Fault(type(error).__name__, None, str(error))


def _secret(arguments: Any, preset: Preset) -> tuple[str, str] | None:
    """The argument that holds a secret, and the rule that it breaks; None if there is no secret."""
    decoded: Any = arguments
    if isinstance(arguments, str | bytes):
        with suppress(msgspec.DecodeError, UnicodeError, RecursionError):
            decoded = msgspec.json.decode(arguments)
    if isinstance(decoded, Mapping):
        for name, value in decoded.items():  # pyright: ignore[reportUnknownVariableType]
            rule = next(filter(None, (find(text, preset.secrets) for text in _texts(value, 100))), None)
            if rule is not None and isinstance(name, str) and name in _FIELDS:
                return name, rule
    rules = (find(text, preset.secrets) for text in _texts([arguments, decoded], 100))
    return next((("arguments", rule) for rule in rules if rule is not None), None)


def _texts(value: Any, depth: int) -> Iterator[str]:
    """Every string in it, keys too."""
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping) and depth:
        for key, item in value.items():  # pyright: ignore[reportUnknownVariableType]
            yield from _texts(key, depth - 1)
            yield from _texts(item, depth - 1)
    elif isinstance(value, list | tuple) and depth:
        for item in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _texts(item, depth - 1)
