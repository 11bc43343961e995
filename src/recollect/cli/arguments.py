"""Options and arguments of a command, made from the signature of its operation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, cast, get_origin

import click

from recollect.cli import names, times
from recollect.cli.completing import COMPLETED
from recollect.cli.intake import ABOUT_VALUES, TextArgument, pairs, parse_json
from recollect.cli.lazy import LATE, SHARED

if TYPE_CHECKING:
    from recollect.memory import Memory
    from recollect.operations import Parameter

_SPELLINGS = {
    "budget": ("--budget", "-b"),
    "categories": ("--category", "-c"),
    "category": ("--category", "-c"),
    "expires_at": ("--expires", "--expires-at"),
    "limit": ("--limit", "-n"),
    "metadata": ("--meta", "--metadata"),
    "references": ("--ref", "--reference"),
}
"""How an argument is spelled in every command that has it; others are spelled as in Python."""
_SHARES = frozenset(("importance", "min_importance", "min_relevance"))
"""Numbers from 0 to 1."""
_AS_JSON = "as_json"


class Spec:
    """Which arguments of an operation a command takes, and how."""

    def __init__(
        self,
        operation: str,
        *,
        hide: Sequence[str] = (),
        as_options: Sequence[str] = (),
        as_arguments: Sequence[str] = (),
        optional: Sequence[str] = (),
        spelled: Mapping[str, str] | None = None,
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        self.operation = operation
        self._hidden = frozenset(hide)
        self._as_options = frozenset(as_options)
        self._as_arguments = frozenset(as_arguments)
        self._optional = frozenset(optional)
        self._spelled = spelled or {}
        self._defaults = defaults or {}

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """Not those that a shared option has already, such as `--channel`."""
        from recollect.operations import signature

        own = [p for p in signature(self.operation).takes if p.name not in self._hidden]
        return tuple(p for p in own if p.name not in SHARED or p.name in self._spelled or self._is_argument(p))

    def click_parameters(self) -> Iterator[click.Parameter]:
        arguments = [p for p in self.parameters if self._is_argument(p)]
        for parameter in arguments:
            required = parameter.is_required and parameter.name not in self._optional
            yield _argument(parameter, is_last=parameter is arguments[-1], required=required)
            if _is_json(parameter):
                words = "The text is JSON and is stored as such."
                yield click.Option(["--content-json", _AS_JSON], is_flag=True, help=words)
        for parameter in self.parameters:
            if not self._is_argument(parameter):
                yield self._option(parameter)

    def _is_argument(self, parameter: Parameter) -> bool:
        named = parameter.name in self._as_arguments
        return named or (parameter.positional and parameter.name not in self._as_options)

    def _option(self, parameter: Parameter) -> click.Option:
        name, words = parameter.name, parameter.doc
        spelled = self._spelled.get(name)
        spellings = (spelled,) if spelled else _SPELLINGS.get(name, (f"--{_singular(parameter).replace('_', '-')}",))
        if parameter.hint is bool:
            flag = f"--no-{name.replace('_', '-')}" if parameter.default is True else spellings[0]
            words = f"Do not {words[:1].lower()}{words[1:]}" if parameter.default is True else words
            return click.Option([flag, name], is_flag=True, help=words)
        more: dict[str, Any] = {"metavar": _metavar(parameter), "shell_complete": COMPLETED.get(_singular(parameter))}
        if parameter.choices:
            more["type"] = click.Choice(parameter.choices)
            words = f"{words.removesuffix('.')}: {', '.join(parameter.choices)}."
        elif numeric := _number(parameter):
            more["type"] = click.IntRange(min=1) if name == "limit" else numeric
        if parameter.is_list or _is_mapping(parameter):
            more |= {"multiple": True}
            words = f"{words} {ABOUT_VALUES}" if _is_mapping(parameter) else words
            words = f"{words} Repeat for more."
        default = self._defaults.get(name, None if parameter.is_list else _shown_default(parameter))
        if default is not None:
            more |= {"default": default, "show_default": True}
        return click.Option([*spellings, _key(parameter)], help=words, **more)

    def read(self, options: dict[str, Any], memory: Memory) -> dict[str, Any]:
        """The arguments of the operation, from the options of the command: times, ids and JSON are read."""
        as_json = options.get(_AS_JSON, False)
        values: dict[str, Any] = {}
        for parameter in self.parameters:
            value = _value(parameter, options.get(parameter.name), memory, as_json=as_json)
            if value is not None:  # an empty text was typed, and is the operation's to refuse
                values[parameter.name] = value
        return values


def takes(operation: str, **how: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command the options of an operation, and its function a Call as the keyword argument `call`."""
    spec = Spec(operation, **how)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**options: Any) -> None:
            own = {p.name: options.pop(_key(p)) for p in spec.parameters}
            if _AS_JSON in options:
                own[_AS_JSON] = options.pop(_AS_JSON)
            command(call=Call(spec, own), **options)

        setattr(run, LATE, spec.click_parameters)
        return run

    return decorate


class Call:
    """An operation with the options that were typed for it."""

    def __init__(self, spec: Spec, options: dict[str, Any]) -> None:
        self._spec = spec
        self.options = options

    def arguments(self, memory: Memory) -> dict[str, Any]:
        return self._spec.read(self.options, memory)

    def run(self, memory: Memory, **more: Any) -> Any:
        """Calls the operation of this memory. `more` goes before what was typed."""
        return self.run_with(memory, self.arguments(memory) | more)

    def run_with(self, memory: Memory, arguments: Mapping[str, Any]) -> Any:
        from recollect.operations import bound_method

        return bound_method(memory, self._spec.operation)(**arguments)


def _key(parameter: Parameter) -> str:
    """The name of its option inside click: a shared option may have the same."""
    return f"own_{parameter.name}" if parameter.name in SHARED else parameter.name


def _argument(parameter: Parameter, *, is_last: bool, required: bool) -> click.Argument:
    named = bool(parameter.names)
    several = parameter.is_list or (is_last and not named and _is_text(parameter))
    shown = "ID" if named and parameter.names not in ("agent", "channel") else parameter.name.upper()
    shown = "TEXT" if shown == "CONTENT" else shown
    shown = f"{shown}..." if several else shown
    kind = click.Argument if named else TextArgument
    return kind(
        [_key(parameter)], nargs=-1 if several else 1, required=required, metavar=shown if required else f"[{shown}]"
    )


def _value(parameter: Parameter, value: Any, memory: Memory, *, as_json: bool) -> Any:
    if value is None or value == ():
        return None
    if parameter.hint is bool:
        return None if value is False else not parameter.default
    if _is_text(parameter) and isinstance(value, tuple):
        value = " ".join(cast("tuple[str, ...]", value))
    if as_json and _is_json(parameter):
        return parse_json(value, parameter.name)
    if parameter.names:
        return names.resolved(memory, parameter.names, value)
    if _is_mapping(parameter):
        return pairs(value, _SPELLINGS.get(parameter.name, (f"--{parameter.name}",))[0])
    if _is_time(parameter):
        return times.future(value, "expires") if parameter.name == "expires_at" else times.past(value, parameter.name)
    if parameter.is_zone:
        from recollect.remote.wire import zone_of

        return zone_of(value)
    return list(cast("tuple[Any, ...]", value)) if isinstance(value, tuple) else value


def _members(parameter: Parameter) -> tuple[Any, ...]:
    from recollect.operations import union_members

    return union_members(parameter.hint)


def _is_text(parameter: Parameter) -> bool:
    return not parameter.is_list and (str in _members(parameter) or parameter.hint is Any)


def _is_json(parameter: Parameter) -> bool:
    return parameter.hint is Any


def _is_mapping(parameter: Parameter) -> bool:
    return any(get_origin(kind) is Mapping for kind in _members(parameter))


def _is_time(parameter: Parameter) -> bool:
    return any(getattr(kind, "__name__", "") == "datetime" for kind in _members(parameter))


def _number(parameter: Parameter) -> type | None:
    return next((kind for kind in (int, float) if kind in _members(parameter)), None)


def _metavar(parameter: Parameter) -> str:
    if parameter.name in _SHARES:
        return "0..1"
    if _is_mapping(parameter):
        return "KEY=VALUE"
    if _is_time(parameter):
        return "TIME"
    if _number(parameter):
        return "N"
    if parameter.names:
        return "ID" if parameter.names in ("memory", "conversation") else "NAME"
    return "NAME" if parameter.choices or parameter.is_zone else "TAG" if parameter.name == "tags" else "TEXT"


def _singular(parameter: Parameter) -> str:
    name = parameter.name
    if not parameter.is_list:
        return name
    return f"{name.removesuffix('ies')}y" if name.endswith("ies") else name.removesuffix("s")


def _shown_default(parameter: Parameter) -> Any:
    return None if parameter.is_required or parameter.default in (None, "", ()) else parameter.default
