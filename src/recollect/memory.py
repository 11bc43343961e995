"""Memory: the verbs, wired to a store, a preset and an address. No logic of its own."""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack, cast

from msgspec.structs import replace

from recollect import defaults
from recollect.audit import AuditLog
from recollect.documents.skills import Folders, Skills, load_skills
from recollect.facets.scratchpad import Scratchpad
from recollect.facets.sessions import Sessions
from recollect.facets.sources import own_sources
from recollect.maintenance import schedule
from recollect.maintenance.schedule import Maintained
from recollect.models.vectors import Embedding, embedder_for
from recollect.presets import Preset
from recollect.recall.hits import Hits
from recollect.recall.query import Query, listed, query_from
from recollect.recall.query import query as querying
from recollect.recall.recall import Rerank, recall
from recollect.recall.sources import Source, checked
from recollect.stores import is_served, open_store
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
    from recollect.context.orientation import OrientationDocument
    from recollect.facets.cases import Cases
    from recollect.facets.channels import Channels
    from recollect.facets.conversations import Conversations
    from recollect.facets.conversations.talk import Talk
    from recollect.facets.journal import Journal
    from recollect.facets.knowledge import Knowledge
    from recollect.facets.moments import Moments
    from recollect.facets.workflows import Workflows
    from recollect.maintenance.simulation import Simulation
    from recollect.models.embedders.base import Embedder
    from recollect.models.llm import Llm
    from recollect.policies.injection import Placing, SystemMessages
    from recollect.recall.consult import Consulted
    from recollect.text.tokens import Count


class Memory:
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
        )
        self._owner = replace(view, sources=(*own_sources(view), *further))
        if isinstance(opened, HasIntents):
            # Without models, so that a pending write that holds the store does not keep them alive.
            opened.intents.finish = partial(finish, replace(view, embedding=None, llm=None, sources=()))
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
        """Conversations: start, list, get, idle, archive."""
        from recollect.facets.conversations import Conversations

        return Conversations(self._view)

    def conversation(self, title: str = "", *, channel: str | None = None, budget: int = 1000) -> Talk:
        """A conversation to be used with `with`: it starts there, and at the end what matters of it is kept.

        `budget` is the number of tokens that its `orientation` may have.
        """
        from recollect.facets.conversations.talk import Talk

        return Talk(self, title, channel, budget)

    def orient(self, about: str = "", *, budget: int = 1000, zone: tzinfo = UTC) -> OrientationDocument:
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

    def remember(
        self,
        content: Any,
        *,
        kind: str | None = None,
        importance: float | None = None,
        tags: Iterable[str] | None = None,
        role: Role | None = None,
        source: str | None = None,
        conversation: str | None = None,
        channel: str | None = None,
        created_at: datetime | str | None = None,
        expires_at: datetime | str | None = None,
        references: Iterable[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        tier: Tier | None = None,
        lifetime: Lifetime | None = None,
        shared: bool = False,
        embedding: Sequence[float] | None = None,
        embedding_model: str | None = None,
        again: bool = False,
    ) -> Record:
        """Store text or JSON; durable when this returns, or else its `saved` is False.

        Importance, kind, expiry and lifetime come from the preset's rules where they are not given. The tier says who
        sees it: the channel if there is one, else the workspace. What an agent stores is its own unless it is
        `shared`: then all agents see it. Credentials are refused with SecretError.

        A text that was stored before, outside a conversation, is one memory: that one is returned, with a higher
        `access_count` and with the tags that are new. `again=True` stores another.
        """
        return remember.remember(
            self._view,
            [
                {
                    "content": content,
                    "kind": kind,
                    "importance": importance,
                    "tags": tags,
                    "role": role,
                    "source": source,
                    "conversation": conversation,
                    "channel": channel,
                    "created_at": created_at,
                    "expires_at": expires_at,
                    "references": references,
                    "metadata": metadata,
                    "tier": tier,
                    "lifetime": lifetime,
                    "shared": shared or None,
                    "embedding": embedding,
                    "embedding_model": embedding_model,
                    "again": again or None,
                }
            ],
            once=None,
        )[0]

    def remember_many(self, items: Iterable[Mapping[str, Any] | str]) -> builtins.list[Record]:
        """Store many at once, given as dicts of `remember`'s arguments or as texts. One bad item and none is stored."""
        return remember.remember_many(self._view, items)

    def get(self, id: str) -> Record:
        """One memory in whatever state. Not counted as a retrieval."""
        return self._view.find_one(id)

    def list(
        self,
        *,
        state: State | None = "live",
        newest_first: bool = True,
        limit: int = 100,
        contains: str | None = None,
        after: str | None = None,
        **conditions: Unpack[SearchConditions],
    ) -> builtins.list[Record]:
        """Memories by creation time. `state=None` lists expired, archived and superseded ones too.

        `contains` lists those whose text has this somewhere, even inside a word, whatever its case. `after` is the id
        of the memory to go on behind: the last of what was listed before. NotFoundError where that is gone.
        """
        limit = validation.count(limit, "limit", high=1_000_000)
        where = self._view.narrowed(state, conditions)
        return listed(self._view, where, newest_first=newest_first, limit=limit, contains=contains, after=after)

    def recall(
        self,
        query: str,
        *,
        limit: int | None = None,
        touch: bool = True,
        as_of: datetime | str | None = None,
        why_not: str | None = None,
        rerank: Rerank | None = None,
        zone: tzinfo | None = None,
        min_relevance: float | None = None,
        **conditions: Unpack[SearchConditions],
    ) -> Hits:
        """The memories that best answer a question, best first, each with the parts of its score.

        `"quoted phrases"` must occur as they are; `auth*` and `colo?r` match words; times such as `last week` or
        `in May 2023` count, in the time zone given. What is returned counts as retrieved, unless `touch=False`.
        `as_of` answers as at that time. `why_not` names a memory, and `Hits.absence` says what kept it out.
        `rerank` gives the best candidates scores of its own. `min_relevance`, from 0 to 1, is what every hit must have;
        without it nothing is returned where even the best has less than the preset says. `Hits.report` says so.
        """
        return recall(
            self._view,
            query,
            conditions,
            limit=limit,
            touch=touch,
            as_of=as_of,
            why_not=why_not,
            rerank=rerank,
            zone=zone,
            min_relevance=min_relevance,
        )

    def context(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        budget: int | None = None,
        system: Any = None,
        query: str | None = None,
        limit: int | None = None,
        min_relevance: float | None = None,
        ids: bool = True,
        place: Placing | None = None,
        system_messages: SystemMessages | None = None,
        participants: Iterable[str] = (),
        skills: Iterable[str] = (),
        zone: tzinfo = UTC,
        count: Count | None = None,
    ) -> Context:
        """The messages with what is remembered put in, as the preset's `[context]` says, and a report.

        Takes OpenAI's messages, or Anthropic's with `system` beside them, and never changes them. `budget` is the
        number of tokens that all of it may have: beyond it older turns are summarised, then fewer memories are shown.
        `query` is what to look for instead of the user's last message. `ids=False` shows memories without their short
        ids, where no tool could use them. `place` is where memories go: `system`, `before_last` or `last_user`;
        `system_messages="one"` is for models that take only one. `participants` are the others in a group.
        `count` counts tokens: `recollect.text.tokens.estimate` unless told otherwise, or its exact `counter(model)`.
        """
        from recollect.context.build import context

        return context(
            self._view,
            messages,
            budget=budget,
            system=system,
            query=query,
            limit=limit,
            min_relevance=min_relevance,
            ids=ids,
            place=place,
            system_messages=system_messages,
            participants=participants,
            skills=skills,
            zone=zone,
            count=count,
        )

    def consult(
        self, query: str, *, limit: int = 5, sources: Iterable[str] | None = None, deadline: float = 5.0
    ) -> Consulted:
        """The best of the memories, the audit log and every further source, which are asked at the same time.

        One that fails, or has not answered after `deadline` seconds, is named in `failures`, and the rest is returned.
        `sources` names the only ones to ask. Memories that are returned count as retrieved.
        """
        from recollect.recall.consult import consult

        return consult(self._view, query, limit=limit, sources=sources, deadline=deadline)

    def query(self, query: Query | Mapping[str, Any]) -> Hits:
        """Memories by kind, tags, time, importance and references: see `Query`. Not counted as a retrieval."""
        return querying([self._view], query_from(query))

    def revise(
        self,
        id: str,
        *,
        content: Any = None,
        kind: str | None = None,
        importance: float | None = None,
        tags: Iterable[str] | None = None,
        role: Role | None = None,
        source: str | None = None,
        references: Iterable[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        embedding: Sequence[float] | None = None,
        embedding_model: str | None = None,
    ) -> Record:
        """A new version in place of this one, which is no longer recalled but stays in `history`."""
        changes = {
            "content": content,
            "kind": kind,
            "importance": importance,
            "tags": tags,
            "role": role,
            "source": source,
            "references": references,
            "metadata": metadata,
            "embedding": embedding,
            "embedding_model": embedding_model,
        }
        return revise.revise(self._view, id, changes)

    def forget(
        self,
        id: str | Sequence[str] | None = None,
        *,
        tag: str | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        conversation: str | None = None,
        workspace: str | None = None,
        agent: str | None = None,
        account: str | None = None,
        shared: bool = False,
        reason: str | None = None,
        erase: bool = False,
    ) -> Receipt:
        """Forget one memory, several, or all that meet the conditions, with their earlier versions.

        From a view of an agent or account, conditions mean its own memories, and shared ones only with `shared=True`.
        `agent` or `account` alone forgets everything of an agent or a person: its memories in all workspaces (or in
        the one that this view is bound to), conversations, scratchpads, cases and workflows; the audit log stays.
        `undo` brings them back until `compact`; `erase=True` removes them from the disk at once and for good, with
        what they were derived from and is no longer live. The receipt names what was not erased.
        `workspace` must repeat this view's workspace, and removes its folder.
        """
        request = Forget(id, tag, since, until, conversation, workspace, agent, account, shared, reason, erase)
        return forget.forget(self._view, request)

    def history(self, id: str) -> builtins.list[Record]:
        """Every version of a memory, oldest first."""
        return revise.history(self._view, id)

    def undo(self, change: str | None = None) -> Entry:
        """Take back the last change of this view's agent here, or the one with that audit entry's id."""
        return undo.undo(self._view, change)

    def archive(self, ids: str | Sequence[str], *, reason: str | None = None) -> builtins.list[Record]:
        """Keep, but recall no more."""
        return archive.archive_ids(self._view, ids, reason)

    def restore(self, ids: str | Sequence[str]) -> builtins.list[Record]:
        """Recall archived memories again."""
        return restore.restore(self._view, ids)

    def ids_like(self, part: str, *, limit: int = 10) -> builtins.list[str]:
        """Ids of memories, in whatever state, that begin or end with `part`; the one that is equal to it first."""
        limit = validation.count(limit, "limit", high=1000)
        return self._view.ids_like(validation.memory_id(part, "part"), limit)

    def diagnose(self, id: str) -> Diagnosis:
        """Why a memory is not recalled: expired, archived (and by what), superseded, forgotten or unknown."""
        return diagnose.diagnose(self._view, id)

    def deduplicate(
        self, *, dry_run: bool = False, groups: Sequence[Duplicates] | None = None
    ) -> builtins.list[Duplicates]:
        """Make one memory of those that say the same at the same address; the others stay as its history.

        Turns of conversations are left alone. `dry_run=True` only shows what would become one; give some of that as
        `groups` to merge no more than those. `undo` takes it back.
        """
        return deduplicate.deduplicate(self._view, dry_run=dry_run, groups=groups)

    def doctor(self) -> Health:
        """Everything that is wrong or could be better, with advice."""
        return diagnose.doctor(self._view)

    def verify(self) -> builtins.list[Damage]:
        """Read everything on disk again and compare it with its checksums. `audit.verify` does so for the log."""
        return diagnose.verify(self._whole)

    def maintain(
        self,
        *,
        early: bool = False,
        dry_run: bool = False,
        force: bool = False,
        jobs: Iterable[str] | None = None,
        only: Iterable[str] | None = None,
        stopping: Callable[[], bool] | None = None,
    ) -> Maintained:
        """Run the jobs that are due: archive what has decayed, keep the quota, consolidate, make vectors and so on.

        `dry_run=True` only says what would be done to which memory, and why. What would take too large a share of a
        scope at once is held back; `force=True` does that too. `early` also archives what was of little importance.
        `jobs` names the only ones to run, due or not; `only` the only memories to change. `stopping` is asked between
        jobs: once it says true, the rest is left for the next time. Every change can be undone.
        """
        request = schedule.MaintenanceRequest(early, dry_run, force, jobs, only, stopping)
        return schedule.maintain(self._view, request)

    def simulate(self, *, days: int = 30) -> Simulation:
        """What will be promoted, archived, merged, expired or lost in the days to come, when and why. Changes nothing.

        It supposes that nothing is stored or recalled meanwhile, and that maintenance runs every day.
        """
        from recollect.maintenance.simulation import simulate

        return simulate(self._view, days)

    def embed(self, *, wait: bool = True, progress: Progress | None = None) -> int:
        """Have the vectors made that the memories of this workspace lack, as after a bulk load.

        Returns how many were made; without `wait`, at once, how many are still to be made in the background.
        """
        return schedule.embed(self._view, wait, progress)

    def compact(self) -> int:
        """Remove the last traces of what was forgotten; those changes cannot be undone. Returns the bytes freed."""
        return schedule.compact(self._whole)

    def stats(self, *, days: int = 0) -> StoreStats:
        """Counts of all that this view sees, in every state. Only a view of a whole workspace sees bytes on disk.

        `days` also counts what was stored on each of so many last days in UTC, today included.
        """
        return diagnose.stats(self._view, days)

    def workspaces(self) -> builtins.list[str]:
        """The tenant's workspaces; from a view that is bound to one, or to somebody in it, only that."""
        names = self._view.workspaces()
        # What recollect.toml names is where to begin, and binds nobody.
        return [name for name in names if name == self.address.workspace] if self._owner.bound - {"tenant"} else names

    def export(self, target: Target, *, progress: Progress | None = None) -> int:
        """Write all that this view sees to a file or binary stream, as JSON. Returns how many."""
        return export.export(self._view, target, progress)

    def import_(self, source: Target, *, progress: Progress | None = None) -> Imported:
        """Read an export back, ids, times and states as they were. What is there already is left alone."""
        return import_.import_(self._view, source, progress)

    def backup(self, target: str | os.PathLike[str], *, progress: Callable[[int], None] | None = None) -> Backup:
        """Copy the whole store into a new folder while others go on writing. Complete and verified, or not there."""
        return backup.backup(self._owner, target, progress)

    def close(self) -> None:
        """Write what was put off and let go of the files. A later call opens them again."""
        for model in (self._view.embedding, self._view.llm):
            if model is not None:
                model.close()
        self._view.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


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
