"""Ids as people type them: the end of an id, a title or a code in place of the whole id."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from recollect.cli import text
from recollect.text import short_ids
from recollect.values.errors import NotFoundError

if TYPE_CHECKING:
    from recollect.facets.knowledge import Document
    from recollect.memory import Memory

_LOOKED_AT = 1000
"""The workflows and answers among which the end of an id is looked for, the newest of them."""


def resolved(memory: Memory, kind: str, value: Any) -> Any:
    """The whole id, or ids, of what is named. What has no short form is returned as it is."""
    resolve = _RESOLVERS.get(kind)
    if resolve is None:
        return value
    if not isinstance(value, tuple):
        return resolve(memory, value)
    return [resolve(memory, name) for name in cast("tuple[str, ...]", value)]


def workflow_id(memory: Memory, name: str) -> str:
    return _whole("workflow", name, lambda: [workflow.id for workflow in memory.workflows.list(limit=_LOOKED_AT)])


def step_id(memory: Memory, name: str) -> str:
    def ids() -> list[str]:
        workflows = memory.workflows.list(limit=_LOOKED_AT)
        return [step.id for workflow in workflows for step in memory.workflows.steps(workflow.id)]

    return _whole("step", name, ids)


def _whole(noun: str, name: str, ids: Callable[[], list[str]]) -> str:
    if len(name) != text.SHORT or name in (known_ids := ids()):
        return name
    matching = [ident for ident in known_ids if ident.endswith(name)]
    if len(matching) > 1:
        raise NotFoundError(f"{len(matching)} have an id that ends in {name}; give the whole id of the {noun}")
    return matching[0] if matching else name


def answer_id(memory: Memory, name: str) -> str:
    return _whole("answer", name, lambda: [answer.id for answer in memory.answers(limit=_LOOKED_AT)])


def document(memory: Memory, name: str) -> Document:
    """By its id, the end of its id, its title or its source."""
    documents = memory.knowledge.list()
    matching = [document for document in documents if name in (document.id, document.title, document.source)]
    matching = matching or [
        document for document in documents if len(name) >= text.SHORT and document.id.endswith(name)
    ]
    if not matching:
        raise NotFoundError(f"there is no document {name}; `recollect knowledge list` shows those that there are")
    if len(matching) > 1:
        ids = ", ".join(text.short(document.id) for document in matching)
        raise NotFoundError(f"{len(matching)} documents are called {name}; give an id: {ids}")
    return matching[0]


_RESOLVERS: dict[str, Callable[[Memory, str], str]] = {
    "memory": short_ids.resolve,
    "change": short_ids.resolve_change,
    "workflow": workflow_id,
    "step": step_id,
    "answer": answer_id,
    "document": lambda memory, name: document(memory, name).id,
    "journal": short_ids.resolve,
    "board": short_ids.resolve,
}
