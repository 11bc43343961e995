"""Memory: the verbs, wired to a store, a preset and an address. No logic of its own."""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, Unpack, cast

from msgspec.structs import replace

from recollect import defaults
from recollect.documents.skills import Folders, load_skills
from recollect.facets.properties import Facets
from recollect.facets.sources import own_sources
from recollect.maintenance import schedule
from recollect.maintenance.schedule import Maintained
from recollect.models.vectors import Embedding, embedder_for
from recollect.operations import Doc, MemoryId, MemoryIds, Names, QueryText, Reason, ShownZone, operation
from recollect.presets import Preset
from recollect.recall.hits import Hits
from recollect.recall.query import Query, listed, query_from
from recollect.recall.query import query as querying
from recollect.recall.question import Rerank
from recollect.recall.recall import recall
from recollect.recall.sources import Source, checked
from recollect.stores import is_served, open_store
from recollect.stores.answers import PendingAnswers
from recollect.stores.audit import Entry
from recollect.stores.port import Damage, HasIntents, OnDisk, Store
from recollect.stores.sessions import Clocked
from recollect.values import validation
from recollect.values.errors import InputError
from recollect.values.record import Address, Lifetime, Record, Role, State, Tier, parse_time, utc_now
from recollect.verbs import (
    archive,
    backup,
    deduplicate,
    diagnose,
    export,
    forget,
    import_,
    remember,
    restore,
    revise,
    undo,
)
from recollect.verbs.backup import Backup
from recollect.verbs.deduplicate import Duplicates
from recollect.verbs.diagnose import Diagnosis, Health, StoreStats
from recollect.verbs.export import Progress, Target
from recollect.verbs.forget import Forget, Receipt
from recollect.verbs.import_ import Imported
from recollect.verbs.unfinished import finish
from recollect.view import SearchConditions, View

if TYPE_CHECKING:
    from recollect.context import Context
    from recollect.context.answers import AnswerSources
    from recollect.context.orientation import OrientationDocument
    from recollect.facets.conversations.talk import Talk
    from recollect.facets.proposals import Proposal
    from recollect.maintenance.simulation import Simulation
    from recollect.models.embedders.base import Embedder
    from recollect.models.llm import Llm
    from recollect.policies.injection import Placing, SystemMessages
    from recollect.recall.consult import Consulted
    from recollect.recall.profile import PersonProfile
    from recollect.text.tokens import Count


class Memory(Facets):
    """A memory, or a view of a part of it: `at` gives views with the same verbs.

    `Memory("./memory")` is the owner's: it sees every agent's memories in its workspace. Give each agent a view of its
    own, `memory.at(agent="atlas")`, which sees that agent's memories and the shared ones, and can never be widened.
    """

    def __new__(cls, store: str | os.PathLike[str] | Store | None = None, *_: Any, **options: Any) -> Self:
        if is_served(store):
            from recollect.remote.calls import remote

            return cast("Self", object.__new__(cast("Any", remote(cls))))
        return object.__new__(cls)

    def __init__(
        self,
        store: str | os.PathLike[str] | Store | None = None,
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
        if key is not None:
            raise InputError("key", "is for a server: give its address, https://…, as the store")
        loaded, further = load_skills(skills), checked(sources, ("memory", "audit"))
        where, rules, settings = defaults.resolved(store, preset)
        embedder = settings.embedder if embedder is None and not os.environ.get("RECOLLECT_EMBEDDER") else embedder
        maker = embedder_for(embedder) if rules.recall.embed or embedder is not None else None
        opened = where
        if isinstance(opened, str | os.PathLike):
            opened = open_store(opened, settings.store or rules.store, replica_url=replica_url, servers=servers)
        if isinstance(opened, Clocked):
            opened.clock = lambda: parse_time(clock(), "clock")
        view = View(
            opened,
            rules,
            clock,
            embedding=Embedding(opened, maker) if maker is not None and rules.recall.embed else None,
            llm=_model(llm),
            on_disk=opened if isinstance(opened, OnDisk) else None,
            caches={},
            skills=loaded,
            answers=PendingAnswers(opened),
        )
        self._owner = replace(view, sources=(*own_sources(view), *further))
        if isinstance(opened, HasIntents):
            # Without models, so that a pending write that holds the store does not keep them alive.
            opened.intents.finish = partial(finish, replace(view, embedding=None, llm=None, sources=(), answers=None))
        self._defaults = settings.address()
        self._view = self._owner.at(**self._defaults)
        # Maintenance ignores the default agent and account from recollect.toml.
        self._whole = self._owner.at(**{part: self._defaults.get(part) for part in ("tenant", "workspace")})

    def __repr__(self) -> str:
        parts = ", ".join(f"{part}={getattr(self.address, part)!r}" for part in sorted(self._view.bound))
        return f"<Memory {self.preset.name}{f' at {parts}' if parts else ''}>"

    @property
    def address(self) -> Address:
        return self._view.address

    @property
    def preset(self) -> Preset:
        return self._view.preset

    @property
    def unsaved(self) -> int:
        """Writes that are in memory only, because the disk refuses them: written once it does not, lost without."""
        return self._view.unsaved

    def conversation(self, title: str = "", *, channel: str | None = None, budget: int = 1000) -> Talk:
        """A conversation to be used with `with`: it starts there, and at the end what matters of it is kept.

        `budget` is the number of tokens that its `orientation` may have.
        """
        from recollect.facets.conversations.talk import Talk

        return Talk(self, partial(self.conversations.start, title, channel=channel), title, budget)

    @operation("POST /orientation", asks_model=True, counts_as_recall=True)
    def orient(
        self,
        about: Annotated[str, Doc("The topic. Without one, only what always matters.")] = "",
        *,
        budget: Annotated[int, Doc("The most tokens that the document may have.")] = 1000,
        zone: ShownZone = UTC,
    ) -> OrientationDocument:
        """What is known about a topic, and what always matters, as one document for a system prompt."""
        from recollect.context.orientation import orient

        return orient(self._view, about, budget=budget, zone=zone)

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
        chosen = {
            "tenant": tenant,
            "account": account,
            "workspace": workspace,
            "channel": channel,
            "conversation": conversation,
            "agent": agent,
        }
        parts = {part: value for part, value in chosen.items() if value is not None}
        bound = object.__new__(type(self))
        # Defaults from recollect.toml apply to the first `at` only; later views can only be narrowed.
        bound._owner = bound._whole = bound._view = self._owner.at(**(self._defaults | parts))
        bound._defaults = {}
        return bound

    @operation("POST /memories", does="creates")
    def remember(
        self,
        content: Annotated[Any, Doc("Text or JSON.")],
        *,
        kind: Annotated[str | None, Doc("fact, preference, decision, task, error, …; judged if left out.")] = None,
        importance: Annotated[float | None, Doc("From 0 to 1; judged from the words if left out.")] = None,
        tags: Annotated[Iterable[str] | None, Doc("Words to find it by.")] = None,
        role: Annotated[Role | None, Doc("Who said it.")] = None,
        source: Annotated[str | None, Doc("Where it comes from.")] = None,
        conversation: Annotated[
            str | None, Names("conversation"), Doc("The conversation it belongs to: its id or ref code.")
        ] = None,
        channel: Annotated[str | None, Names("channel"), Doc("The channel it belongs to.")] = None,
        created_at: Annotated[datetime | str | None, Doc("When it was said, as ISO 8601; now if left out.")] = None,
        expires_at: Annotated[datetime | str | None, Doc("When it expires, as ISO 8601.")] = None,
        valid_from: Annotated[datetime | str | None, Doc("Since when it is so, as ISO 8601.")] = None,
        valid_until: Annotated[datetime | str | None, Doc("Until when it is so, as ISO 8601.")] = None,
        references: Annotated[Iterable[str] | None, Names("memory"), Doc("Ids of memories it refers to.")] = None,
        metadata: Annotated[Mapping[str, Any] | None, Doc("Names and JSON values of your own.")] = None,
        tier: Annotated[Tier | None, Doc("Who sees it.")] = None,
        lifetime: Annotated[Lifetime | None, Doc("Whether it ends with its conversation.")] = None,
        shared: Annotated[bool, Doc("Store it for all agents and not only for this view's.")] = False,
        embedding: Annotated[
            Sequence[float] | None, Doc("Its vector, if you have made one: numbers, or an array of numpy.")
        ] = None,
        embedding_model: Annotated[
            str | None, Doc("The name of the model that made the vector; the configured one if left out.")
        ] = None,
        again: Annotated[bool, Doc("Store it even if the same text is stored already.")] = False,
    ) -> Record:
        """Store text or JSON; durable when this returns, or else its `saved` is False.

        Importance, kind, expiry and lifetime come from the preset's rules where they are left out. The tier is the
        channel if there is one, else the workspace. Credentials are refused with SecretError.

        A text that was stored before, outside a conversation, is one memory: that memory is returned, with a higher
        `access_count` and with the tags that are new. `again=True` stores another.
        """
        return remember.remember(self._view, [_arguments(locals())], once=None)[0]

    @operation("POST /memories/batch", does="creates")
    def remember_many(
        self,
        items: Annotated[Iterable[Mapping[str, Any] | str], Doc("Texts, or objects with the arguments of `remember`.")],
    ) -> builtins.list[Record]:
        """Store many at once, given as dicts of `remember`'s arguments or as texts. One bad item and none is stored.

        Vectors that you have already are taken with them, as `embedding`: then no model makes them again.
        """
        return remember.remember_many(self._view, items)

    @operation("GET /memories/{id}")
    def get(self, id: MemoryId) -> Record:
        """One memory in whatever state. Not counted as a retrieval."""
        return self._view.find_one(id)

    @operation("GET /memories")
    def list(
        self,
        *,
        state: Annotated[State | None, Doc("Only memories in this state; None lists all states.")] = "live",
        newest_first: Annotated[bool, Doc("Newest first, or oldest first.")] = True,
        limit: Annotated[int, Doc("The most memories to list.")] = 100,
        contains: Annotated[str | None, Doc("Only memories with this text, even inside a word, in any case.")] = None,
        after: Annotated[str | None, Names("memory"), Doc("Go on after the memory with this id.")] = None,
        **conditions: Unpack[SearchConditions],
    ) -> builtins.list[Record]:
        """Memories by creation time. `state=None` lists expired, archived and superseded ones too.

        `contains` lists those whose text has this somewhere, even inside a word, whatever its case. `after` is the id
        of the memory to go on behind: the last of what was listed before. NotFoundError where that is gone.
        """
        limit = validation.count(limit, "limit", high=1_000_000)
        where = self._view.narrowed(state, conditions)
        return listed(self._view, where, newest_first=newest_first, limit=limit, contains=contains, after=after)

    @operation("POST /recall", asks_model=True, counts_as_recall=True)
    def recall(
        self,
        query: QueryText,
        *,
        limit: Annotated[int | None, Doc("The most memories to return; the preset's number if left out.")] = None,
        touch: Annotated[bool, Doc("Count the memories that are returned as retrieved.")] = True,
        as_of: Annotated[datetime | str | None, Doc("AnswerSources as at this time.")] = None,
        why_not: Annotated[str | None, Names("memory"), Doc("A memory's id, to learn what kept it out.")] = None,
        rerank: Annotated[
            Rerank | Literal["local", "none"] | None, Doc("`local` has a cross-encoder read the best hits.")
        ] = None,
        zone: Annotated[tzinfo | None, Doc("The time zone of times in the question.")] = None,
        min_relevance: Annotated[
            float | None, Doc("At least this relevant, 0 to 1; 0 for whatever is closest.")
        ] = None,
        **conditions: Unpack[SearchConditions],
    ) -> Hits:
        """The memories that best answer a question, best first, each with the parts of its score.

        What has the `"quoted phrases"` comes first; `auth*` and `colo?r` match words; times such as `last week` or
        `in May 2023` count, in the time zone given. `Hits.absence` answers `why_not`. `rerank` adds to the scores of
        the best candidates: a function of the question and the texts, or `local` for the model that `recollect models
        pull --reranker` installs. Without `min_relevance` nothing is returned where an answer is unlikely, and
        `Hits.report` says so; of what belongs to no conversation, only what is nearly as relevant as the best.
        """
        return recall(self._view, **_arguments(locals()))

    @operation("GET /about/{name}", counts_as_recall=True)
    def about(
        self,
        name: Annotated[str, Doc("Somebody or something, as memories name it.")],
        *,
        limit: Annotated[int, Doc("The most memories to return.")] = 50,
        touch: Annotated[bool, Doc("Count the memories that are returned as retrieved.")] = True,
        **conditions: Unpack[SearchConditions],
    ) -> Hits:
        """All memories that have this name, or another name of the same by an alias, and no others; best first."""
        from recollect.recall.about import about

        return about(self._view, name, conditions, limit=limit, touch=touch)

    @operation("GET /profile")
    def profile(
        self,
        subject: Annotated[str | None, Doc("Somebody by name; the user if left out.")] = None,
        *,
        without_tags: Annotated[
            Iterable[str] | None, Doc("Leave out memories with these tags, such as `sensitive`.")
        ] = None,
    ) -> PersonProfile:
        """What current statements say of the user: name, home, work, diet, allergies, how to answer and the like.

        The newest statement of each, at most 20 lines and 1,200 characters. `text` is the same, to the letter, as long
        as none of these memories changes. With `subject` what they say of somebody else.
        """
        from recollect.recall.profile import profile

        return profile(self._view, subject, without_tags)

    @operation("POST /context", asks_model=True, counts_as_recall=True)
    def context(
        self,
        messages: Annotated[Sequence[Mapping[str, Any]], Doc("The messages of OpenAI's or Anthropic's clients.")],
        *,
        budget: Annotated[int | None, Doc("The most tokens that all of it may have.")] = None,
        system: Annotated[Any, Doc("The system prompt, where it is not among the messages.")] = None,
        query: Annotated[str | None, Doc("What to look for, in place of the last user message.")] = None,
        limit: Annotated[int | None, Doc("The most memories to show.")] = None,
        min_relevance: Annotated[float | None, Doc("Only memories at least this relevant, from 0 to 1.")] = None,
        ids: Annotated[bool, Doc("Show the short ids of memories, for tools that take them.")] = True,
        place: Annotated[Placing | None, Doc("Where memories go.")] = None,
        system_messages: Annotated[SystemMessages | None, Doc("`one` for models that take only one.")] = None,
        participants: Annotated[Iterable[str], Doc("The others in a group conversation.")] = (),
        skills: Annotated[Iterable[str], Doc("Skills to load in full.")] = (),
        zone: ShownZone = UTC,
        count: Count | None = None,
        without_tags: Annotated[
            Iterable[str] | None, Doc("Leave out memories with these tags, such as `sensitive`; else the preset says.")
        ] = None,
        profile: Annotated[
            bool | None, Doc("Put what the user has told of themselves first; else the preset says.")
        ] = None,
    ) -> Context:
        """The messages with memories added, as the preset's `[context]` says, and a report.

        Takes OpenAI's messages, or Anthropic's with `system` beside them, and never changes them. Beyond the budget
        older turns are summarised, then fewer memories are shown. `count` counts tokens:
        `recollect.text.tokens.estimate` unless another is given, or its exact `counter(model)`.
        """
        from recollect.context.build import context

        return context(self._view, **_arguments(locals(), "context"))

    @operation("GET /answers")
    def answers(
        self,
        *,
        limit: Annotated[int, Doc("The most answers to list.")] = 20,
        after: Annotated[str | None, Names("answer"), Doc("Go on after the answer with this id.")] = None,
    ) -> builtins.list[AnswerSources]:
        """The latest answers that memories went into, newest first: which memories, and which were left out."""
        from recollect.context.answers import latest

        return latest(self._view, limit, after)

    @operation("GET /answers/{id}")
    def sources(
        self, id: Annotated[str, Names("answer"), Doc("The id of the answer's context: `Context.id`.")]
    ) -> AnswerSources:
        """Which memories went into an answer, with what they are now, and which were left out and why.

        It is kept for the days that the preset says (`[context] keep_days`), unless it says `keep = "nothing"`.
        """
        from recollect.context.answers import sources

        return sources(self._view, id)

    @operation("POST /consult", asks_model=True, counts_as_recall=True)
    def consult(
        self,
        query: QueryText,
        *,
        limit: Annotated[int, Doc("The most results.")] = 5,
        sources: Annotated[Iterable[str] | None, Doc("Ask only these sources.")] = None,
        deadline: Annotated[float, Doc("Seconds after which a source is left out.")] = 5.0,
    ) -> Consulted:
        """The best of the memories, the audit log and every further source, which are asked at the same time.

        One that fails, or has not answered after `deadline` seconds, is named in `failures`, and the rest is returned.
        `sources` names the only ones to ask. Memories that are returned count as retrieved.
        """
        from recollect.recall.consult import consult

        return consult(self._view, query, limit=limit, sources=sources, deadline=deadline)

    @operation("POST /query", asks_model=True, counts_as_recall=True)
    def query(
        self,
        query: Annotated[Query | Mapping[str, Any], Doc("Kind, tags, time, importance and references: see `Query`.")],
    ) -> Hits:
        """Memories by kind, tags, time, importance and references: see `Query`. Not counted as a retrieval."""
        return querying([self._view], query_from(query))

    @operation("PATCH /memories/{id}", does="changes")
    def revise(
        self,
        id: MemoryId,
        *,
        content: Annotated[Any, Doc("The new text or JSON.")] = None,
        kind: Annotated[str | None, Doc("Another kind.")] = None,
        importance: Annotated[float | None, Doc("Another importance, from 0 to 1.")] = None,
        tags: Annotated[Iterable[str] | None, Doc("Tags in place of the old ones.")] = None,
        role: Annotated[Role | None, Doc("Another role.")] = None,
        source: Annotated[str | None, Doc("Another source.")] = None,
        valid_from: Annotated[datetime | str | None, Doc("Since when it is so, as ISO 8601.")] = None,
        valid_until: Annotated[datetime | str | None, Doc("Until when it is so, as ISO 8601.")] = None,
        references: Annotated[Iterable[str] | None, Names("memory"), Doc("In place of the old references.")] = None,
        metadata: Annotated[Mapping[str, Any] | None, Doc("Metadata in place of the old.")] = None,
        embedding: Annotated[Sequence[float] | None, Doc("The vector of the new content.")] = None,
        embedding_model: Annotated[
            str | None, Doc("The name of the model that made the vector; the configured one if left out.")
        ] = None,
    ) -> Record:
        """A new version in place of this one, which is no longer recalled but stays in `history`."""
        return revise.revise(self._view, id, _arguments(locals(), "id"))

    @operation("POST /forget", does="removes")
    def forget(
        self,
        id: Annotated[str | Sequence[str] | None, Names("memory"), Doc("The id of a memory, or several.")] = None,
        *,
        tag: Annotated[str | None, Doc("All memories with this tag.")] = None,
        since: Annotated[datetime | str | None, Doc("All memories made at this time or later.")] = None,
        until: Annotated[datetime | str | None, Doc("All memories made before this time.")] = None,
        conversation: Annotated[
            str | None, Names("conversation"), Doc("All memories of this conversation: its id or ref code.")
        ] = None,
        workspace: Annotated[str | None, Names("workspace"), Doc("This view's workspace, whole.")] = None,
        agent: Annotated[str | None, Names("agent"), Doc("Everything of this agent.")] = None,
        account: Annotated[str | None, Names("account"), Doc("Everything of this account (a person).")] = None,
        shared: Annotated[bool, Doc("From a view of an agent or account: shared memories too.")] = False,
        reason: Reason = None,
        erase: Annotated[bool, Doc("Delete from the disk at once and for good, without undo.")] = False,
    ) -> Receipt:
        """Delete one memory, several, or all that meet the conditions, with their earlier versions.

        From a view of an agent or account, conditions mean its own memories, and shared ones only with `shared=True`.
        `agent` or `account` alone deletes everything of an agent or a person: its memories in all workspaces (or in
        the one that this view is bound to), conversations, scratchpads, cases and workflows; the audit log stays.
        `undo` brings them back until `compact`; `erase=True` removes them from the disk at once and for good, with
        what they were derived from and is no longer live. The receipt names what was not erased.
        `workspace` must repeat this view's workspace, and removes its folder.
        """
        return forget.forget(self._view, Forget(**_arguments(locals())))

    @operation("GET /proposals")
    def proposals(self) -> builtins.list[Proposal]:
        """Changes that were asked for in a conversation and wait to be confirmed, the newest first.

        A request such as "forget everything about work" becomes one where it would touch more than three memories, or
        where it is not sure which are meant. It is kept for 30 days.
        """
        from recollect.facets.proposals import proposals

        return proposals(self._view)

    @operation("POST /proposals/{id}/confirm", does="removes")
    def confirm(
        self,
        id: Annotated[str, Names("proposal"), Doc("The id of the proposal.")],
        *,
        ids: Annotated[
            str | Sequence[str] | None, Names("memory"), Doc("Only these of its memories; all if left out.")
        ] = None,
    ) -> Proposal:
        """Do what a proposal says, as one change that `undo` takes back. Returns it with the memories it touched.

        A correction changes one memory: where the proposal names several, `ids` says which.
        """
        from recollect.facets.proposals import confirm

        return confirm(self._view, id, ids)

    @operation("POST /proposals/{id}/dismiss", does="changes")
    def dismiss(self, id: Annotated[str, Names("proposal"), Doc("The id of the proposal.")]) -> Proposal:
        """Drop a proposal. The memories stay as they are."""
        from recollect.facets.proposals import dismiss

        return dismiss(self._view, id)

    @operation("GET /memories/{id}/history")
    def history(self, id: MemoryId) -> builtins.list[Record]:
        """Every version of a memory, oldest first."""
        return revise.history(self._view, id)

    @operation("POST /undo", does="changes")
    def undo(
        self,
        change: Annotated[
            str | None, Names("change"), Doc("The id of an audit entry; the last change if it is left out.")
        ] = None,
    ) -> Entry:
        """Take back the last change of this view's agent here, or the one with that audit entry's id."""
        return undo.undo(self._view, change)

    @operation("POST /archive", does="changes")
    def archive(
        self,
        ids: MemoryIds,
        *,
        reason: Reason = None,
    ) -> builtins.list[Record]:
        """Keep, but recall no more."""
        return archive.archive_ids(self._view, ids, reason)

    @operation("POST /restore", does="changes")
    def restore(self, ids: MemoryIds) -> builtins.list[Record]:
        """Recall archived memories again."""
        return restore.restore(self._view, ids)

    @operation("GET /ids")
    def ids_like(
        self,
        part: Annotated[str, Names("memory"), Doc("The beginning or end of an id.")],
        *,
        limit: Annotated[int, Doc("The most ids.")] = 10,
    ) -> builtins.list[str]:
        """Ids of memories, in whatever state, that begin or end with `part`; the one that is equal to it first."""
        limit = validation.count(limit, "limit", high=1000)
        return self._view.ids_like(validation.memory_id(part, "part"), limit)

    @operation("GET /memories/{id}/diagnosis", asks_model=True)
    def diagnose(self, id: MemoryId) -> Diagnosis:
        """Why a memory is not recalled: expired, archived (and by what), superseded, forgotten or unknown."""
        return diagnose.diagnose(self._view, id)

    @operation("POST /deduplicate", does="changes", rank="admin", slow=True)
    def deduplicate(
        self,
        *,
        dry_run: Annotated[bool, Doc("Only show what would be merged.")] = False,
        groups: Annotated[Sequence[Duplicates] | None, Doc("Merge only these groups.")] = None,
    ) -> builtins.list[Duplicates]:
        """Make one memory of those that say the same at the same address; the others stay as its history.

        Turns of conversations are left alone. `dry_run=True` only shows what would become one; give some of that as
        `groups` to merge no more than those. `undo` takes it back.
        """
        return deduplicate.deduplicate(self._view, dry_run=dry_run, groups=groups)

    @operation("GET /doctor", slow=True)
    def doctor(
        self, *, deep: Annotated[bool, Doc("Also compare everything on the disk with its checksums.")] = False
    ) -> Health:
        """Everything that is wrong or could be better, with advice."""
        return diagnose.doctor(self._view, deep=deep)

    @operation("GET /verification", rank="admin", slow=True)
    def verify(self) -> builtins.list[Damage]:
        """Read everything on disk again and compare it with its checksums. `audit.verify` does so for the log."""
        return diagnose.verify(self._whole)

    @operation("POST /maintenance", does="changes", rank="admin", asks_model=True, slow=True)
    def maintain(
        self,
        *,
        early: Annotated[bool, Doc("Also archive memories of little importance before their time.")] = False,
        dry_run: Annotated[bool, Doc("Only say what would be done, to which memory and why.")] = False,
        force: Annotated[bool, Doc("Also do what would change too large a share at once.")] = False,
        jobs: Annotated[Iterable[str] | None, Doc("Run only these jobs, due or not.")] = None,
        only: Annotated[Iterable[str] | None, Names("memory"), Doc("Change only these memories.")] = None,
        stopping: Callable[[], bool] | None = None,
    ) -> Maintained:
        """Run the jobs that are due: archive decayed memories, keep the quota, consolidate, make vectors and so on.

        What would change too large a share of a scope at once is held back, unless `force=True`. `stopping` is asked
        between jobs: once it returns True, the rest waits for the next run. Every change can be undone.
        """
        return schedule.maintain(self._view, schedule.MaintenanceRequest(**_arguments(locals())))

    @operation("GET /simulation", slow=True)
    def simulate(self, *, days: Annotated[int, Doc("How many days ahead.")] = 30) -> Simulation:
        """What will be promoted, archived, merged, expired or lost in the days to come, when and why. Changes nothing.

        It supposes that nothing is stored or recalled meanwhile, and that maintenance runs every day.
        """
        from recollect.maintenance.simulation import simulate

        return simulate(self._view, days)

    @operation("POST /embed", does="changes", rank="admin", asks_model=True, slow=True)
    def embed(
        self,
        *,
        wait: Annotated[bool, Doc("Wait until all vectors are made.")] = True,
        progress: Progress | None = None,
    ) -> int:
        """Have the vectors made that the memories of this workspace lack, as after a bulk load.

        Returns how many were made; without `wait`, at once, how many are still to be made in the background.
        """
        return schedule.embed(self._view, wait, progress)

    @operation("POST /compact", does="removes", rank="admin", slow=True)
    def compact(self) -> int:
        """Remove the last traces of what was forgotten; those changes cannot be undone. Returns the bytes freed."""
        return schedule.compact(self._whole)

    @operation("GET /stats")
    def stats(
        self, *, days: Annotated[int, Doc("Also count what was stored on each of the last days.")] = 0
    ) -> StoreStats:
        """Counts of all that this view sees, in every state. Only a view of a whole workspace sees bytes on disk.

        `days` also counts what was stored on each of so many last days in UTC, today included.
        """
        return diagnose.stats(self._view, days)

    @operation("GET /workspaces")
    def workspaces(self) -> builtins.list[str]:
        """The tenant's workspaces; from a view that is bound to one, or to somebody in it, only that."""
        names = self._view.workspaces()
        # What recollect.toml names is where to begin, and binds nobody.
        return [name for name in names if name == self.address.workspace] if self._owner.bound - {"tenant"} else names

    @operation("GET /export", streams=True)
    def export(
        self,
        target: Annotated[Target, Doc("A path or a binary stream.")],
        *,
        progress: Progress | None = None,
    ) -> int:
        """Write all that this view sees to a file or binary stream, as JSON. Returns how many."""
        return export.export(self._view, target, progress)

    @operation("POST /import", does="changes", streams=True)
    def import_(
        self,
        source: Annotated[Target, Doc("A path or a binary stream.")],
        *,
        progress: Progress | None = None,
    ) -> Imported:
        """Read an export back, ids, times and states as they were. What is there already is left alone."""
        return import_.import_(self._view, source, progress)

    @operation()
    def backup(
        self,
        target: Annotated[str | os.PathLike[str], Doc("A new folder.")],
        *,
        progress: Callable[[int], None] | None = None,
    ) -> Backup:
        """Copy the whole store into a new folder while others go on writing. Complete and verified, or not there."""
        return backup.backup(self._owner, target, progress)

    def close(self) -> None:
        """Write what was put off and let go of the files. A later call opens them again."""
        for model in (self._view.embedding, self._view.llm):
            if model is not None:
                model.close()
        if self._view.answers is not None:
            self._view.answers.close()
        self._view.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _arguments(variables: dict[str, Any], *apart: str) -> dict[str, Any]:
    """The arguments of a verb, from its `locals()`; without those that it passes apart."""
    return {name: value for name, value in variables.items() if name != "self" and name not in apart}


def _model(llm: str | Llm | None) -> Llm | None:
    if llm is None and not os.environ.get("RECOLLECT_LLM"):
        return None  # most have none, and need not wait for the import
    from recollect.models.llm import llm_for

    return llm_for(llm)


def limited(memory: Memory, limit: Callable[[View], View]) -> Memory:
    """The same memory with views that may see or do less: for those of our own that serve it."""
    other = object.__new__(type(memory))
    other._defaults = memory._defaults  # pyright: ignore[reportPrivateUsage]
    for name in ("_owner", "_whole", "_view"):
        setattr(other, name, limit(getattr(memory, name)))
    return other


def view_of(memory: Memory) -> View:
    """What the verbs of a memory stand on: for those of our own that serve it."""
    return memory._view  # pyright: ignore[reportPrivateUsage]
