"""The types of AsyncMemory. Made from the operations of Memory by `make docs`; do not edit."""

import builtins
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from recollect.audit import Verified
from recollect.context import Context
from recollect.context.answers import AnswerSources
from recollect.context.orientation import OrientationDocument
from recollect.documents.files import TextFormat
from recollect.documents.skills import Folders, Skills
from recollect.facets.aliases import Alias
from recollect.facets.cases import Case
from recollect.facets.channels import Channel
from recollect.facets.conversations import Conversation, Speaker
from recollect.facets.knowledge.documents import Document, Ingested, Passage, Status as Status_
from recollect.facets.moments import Decisions, Fields, Outcome, Posts, Tasks, Tracks, Verdict
from recollect.facets.proposals import Proposal
from recollect.facets.scratchpad import Note
from recollect.facets.sessions import MemoryType, SessionStats
from recollect.facets.workflows import Output, Workflow, WorkflowStatus, WorkflowStep
from recollect.maintenance.schedule import Maintained
from recollect.maintenance.simulation import Simulation
from recollect.memory import Memory
from recollect.models.embedders.base import Embedder
from recollect.models.llm import Llm
from recollect.operations import (
    AgentName,
    ConversationId,
    Doc,
    DocumentId,
    EntryId,
    MemoryId,
    MemoryIds,
    Names,
    QueryText,
    Reason,
    SessionId,
    ShownZone,
    StepId,
    WorkflowId,
)
from recollect.policies.injection import Placing, SystemMessages
from recollect.presets import Preset
from recollect.recall.consult import Consulted
from recollect.recall.hits import Hits
from recollect.recall.profile import PersonProfile
from recollect.recall.query import Query
from recollect.recall.question import Rerank
from recollect.recall.sources import Source
from recollect.stores.audit import Entry
from recollect.stores.port import Damage, Store
from recollect.stores.sessions import SessionEntry, SessionMetadata
from recollect.text.tokens import Count
from recollect.values.bodies import Status
from recollect.values.record import Address, Lifetime, Record, Role, State, Tier, utc_now
from recollect.verbs.backup import Backup
from recollect.verbs.deduplicate import Duplicates
from recollect.verbs.diagnose import Diagnosis, Health, StoreStats
from recollect.verbs.export import Progress, Target
from recollect.verbs.forget import Receipt
from recollect.verbs.import_ import Imported
from recollect.view import SearchConditions
from types import TracebackType
from typing import Annotated, Any, Literal, Self, Unpack

class AsyncWhiteboard:
    """What every agent of a workspace sees, with who wrote it last. Anyone may wipe an entry off, or `revise` it."""

    async def write(self, content: Annotated[str, Doc('The text.')]) -> Record:
        """Add an entry to the whiteboard, which all agents of the workspace read."""
        ...
    async def entries(self) -> list[Record]:
        """Oldest first."""
        ...
    async def erase(
        self,
        id: Annotated[str, Names('board'), Doc('The id of the entry.')],
        *,
        reason: Reason = None,
    ) -> Receipt:
        """Wipe one entry off the board, for all. `undo` brings it back."""
        ...

class AsyncAuditLog:
    """Every change and every refusal, in order, hash-chained. It can be added to and read; nothing changes it."""

    async def record(
        self,
        action: Annotated[str, Doc('What was done, in one word.')],
        message: Annotated[str, Doc('What to log.')],
        meta: Annotated[Mapping[str, Any] | None, Doc('Names and JSON values to log with it.')] = None,
    ) -> Entry:
        """Log something an agent did. Secrets are refused here too."""
        ...
    async def search(
        self,
        text: Annotated[str, Doc('Only entries with this text in the message, in any case.')] = '',
        *,
        action: Annotated[str, Doc('Only this action: remember, revise, forget, erase, undo, refuse, …')] = '',
        about: Annotated[str, Names('memory'), Doc('Only entries about this memory.')] = '',
        limit: Annotated[int, Doc('The most entries.')] = 10,
    ) -> list[Entry]:
        """Entries whose message has the text, whatever its case, newest first.

        `action` is what was done, such as `remember`, `revise`, `forget`, `erase`, `undo` or `refuse`; `about` is a
        memory's id.
        """
        ...
    async def named(self, entry: Annotated[Entry, Doc('An entry of the log.')]) -> dict[str, str]:
        """The ids that an entry names, each with the first words of the memory.

        The log itself holds no content: of what was forgotten, or what this view does not see, there are no words.
        """
        ...
    async def matching(
        self,
        texts: Annotated[Sequence[str], Doc('Texts of which the message must have one.')],
        about: Annotated[str, Names('memory'), Doc('Only entries about this memory.')] = '',
        limit: Annotated[int, Doc('The most entries.')] = 10,
        action: Annotated[str, Doc('Only this action.')] = '',
    ) -> list[Entry]:
        """Entries whose message has one of the texts, newest first."""
        ...
    async def verify(self) -> list[Verified]:
        """Check each log that this view can see, entry by entry."""
        ...

class AsyncConversations:
    """The conversations that a view sees: its own, and those that belong to no agent or account."""

    async def start(
        self,
        title: Annotated[str, Doc('What it is about.')] = '',
        *,
        channel: Annotated[str | None, Names('channel'), Doc("The channel that it is in; the view's, else `general`, if it is left out.")] = None,
    ) -> Conversation:
        """A new one, active. In the view's channel, else in the one named, else in `general`.

        Where the view is bound to a conversation, that is the one that is started.
        """
        ...
    async def get(self, id: ConversationId) -> Conversation:
        """By its id or its ref code."""
        ...
    async def list(
        self,
        *,
        status: Annotated[Status | None, Doc('Only those in this state; without it, all but archived ones.')] = None,
        channel: Annotated[str | None, Names('channel'), Doc('Only those of this channel.')] = None,
        contains: Annotated[str, Doc('Only those with this text in the title.')] = '',
        limit: Annotated[int, Doc('The most conversations.')] = 100,
        after: Annotated[str | None, Names('conversation'), Doc('Go on after the conversation with this id.')] = None,
    ) -> builtins.list[Conversation]:
        """The newest first, without those that are archived unless `status` says so. `after` is the last one's id."""
        ...
    async def end(self, id: ConversationId) -> Conversation:
        """End one that is active: what matters of it is kept, and memories for it alone are cleared.

        Requests in it such as "forget my address" are acted on now.
        """
        ...
    async def archive(self, id: ConversationId) -> Conversation:
        """Put one away, out of lists. One that is active ends first. Its scratchpad is kept."""
        ...
    async def say(
        self,
        id: ConversationId,
        role: Annotated[Speaker, Doc('Who says it.')],
        text: Annotated[str, Doc('What is said.')],
    ) -> Record:
        """Add a turn to one that is active. It is for that conversation only; what matters of it stays at its end."""
        ...
    async def observe(
        self,
        content: Annotated[str, Doc('One statement.')],
        *,
        kind: Annotated[str, Doc('fact, preference, procedure, decision, task or error.')] = 'fact',
        importance: Annotated[float | None, Doc('From 0 to 1; judged from the words if it is left out.')] = None,
        tier: Annotated[Tier | None, Doc('Who sees it; by its kind if it is left out.')] = None,
        tags: Annotated[Iterable[str] | None, Doc('Words to find it by.')] = None,
        valid_from: Annotated[datetime | str | None, Doc('Since when it is so, as ISO 8601.')] = None,
        valid_until: Annotated[datetime | str | None, Doc('Until when it is so, as ISO 8601.')] = None,
    ) -> Record:
        """Keep something that was learnt while working. How far it is seen goes by its kind, unless `tier` says so.

        It names the conversation that the view is bound to. What is known already is counted, and not stored again.
        """
        ...
    async def idle(self, id: ConversationId) -> Conversation:
        """End one that is active: what matters of it is kept, and memories for it alone are cleared.

        Requests in it such as "forget my address" are acted on now.
        """
        ...

class AsyncAliases:
    """The aliases of a workspace that a view sees: its own, and those of nobody."""

    async def save(
        self,
        name: Annotated[str, Doc('A name, as memories may have it.')],
        also: Annotated[str, Doc('Another name for the same.')],
    ) -> Alias:
        """Have questions with one of two names find what has the other."""
        ...
    async def list(self) -> builtins.list[Alias]:
        """In the order in which they were first saved."""
        ...
    async def remove(self, name: Annotated[str, Doc('One of the two names.')]) -> int:
        """Every alias with this name. Returns how many there were."""
        ...

class AsyncCases:
    """The cases that a view sees: its own, and those of nobody."""

    async def save(
        self,
        question: Annotated[str, Doc('The question.')],
        *,
        ids: Annotated[Sequence[str], Names('memory'), Doc('The ids of memories that it must find.')] = (),
        texts: Annotated[Sequence[str], Doc('Texts that it must find.')] = (),
        limit: Annotated[int, Doc('Among how many of the best hits.')] = 10,
    ) -> Case:
        """Keep a case, in place of the one with the same question."""
        ...
    async def list(self) -> builtins.list[Case]:
        """In the order in which they were first saved."""
        ...
    async def remove(self, question: Annotated[str, Doc('The question of the case.')]) -> int:
        """The case with this question. Returns how many there were."""
        ...

class AsyncChannels:
    """The channels of the view's workspace. There is always one, `general`, for what belongs to no other."""

    async def create(
        self,
        name: Annotated[str, Doc('The name of the channel.')],
        description: Annotated[str, Doc('What it is for.')] = '',
    ) -> Channel:
        """ConflictError where there is one of that name."""
        ...
    async def list(self) -> builtins.list[Channel]:
        """All of them, the default first."""
        ...
    async def get(self, name: Annotated[str, Names('channel'), Doc("The channel's name or id.")]) -> Channel:
        """By its name or id. NotFoundError where there is none."""
        ...

class AsyncScratchpad:
    """Any JSON under a key, seen by this conversation only, and never put before a model unless it is read."""

    async def write(
        self,
        key: Annotated[str, Doc('The name of the note.')],
        value: Annotated[Any, Doc('Text or JSON.')],
    ) -> Note:
        """Put a value under a key, in place of the one that is there."""
        ...
    async def read(self, key: Annotated[str, Doc('The name of the note.')]) -> Any:
        """NotFoundError where nothing is written under the key."""
        ...
    async def note(self, key: Annotated[str, Doc('The name of the note.')]) -> Note:
        """A value and when it was written."""
        ...
    async def list(self) -> builtins.list[Note]:
        """Every note, by key."""
        ...
    async def clear(
        self,
        key: Annotated[str | None, Doc('The name of the note; all notes if it is left out.')] = None,
    ) -> int:
        """Remove what is under a key, or everything. Returns how many notes.

        From a view of an agent or account everything is what is its own. Under a key it is that too, and the note of
        the whole conversation only where there is no own.
        """
        ...

class AsyncJournal:
    """The memories of one agent: journal entries, in the prompt for as long as the preset says, and core memories."""

    @property
    def whiteboard(self) -> AsyncWhiteboard: ...
    async def save(self, content: Annotated[str, Doc('The text.')]) -> Record:
        """A journal entry: it is in the prompt until it leaves the window, and stays after that."""
        ...
    async def save_core(self, content: Annotated[str, Doc('The text.')]) -> Record:
        """A core memory: it is always in the prompt."""
        ...
    async def edit(
        self,
        id: Annotated[str, Names('journal'), Doc('The id of the entry.')],
        content: Annotated[str, Doc('The new text.')],
    ) -> Record:
        """Another text for an entry, which keeps its day and its history."""
        ...
    async def for_prompt(self) -> list[Record]:
        """Core memories and the journal of the window, oldest first."""
        ...
    async def recent_first(self, limit: Annotated[int, Doc('The most entries.')]=100) -> list[Record]:
        """Core memories and all journal entries, newest first."""
        ...
    async def expired(self) -> list[Record]:
        """What has left the window and is no longer in the prompt, oldest first."""
        ...
    async def has_expired(self, record: Annotated[Record, Doc('An entry of the journal.')]) -> bool:
        """Whether an entry is too old for the journal's window, as the preset sets it."""
        ...
    async def counts(self, agent: Annotated[str | None, Names('agent'), Doc('Another agent.')]=None) -> dict[str, int]:
        """How many core memories and journal entries there are, in the prompt or not. `agent` for another's."""
        ...
    async def counts_by_agent(self) -> dict[str, dict[str, int]]:
        """Of every agent that this view sees; those of no agent under the empty name."""
        ...
    async def context(self, zone: ShownZone=UTC) -> str | None:
        """`# Your Private Memory` as a prompt has it; None when there is nothing to say."""
        ...
    async def consolidate(self) -> list[Record]:
        """Summarise what has left the window into a core memory that refers to it. The entries themselves stay.

        Each entry is summarised once. There is one new memory, or none; more for more than 256 entries.
        """
        ...

class AsyncKnowledge:
    """Documents of a tenant, cut into passages and searched by meaning and words."""

    async def add(
        self,
        text: Annotated[str | None, Doc('The text of the document.')] = None,
        *,
        path: Annotated[str | os.PathLike[str] | None, Doc('A file to read it from.')] = None,
        title: Annotated[str | None, Doc('Its title; the first heading if it is left out.')] = None,
        category: Annotated[str | None, Doc('Its category; `general` if it is left out.')] = None,
        status: Annotated[Status_ | None, Doc('draft or published.')] = None,
        source: Annotated[str | None, Doc('What the document is known by.')] = None,
        format: Annotated[TextFormat, Doc('The format of the text.')] = 'md',
    ) -> Document:
        """Add a text or a file; one that is there is read again if it has changed, and else nothing is written.

        A file is known by its path and a text by its title, unless `source` names it. New ones are drafts in the
        category `general`; what is there keeps its title, category and status where none is given. Lines that look
        like a secret are masked, and named in `left_out` of the document.
        `format` is that of the text: md, txt or html.
        """
        ...
    async def add_folder(
        self,
        path: Annotated[str | os.PathLike[str], Doc('A folder, or one file.')],
        *,
        category: Annotated[str | None, Doc('The category of all these documents.')] = None,
        status: Annotated[Status_ | None, Doc('draft or published.')] = None,
        name: Annotated[str | None, Doc("The folder's name in the sources, wherever it is on the disk.")] = None,
        progress: Callable[[int], object] | None = None,
    ) -> Ingested:
        """Add every md, txt, html, pdf and docx file below a folder, or one file, each in a transaction of its own.

        A second run goes on where the first ended, and reads only what has changed. Files that cannot be read, or
        that are nothing but a secret, are in `refused`, and the others go on. Lines that look like a secret are masked,
        and are in `left_out`. Sources are the files' paths, or `name/…` if the folder
        has a `name`, which stays the same wherever the folder is. `progress` is called with how many files are done.
        """
        ...
    async def publish(self, id: DocumentId) -> Document:
        """Have it searched from now on."""
        ...
    async def withdraw(self, id: DocumentId) -> Document:
        """A draft again: it stays, and is searched no more."""
        ...
    async def remove(self, id: DocumentId, *, reason: Reason=None) -> Receipt:
        """Erase a document with its passages, from the disk and for good."""
        ...
    async def allow(
        self,
        agent: AgentName,
        categories: Annotated[Iterable[str] | None, Doc('The categories that it may search; None for all, an empty list for none.')],
    ) -> None:
        """Let an agent search these categories only; none at all for an empty list, and every one again for None."""
        ...
    async def allowed(self, agent: AgentName) -> builtins.list[str] | None:
        """The categories that an agent may search; None for all."""
        ...
    async def list(
        self,
        *,
        category: Annotated[str | None, Doc('Only this category.')] = None,
        status: Annotated[Status_ | None, Doc('Only drafts, or only published ones.')] = None,
        contains: Annotated[str | None, Doc('Only documents with this text in the title or the source.')] = None,
    ) -> builtins.list[Document]:
        """Documents in the order in which they were added. `contains` is a text in the title or the source."""
        ...
    async def get(self, id: DocumentId) -> Document:
        """One document, without its text. NotFoundError if this view cannot see it."""
        ...
    async def search(
        self,
        query: QueryText,
        *,
        categories: Annotated[Iterable[str] | None, Doc('Only in these categories.')] = None,
        limit: Annotated[int, Doc('The most passages.')] = 5,
    ) -> builtins.list[Passage]:
        """The passages of published documents that best answer a question, best first.

        `categories` narrows it further, and never beyond what the agent is allowed.
        """
        ...

class AsyncWorkflows:
    """Workflows of a tenant: all its agents read them, and what completed steps have brought is searched."""

    async def start(
        self,
        name: Annotated[str, Doc('The name of the workflow.')],
        *,
        goal: Annotated[str | None, Doc('What it is for.')] = None,
    ) -> Workflow:
        """Start a workflow; steps are added to it while it runs."""
        ...
    async def step(self, workflow: WorkflowId, name: Annotated[str, Doc('The name of the step.')]) -> WorkflowStep:
        """Begin a step of a running workflow."""
        ...
    async def complete(
        self,
        step: StepId,
        *,
        output: Annotated[Any, Doc('What came out of it: any JSON.')] = None,
    ) -> WorkflowStep:
        """End a step with what came out of it: any JSON, which can be searched from now on."""
        ...
    async def fail(self, step: StepId, *, error: Annotated[str, Doc('Why it failed.')]) -> WorkflowStep:
        """End a step that did not succeed."""
        ...
    async def finish(
        self,
        workflow: WorkflowId,
        *,
        error: Annotated[str | None, Doc('Why it failed, if it did.')] = None,
    ) -> Workflow:
        """End a workflow, whose steps must all have ended. With an `error` it has failed."""
        ...
    async def remove(self, workflow: WorkflowId, *, reason: Reason=None) -> Receipt:
        """Erase a workflow with its steps and their outputs, from the disk and for good."""
        ...
    async def list(
        self,
        *,
        status: Annotated[WorkflowStatus | None, Doc('Only those in this state.')] = None,
        contains: Annotated[str | None, Doc('Only workflows with this text in the name or the goal.')] = None,
        limit: Annotated[int, Doc('The most workflows.')] = 100,
    ) -> builtins.list[Workflow]:
        """The newest first. `contains` is a text in the name or the goal."""
        ...
    async def get(self, workflow: WorkflowId) -> Workflow:
        """One workflow, without its steps."""
        ...
    async def steps(self, workflow: WorkflowId) -> builtins.list[WorkflowStep]:
        """The steps of a workflow in the order in which they began, with what came out of them."""
        ...
    async def search(
        self,
        query: QueryText,
        *,
        limit: Annotated[int, Doc('The most outputs.')] = 5,
    ) -> builtins.list[Output]:
        """Completed steps whose output has the whole question in it, whatever its case, the newest first.

        If there is none, those with at least half of its words, most of them first.
        """
        ...

class AsyncMoments:
    """What is known from before, to be asked before deciding; and `record_…`, to be called when it has turned out."""

    async def task(
        self,
        text: Annotated[str, Doc('What it is about.')],
        *,
        limit: Annotated[int, Doc('The most past cases to look at.')] = 5,
    ) -> Tasks:
        """When a task comes in: similar ones, and which of them failed."""
        ...
    async def tool(
        self,
        operation: Annotated[str, Doc('What the tool is used for.')],
        *,
        tools: Annotated[Iterable[str] | None, Doc('The tools to choose from.')] = None,
        limit: Annotated[int, Doc('The most past cases to look at.')] = 50,
    ) -> Tracks:
        """Before a tool is chosen: how each did at similar operations. `tools` are the ones to choose from."""
        ...
    async def decision(
        self,
        text: Annotated[str, Doc('What it is about.')],
        *,
        limit: Annotated[int, Doc('The most past cases to look at.')] = 10,
    ) -> Decisions:
        """Before an approval is asked for: what was approved and rejected."""
        ...
    async def content(
        self,
        text: Annotated[str, Doc('What it is about.')],
        *,
        limit: Annotated[int, Doc('The most past cases to look at.')] = 10,
    ) -> Posts:
        """Before something is published: how similar content did."""
        ...
    async def delegation(
        self,
        text: Annotated[str, Doc('What it is about.')],
        *,
        agents: Annotated[Iterable[str] | None, Doc('The agents to choose from.')] = None,
        limit: Annotated[int, Doc('The most past cases to look at.')] = 50,
    ) -> Tracks:
        """Before work is given away: which agents did well at similar work. `agents` are the ones to choose from.

        From what this agent recorded, and from audit entries of all agents that have an outcome in their details.
        """
        ...
    async def record_task(
        self,
        text: Annotated[str, Doc('What it was about.')],
        outcome: Annotated[Outcome, Doc('How it went.')],
        *,
        note: Annotated[str, Doc('Why, or what to do differently.')] = '',
        **fields: Unpack[Fields],
    ) -> Record:
        """Store how a task went, for `task` to show next time. `note` says why, or what to do differently."""
        ...
    async def record_tool(
        self,
        tool: Annotated[str, Doc('The name of the tool.')],
        operation: Annotated[str, Doc('What the tool is used for.')],
        outcome: Annotated[Outcome, Doc('How it went.')],
        *,
        note: Annotated[str, Doc('Why, or what to do differently.')] = '',
        **fields: Unpack[Fields],
    ) -> Record:
        """Store how a tool did, for `tool` to count next time."""
        ...
    async def record_decision(
        self,
        text: Annotated[str, Doc('What it was about.')],
        verdict: Annotated[Verdict, Doc('How it was decided.')],
        *,
        note: Annotated[str, Doc('Why, or what to do differently.')] = '',
        **fields: Unpack[Fields],
    ) -> Record:
        """Store how somebody decided, for `decision` to show next time."""
        ...
    async def record_content(
        self,
        text: Annotated[str, Doc('What it was about.')],
        performance: Annotated[float, Doc('Any number that is higher for what did better, such as a share of clicks.')],
        *,
        note: Annotated[str, Doc('Why, or what to do differently.')] = '',
        **fields: Unpack[Fields],
    ) -> Record:
        """Store how content did. `performance` is any number that is higher for what did better."""
        ...
    async def record_delegation(
        self,
        agent: Annotated[str, Doc('The agent that did the work.')],
        text: Annotated[str, Doc('What it was about.')],
        outcome: Annotated[Outcome, Doc('How it went.')],
        *,
        note: Annotated[str, Doc('Why, or what to do differently.')] = '',
        share: Annotated[bool, Doc('Also write it to the audit log, which other agents read.')] = True,
        **fields: Unpack[Fields],
    ) -> Record:
        """Goes to the audit log too, where other agents read it and nothing is ever removed, unless `share=False`."""
        ...

class AsyncSessions:
    """The operations of the ledger document. Each is a verb of Memory, at the session's workspace."""

    async def create(
        self,
        user_id: Annotated[str, Doc('Whose session it is.')],
        *,
        session_id: Annotated[str | None, Doc('Its id; made from the day and the user if it is left out.')] = None,
        decay: Annotated[Mapping[str, Any] | None, Doc('`enabled`, `half_life_hours`, `min_decay_factor`.')] = None,
        compaction: Annotated[Mapping[str, Any] | None, Doc('`auto_compact`, `threshold`.')] = None,
        preferences: Annotated[Mapping[str, Any] | None, Doc('`language`, `verbosity`, `custom`.')] = None,
    ) -> SessionMetadata:
        """A new session. Without an id it gets one of the day and the person, such as `sess_20260110_user123`."""
        ...
    async def load(self, session_id: SessionId) -> SessionMetadata:
        """One session: whose it is, its settings, and counts of its entries."""
        ...
    async def list(self) -> builtins.list[SessionMetadata]:
        """Every session, the one used last first."""
        ...
    async def close(self, session_id: SessionId) -> None:
        """Write what was put off, and the snapshots. A later call opens it again."""
        ...
    async def add(
        self,
        session_id: SessionId,
        entry: Annotated[Mapping[str, Any], Doc('`type`, `content` and the other fields of an entry.')],
    ) -> str:
        """Store an entry with `type`, `content`, and what else the document gives it. Returns its id.

        UnsavedWarning with the id where the disk refuses the entry: it is in memory only until it does not.
        """
        ...
    async def add_many(
        self,
        session_id: SessionId,
        entries: Annotated[Sequence[Mapping[str, Any]], Doc('Entries as `add` takes them.')],
    ) -> builtins.list[str]:
        """Store all of the entries under one lock, or none. Warns as `add` does."""
        ...
    async def get(self, session_id: SessionId, memory_id: EntryId) -> SessionEntry | None:
        """One entry with its decay factor; None if the session has no such entry."""
        ...
    async def delete(self, session_id: SessionId, memory_id: EntryId, *, reason: Reason=None) -> bool:
        """False if there is no such entry."""
        ...
    async def query(
        self,
        session_id: SessionId,
        query: Annotated[Query | Mapping[str, Any], Doc('Type, topics, time, importance and references: see `Query`.')],
    ) -> Hits:
        """Entries of a session that meet all conditions of a `Query`. Counted as retrieved."""
        ...
    async def search(
        self,
        query: Annotated[str | Query | Mapping[str, Any], Doc('Words, or a query as `query` takes it.')],
        *,
        limit: Annotated[int, Doc('The most entries.')] = 10,
    ) -> Hits:
        """The same over all sessions."""
        ...
    async def search_by_topic(
        self,
        session_id: SessionId,
        topic: Annotated[str, Doc('The topic; it stands for those below it too.')],
    ) -> Hits:
        """By tag; a topic stands for those below it too."""
        ...
    async def search_by_type(
        self,
        session_id: SessionId,
        type: Annotated[MemoryType, Doc('The type of entry.')],
    ) -> Hits:
        """Entries of one type."""
        ...
    async def search_by_time_range(
        self,
        session_id: SessionId,
        start: Annotated[datetime | str, Doc('From this time on.')],
        end: Annotated[datetime | str, Doc('Until before this time.')],
    ) -> Hits:
        """From `start`, which is included, until `end`, which is not."""
        ...
    async def delete_by_topic(
        self,
        session_id: SessionId,
        topic: Annotated[str, Doc('The topic; it stands for those below it too.')],
        *,
        reason: Reason = None,
    ) -> int:
        """Delete the entries with a topic, or with one below it. Returns how many."""
        ...
    async def delete_by_time_range(
        self,
        session_id: SessionId,
        start: Annotated[datetime | str, Doc('From this time on.')],
        end: Annotated[datetime | str, Doc('Until before this time.')],
        *,
        reason: Reason = None,
    ) -> int:
        """Delete the entries from `start`, which is included, until `end`, which is not. Returns how many."""
        ...
    async def delete_session(self, session_id: SessionId, *, reason: Reason=None) -> int:
        """The whole folder, for good. Returns how many entries it had."""
        ...
    async def export(
        self,
        session_id: SessionId,
        format: Annotated[Literal['json', 'jsonl'], Doc('One JSON document, or one entry a line.')] = 'jsonl',
    ) -> str:
        """All entries in every state, oldest first; as JSON with the session's metadata around them.

        DamageWarning where some cannot be read, and are left out.
        """
        ...
    async def compact(self, session_id: SessionId) -> int:
        """Remove what was deleted and what has decayed, for good. Returns the bytes freed."""
        ...
    async def rebuild_index(self, session_id: SessionId) -> int:
        """Make the index anew from the log. Returns how many entries it knows."""
        ...
    async def migrate(self, session_id: SessionId) -> bool:
        """Rewrite entries of an older schema now, rather than with the next write. False if there are none."""
        ...
    async def metrics(self) -> dict[str, float]:
        """How many and how large, and how long things took since the store was opened (ms, median and p95).

        AccessError from a view that is bound to less than the tenant: they count all sessions.
        """
        ...
    async def stats(self, session_id: SessionId) -> SessionStats:
        """Counts of a session's entries, its size, and the lines that cannot be read."""
        ...

class AsyncTalk:
    """A conversation that is going on, awaited: `async with memory.conversation("title") as talk:`."""

    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...
    @property
    def conversation(self) -> Conversation: ...
    @property
    def memory(self) -> AsyncMemory: ...
    async def orientation(self) -> OrientationDocument:
        """The orientation about the title. It is read from the disk, so it is awaited."""
        ...
    async def say(self, role: Speaker, text: str) -> Record:
        """Add a turn. It is for this conversation only; what matters of it stays at the end."""
        ...
    async def observe(
        self,
        content: str,
        *,
        kind: str = 'fact',
        importance: float | None = None,
        tier: Tier | None = None,
        tags: Iterable[str] | None = None,
    ) -> Record:
        """Keep something that was learnt, now. How far it is seen goes by its kind, unless `tier` says so.

        What is known already is counted, and not stored again.
        """
        ...
    async def end(self) -> Conversation:
        """End the conversation, as leaving the `with` block does. A second call does nothing."""
        ...

class AsyncMemory:
    """The same verbs, awaited. Takes what `Memory` takes, or a Memory, which has its settings already."""

    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...
    @property
    def memory(self) -> Memory:
        """The Memory that it is made from."""
        ...
    @property
    def address(self) -> Address: ...
    @property
    def preset(self) -> Preset: ...
    @property
    def unsaved(self) -> int:
        """Writes that are in memory only, because the disk refuses them; of a server, as of its last answer."""
        ...
    @property
    def skills(self) -> Skills:
        """The skills that were read from SKILL.md files when this memory was made."""
        ...
    def __init__(
        self,
        store: str | os.PathLike[str] | Store | Memory | None = None,
        *,
        key: str | None = None,
        preset: str | os.PathLike[str] | Preset | None = None,
        clock: Callable[[], datetime] = utc_now,
        embedder: str | Embedder | None = None,
        llm: str | Llm | None = None,
        skills: Folders | None = None,
        sources: Iterable[Source] = (),
        replica_url: str | None = None,
        servers: Mapping[str, str] | None = None,
    ) -> None:
        """`store` is a location or a Store; without one, the preset says where (`./memory`).

        `https://host` is a server (`recollect serve`), and `key` the key to it, else RECOLLECT_KEY: the same verbs,
        with everything else as the server has it.
        What is not given here is as `recollect.toml` in the store says, which `recollect init` writes: the preset
        (else `recollect`), the embedder, and the address, from which `at` goes on as if it had been given there.
        `embedder` makes vectors: `local`, `local:FOLDER`, `https://host/v1#model`, `none`, or an Embedder.

        Without one it is RECOLLECT_EMBEDDER, else the local model if `recollect models pull` has installed it.
        `llm` summarises what is long: `openai:MODEL`, `anthropic:MODEL`, `https://host/v1#model`, or an Llm; without
        one it is RECOLLECT_LLM, else rules of our own that need no model.
        `skills` is a folder, or several, in which every SKILL.md is read now, for all tenants. `sources` are what
        `consult` asks besides the memories, the audit log, workflows and the knowledge base; one that is called
        `workflow` or `knowledge` is asked in place of ours. `replica_url` is a replica of a PostgreSQL server: reads
        go there as long as it has what this process wrote. `servers` are further PostgreSQL servers by name, that
        tenants may have been moved to from `store`, which is called `home` (`recollect tenants move`).
        """
        ...
    @property
    def audit(self) -> AsyncAuditLog: ...
    @property
    def conversations(self) -> AsyncConversations: ...
    @property
    def aliases(self) -> AsyncAliases: ...
    @property
    def cases(self) -> AsyncCases: ...
    @property
    def channels(self) -> AsyncChannels: ...
    @property
    def scratchpad(self) -> AsyncScratchpad: ...
    @property
    def journal(self) -> AsyncJournal: ...
    @property
    def knowledge(self) -> AsyncKnowledge: ...
    @property
    def workflows(self) -> AsyncWorkflows: ...
    @property
    def moments(self) -> AsyncMoments: ...
    @property
    def sessions(self) -> AsyncSessions: ...
    def conversation(self, title: str='', *, channel: str | None=None, budget: int=1000) -> AsyncTalk:
        """A conversation to be used with `with`: it starts there, and at the end what matters of it is kept.

        `budget` is the number of tokens that its `orientation` may have.
        """
        ...
    def at(
        self,
        *,
        tenant: str | None = None,
        account: str | None = None,
        workspace: str | None = None,
        channel: str | None = None,
        conversation: str | None = None,
        agent: str | None = None,
    ) -> Self:
        """The same verbs, bound to an address. AccessError where the new view would see more than this one."""
        ...
    async def orient(
        self,
        about: Annotated[str, Doc('The topic. Without one, only what always matters.')] = '',
        *,
        budget: Annotated[int, Doc('The most tokens that the document may have.')] = 1000,
        zone: ShownZone = UTC,
    ) -> OrientationDocument:
        """What is known about a topic, and what always matters, as one document for a system prompt."""
        ...
    async def remember(
        self,
        content: Annotated[Any, Doc('Text or JSON.')],
        *,
        kind: Annotated[str | None, Doc('fact, preference, decision, task, error, …; judged if left out.')] = None,
        importance: Annotated[float | None, Doc('From 0 to 1; judged from the words if left out.')] = None,
        tags: Annotated[Iterable[str] | None, Doc('Words to find it by.')] = None,
        role: Annotated[Role | None, Doc('Who said it.')] = None,
        source: Annotated[str | None, Doc('Where it comes from.')] = None,
        conversation: Annotated[str | None, Names('conversation'), Doc('The conversation it belongs to: its id or ref code.')] = None,
        channel: Annotated[str | None, Names('channel'), Doc('The channel it belongs to.')] = None,
        created_at: Annotated[datetime | str | None, Doc('When it was said, as ISO 8601; now if left out.')] = None,
        expires_at: Annotated[datetime | str | None, Doc('When it expires, as ISO 8601.')] = None,
        valid_from: Annotated[datetime | str | None, Doc('Since when it is so, as ISO 8601.')] = None,
        valid_until: Annotated[datetime | str | None, Doc('Until when it is so, as ISO 8601.')] = None,
        references: Annotated[Iterable[str] | None, Names('memory'), Doc('Ids of memories it refers to.')] = None,
        metadata: Annotated[Mapping[str, Any] | None, Doc('Names and JSON values of your own.')] = None,
        tier: Annotated[Tier | None, Doc('Who sees it.')] = None,
        lifetime: Annotated[Lifetime | None, Doc('Whether it ends with its conversation.')] = None,
        shared: Annotated[bool, Doc("Store it for all agents and not only for this view's.")] = False,
        embedding: Annotated[Sequence[float] | None, Doc('Its vector, if you have made one: numbers, or an array of numpy.')] = None,
        embedding_model: Annotated[str | None, Doc('The name of the model that made the vector; the configured one if left out.')] = None,
        again: Annotated[bool, Doc('Store it even if the same text is stored already.')] = False,
    ) -> Record:
        """Store text or JSON; durable when this returns, or else its `saved` is False.

        Importance, kind, expiry and lifetime come from the preset's rules where they are left out. The tier is the
        channel if there is one, else the workspace. Credentials are refused with SecretError.

        A text that was stored before, outside a conversation, is one memory: that memory is returned, with a higher
        `access_count` and with the tags that are new. `again=True` stores another.
        """
        ...
    async def remember_many(
        self,
        items: Annotated[Iterable[Mapping[str, Any] | str], Doc('Texts, or objects with the arguments of `remember`.')],
    ) -> builtins.list[Record]:
        """Store many at once, given as dicts of `remember`'s arguments or as texts. One bad item and none is stored.

        Vectors that you have already are taken with them, as `embedding`: then no model makes them again.
        """
        ...
    async def get(self, id: MemoryId) -> Record:
        """One memory in whatever state. Not counted as a retrieval."""
        ...
    async def list(
        self,
        *,
        state: Annotated[State | None, Doc('Only memories in this state; None lists all states.')] = 'live',
        newest_first: Annotated[bool, Doc('Newest first, or oldest first.')] = True,
        limit: Annotated[int, Doc('The most memories to list.')] = 100,
        contains: Annotated[str | None, Doc('Only memories with this text, even inside a word, in any case.')] = None,
        after: Annotated[str | None, Names('memory'), Doc('Go on after the memory with this id.')] = None,
        **conditions: Unpack[SearchConditions],
    ) -> builtins.list[Record]:
        """Memories by creation time. `state=None` lists expired, archived and superseded ones too.

        `contains` lists those whose text has this somewhere, even inside a word, whatever its case. `after` is the id
        of the memory to go on behind: the last of what was listed before. NotFoundError where that is gone.
        """
        ...
    async def recall(
        self,
        query: QueryText,
        *,
        limit: Annotated[int | None, Doc("The most memories to return; the preset's number if left out.")] = None,
        touch: Annotated[bool, Doc('Count the memories that are returned as retrieved.')] = True,
        as_of: Annotated[datetime | str | None, Doc('AnswerSources as at this time.')] = None,
        why_not: Annotated[str | None, Names('memory'), Doc("A memory's id, to learn what kept it out.")] = None,
        rerank: Annotated[Rerank | Literal['local', 'none'] | None, Doc('`local` has a cross-encoder read the best hits.')] = None,
        zone: Annotated[tzinfo | None, Doc('The time zone of times in the question.')] = None,
        min_relevance: Annotated[float | None, Doc('At least this relevant, 0 to 1; 0 for whatever is closest.')] = None,
        **conditions: Unpack[SearchConditions],
    ) -> Hits:
        """The memories that best answer a question, best first, each with the parts of its score.

        What has the `"quoted phrases"` comes first; `auth*` and `colo?r` match words; times such as `last week` or
        `in May 2023` count, in the time zone given. `Hits.absence` answers `why_not`. `rerank` adds to the scores of
        the best candidates: a function of the question and the texts, or `local` for the model that `recollect models
        pull --reranker` installs. Without `min_relevance` nothing is returned where an answer is unlikely, and
        `Hits.report` says so; of what belongs to no conversation, only what is nearly as relevant as the best.
        """
        ...
    async def about(
        self,
        name: Annotated[str, Doc('Somebody or something, as memories name it.')],
        *,
        limit: Annotated[int, Doc('The most memories to return.')] = 50,
        touch: Annotated[bool, Doc('Count the memories that are returned as retrieved.')] = True,
        **conditions: Unpack[SearchConditions],
    ) -> Hits:
        """All memories that have this name, or another name of the same by an alias, and no others; best first."""
        ...
    async def profile(
        self,
        subject: Annotated[str | None, Doc('Somebody by name; the user if left out.')] = None,
        *,
        without_tags: Annotated[Iterable[str] | None, Doc('Leave out memories with these tags, such as `sensitive`.')] = None,
    ) -> PersonProfile:
        """What current statements say of the user: name, home, work, diet, allergies, how to answer and the like.

        The newest statement of each, at most 20 lines and 1,200 characters. `text` is the same, to the letter, as long
        as none of these memories changes. With `subject` what they say of somebody else.
        """
        ...
    async def context(
        self,
        messages: Annotated[Sequence[Mapping[str, Any]], Doc("The messages of OpenAI's or Anthropic's clients.")],
        *,
        budget: Annotated[int | None, Doc('The most tokens that all of it may have.')] = None,
        system: Annotated[Any, Doc('The system prompt, where it is not among the messages.')] = None,
        query: Annotated[str | None, Doc('What to look for, in place of the last user message.')] = None,
        limit: Annotated[int | None, Doc('The most memories to show.')] = None,
        min_relevance: Annotated[float | None, Doc('Only memories at least this relevant, from 0 to 1.')] = None,
        ids: Annotated[bool, Doc('Show the short ids of memories, for tools that take them.')] = True,
        place: Annotated[Placing | None, Doc('Where memories go.')] = None,
        system_messages: Annotated[SystemMessages | None, Doc('`one` for models that take only one.')] = None,
        participants: Annotated[Iterable[str], Doc('The others in a group conversation.')] = (),
        skills: Annotated[Iterable[str], Doc('Skills to load in full.')] = (),
        zone: ShownZone = UTC,
        count: Count | None = None,
        without_tags: Annotated[Iterable[str] | None, Doc('Leave out memories with these tags, such as `sensitive`; else the preset says.')] = None,
        profile: Annotated[bool | None, Doc('Put what the user has told of themselves first; else the preset says.')] = None,
    ) -> Context:
        """The messages with memories added, as the preset's `[context]` says, and a report.

        Takes OpenAI's messages, or Anthropic's with `system` beside them, and never changes them. Beyond the budget
        older turns are summarised, then fewer memories are shown. `count` counts tokens:
        `recollect.text.tokens.estimate` unless another is given, or its exact `counter(model)`.
        """
        ...
    async def answers(
        self,
        *,
        limit: Annotated[int, Doc('The most answers to list.')] = 20,
        after: Annotated[str | None, Names('answer'), Doc('Go on after the answer with this id.')] = None,
    ) -> builtins.list[AnswerSources]:
        """The latest answers that memories went into, newest first: which memories, and which were left out."""
        ...
    async def sources(
        self,
        id: Annotated[str, Names('answer'), Doc("The id of the answer's context: `Context.id`.")],
    ) -> AnswerSources:
        """Which memories went into an answer, with what they are now, and which were left out and why.

        It is kept for the days that the preset says (`[context] keep_days`), unless it says `keep = "nothing"`.
        """
        ...
    async def consult(
        self,
        query: QueryText,
        *,
        limit: Annotated[int, Doc('The most results.')] = 5,
        sources: Annotated[Iterable[str] | None, Doc('Ask only these sources.')] = None,
        deadline: Annotated[float, Doc('Seconds after which a source is left out.')] = 5.0,
    ) -> Consulted:
        """The best of the memories, the audit log and every further source, which are asked at the same time.

        One that fails, or has not answered after `deadline` seconds, is named in `failures`, and the rest is returned.
        `sources` names the only ones to ask. Memories that are returned count as retrieved.
        """
        ...
    async def query(
        self,
        query: Annotated[Query | Mapping[str, Any], Doc('Kind, tags, time, importance and references: see `Query`.')],
    ) -> Hits:
        """Memories by kind, tags, time, importance and references: see `Query`. Not counted as a retrieval."""
        ...
    async def revise(
        self,
        id: MemoryId,
        *,
        content: Annotated[Any, Doc('The new text or JSON.')] = None,
        kind: Annotated[str | None, Doc('Another kind.')] = None,
        importance: Annotated[float | None, Doc('Another importance, from 0 to 1.')] = None,
        tags: Annotated[Iterable[str] | None, Doc('Tags in place of the old ones.')] = None,
        role: Annotated[Role | None, Doc('Another role.')] = None,
        source: Annotated[str | None, Doc('Another source.')] = None,
        valid_from: Annotated[datetime | str | None, Doc('Since when it is so, as ISO 8601.')] = None,
        valid_until: Annotated[datetime | str | None, Doc('Until when it is so, as ISO 8601.')] = None,
        references: Annotated[Iterable[str] | None, Names('memory'), Doc('In place of the old references.')] = None,
        metadata: Annotated[Mapping[str, Any] | None, Doc('Metadata in place of the old.')] = None,
        embedding: Annotated[Sequence[float] | None, Doc('The vector of the new content.')] = None,
        embedding_model: Annotated[str | None, Doc('The name of the model that made the vector; the configured one if left out.')] = None,
    ) -> Record:
        """A new version in place of this one, which is no longer recalled but stays in `history`."""
        ...
    async def forget(
        self,
        id: Annotated[str | Sequence[str] | None, Names('memory'), Doc('The id of a memory, or several.')] = None,
        *,
        tag: Annotated[str | None, Doc('All memories with this tag.')] = None,
        since: Annotated[datetime | str | None, Doc('All memories made at this time or later.')] = None,
        until: Annotated[datetime | str | None, Doc('All memories made before this time.')] = None,
        conversation: Annotated[str | None, Names('conversation'), Doc('All memories of this conversation: its id or ref code.')] = None,
        workspace: Annotated[str | None, Names('workspace'), Doc("This view's workspace, whole.")] = None,
        agent: Annotated[str | None, Names('agent'), Doc('Everything of this agent.')] = None,
        account: Annotated[str | None, Names('account'), Doc('Everything of this account (a person).')] = None,
        shared: Annotated[bool, Doc('From a view of an agent or account: shared memories too.')] = False,
        reason: Reason = None,
        erase: Annotated[bool, Doc('Delete from the disk at once and for good, without undo.')] = False,
    ) -> Receipt:
        """Delete one memory, several, or all that meet the conditions, with their earlier versions.

        From a view of an agent or account, conditions mean its own memories, and shared ones only with `shared=True`.
        `agent` or `account` alone deletes everything of an agent or a person: its memories in all workspaces (or in
        the one that this view is bound to), conversations, scratchpads, cases and workflows; the audit log stays.
        `undo` brings them back until `compact`; `erase=True` removes them from the disk at once and for good, with
        what they were derived from and is no longer live. The receipt names what was not erased.
        `workspace` must repeat this view's workspace, and removes its folder.
        """
        ...
    async def proposals(self) -> builtins.list[Proposal]:
        """Changes that were asked for in a conversation and wait to be confirmed, the newest first.

        A request such as "forget everything about work" becomes one where it would touch more than three memories, or
        where it is not sure which are meant. It is kept for 30 days.
        """
        ...
    async def confirm(
        self,
        id: Annotated[str, Names('proposal'), Doc('The id of the proposal.')],
        *,
        ids: Annotated[str | Sequence[str] | None, Names('memory'), Doc('Only these of its memories; all if left out.')] = None,
    ) -> Proposal:
        """Do what a proposal says, as one change that `undo` takes back. Returns it with the memories it touched.

        A correction changes one memory: where the proposal names several, `ids` says which.
        """
        ...
    async def dismiss(self, id: Annotated[str, Names('proposal'), Doc('The id of the proposal.')]) -> Proposal:
        """Drop a proposal. The memories stay as they are."""
        ...
    async def history(self, id: MemoryId) -> builtins.list[Record]:
        """Every version of a memory, oldest first."""
        ...
    async def undo(
        self,
        change: Annotated[str | None, Names('change'), Doc('The id of an audit entry; the last change if it is left out.')] = None,
    ) -> Entry:
        """Take back the last change of this view's agent here, or the one with that audit entry's id."""
        ...
    async def archive(self, ids: MemoryIds, *, reason: Reason=None) -> builtins.list[Record]:
        """Keep, but recall no more."""
        ...
    async def restore(self, ids: MemoryIds) -> builtins.list[Record]:
        """Recall archived memories again."""
        ...
    async def ids_like(
        self,
        part: Annotated[str, Names('memory'), Doc('The beginning or end of an id.')],
        *,
        limit: Annotated[int, Doc('The most ids.')] = 10,
    ) -> builtins.list[str]:
        """Ids of memories, in whatever state, that begin or end with `part`; the one that is equal to it first."""
        ...
    async def diagnose(self, id: MemoryId) -> Diagnosis:
        """Why a memory is not recalled: expired, archived (and by what), superseded, forgotten or unknown."""
        ...
    async def deduplicate(
        self,
        *,
        dry_run: Annotated[bool, Doc('Only show what would be merged.')] = False,
        groups: Annotated[Sequence[Duplicates] | None, Doc('Merge only these groups.')] = None,
    ) -> builtins.list[Duplicates]:
        """Make one memory of those that say the same at the same address; the others stay as its history.

        Turns of conversations are left alone. `dry_run=True` only shows what would become one; give some of that as
        `groups` to merge no more than those. `undo` takes it back.
        """
        ...
    async def doctor(
        self,
        *,
        deep: Annotated[bool, Doc('Also compare everything on the disk with its checksums.')] = False,
    ) -> Health:
        """Everything that is wrong or could be better, with advice."""
        ...
    async def verify(self) -> builtins.list[Damage]:
        """Read everything on disk again and compare it with its checksums. `audit.verify` does so for the log."""
        ...
    async def maintain(
        self,
        *,
        early: Annotated[bool, Doc('Also archive memories of little importance before their time.')] = False,
        dry_run: Annotated[bool, Doc('Only say what would be done, to which memory and why.')] = False,
        force: Annotated[bool, Doc('Also do what would change too large a share at once.')] = False,
        jobs: Annotated[Iterable[str] | None, Doc('Run only these jobs, due or not.')] = None,
        only: Annotated[Iterable[str] | None, Names('memory'), Doc('Change only these memories.')] = None,
        stopping: Callable[[], bool] | None = None,
    ) -> Maintained:
        """Run the jobs that are due: archive decayed memories, keep the quota, consolidate, make vectors and so on.

        What would change too large a share of a scope at once is held back, unless `force=True`. `stopping` is asked
        between jobs: once it returns True, the rest waits for the next run. Every change can be undone.
        """
        ...
    async def simulate(self, *, days: Annotated[int, Doc('How many days ahead.')]=30) -> Simulation:
        """What will be promoted, archived, merged, expired or lost in the days to come, when and why. Changes nothing.

        It supposes that nothing is stored or recalled meanwhile, and that maintenance runs every day.
        """
        ...
    async def embed(
        self,
        *,
        wait: Annotated[bool, Doc('Wait until all vectors are made.')] = True,
        progress: Progress | None = None,
    ) -> int:
        """Have the vectors made that the memories of this workspace lack, as after a bulk load.

        Returns how many were made; without `wait`, at once, how many are still to be made in the background.
        """
        ...
    async def compact(self) -> int:
        """Remove the last traces of what was forgotten; those changes cannot be undone. Returns the bytes freed."""
        ...
    async def stats(
        self,
        *,
        days: Annotated[int, Doc('Also count what was stored on each of the last days.')] = 0,
    ) -> StoreStats:
        """Counts of all that this view sees, in every state. Only a view of a whole workspace sees bytes on disk.

        `days` also counts what was stored on each of so many last days in UTC, today included.
        """
        ...
    async def workspaces(self) -> builtins.list[str]:
        """The tenant's workspaces; from a view that is bound to one, or to somebody in it, only that."""
        ...
    async def export(
        self,
        target: Annotated[Target, Doc('A path or a binary stream.')],
        *,
        progress: Progress | None = None,
    ) -> int:
        """Write all that this view sees to a file or binary stream, as JSON. Returns how many."""
        ...
    async def import_(
        self,
        source: Annotated[Target, Doc('A path or a binary stream.')],
        *,
        progress: Progress | None = None,
    ) -> Imported:
        """Read an export back, ids, times and states as they were. What is there already is left alone."""
        ...
    async def backup(
        self,
        target: Annotated[str | os.PathLike[str], Doc('A new folder.')],
        *,
        progress: Callable[[int], None] | None = None,
    ) -> Backup:
        """Copy the whole store into a new folder while others go on writing. Complete and verified, or not there."""
        ...
    async def close(self) -> None:
        """Write what was put off and let go of the files. A later call opens them again."""
        ...
