"""The reference has every public name, every argument of every verb, and every field of what verbs return."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import recollect
from recollect import Memory
from recollect.audit import AuditLog
from recollect.context import Context
from recollect.context.answers import AnswerSources
from recollect.context.orientation import OrientationDocument
from recollect.facets.aliases import Aliases
from recollect.facets.cases import Cases
from recollect.facets.channels import Channels
from recollect.facets.conversations import Conversations
from recollect.facets.conversations.talk import Talk
from recollect.facets.journal import Journal
from recollect.facets.knowledge import Knowledge
from recollect.facets.moments import Moments
from recollect.facets.proposals import Proposal
from recollect.facets.workflows import Workflows
from recollect.maintenance.simulation import Simulation
from recollect.presets import Preset
from recollect.recall.consult import Consulted
from recollect.recall.profile import PersonProfile

TEXT = (Path(__file__).parent.parent.parent / "docs" / "reference.md").read_text()
LATE = {
    kind.__name__: kind
    for kind in (
        Aliases,
        AnswerSources,
        Cases,
        Channels,
        Consulted,
        Context,
        Conversations,
        Journal,
        Knowledge,
        Moments,
        Proposal,
        OrientationDocument,
        PersonProfile,
        Simulation,
        Talk,
        Workflows,
    )
}
for _name in ("Embedder", "Llm", "Count", "Placing", "SystemMessages"):
    LATE[_name] = Any  # type: ignore[assignment]


def about(name: str) -> str:
    """The section with this heading, or the row of a table that begins with it."""
    if found := re.search(rf"^### `{name}`\n(.*?)(?=^##)", TEXT + "\n##", re.MULTILINE | re.DOTALL):
        return found[1]
    found = re.search(rf"^\| `{name}[(`].*$", TEXT, re.MULTILINE)
    assert found, f"{name} is not in the reference"
    return found[0]


def verbs(kind: type) -> Iterator[Any]:
    return (value for name, value in vars(kind).items() if inspect.isfunction(value) and not name.startswith("_"))


def lacks(name: str, words: typing.Iterable[str]) -> list[str]:
    text = about(name)
    return [word for word in words if not re.search(rf"[`*( ]{re.escape(word)}[`(=, )]", text)]


@pytest.mark.parametrize("name", recollect.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert about(name)


@pytest.mark.parametrize(
    "verb", [Memory.__init__, Memory.at, Memory.conversation, recollect.wrap], ids=lambda v: v.__qualname__
)
def test_every_argument_of_a_verb_is_there(verb: Any) -> None:
    name = "Memory" if verb is Memory.__init__ else verb.__name__
    arguments = [one for one in inspect.signature(verb).parameters.values() if one.name != "self"]
    assert not lacks(name, [one.name for one in arguments if one.kind is not one.VAR_KEYWORD])


def test_every_property_of_a_memory_is_there() -> None:
    for name, value in inspect.getmembers(Memory):
        if isinstance(value, property):
            assert about(name)


_DESCRIBED_ELSEWHERE = ("AsyncMemory", "wrap", "wrapping")


def returned() -> list[type]:
    """What verbs return and what that holds, save for the preset, whose keys have a document of their own."""
    found: dict[type, None] = dict.fromkeys(
        one
        for one in (getattr(recollect, name) for name in recollect.__all__ if name not in _DESCRIBED_ELSEWHERE)
        if isinstance(one, type) and one.__module__.startswith("recollect.") and not issubclass(one, Exception)
    )
    found.pop(Memory)
    waiting: list[Any] = [
        typing.get_type_hints(verb, localns=LATE)["return"] for verb in [*verbs(Memory), *verbs(AuditLog)]
    ]
    waiting += [
        typing.get_type_hints(one.fget, localns=LATE)["return"]
        for _, one in inspect.getmembers(Memory)
        if isinstance(one, property)
    ]
    waiting += list(found)
    while waiting:
        kind = waiting.pop()
        waiting += typing.get_args(kind)
        if not isinstance(kind, type) or not kind.__module__.startswith("recollect.") or kind is Preset:
            continue
        if issubclass(kind, msgspec.Struct | tuple) or kind in found:
            found[kind] = None
            waiting += [hint for hint in typing.get_type_hints(kind).values() if hint not in found]
    return [kind for kind in found if not issubclass(kind, Warning)]


@pytest.mark.parametrize("kind", returned(), ids=lambda kind: kind.__name__)
def test_every_field_of_what_is_returned_is_there(kind: type) -> None:
    fields = {name for name in typing.get_type_hints(kind) if not name.startswith("_")}
    members = {name for name, value in vars(kind).items() if isinstance(value, property) or inspect.isfunction(value)}
    assert not lacks(kind.__name__, sorted(fields | {name for name in members if not name.startswith("_")}))


@pytest.mark.parametrize("name", [name for name in recollect.__all__ if name.endswith("Error")])
def test_every_attribute_of_an_error_is_there(name: str) -> None:
    made = inspect.signature(getattr(recollect, name).__init__).parameters
    own = [one for one in made if one not in ("self", "args")] if "__init__" in vars(getattr(recollect, name)) else []
    assert not [one for one in own if f"`{one}`" not in TEXT.partition("## Errors")[2]]
