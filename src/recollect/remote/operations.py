"""Every call that a server takes: where it is reached over HTTP, and who may. What it takes and gives its verb says."""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, tzinfo
from functools import cache
from importlib import import_module
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, Unpack, get_args, get_origin, get_type_hints

import msgspec

Rank = Literal["reader", "member", "admin", "owner"]
RANKS: tuple[Rank, ...] = ("reader", "member", "admin", "owner")
"""Each may what those before it may."""
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]


class Operation(NamedTuple):
    name: str
    """That of the verb, behind that of its facet."""
    method: Method
    path: str
    """Below `/v1`, with the arguments that are parts of it."""
    rank: Rank = "reader"
    """The least that may call it."""
    creates: bool = False
    """Whether what it answers with was made by it: 201, and 200 otherwise."""

    @property
    def status(self) -> int:
        """Of its answer, where it is not refused."""
        return 201 if self.creates else 200

    @property
    def writes(self) -> bool:
        """Whether it may change what is stored, apart from counting a retrieval."""
        return self.rank != "reader" and self.method != "GET"


_CALLS = """
remember                      POST   /memories                      member creates
remember_many                 POST   /memories/batch                member creates
list                          GET    /memories                      reader
get                           GET    /memories/{id}                 reader
revise                        PATCH  /memories/{id}                 member
history                       GET    /memories/{id}/history         reader
diagnose                      GET    /memories/{id}/diagnosis       reader
ids_like                      GET    /ids                           reader
forget                        POST   /forget                        member
archive                       POST   /archive                       member
restore                       POST   /restore                       member
recall                        POST   /recall                        reader
query                         POST   /query                         reader
context                       POST   /context                       reader
consult                       POST   /consult                       reader
orient                        POST   /orientation                   reader
undo                          POST   /undo                          member
deduplicate                   POST   /deduplicate                   admin
maintain                      POST   /maintenance                   admin
simulate                      GET    /simulation                    reader
embed                         POST   /embed                         admin
compact                       POST   /compact                       admin
stats                         GET    /stats                         reader
doctor                        GET    /doctor                        reader
verify                        GET    /verification                  admin
workspaces                    GET    /workspaces                    reader
audit.search                  GET    /audit                         reader
audit.matching                GET    /audit/matching                reader
audit.record                  POST   /audit                         member creates
audit.verify                  GET    /audit/verification            admin
audit.named                   POST   /audit/named                   reader
conversations.start           POST   /conversations                 member creates
conversations.list            GET    /conversations                 reader
conversations.get             GET    /conversations/{id}            reader
conversations.idle            POST   /conversations/{id}/idle       member
conversations.archive         POST   /conversations/{id}/archive    member
conversations.say             POST   /conversations/{id}/turns      member creates
conversations.observe         POST   /observations                  member creates
cases.list                    GET    /cases                         reader
cases.save                    POST   /cases                         member creates
cases.remove                  DELETE /cases                         member
channels.create               POST   /channels                      member creates
channels.list                 GET    /channels                      reader
channels.get                  GET    /channels/{name}               reader
scratchpad.list               GET    /scratchpad                    reader
scratchpad.note               GET    /scratchpad/{key}              reader
scratchpad.write              PUT    /scratchpad/{key}              member
scratchpad.clear              DELETE /scratchpad                    member
journal.recent_first          GET    /journal                       reader
journal.save                  POST   /journal                       member creates
journal.save_core             POST   /journal/core                  member creates
journal.edit                  PATCH  /journal/{id}                  member
journal.for_prompt            GET    /journal/prompt                reader
journal.expired               GET    /journal/expired               reader
journal.has_expired           POST   /journal/has-expired           reader
journal.counts                GET    /journal/counts                reader
journal.counts_by_agent       GET    /journal/agents                reader
journal.context               GET    /journal/context               reader
journal.consolidate           POST   /journal/consolidation         admin
journal.whiteboard.entries    GET    /whiteboard                    reader
journal.whiteboard.write      POST   /whiteboard                    member creates
journal.whiteboard.erase      DELETE /whiteboard/{id}               member
knowledge.add                 POST   /knowledge                     admin creates
knowledge.list                GET    /knowledge                     reader
knowledge.get                 GET    /knowledge/{id}                reader
knowledge.publish             POST   /knowledge/{id}/publish        admin
knowledge.withdraw            POST   /knowledge/{id}/withdraw       admin
knowledge.remove              DELETE /knowledge/{id}                admin
knowledge.allow               PUT    /knowledge-access/{agent}      admin
knowledge.allowed             GET    /knowledge-access/{agent}      reader
knowledge.search              POST   /knowledge-search              reader
workflows.start               POST   /workflows                     member creates
workflows.list                GET    /workflows                     reader
workflows.search              POST   /workflows-search              reader
workflows.get                 GET    /workflows/{workflow}          reader
workflows.finish              POST   /workflows/{workflow}/finish   member
workflows.remove              DELETE /workflows/{workflow}          admin
workflows.steps               GET    /workflows/{workflow}/steps    reader
workflows.step                POST   /workflows/{workflow}/steps    member creates
workflows.complete            POST   /steps/{step}/complete         member
workflows.fail                POST   /steps/{step}/fail             member
moments.task                  POST   /moments/task                  reader
moments.tool                  POST   /moments/tool                  reader
moments.decision              POST   /moments/decision              reader
moments.content               POST   /moments/content               reader
moments.delegation            POST   /moments/delegation            reader
moments.record_task           POST   /moments/task/outcomes         member creates
moments.record_tool           POST   /moments/tool/outcomes         member creates
moments.record_decision       POST   /moments/decision/outcomes     member creates
moments.record_content        POST   /moments/content/outcomes      member creates
moments.record_delegation     POST   /moments/delegation/outcomes   member creates
sessions.list                 GET    /sessions                      reader
sessions.create               POST   /sessions                      member creates
sessions.search               POST   /sessions-search               reader
sessions.metrics              GET    /sessions-metrics              reader
sessions.load                 GET    /sessions/{session_id}         reader
sessions.close                POST   /sessions/{session_id}/close   member
sessions.delete_session       DELETE /sessions/{session_id}         member
sessions.stats                GET    /sessions/{session_id}/stats   reader
sessions.export               GET    /sessions/{session_id}/export  reader
sessions.compact              POST   /sessions/{session_id}/compact admin
sessions.rebuild_index        POST   /sessions/{session_id}/index   admin
sessions.migrate              POST   /sessions/{session_id}/migrate admin
sessions.query                POST   /sessions/{session_id}/query   reader
sessions.search_by_topic      GET    /sessions/{session_id}/by-topic  reader
sessions.search_by_type       GET    /sessions/{session_id}/by-type   reader
sessions.search_by_time_range GET    /sessions/{session_id}/by-time   reader
sessions.delete_by_topic      DELETE /sessions/{session_id}/by-topic  member
sessions.delete_by_time_range DELETE /sessions/{session_id}/by-time   member
sessions.add                  POST   /sessions/{session_id}/memories  member creates
sessions.add_many             POST   /sessions/{session_id}/batch     member creates
sessions.get                  GET    /sessions/{session_id}/memories/{memory_id}  reader
sessions.delete               DELETE /sessions/{session_id}/memories/{memory_id}  member
"""
OPERATIONS: Mapping[str, Operation] = {
    name: Operation(name, method, path, rank, creates == ["creates"])  # type: ignore[arg-type]
    for name, method, path, rank, *creates in (line.split() for line in _CALLS.strip().splitlines())
}

FACETS = {
    "audit": "recollect.audit:AuditLog",
    "cases": "recollect.facets.cases:Cases",
    "channels": "recollect.facets.channels:Channels",
    "conversations": "recollect.facets.conversations:Conversations",
    "journal": "recollect.facets.journal:Journal",
    "journal.whiteboard": "recollect.facets.journal:Whiteboard",
    "knowledge": "recollect.facets.knowledge:Knowledge",
    "moments": "recollect.facets.moments:Moments",
    "scratchpad": "recollect.facets.scratchpad:Scratchpad",
    "sessions": "recollect.facets.sessions:Sessions",
    "workflows": "recollect.facets.workflows:Workflows",
}
_NAMED_IN = (
    "recollect.context",
    "recollect.context.orientation",
    "recollect.documents.files",
    "recollect.maintenance.simulation",
    "recollect.policies.injection",
    "recollect.recall.consult",
    "recollect.text.tokens",
)
"""Modules with types that verbs name without importing them."""


class Parameter(NamedTuple):
    name: str
    type: Any
    """As JSON has it."""
    default: Any
    """`msgspec.NODEFAULT` for one that must be given."""
    zone: bool = False
    """Whether it is a time zone, which goes by its name."""
    structs: bool = False
    """Whether it is made of structs of ours."""

    @property
    def listed(self) -> bool:
        """Whether it may be several."""
        return any(get_origin(kind) is list for kind in (self.type, *get_args(self.type)))


class Signature(NamedTuple):
    """The parameters and the result of one call."""

    takes: tuple[Parameter, ...]
    left_out: tuple[str, ...]
    """Parameters that cannot be sent, such as callbacks. Giving one raises an error."""
    gives: Any
    doc: str


def facet(name: str) -> type:
    module, _, kind = FACETS[name].partition(":")
    return getattr(import_module(module), kind)


def function(name: str, memory: type) -> Callable[..., Any]:
    """The verb behind a call. `memory` is the class that has those of no facet."""
    above, _, verb = name.rpartition(".")
    return getattr(facet(above) if above else memory, verb)


@cache
def signature(name: str, memory: type) -> Signature:
    verb = function(name, memory)
    hints = get_type_hints(verb, localns=_names() | vars(import_module(verb.__module__)), include_extras=True)
    takes: list[Parameter] = []
    left_out: list[str] = []
    for parameter in list(inspect.signature(verb).parameters.values())[1:]:
        hint = hints[parameter.name]
        if get_origin(hint) is Unpack:
            (fields,) = get_args(hint)
            field_hints = get_type_hints(fields, include_extras=True)
            takes += [Parameter(field, wire(kind) | None, None) for field, kind in field_hints.items()]
        elif _is_data(hint):
            default = msgspec.NODEFAULT if parameter.default is parameter.empty else parameter.default
            zone = _is_zone(hint)
            kind = wire(hint)
            default = _plain(default) if zone else default
            takes.append(Parameter(parameter.name, kind, default, zone, _has_structs(kind)))
        else:
            left_out.append(parameter.name)
    return Signature(tuple(takes), tuple(left_out), hints["return"], inspect.getdoc(verb) or "")


@cache
def _names() -> dict[str, Any]:
    names: dict[str, Any] = {"builtins": builtins}
    for module in _NAMED_IN:
        names |= vars(import_module(module))
    return names


def _is_zone(hint: Any) -> bool:
    return hint is tzinfo or tzinfo in get_args(hint)


def _plain(default: Any) -> Any:
    return "UTC" if isinstance(default, tzinfo) else default


def _is_data(hint: Any) -> bool:
    """Whether it can be sent: a function cannot, nor the path of a file that the server would read."""
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return all(map(_is_data, get_args(hint)))
    if origin is Annotated:
        return _is_data(get_args(hint)[0])
    if origin is Callable or hint is Callable:
        return False
    return getattr(hint, "__module__", "") != "os" and getattr(origin, "__module__", "") != "os"


def _has_structs(kind: Any) -> bool:
    return (isinstance(kind, type) and issubclass(kind, msgspec.Struct)) or any(map(_has_structs, get_args(kind)))


def wire(hint: Any) -> Any:
    """The type that JSON has in place of a verb's."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        kinds = [wire(part) for part in inner]
        if str in kinds:  # a time in its text
            kinds = [kind for kind in kinds if kind is not datetime]
        if dict[str, Any] in kinds:  # a struct of ours by its fields
            kinds = [kind for kind in kinds if not isinstance(kind, type) or not issubclass(kind, msgspec.Struct)]
        return Union[tuple(dict.fromkeys(kinds))]  # noqa: UP007
    if origin in (Iterable, Sequence, tuple):
        return list[wire(inner[0])] if inner else list[Any]  # type: ignore[misc]
    if origin is Mapping:
        return dict[str, Any]
    if origin in (list, dict):
        several: Any = origin
        return several[tuple(wire(part) for part in inner)]
    if hint is tzinfo:
        return str
    return hint
