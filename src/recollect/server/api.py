"""The verbs over HTTP: each request is checked, becomes one call, and is answered. There is no logic here."""

from __future__ import annotations

import base64
import contextlib
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, NamedTuple, cast

import msgspec

from recollect import __version__, tools
from recollect.facets.knowledge.documents import place_of as knowledge_place
from recollect.memory import Memory, view_of
from recollect.operations import (
    Operation,
    Parameter,
    Signature,
    bound_method,
    served_operations,
    signature,
    union_members,
)
from recollect.remote import wire
from recollect.remote.calls import KeyFacts
from recollect.server.access.caller import Caller
from recollect.server.bodies import check_no_query, decoded_body, explained
from recollect.server.problems import StaleError
from recollect.server.replays import replayed, wants_vectors, without_vectors
from recollect.server.serving import Serving
from recollect.server.web import Answer, HttpRequest, as_json, matching, tag_of
from recollect.stores.port import Place
from recollect.values.errors import InputError
from recollect.values.record import Record
from recollect.view import View

_LONGEST_NAME = 200
_PLACES: dict[str, Callable[[View], Place]] = {"knowledge": knowledge_place, "workspace": lambda view: view.place}
"""Where an operation overwrites a value in place."""


class Form(NamedTuple):
    """What the body of a call, or its query, is read into."""

    signature: Signature
    body: type[msgspec.Struct]
    lists: frozenset[str]
    """Arguments of which a query may have several."""
    any: frozenset[str]
    """Those that may be None in place of a default."""
    required: frozenset[str]
    names: frozenset[str]
    """All that a call may have, besides the parameters in its path."""
    kinds: Mapping[str, Any]
    """The types of the arguments, by name."""
    unlike_json: tuple[Parameter, ...]
    """The arguments that Python has in another form than JSON: structs and time zones."""


@cache
def form(name: str) -> Form:
    operation, signed = served_operations()[name], signature(name)
    path = operation.path
    fields: list[Any] = []
    for parameter in signed.takes:
        if f"{{{parameter.name}}}" in path:
            continue
        kind = Annotated[parameter.type, msgspec.Meta(description=parameter.doc)] if parameter.doc else parameter.type
        fields.append((parameter.name, kind) if parameter.is_required else (parameter.name, kind, _default(parameter)))
    if operation.takes_file:
        fields += [("file", bytes | None, None), ("file_name", str | None, None)]
    title = "".join(part.title() for part in name.replace(".", "_").split("_"))
    body = msgspec.defstruct(title, fields, kw_only=True, forbid_unknown_fields=True, module=__name__)
    lists = frozenset(parameter.name for parameter in signed.takes if parameter.is_list)
    nullable = frozenset(
        parameter.name for parameter in signed.takes if parameter.default is not None and parameter.takes_none
    )
    required = frozenset(
        parameter.name for parameter in signed.takes if parameter.is_required and f"{{{parameter.name}}}" not in path
    )
    kinds = {parameter.name: parameter.type for parameter in signed.takes}
    unlike = tuple(parameter for parameter in signed.takes if parameter.has_structs or parameter.is_zone)
    return Form(signed, body, lists, nullable, required, frozenset(body.__struct_fields__), kinds, unlike)


def _default(parameter: Any) -> Any:
    empty: Any = msgspec.field(default_factory=list[Any])
    return empty if isinstance(parameter.default, list | tuple) else parameter.default


def answer(serving: Serving, caller: Caller, operation: Operation, request: HttpRequest) -> Answer:
    """Of one verb, to somebody who is known."""
    memory = serving.view(caller, wire.address_of(request.headers))
    if not operation.writes:
        arguments = read(operation, request)
        seen_tag = request.headers.get("if-none-match")
        result = _run(serving, memory, operation, arguments, request)
        return result.tagged(seen_tag) if operation.method == "GET" else result
    with view_of(memory).logging_refusals(operation.verb):
        arguments = read(operation, request)
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
    place = _PLACES.get(operation.replaces_in)
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
        check_no_query(request)
        values = decoded_body(request, dict[str, Any])
    for name in values.keys() - expected.names:
        raise InputError(name[:48], "is not an argument of this call")
    for name in expected.required - values.keys():
        raise InputError(name, "is missing")
    arguments = values | dict(request.parts)
    for parameter in expected.unlike_json:
        if parameter.name in arguments:
            arguments[parameter.name] = _prepared(parameter, arguments[parameter.name])
    return arguments


def _from_query(expected: Form, request: HttpRequest) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in request.query:
        if name in expected.lists:
            values.setdefault(name, []).append(value)
        elif name in values:
            raise InputError(name, "is given twice")
        elif value == wire.ANY and name in expected.any:
            values[name] = None
        else:
            values[name] = _from_text(name, value, expected.kinds.get(name, str))
    return values


def _from_text(name: str, value: str, kind: Any) -> Any:
    """A number or a truth value, where one is wanted and the text is one."""
    try:
        return msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError:
        if bool in union_members(kind):  # of which a verb only asks whether there is something
            raise InputError(name, "must be true or false") from None
        return value  # which the verb refuses in its own words


def _prepared(parameter: Parameter, value: Any) -> Any:
    """As Python has it, where JSON has something else."""
    if value is None and parameter.has_structs and not parameter.takes_none:
        raise InputError(parameter.name, "must not be null; leave it out")
    if parameter.is_zone:
        if value is not None and not isinstance(value, str):
            raise InputError(parameter.name, "must be the name of a time zone, such as Europe/Vienna")
        return None if value is None else wire.zone_of(value)
    if value is not None and parameter.has_structs:
        try:
            return msgspec.convert(value, parameter.type)
        except msgspec.ValidationError as error:
            raise InputError(parameter.name, explained(str(error)).problem) from None
    return value


def _run(
    serving: Serving, memory: Memory, operation: Operation, arguments: Mapping[str, Any], request: HttpRequest
) -> Answer:
    method = bound_method(memory, operation.name)
    start = time.perf_counter()
    with _files(arguments) if operation.takes_file else contextlib.nullcontext(arguments) as ready:
        result = method(**ready)
    if operation.counts_as_recall:
        serving.recalled(memory)
    serving.metrics.time_verb(operation.name, time.perf_counter() - start)
    if isinstance(result, Record | list) and not wants_vectors(request):
        result = without_vectors(result)
    headers = {wire.UNSAVED: "true"} if _unsaved(result) else {}
    if waiting := view_of(memory).unsaved:
        headers[wire.WAITING] = str(waiting)
    return Answer(wire.encoded(result), operation.status, headers=headers, ids=_ids(result), tag=_tag(result))


def _tag(result: Any) -> str:
    """Of a memory itself: that it was retrieved is no change of it. Of anything else, its content says it."""
    if not isinstance(result, Record):
        return ""
    same = msgspec.structs.replace(result, access_count=0, accessed_at=result.created_at)
    return tag_of(wire.encoded(same))


def _ids(result: Any) -> list[str]:
    several = cast("list[Any]", result) if isinstance(result, list) else [result]
    return [record.id for record in several if isinstance(record, Record)]


def _unsaved(result: Any) -> bool:
    several = cast("list[Any]", result) if isinstance(result, list) else [result]
    first = several[0] if several else None
    return isinstance(first, Record) and not first.saved


@contextlib.contextmanager
def _files(arguments: Mapping[str, Any]) -> Generator[Mapping[str, Any]]:
    """A file that came along is put where a verb can read it, under its own name."""
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
    bare = {name: value for name, value in request.headers.items() if name != wire.VECTORS}
    for headers in (bare, {**bare, wire.VECTORS: "1"}):  # it may have been read with its vectors, or without
        reading = request._replace(query=(), body=b"", headers=headers)
        current = _run(serving, memory, twin, read(twin, reading), reading)
        if matching(wanted, current.tag or tag_of(current.content)) is not None:
            return
    raise StaleError("if-match: it has changed since it was read; read it again")


_TWINS = {operation.path: operation for operation in served_operations().values() if operation.method == "GET"}


# Besides the verbs


def about(serving: Serving, caller: Caller, request: HttpRequest) -> Answer:
    """What a client needs to know of the memory behind its key."""
    parts = wire.address_of(request.headers)
    # A key for all tenants has to name one in everything but this.
    view = serving.view(caller, parts) if parts or caller.bound else serving.memory
    bound = tuple(sorted(view_of(view).bound))
    return as_json(KeyFacts(__version__, caller.rank, view.preset, view.address, bound)).tagged(
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
    memory = serving.view(caller, wire.address_of(request.headers))
    if tools.counts_as_recall(name):
        serving.recalled(memory)
    return serving.answers.once(
        caller,
        request,
        lambda: as_json(tools.call(memory, name, request.body or None)),
        tenant=memory.address.tenant,
    )
