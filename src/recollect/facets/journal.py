"""An agent's journal and core memories, private to it, and the whiteboard that agents share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC
from functools import partial
from itertools import islice
from typing import Annotated

from recollect.context.styles.journal import CORE, JOURNAL, in_prompt, owned, private
from recollect.operations import Doc, Names, Reason, ShownZone, operation
from recollect.policies.retention import in_window
from recollect.text.tokens import estimate
from recollect.values import validation
from recollect.values.errors import InputError, NotFoundError
from recollect.values.record import Record
from recollect.verbs.forget import Forget, Receipt, forget
from recollect.verbs.remember import remember
from recollect.verbs.remember.draft import WHITEBOARD
from recollect.verbs.revise import revise
from recollect.view import View

MAX_CHARS = 10_000
_CONSOLIDATED = "consolidation"
_SUMMARY_TOKENS = 400


class Whiteboard:
    """What every agent of a workspace sees, with who wrote it last. Anyone may wipe an entry off, or `revise` it."""

    def __init__(self, view: View) -> None:
        self._view = view

    @operation("POST /whiteboard", does="creates")
    def write(self, content: Annotated[str, Doc("The text.")]) -> Record:
        """Add an entry to the whiteboard, which all agents of the workspace read."""
        with self._view.logging_refusals("remember"):
            text = _checked(content)
        return remember(self._view, [{"content": text, "kind": WHITEBOARD, "tier": "workspace"}], shared=True)[0]

    @operation("GET /whiteboard")
    def entries(self) -> list[Record]:
        """Oldest first."""
        return list(owned(self._view, None, (WHITEBOARD,)))

    @operation("DELETE /whiteboard/{id}", does="removes")
    def erase(
        self,
        id: Annotated[str, Names("board"), Doc("The id of the entry.")],
        *,
        reason: Reason = None,
    ) -> Receipt:
        """Wipe one entry off the board, for all. `undo` brings it back."""
        if (record := self._view.find_one(id)).kind != WHITEBOARD or record.address.agent is not None:
            raise NotFoundError(f"there is no entry {record.id} on the whiteboard")
        return forget(self._view, Forget(id, reason=reason))


class Journal:
    """The memories of one agent: journal entries, in the prompt for as long as the preset says, and core memories.

    Those of the view's agent, and never another's. A view without an agent keeps one that is nobody's.
    """

    def __init__(self, view: View) -> None:
        self._view = view

    @property
    def _own(self) -> View:
        """The view, where it may look into the agent's journal."""
        self._view.check_private(JOURNAL, self._view.address.agent)
        return self._view

    @property
    def whiteboard(self) -> Whiteboard:
        return Whiteboard(self._view)

    @operation("POST /journal", does="creates")
    def save(self, content: Annotated[str, Doc("The text.")]) -> Record:
        """A journal entry: it is in the prompt until it leaves the window, and stays after that."""
        return self._save(content, JOURNAL)

    @operation("POST /journal/core", does="creates")
    def save_core(self, content: Annotated[str, Doc("The text.")]) -> Record:
        """A core memory: it is always in the prompt."""
        return self._save(content, CORE)

    @operation("PATCH /journal/{id}", does="changes")
    def edit(
        self,
        id: Annotated[str, Names("journal"), Doc("The id of the entry.")],
        content: Annotated[str, Doc("The new text.")],
    ) -> Record:
        """Another text for an entry, which keeps its day and its history."""
        with self._view.logging_refusals("revise"):
            text, old = _checked(content), self._journal_record(id)
        return revise(self._view, old.id, {"content": text})

    @operation("GET /journal/prompt")
    def for_prompt(self) -> list[Record]:
        """Core memories and the journal of the window, oldest first."""
        records = [record for kind in (CORE, JOURNAL) for record in in_prompt(self._own, kind)]
        return sorted(records, key=lambda record: record.created_at)

    @operation("GET /journal")
    def recent_first(self, limit: Annotated[int, Doc("The most entries.")] = 100) -> list[Record]:
        """Core memories and all journal entries, newest first."""
        limit = validation.count(limit, "limit", high=1_000_000)
        return list(islice(owned(self._own, self._view.address.agent, newest_first=True), limit))

    @operation("GET /journal/expired")
    def expired(self) -> list[Record]:
        """What has left the window and is no longer in the prompt, oldest first."""
        return [record for record in owned(self._own, self._view.address.agent) if self.has_expired(record)]

    @operation("POST /journal/has-expired")
    def has_expired(self, record: Annotated[Record, Doc("An entry of the journal.")]) -> bool:
        """Whether an entry is too old for the journal's window, as the preset sets it."""
        if not isinstance(record, Record):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError("record", "must be a Record, such as `entries` returns")
        return not in_window(self._view.preset.retention, record, self._view.now())

    @operation("GET /journal/counts")
    def counts(self, agent: Annotated[str | None, Names("agent"), Doc("Another agent.")] = None) -> dict[str, int]:
        """How many core memories and journal entries there are, in the prompt or not. `agent` for another's."""
        view = self._own if agent is None else Journal(self._view.at(agent=agent))._own
        return _counted(owned(view, view.address.agent, whole=False))

    @operation("GET /journal/agents")
    def counts_by_agent(self) -> dict[str, dict[str, int]]:
        """Of every agent that this view sees; those of no agent under the empty name."""
        groups: dict[str, list[Record]] = {}
        for record in self._view.store.scan(self._view.where(kinds=(CORE, JOURNAL)), whole=False):
            groups.setdefault(record.address.agent or "", []).append(record)
        agent = self._view.address.agent
        return {name: _counted(iter(records)) for name, records in sorted(groups.items()) if agent in (None, name)}

    @operation("GET /journal/context", asks_model=True)
    def context(self, zone: ShownZone = UTC) -> str | None:
        """`# Your Private Memory` as a prompt has it; None when there is nothing to say."""
        return "\n\n".join(part.text for part in private(self._own, validation.zone(zone))) or None

    @operation("POST /journal/consolidation", does="changes", rank="admin", asks_model=True)
    def consolidate(self) -> list[Record]:
        """Summarise what has left the window into a core memory that refers to it. The entries themselves stay.

        Each entry is summarised once. There is one new memory, or none; more for more than 256 entries.
        """
        from recollect.models.llm import condense

        view, made = self._view, list[Record]()
        waiting = self._unconsolidated()
        for at in range(0, len(waiting), validation.MAX_REFERENCES):
            group = waiting[at : at + validation.MAX_REFERENCES]
            days = [record.created_at.date().isoformat() for record in group]
            texts, span = [record.text for record in group], days[0]
            if days[0] != days[-1]:
                texts = [f"{day}: {text}" for day, text in zip(days, texts, strict=True)]
                span = f"{days[0]} to {days[-1]}"
            text = condense(view.llm, texts, _SUMMARY_TOKENS, count=estimate).text
            memory = {
                "content": f"From my journal, {span}:\n{text}"[:MAX_CHARS],
                "kind": CORE,
                "tier": "workspace",
                "source": _CONSOLIDATED,
                "references": [record.id for record in group],
                "derived_from": [record.id for record in group],
            }
            # Condensing may take a model its time: somebody else may have done it meanwhile.
            made += remember(view, [memory], unless=partial(self._consolidated, {record.id for record in group}))
        return made

    def _consolidated(self, ids: set[str]) -> bool:
        return not ids <= {record.id for record in self._unconsolidated()}

    def _unconsolidated(self) -> list[Record]:
        view = self._view
        cores = view.store.scan(view.where(state=None, kinds=(CORE,), sources=(_CONSOLIDATED,)), whole=False)
        done = {ident for core in cores if core.address.agent == view.address.agent for ident in core.references}
        return [record for record in self.expired() if record.kind == JOURNAL and record.id not in done]

    def _save(self, content: str, kind: str) -> Record:
        with self._view.logging_refusals("remember"):
            text = _checked(content)
        # An agent's own memory goes with it into every channel.
        return remember(self._view, [{"content": text, "kind": kind, "tier": "workspace"}])[0]

    def _journal_record(self, id: str) -> Record:
        record = self._view.find_one(id)
        if record.kind not in (CORE, JOURNAL) or record.address.agent != self._view.address.agent:
            raise NotFoundError(f"there is no entry {record.id} in this journal")
        return record


def _counted(records: Iterator[Record]) -> dict[str, int]:
    counts = Counter(record.kind for record in records)
    return {CORE: counts[CORE], JOURNAL: counts[JOURNAL]}


def _checked(content: str) -> str:
    """By the document's rules, in its words."""
    text = validation.query(content, "content").strip()
    if not text:
        raise InputError("content", "Content cannot be blank")
    if len(text) > MAX_CHARS:
        raise InputError("content", f"Content too long (max {MAX_CHARS:,} characters)")
    return text
