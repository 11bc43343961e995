"""The facets that `consult` asks, besides the memories and the audit log."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from recollect.recall.sources import Found, Source
from recollect.runtime import imports
from recollect.values.record import Address
from recollect.view import View


class WorkflowSource(msgspec.Struct, frozen=True):
    """What completed steps of workflows have brought."""

    view: View
    name: str = "workflow"

    def at(self, address: Address) -> WorkflowSource:
        return replace(self, view=replace(self.view, address=address))

    def search(self, query: str, limit: int) -> Sequence[Found]:
        imports.load("recollect.facets.workflows")
        from recollect.facets.workflows import search_outputs

        return search_outputs(self.view, query, limit)


class KnowledgeSource(msgspec.Struct, frozen=True):
    """The knowledge base, as the address that asks may search it."""

    view: View
    name: str = "knowledge"

    def at(self, address: Address) -> KnowledgeSource:
        return replace(self, view=replace(self.view, address=address))

    def search(self, query: str, limit: int) -> Sequence[Found]:
        imports.load("recollect.facets.knowledge.searching")
        from recollect.facets.knowledge.searching import search_knowledge

        return search_knowledge(self.view, query, limit)


def own_sources(view: View) -> tuple[Source, ...]:
    return WorkflowSource(view), KnowledgeSource(view)
