"""What a tool is: its arguments as a class, from which the schema is made that a model sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec

from recollect.memory import Memory
from recollect.values import validation
from recollect.values.errors import InputError

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


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a model gives to one tool. Each tool is such a class."""

    name: ClassVar[str]
    title: ClassVar[str]
    description: ClassVar[str]
    output: ClassVar[dict[str, Any]]
    """JSON Schema of what it returns, an error included."""
    writes: ClassVar[bool] = False
    destructive: ClassVar[bool] = False
    """Whether it may take away or replace something, rather than only add to it."""

    def run(self, memory: Memory) -> Result:
        """What the tool does. Each has its own."""
        raise NotImplementedError(f"the tool {self.name} has no `run`")

    @staticmethod
    def refused(fault: Fault) -> Result:
        """How this tool tells a model that it did nothing."""
        error = {"type": fault.type, "field": fault.field, "message": fault.message}
        return {"error": error if fault.rule is None else {**error, "rule": fault.rule}}


TEXT: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "number"}
COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
YES: dict[str, Any] = {"type": "boolean"}
TIME: dict[str, Any] = {"type": "string", "format": "date-time"}
ANY: dict[str, Any] = {}


def perhaps(part: dict[str, Any]) -> dict[str, Any]:
    return {**part, "type": [part["type"], "null"]}


def many(part: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": part}


def fields(optional: Sequence[str] = (), **properties: dict[str, Any]) -> dict[str, Any]:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required}


def returns(optional: Sequence[str] = (), error: dict[str, Any] | None = None, **properties: dict[str, Any]) -> Result:
    """What a tool returns, or its error in place of that."""
    made = fields(optional, **properties)
    refused = error or fields(("rule",), type=TEXT, field=perhaps(TEXT), message=TEXT, rule=TEXT)
    return {
        "type": "object",
        "properties": {**properties, "error": refused, "not_saved_yet": TEXT},
        "anyOf": [{"required": made["required"]}, {"required": ["error"]}],
    }


def schema(kind: type[Arguments]) -> dict[str, Any]:
    """JSON Schema of the arguments, flat. What may be left out may also be null, but a model need not know that."""
    _, components = msgspec.json.schema_components([kind])
    made = components[kind.__name__]
    return {
        "type": "object",
        "properties": {name: _without_null(part) for name, part in made["properties"].items()},
        "required": made["required"],
        "additionalProperties": False,
    }


def _without_null(part: dict[str, Any]) -> dict[str, Any]:
    rest = {key: value for key, value in part.items() if key != "anyOf" and (key, value) != ("default", None)}
    (value,) = [option for option in part.get("anyOf", [{}]) if option != {"type": "null"}]
    return {**({"type": "string"} if "enum" in value else {}), **value, **rest}


def read(kind: type[Arguments], sent: Any) -> Arguments:
    """InputError that names the argument, and never quotes it."""
    arguments = _object(sent)
    names = kind.__struct_fields__
    if any(name not in names for name in arguments):
        takes = f"takes {', '.join(names)}" if names else "takes none"
        raise InputError("arguments", f"there is one that this tool does not have; {kind.name} {takes}")
    try:
        return msgspec.convert(arguments, kind)
    except msgspec.ValidationError as error:
        raise _explained(str(error), kind) from None


def _object(arguments: Any) -> dict[str, Any]:
    if isinstance(arguments, str | bytes):
        if len(arguments) > validation.MAX_CONTENT_BYTES:
            raise InputError("arguments", f"is over the limit of {validation.MAX_CONTENT_BYTES:,} bytes")
        if not arguments.strip():
            return {}
        try:
            arguments = msgspec.json.decode(arguments)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            raise InputError("arguments", "is not JSON") from None
    if arguments is not None and not isinstance(arguments, Mapping):
        raise InputError("arguments", "must be a JSON object")
    return validation.metadata(arguments, "arguments", validation.MAX_CONTENT_BYTES)


def _explained(message: str, kind: type[Arguments]) -> InputError:
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
