"""The one table of operations: what each takes, what it does to the memory, and who may call it.

An operation is a method of Memory or of a facet, marked with `@operation`. Its Python signature is the source: HTTP,
OpenAPI, the remote client, AsyncMemory, the command line, tools, proofs and the tables of the docs are made from it.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, tzinfo
from functools import cache
from importlib import import_module
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    Unpack,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

Rank = Literal["reader", "member", "admin", "owner"]
RANKS: tuple[Rank, ...] = ("reader", "member", "admin", "owner")
"""Each rank may do what those before it may."""
Method = Literal["", "GET", "POST", "PUT", "PATCH", "DELETE"]
"""Empty for an operation that can only be called in the process that has the store."""
Effect = Literal["reads", "changes", "creates", "removes"]
Function = TypeVar("Function", bound=Callable[..., Any])

_MARK = "__recollect_operation__"
_FORMER = "__recollect_former_name__"


class Doc(NamedTuple):
    """The words about an argument, in `Annotated`: for the command line's help, OpenAPI and the reference."""

    text: str


class Names(NamedTuple):
    """Marks an argument, in `Annotated`, that is the id or name of something stored: `memory`, `conversation`, …"""

    kind: str


MemoryId = Annotated[str, Names("memory"), Doc("The id of the memory.")]
MemoryIds = Annotated[str | Sequence[str], Names("memory"), Doc("The id of a memory, or several.")]
ConversationId = Annotated[str, Names("conversation"), Doc("The conversation's id or its ref code.")]
DocumentId = Annotated[str, Names("document"), Doc("The id of the document.")]
WorkflowId = Annotated[str, Names("workflow"), Doc("The id of the workflow.")]
StepId = Annotated[str, Names("step"), Doc("The id of the step.")]
SessionId = Annotated[str, Names("session"), Doc("The id of the session.")]
EntryId = Annotated[str, Names("memory"), Doc("The id of the entry.")]
AgentName = Annotated[str, Names("agent"), Doc("The agent.")]
Reason = Annotated[str | None, Doc("Why, for the audit log.")]
QueryText = Annotated[str, Doc("The question, or words to look for.")]
ShownZone = Annotated[tzinfo, Doc("The time zone of the dates that are shown.")]
"""Arguments that several operations have."""


class Facts(NamedTuple):
    """What `@operation` says about a method."""

    method: Method
    path: str
    """Below `/v1`, with the arguments that are parts of it."""
    rank: Rank
    does: Effect
    asks_model: bool = False
    counts_as_recall: bool = False
    takes_file: bool = False
    replaces_in: Literal["", "workspace", "knowledge"] = ""
    streams: bool = False
    slow: bool = False


class Operation(NamedTuple):
    name: str
    """The method's name, after its facet's: `conversations.start`."""
    function: Callable[..., Any]
    method: Method
    path: str
    rank: Rank
    """The lowest rank that may call it."""
    does: Effect
    asks_model: bool
    """Whether it may wait for a model."""
    counts_as_recall: bool
    """Whether the server counts it as a question to the memory."""
    takes_file: bool
    """Whether a file may be sent along, as the arguments `file` and `file_name`."""
    replaces_in: Literal["", "workspace", "knowledge"]
    """Where it overwrites a value without keeping a version, if it does: `If-Match` needs a transaction there."""
    streams: bool
    """Whether its body or its answer is a stream over HTTP."""
    slow: bool
    """Whether it looks at a whole store: a server lets few run at once."""

    @property
    def status(self) -> int:
        """The HTTP status of a successful answer."""
        return 201 if self.does == "creates" else 200

    @property
    def writes(self) -> bool:
        """Whether it may change what is stored, apart from counting a retrieval."""
        return self.does != "reads"

    @property
    def owner(self) -> str:
        """The name of the facet that has it; empty for Memory."""
        return self.name.rpartition(".")[0]

    @property
    def verb(self) -> str:
        """The method's own name."""
        return self.name.rpartition(".")[2]


def operation(
    route: str = "",
    *,
    does: Effect = "reads",
    rank: Rank | None = None,
    asks_model: bool = False,
    counts_as_recall: bool = False,
    takes_file: bool = False,
    replaces_in: Literal["", "workspace", "knowledge"] = "",
    streams: bool = False,
    slow: bool = False,
) -> Callable[[Function], Function]:
    """Marks a method as an operation. `route` is such as `POST /memories`; without one it is not served over HTTP.

    Readers may call what reads, and members what writes, unless `rank` says otherwise.
    """
    method, _, path = route.partition(" ")
    lowest: Rank = rank or ("reader" if does == "reads" else "member")
    flags = asks_model, counts_as_recall, takes_file, replaces_in, streams, slow
    facts = Facts(method, path, lowest, does, *flags)  # type: ignore[arg-type]

    def mark(function: Function) -> Function:
        setattr(function, _MARK, facts)
        return function

    return mark


def former_name(name: str, function: Function) -> Function:
    """The old name of a method that was renamed: it warns, and calls the new one."""

    @functools.wraps(function)
    def renamed(self: Any, *args: Any, **kwargs: Any) -> Any:
        warnings.warn(f"{name} is now called {function.__name__}", DeprecationWarning, stacklevel=2)
        return getattr(self, function.__name__)(*args, **kwargs)

    renamed.__name__ = name
    setattr(renamed, _MARK, None)
    setattr(renamed, _FORMER, True)
    return cast("Function", renamed)


OWNERS = {
    "": "recollect.memory:Memory",
    "audit": "recollect.audit:AuditLog",
    "conversations": "recollect.facets.conversations:Conversations",
    "aliases": "recollect.facets.aliases:Aliases",
    "cases": "recollect.facets.cases:Cases",
    "channels": "recollect.facets.channels:Channels",
    "scratchpad": "recollect.facets.scratchpad:Scratchpad",
    "journal": "recollect.facets.journal:Journal",
    "journal.whiteboard": "recollect.facets.journal:Whiteboard",
    "knowledge": "recollect.facets.knowledge:Knowledge",
    "workflows": "recollect.facets.workflows:Workflows",
    "moments": "recollect.facets.moments:Moments",
    "sessions": "recollect.facets.sessions:Sessions",
}
"""Where the classes with operations are: Memory itself, and its facets by the name of their property."""
_MODULES_OF_LATE_NAMES = (
    "recollect.context",
    "recollect.context.answers",
    "recollect.context.orientation",
    "recollect.documents.files",
    "recollect.facets.proposals",
    "recollect.maintenance.simulation",
    "recollect.policies.injection",
    "recollect.recall.consult",
    "recollect.recall.profile",
    "recollect.text.tokens",
)
"""Modules that memory.py imports for type checkers only, so that `import recollect` stays quick."""


@cache
def owner_class(owner: str) -> type:
    """Memory for the empty name, else the class of a facet."""
    module, _, name = OWNERS[owner].partition(":")
    return getattr(import_module(module), name)


@cache
def operations_of(owner: str) -> Mapping[str, Operation]:
    """The operations of Memory, or of one facet, by their full names and in the order of the class."""
    operations: dict[str, Operation] = {}
    for verb, function in vars(owner_class(owner)).items():
        if (facts := getattr(function, _MARK, None)) is not None:
            name = f"{owner}.{verb}" if owner else verb
            operations[name] = Operation(name, function, *facts)
    return operations


def former_names_of(owner: str) -> Mapping[str, Callable[..., Any]]:
    """The methods of Memory, or of one facet, that are old names of operations."""
    return {name: value for name, value in vars(owner_class(owner)).items() if hasattr(value, _FORMER)}


@cache
def all_operations() -> Mapping[str, Operation]:
    """Every operation by its full name. Imports every facet."""
    return {name: operation for owner in OWNERS for name, operation in operations_of(owner).items()}


@cache
def served_operations() -> Mapping[str, Operation]:
    """The operations with a route that takes and gives one JSON document."""
    return {
        name: operation for name, operation in all_operations().items() if operation.method and not operation.streams
    }


def find_operation(name: str) -> Operation:
    """KeyError where there is none of that name. Imports only the facet that has it."""
    return operations_of(name.rpartition(".")[0])[name]


def bound_method(memory: Any, name: str) -> Callable[..., Any]:
    """The method of this memory, or of its facet, that an operation names."""
    for part in name.split("."):
        memory = getattr(memory, part)
    return memory


class Parameter(NamedTuple):
    name: str
    type: Any
    """As JSON has it."""
    default: Any
    """`msgspec.NODEFAULT` for one that must be given."""
    hint: Any
    """As Python has it, without `Doc` and `Names`."""
    doc: str = ""
    names: str = ""
    """The kind of the stored thing that it names, such as `memory`; empty for other arguments."""
    positional: bool = False

    @property
    def is_required(self) -> bool:
        return self.default is msgspec.NODEFAULT

    @property
    def is_zone(self) -> bool:
        """Whether it is a time zone, which JSON has by its name."""
        return self.hint is tzinfo or tzinfo in get_args(self.hint)

    @property
    def has_structs(self) -> bool:
        """Whether it is made of structs of ours."""
        return _has_structs(self.type)

    @property
    def is_list(self) -> bool:
        """Whether it may be several."""
        return any(get_origin(kind) is list for kind in union_members(self.type))

    @property
    def takes_none(self) -> bool:
        return type(None) in union_members(self.type)

    @property
    def choices(self) -> tuple[str, ...]:
        """The values of a Literal; empty where any value goes."""
        for kind in union_members(self.hint):
            if get_origin(kind) is Literal:
                return get_args(kind)
        return ()


class Signature(NamedTuple):
    """The parameters and the result of one operation."""

    takes: tuple[Parameter, ...]
    left_out: tuple[str, ...]
    """Parameters that cannot be sent, such as callbacks. Giving one raises an error."""
    gives: Any
    doc: str

    def parameter(self, name: str) -> Parameter:
        return next(parameter for parameter in self.takes if parameter.name == name)


@cache
def signature(name: str) -> Signature:
    function = find_operation(name).function
    hints = _hints(function)
    takes: list[Parameter] = []
    left_out: list[str] = []
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        hint, doc, names = _unwrapped(hints[parameter.name])
        hint = _without_functions(hint)
        if get_origin(hint) is Unpack:
            (fields,) = get_args(hint)
            field_hints = get_type_hints(fields, include_extras=True)
            takes += [_condition(field, field_hint) for field, field_hint in field_hints.items()]
        elif _is_data(hint):
            default = msgspec.NODEFAULT if parameter.default is parameter.empty else parameter.default
            default = "UTC" if isinstance(default, tzinfo) else default
            positional = parameter.kind is parameter.POSITIONAL_OR_KEYWORD
            takes.append(Parameter(parameter.name, wire(hint), default, hint, doc, names, positional))
        else:
            left_out.append(parameter.name)
    return Signature(tuple(takes), tuple(left_out), hints["return"], inspect.getdoc(function) or "")


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    names = vars(import_module(function.__module__))
    try:
        return get_type_hints(function, localns=names, include_extras=True)
    except NameError:
        return get_type_hints(function, localns=_late_names() | names, include_extras=True)


@cache
def _late_names() -> dict[str, Any]:
    names: dict[str, Any] = {"builtins": builtins}
    for module in _MODULES_OF_LATE_NAMES:
        names |= vars(import_module(module))
    return names


def _condition(name: str, hint: Any) -> Parameter:
    """A field of a TypedDict that stands for keyword arguments."""
    plain, doc, names = _unwrapped(hint)
    return Parameter(name, wire(plain) | None, None, plain, doc, names)


def _unwrapped(hint: Any) -> tuple[Any, str, str]:
    """A hint without our marks, the words of its Doc, and the kind of thing that it names."""
    if get_origin(hint) is not Annotated:
        return hint, "", ""
    plain, *marks = get_args(hint)
    inner, doc, names = _unwrapped(plain)
    for mark in marks:
        if isinstance(mark, Doc):
            doc = mark.text
        elif isinstance(mark, Names):
            names = mark.kind
    return inner, doc, names


def union_members(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _without_functions(hint: Any) -> Any:
    """A hint without the functions that may be given in place of a value, where a value may be given, too."""
    members = union_members(hint)
    values = [member for member in members if get_origin(member) is not Callable and member is not Callable]
    if len(values) == len(members) or set(values) <= {type(None)}:
        return hint
    return Union[tuple(values)]  # noqa: UP007


def _is_data(hint: Any) -> bool:
    """Whether it can be sent: a function cannot, nor the path of a file that the server would read."""
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return all(map(_is_data, get_args(hint)))
    if origin is Callable or hint is Callable:
        return False
    return getattr(hint, "__module__", "") != "os" and getattr(origin, "__module__", "") != "os"


def _has_structs(kind: Any) -> bool:
    return (isinstance(kind, type) and issubclass(kind, msgspec.Struct)) or any(map(_has_structs, get_args(kind)))


def wire(hint: Any) -> Any:
    """The type that JSON has in place of Python's."""
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
