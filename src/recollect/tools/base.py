"""What a tool is: an operation, the arguments of it that a model may give, and the shape of the result."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, NamedTuple, cast, get_args, get_origin

import msgspec

from recollect.memory import Memory
from recollect.operations import Operation, bound_method, find_operation, signature, union_members
from recollect.text import short_ids
from recollect.values import validation
from recollect.values.errors import InputError
from recollect.values.schemas import without_null

Result = dict[str, Any]
Tag = Annotated[str, msgspec.Meta(min_length=1, max_length=32)]
Kind = Annotated[str, msgspec.Meta(min_length=1, max_length=32)]
Id = Annotated[
    str, msgspec.Meta(min_length=1, max_length=36, description="The id of the memory, or a part of it that is unique.")
]


class Fault(NamedTuple):
    """Why a call was refused."""

    type: str
    """The name of the error."""
    field: str | None
    """The argument that it is about."""
    message: str
    rule: str | None = None
    """Which rule about secrets the text breaks."""

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field and self.type != "SecretError" else self.message


class ToolCall(NamedTuple):
    """One call of a tool: the view that it is for, and the arguments that the model gave."""

    memory: Memory
    arguments: dict[str, Any]


Shape = Callable[[Any, ToolCall], Result]
Prepare = Callable[[dict[str, Any], Memory], dict[str, Any]]


def refused(fault: Fault) -> Result:
    """How a tool tells a model that it did nothing, unless its document has other words for it."""
    error = {"type": fault.type, "field": fault.field, "message": fault.message}
    return {"error": error if fault.rule is None else {**error, "rule": fault.rule}}


class ToolSpec(NamedTuple):
    """A tool: the operation behind it, the arguments that it offers to a model, and how it shows the result."""

    name: str
    operation: str
    title: str
    words: str
    offer: type[msgspec.Struct]
    output: dict[str, Any]
    """JSON Schema of what it returns, an error included."""
    shape: Shape
    """Makes what the model sees from the operation's result."""
    prepare: Prepare | None = None
    """Makes the operation's arguments from the model's, where they differ."""
    refused: Callable[[Fault], Result] = refused
    takes_short_ids: bool = True
    is_search: bool = False
    """Whether it counts as a question to the memory, although its operation does not."""

    @property
    def facts(self) -> Operation:
        return find_operation(self.operation)

    @property
    def destructive(self) -> bool:
        """Whether it may take away or replace something, rather than only add to it."""
        return self.facts.does in ("changes", "removes")

    def run(self, memory: Memory, sent: Any) -> Result:
        values = msgspec.structs.asdict(read(self, sent))
        chosen = {name: value for name, value in values.items() if value is not None}
        arguments = chosen if self.prepare is None else self.prepare(chosen, memory)
        for parameter in signature(self.operation).takes:
            if self.takes_short_ids and parameter.name in arguments and parameter.names in _RESOLVED:
                arguments[parameter.name] = _RESOLVED[parameter.names](memory, arguments[parameter.name])
        with _listing_kinds(memory):
            result = bound_method(memory, self.operation)(**arguments)
        return self.shape(result, ToolCall(memory, arguments))


_RESOLVED = {"memory": short_ids.resolve, "change": short_ids.resolve_change}
"""Ids that a model may shorten, by the kind of what they name."""
SPECS: dict[str, ToolSpec] = {}
"""Every tool by its name, in the order in which they are listed."""


def tool(
    name: str,
    operation: str,
    title: str,
    words: str,
    *,
    offer: Mapping[str, Any],
    output: dict[str, Any],
    prepare: Prepare | None = None,
    refused: Callable[[Fault], Result] = refused,
    takes_short_ids: bool = True,
    is_search: bool = False,
) -> Callable[[Shape], Shape]:
    """Makes a tool of a function that shapes the result of an operation.

    `offer` has the arguments by name: a type, or a type and a default. One that may be None may be left out.
    """

    def register(shape: Shape) -> Shape:
        fields: list[Any] = [_field(field, kind) for field, kind in offer.items()]
        struct = msgspec.defstruct(name, fields, frozen=True, kw_only=True, forbid_unknown_fields=True, module=__name__)
        how = prepare, refused, takes_short_ids, is_search
        SPECS[name] = ToolSpec(name, operation, title, words, struct, output, shape, *how)
        return shape

    return register


def _field(name: str, kind: Any) -> Any:
    if isinstance(kind, tuple):
        return (name, *cast("tuple[Any, Any]", kind))
    plain = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    return (name, kind, None) if type(None) in union_members(plain) else (name, kind)


@contextmanager
def _listing_kinds(memory: Memory) -> Generator[None]:
    """Adds the kinds in use to the error of an invalid kind."""
    try:
        yield
    except InputError as error:
        if error.field == "kind" and type(error) is InputError and (kinds := used_kinds(memory)):
            raise InputError("kind", f"{error.problem}; in use: {', '.join(kinds)}") from None
        raise


def used_kinds(memory: Memory) -> list[str]:
    return sorted(kind for kind, number in memory.stats().kinds.items() if number)


TEXT: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "number"}
COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
YES: dict[str, Any] = {"type": "boolean"}
TIME: dict[str, Any] = {"type": "string", "format": "date-time"}
ANY: dict[str, Any] = {}


def nullable(part: dict[str, Any]) -> dict[str, Any]:
    return {**part, "type": [part["type"], "null"]}


def many(part: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": part}


def fields(optional: Sequence[str] = (), **properties: dict[str, Any]) -> dict[str, Any]:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required}


def returns(optional: Sequence[str] = (), error: dict[str, Any] | None = None, **properties: dict[str, Any]) -> Result:
    """What a tool returns, or its error in place of that."""
    made = fields(optional, **properties)
    refused = error or fields(("rule",), type=TEXT, field=nullable(TEXT), message=TEXT, rule=TEXT)
    return {
        "type": "object",
        "properties": {**properties, "error": refused, "not_saved_yet": TEXT},
        "anyOf": [{"required": made["required"]}, {"required": ["error"]}],
    }


def schema(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """JSON Schema of the arguments, flat. What may be left out may also be null, but a model need not know that."""
    _, components = msgspec.json.schema_components([kind])
    made = components[kind.__name__]
    return {
        "type": "object",
        "properties": {name: _shown(part) for name, part in made["properties"].items()},
        "required": made["required"],
        "additionalProperties": False,
    }


def _shown(part: dict[str, Any]) -> dict[str, Any]:
    shown = without_null(part)
    return {**({"type": "string"} if "enum" in shown else {}), **shown}


def read(spec: ToolSpec, sent: Any) -> msgspec.Struct:
    """InputError that names the argument, and never quotes it."""
    arguments = _object(sent)
    names = spec.offer.__struct_fields__
    if any(name not in names for name in arguments):
        takes = f"takes {', '.join(names)}" if names else "takes none"
        raise InputError("arguments", f"there is one that this tool does not have; {spec.name} {takes}")
    try:
        return msgspec.convert(arguments, spec.offer)
    except msgspec.ValidationError as error:
        raise _explained(str(error), spec.offer) from None


def _object(arguments: Any) -> dict[str, Any]:
    if isinstance(arguments, str | bytes):
        if len(arguments) > validation.MAX_CONTENT_BYTES:
            raise InputError("arguments", f"is over the limit of {validation.MAX_CONTENT_BYTES:,} bytes")
        if not arguments.strip():
            return {}
        try:
            arguments = msgspec.json.decode(arguments)
        except RecursionError:
            raise InputError("arguments", "is nested too deeply") from None
        except (msgspec.DecodeError, UnicodeError):
            raise InputError("arguments", "is not JSON") from None
    if arguments is not None and not isinstance(arguments, Mapping):
        raise InputError("arguments", "must be a JSON object")
    return validation.metadata(arguments, "arguments", validation.MAX_CONTENT_BYTES)


def _explained(message: str, kind: type[msgspec.Struct]) -> InputError:
    """msgspec's message by the name of the argument, without the value that some of them quote."""
    problem, _, place = message.partition(" - at `$")
    field = place.strip("`.") or "arguments"
    if problem.startswith("Object missing required field"):
        return InputError(problem.split("`")[1], "is missing")
    if problem.startswith("Invalid enum value"):
        return InputError(field, f"must be one of {', '.join(schema(kind)['properties'][field]['enum'])}")
    wanted, _, got = problem.removeprefix("Expected ").replace(" | null", "").replace("`", "").partition(", got ")
    for name, word in _WORDS.items():
        wanted = wanted.replace(name, word)
    return InputError(field, f"must be {wanted}{f', not {_WORDS.get(got, got)}' if got else ''}")


_WORDS = {
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "array": "a list",
    "object": "an object",
    "bool": "true or false",
}
