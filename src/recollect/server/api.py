"""The verbs over HTTP: each request is checked, becomes one call, and is answered. There is no logic here."""

from __future__ import annotations

import base64
import contextlib
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, NamedTuple, Union, cast, get_args, get_origin

import msgspec

from recollect import __version__, tools
from recollect.facets.knowledge.documents import place_of as knowledge_place
from recollect.memory import Memory, view_of
from recollect.remote import wire
from recollect.remote.calls import About
from recollect.remote.operations import OPERATIONS, Operation, Parameter, Signature, signature
from recollect.server import recalls
from recollect.server.access.caller import Caller
from recollect.server.problems import StaleError
from recollect.server.replays import replayed, without_vectors
from recollect.server.requests import Answer, HttpRequest, as_json, matching, tag_of
from recollect.server.serving import Serving
from recollect.stores.port import Place
from recollect.values.errors import InputError
from recollect.values.record import Record
from recollect.view import View

_LONGEST_NAME = 200
UPLOAD = "knowledge.add"
"""The one call that may bring a file along."""
_IN_PLACE: dict[str, Callable[[View], Place]] = {
    "knowledge.allow": knowledge_place,
    "scratchpad.write": lambda view: view.place,
}
"""Calls that put something in place of what is there, and where. Others leave a version, or end what there is."""


class Form(NamedTuple):
    """What the body of a call, or its query, is read into."""

    signature: Signature
    body: type[msgspec.Struct]
    lists: frozenset[str]
    """Arguments of which a query may have several."""
    any: frozenset[str]
    """Those that may be None in place of a default."""
    required: frozenset[str]


@cache
def form(name: str) -> Form:
    signed, path = signature(name, Memory), OPERATIONS[name].path
    fields: list[Any] = []
    for parameter in signed.takes:
        if f"{{{parameter.name}}}" in path:
            continue
        fields.append(
            (parameter.name, parameter.type)
            if parameter.default is msgspec.NODEFAULT
            else (parameter.name, parameter.type, _default(parameter))
        )
    if name == UPLOAD:
        fields += [("file", bytes | None, None), ("file_name", str | None, None)]
    title = "".join(part.title() for part in name.replace(".", "_").split("_"))
    body = msgspec.defstruct(title, fields, kw_only=True, forbid_unknown_fields=True, module=__name__)
    lists = frozenset(parameter.name for parameter in signed.takes if parameter.listed)
    nullable = frozenset(
        parameter.name for parameter in signed.takes if parameter.default is not None and _takes_none(parameter.type)
    )
    required = frozenset(
        parameter.name
        for parameter in signed.takes
        if parameter.default is msgspec.NODEFAULT and f"{{{parameter.name}}}" not in path
    )
    return Form(signed, body, lists, nullable, required)


def _default(parameter: Any) -> Any:
    empty: Any = msgspec.field(default_factory=list[Any])
    return empty if isinstance(parameter.default, list | tuple) else parameter.default


def _kinds(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _takes_none(kind: Any) -> bool:
    return type(None) in _kinds(kind)


def answer(serving: Serving, caller: Caller, operation: Operation, request: HttpRequest) -> Answer:
    """Of one verb, to somebody who is known."""
    caller.check(operation.rank, operation.name)
    memory = caller.view(serving.memory, wire.address_of(request.headers))
    with view_of(memory).logging_refusals(operation.name.rpartition(".")[2]):
        arguments = read(operation, request)
    if not operation.writes:
        seen_tag = request.headers.get("if-none-match")
        result = _run(serving, memory, operation, arguments, request)
        return result.tagged(seen_tag) if operation.method == "GET" else result
    return serving.answers.once(
        caller,
        request,
        lambda: _written(serving, memory, operation, arguments, request),
        lambda ids, entries: replayed(memory, operation, request, ids, entries),
        tenant=memory.address.tenant,
    )


def _written(
    serving: Serving, memory: Memory, operation: Operation, arguments: Mapping[str, Any], request: HttpRequest
) -> Answer:
    if "if-match" not in request.headers:
        return _run(serving, memory, operation, arguments, request)
    view = view_of(memory)
    place = _IN_PLACE.get(operation.name)
    alone = view.store.transaction(place(view)) if place else contextlib.nullcontext()
    with serving.one_at_a_time(request.path), alone:  # nobody else comes between looking and writing
        _check_match(serving, memory, operation, request)
        return _run(serving, memory, operation, arguments, request)


def read(operation: Operation, request: HttpRequest) -> dict[str, Any]:
    """The arguments of a call. Only their presence is checked here; the verb validates the values."""
    expected = form(operation.name)
    if operation.method == "GET" or (operation.method == "DELETE" and not request.body):
        values = _from_query(expected, request)
    else:
        values = _from_body(request)
    for name in values.keys() - set(expected.body.__struct_fields__):
        raise InputError(name[:48], "is not an argument of this call")
    for name in expected.required - values.keys():
        raise InputError(name, "is missing")
    arguments = values | dict(request.parts)
    for parameter in expected.signature.takes:
        if parameter.name in arguments:
            arguments[parameter.name] = _prepared(parameter, arguments[parameter.name])
    return arguments


def _from_body(request: HttpRequest) -> dict[str, Any]:
    try:
        values: Any = msgspec.json.decode(request.body or b"{}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise InputError("body", "is not JSON") from None
    if not isinstance(values, dict):
        raise InputError("body", "must be a JSON object")
    return values  # pyright: ignore[reportUnknownVariableType]


def _from_query(expected: Form, request: HttpRequest) -> dict[str, Any]:
    values: dict[str, Any] = {}
    kinds = {parameter.name: parameter.type for parameter in expected.signature.takes}
    for name, value in request.query:
        if name in expected.lists:
            values.setdefault(name, []).append(value)
        elif name in values:
            raise InputError(name, "is given twice")
        elif value == wire.ANY and name in expected.any:
            values[name] = None
        else:
            values[name] = _from_text(name, value, kinds.get(name, str))
    return values


def _from_text(name: str, value: str, kind: Any) -> Any:
    """A number or a truth value, where one is wanted and the text is one."""
    try:
        return msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError:
        if bool in _kinds(kind):  # of which a verb only asks whether there is something
            raise InputError(name, "must be true or false") from None
        return value  # which the verb refuses in its own words


def _prepared(parameter: Parameter, value: Any) -> Any:
    """As Python has it, where JSON has something else."""
    if value is None and parameter.structs and not _takes_none(parameter.type):
        raise InputError(parameter.name, "must not be null; leave it out")
    if parameter.zone:
        if value is not None and not isinstance(value, str):
            raise InputError(parameter.name, "must be the name of a time zone, such as Europe/Vienna")
        return None if value is None else wire.zone_of(value)
    if value is not None and parameter.structs:
        try:
            return msgspec.convert(value, parameter.type)
        except msgspec.ValidationError as error:
            raise InputError(parameter.name, explained(str(error)).problem) from None
    return value


def explained(message: str) -> InputError:
    """msgspec's message by the name of the argument, without the value that some of them quote."""
    problem, _, place = message.partition(" - at `$")
    field = place.strip("`.").removeprefix(".") or "body"
    if problem.startswith("Object contains unknown field"):
        return InputError(problem.split("`")[1][:48], "is not an argument of this call")
    if problem.startswith("Object missing required field"):
        return InputError(problem.split("`")[1], "is missing")
    return InputError(field, problem[:1].lower() + problem[1:].replace("`", ""))


def _run(
    serving: Serving, memory: Memory, operation: Operation, arguments: Mapping[str, Any], request: HttpRequest
) -> Answer:
    above, _, verb = operation.name.rpartition(".")
    target: Any = memory
    for part in filter(None, above.split(".")):
        target = getattr(target, part)
    start = time.perf_counter()
    with _files(operation, arguments) as ready:
        result = getattr(target, verb)(**ready)
    if operation.name in recalls.VERBS:
        serving.recalled(memory)
    serving.metrics.took(
        "recollect_verb_seconds", "Time of the verb itself.", time.perf_counter() - start, {"verb": operation.name}
    )
    if isinstance(result, Record | list) and wire.VECTORS not in request.headers:
        result = without_vectors(result)
    headers = {wire.UNSAVED: "true"} if _unsaved(result) else {}
    if waiting := view_of(memory).unsaved:
        headers[wire.WAITING] = str(waiting)
    return Answer(wire.encoded(result), operation.status, headers=headers, ids=_ids(result), tag=_tag(result))


def _tag(result: Any) -> str:
    """Of a memory itself: that it was retrieved is no change of it. Of anything else, its content says it."""
    if not isinstance(result, Record):
        return ""
    same = msgspec.structs.replace(result, access_count=0, accessed_at=result.created_at, embedding=None)
    return tag_of(wire.encoded(same))


def _ids(result: Any) -> list[str]:
    several = cast("list[Any]", result) if isinstance(result, list) else [result]
    return [record.id for record in several if isinstance(record, Record)]


def _unsaved(result: Any) -> bool:
    several = cast("list[Any]", result) if isinstance(result, list) else [result]
    first = several[0] if several else None
    return isinstance(first, Record) and not first.saved


@contextlib.contextmanager
def _files(operation: Operation, arguments: Mapping[str, Any]) -> Any:
    """A file that came along is put where a verb can read it, under its own name."""
    if operation.name != UPLOAD:
        yield arguments
        return
    rest = {name: value for name, value in arguments.items() if name not in ("file", "file_name")}
    if arguments.get("file") is None:
        yield rest
        return
    name = Path(str(arguments.get("file_name") or "")).name
    if not name.strip(".") or len(name.encode()) > _LONGEST_NAME or not name.isprintable():
        raise InputError("file_name", "must be the name of the file, such as guide.pdf")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(_decoded(arguments["file"]))
        yield {**rest, "text": None, "path": path, "source": rest.get("source") or name}


def _decoded(text: Any) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (TypeError, ValueError):
        raise InputError("file", "must be the bytes of the file in base64") from None


def _check_match(serving: Serving, memory: Memory, operation: Operation, request: HttpRequest) -> None:
    """Check `If-Match`: the tag of the resource as the client has read it."""
    wanted = request.headers.get("if-match")
    if not wanted or wanted.strip() == "*":
        return
    twin = _TWINS.get(operation.path)
    if twin is None:
        raise InputError("if-match", "there is nothing to read at this address that it could be the tag of")
    current = _run(serving, memory, twin, read(twin, request._replace(query=(), body=b"")), request)
    if matching(wanted, current.tag or tag_of(current.content)) is None:
        raise StaleError("if-match: it has changed since it was read; read it again")


_TWINS = {operation.path: operation for operation in OPERATIONS.values() if operation.method == "GET"}


# Besides the verbs


def about(serving: Serving, caller: Caller, request: HttpRequest) -> Answer:
    """What a client needs to know of the memory behind its key."""
    parts = wire.address_of(request.headers)
    # A key for all tenants has to name one in everything but this.
    view = caller.view(serving.memory, parts) if parts or caller.bound else serving.memory
    bound = tuple(sorted(view_of(view).bound))
    return as_json(About(__version__, caller.rank, view.preset, view.address, bound)).tagged(
        request.headers.get("if-none-match")
    )


def list_tools(serving: Serving, caller: Caller, request: HttpRequest) -> Answer:
    offered = [tool for tool in tools.of(serving.memory) if not tool.writes or caller.may("member")]
    return as_json(offered).tagged(request.headers.get("if-none-match"))


def call_tool(serving: Serving, caller: Caller, request: HttpRequest) -> Answer:
    """A refusal is a result here, as for a model. Only who may write may call what writes."""
    name = request.parts["name"]
    tool = next((tool for tool in tools.all() if tool.name == name), None)
    caller.check("member" if tool is None or tool.writes else "reader", f"tool {name}" if tool else "tool")
    memory = caller.view(serving.memory, wire.address_of(request.headers))
    if name in recalls.TOOLS:
        serving.recalled(memory)
    return serving.answers.once(
        caller,
        request,
        lambda: as_json(tools.call(memory, name, request.body or None)),
        tenant=memory.address.tenant,
    )
