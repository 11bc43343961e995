"""The facets of a memory as its properties: `memory.x` is made here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.audit import AuditLog
from recollect.documents.skills import Skills
from recollect.facets.scratchpad import Scratchpad
from recollect.facets.sessions import Sessions
from recollect.view import View

if TYPE_CHECKING:
    from recollect.facets.aliases import Aliases
    from recollect.facets.cases import Cases
    from recollect.facets.channels import Channels
    from recollect.facets.conversations import Conversations
    from recollect.facets.journal import Journal
    from recollect.facets.knowledge import Knowledge
    from recollect.facets.moments import Moments
    from recollect.facets.workflows import Workflows


class Facets:
    """The properties of Memory that group operations. Their modules are imported when they are first used."""

    _view: View
    _owner: View
    """The view before the address of recollect.toml was applied."""
    _whole: View
    """The view of the whole workspace, whoever recollect.toml names."""

    @property
    def audit(self) -> AuditLog:
        """Every change and refusal, searchable and verifiable."""
        return AuditLog(self._view)

    @property
    def sessions(self) -> Sessions:
        """The same memories by session, under the ledger document's names. On a ledger only."""
        return Sessions(self._view, unbound=not self._owner.bound - {"tenant"})

    @property
    def journal(self) -> Journal:
        """The view's agent's journal and core memories, and the whiteboard that agents share."""
        from recollect.facets.journal import Journal

        return Journal(self._view)

    @property
    def scratchpad(self) -> Scratchpad:
        """What is being worked on, under keys, in the conversation that this view is bound to."""
        return Scratchpad(self._view)

    @property
    def knowledge(self) -> Knowledge:
        """The tenant's documents, which all its agents search and only the owner changes."""
        from recollect.facets.knowledge import Knowledge

        return Knowledge(self._view, self._whole.whole)

    @property
    def workflows(self) -> Workflows:
        """The tenant's workflows and their steps, whose outputs can be searched."""
        from recollect.facets.workflows import Workflows

        return Workflows(self._view)

    @property
    def skills(self) -> Skills:
        """What was read from SKILL.md files when this memory was made."""
        return self._view.skills

    @property
    def moments(self) -> Moments:
        """What was learnt for the moments of decision: tasks, tools, decisions, content and delegation."""
        from recollect.facets.moments import Moments

        return Moments(self._view)

    @property
    def aliases(self) -> Aliases:
        """Other names for the same thing, by which questions find what has either."""
        from recollect.facets.aliases import Aliases

        return Aliases(self._view)

    @property
    def cases(self) -> Cases:
        """Questions that must go on finding what they find, which `recollect eval cases` asks again."""
        from recollect.facets.cases import Cases

        return Cases(self._view)

    @property
    def channels(self) -> Channels:
        """The channels of the workspace."""
        from recollect.facets.channels import Channels

        return Channels(self._view)

    @property
    def conversations(self) -> Conversations:
        """Conversations: start, list, get, end, archive."""
        from recollect.facets.conversations import Conversations

        return Conversations(self._view)
