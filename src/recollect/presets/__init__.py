"""Presets: a memory's behaviour as data. Six come with recollect; a user's own is a TOML file that may extend one."""

from __future__ import annotations

import os
from functools import cache
from typing import Annotated, Literal

import msgspec

from recollect.policies.decay import Decay, NoDecay
from recollect.policies.importance import Importance
from recollect.policies.injection import Block, Injection
from recollect.policies.kinds import Sense
from recollect.policies.maintenance import Consolidation, Maintenance
from recollect.policies.personal import Personal
from recollect.policies.ranking import Calibrated, Ranking
from recollect.policies.retention import Retention
from recollect.policies.secrets import Screen
from recollect.values.record import Lifetime, Tier

Count = Annotated[int, msgspec.Meta(ge=1)]

_NAMES = ("recollect", "atlas", "aegis", "inklings", "ledger", "journal")


class Remember(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a new memory is unless the caller says otherwise, and how large it may be."""

    kind: Annotated[str, msgspec.Meta(min_length=1)] = "fact"
    kinds: dict[Sense, Annotated[str, msgspec.Meta(min_length=1)]] = {}
    """What the words say → the kind of a memory that does not say its kind; `kind` if they say none of these."""
    lifetime: Lifetime = "long_term"
    source: str | None = None
    max_chars: Count | None = None
    max_tags: Annotated[int, msgspec.Meta(ge=0)] | None = None
    any_tags: bool = False
    """Whether a tag may be any short text, rather than letters, digits and dots between levels."""
    once: bool = True
    """Whether a text that is there already, outside a conversation, is not stored again."""
    from_clients: bool = True
    """Whether a wrapped client stores anything of its calls. Else only what is stored by a tool or a caller is."""
    account_kinds: tuple[str, ...] = ()
    """The only kinds that the tier `account` holds, and without vectors; none for all kinds."""


class RecallRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    limit: Count = 10
    candidates: Count = 20
    embed: bool = True
    """Whether memories and questions are compared by meaning, where a model is to be had."""
    threshold: Annotated[float, msgspec.Meta(ge=-1.0, le=1.0)] | None = None
    """A memory less similar to the question is not recalled. In what a model says its cosines mean, else in cosines."""
    patience: Annotated[float, msgspec.Meta(gt=0.0, le=600.0)] = 2.0
    """Seconds that a recall waits for the vector of the question; then it is by words alone."""
    catch_up: Annotated[float, msgspec.Meta(ge=0.0, le=600.0)] = 0.25
    """Seconds that a recall waits for the vectors of what was just stored."""
    own_only: bool = False
    """Whether an agent that consults finds only memories of its own, and none that belong to nobody."""
    min_relevance: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)] = 0.05
    """Unless an answer is among the hits with this likelihood, there are none. For formulas that know it."""
    share_of_best: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)] = 0.5
    """A memory outside any conversation is left out if it is less than this share as relevant as the best hit."""
    share_of_best_if_newer: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)] = 0.4
    """The same for one that was stored after the best hit, and may correct it."""
    rerank: Literal["local", "none"] = "none"
    """`local`: the model that `recollect models pull --reranker` installs reads the best hits beside the question."""
    same_above: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)] | None = None
    """Of two memories whose vectors have a higher cosine only the better is recalled. Equal texts are one anyway."""

    def fetch(self, limit: int | None = None) -> int:
        """How many candidates to ask a store for, so that ranking has something to choose from."""
        return max(self.candidates, 2 * (self.limit if limit is None else limit))


class ConversationRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is kept when a conversation ends."""

    tiers: dict[str, Tier] = {}
    """Kind → how far what was found of it is visible; the workspace for all others."""
    source: str | None = "conversation"
    """The source of what was found."""
    supersede: bool = True
    """Whether what was found takes the place of older memories that it says are so no longer."""


class Preset(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The defaults are those of the preset `recollect`."""

    name: Annotated[str, msgspec.Meta(min_length=1)]
    description: str = ""
    store: Literal["sqlite", "ledger", "notebook"] = "sqlite"
    """The kind of store for a location that does not name one."""
    location: Annotated[str, msgspec.Meta(min_length=1)] = "./memory"
    """Where a memory is whose maker does not say."""
    remember: Remember = Remember()
    importance: Importance = Importance()
    secrets: Screen = Screen()
    personal: Personal = Personal()
    decay: Decay = NoDecay()
    retention: Retention = Retention()
    ranking: Ranking = Calibrated()
    recall: RecallRules = RecallRules()
    context: Injection = Block()
    conversations: ConversationRules = ConversationRules()
    maintenance: Maintenance = Maintenance()
    consolidation: Consolidation = Consolidation()
    tools: tuple[str, ...] = ("recall", "remember", "revise", "list", "forget", "undo")
    """What a model may call, by name."""


def names() -> list[str]:
    """The presets that come with recollect, the default first."""
    return list(_NAMES)


def load(name_or_path: str | os.PathLike[str]) -> Preset:
    """A preset by name, or from a TOML file if the name has a path separator or ends in `.toml`.

    A file may say `extends = "atlas"` and hold only what differs; without it, it extends `recollect`.
    """
    # Imported here: reading TOML takes longer to import than everything else in this package.
    from recollect.presets import files

    if files.is_path(name_or_path):
        return files.from_file(name_or_path)
    return _builtin(os.fspath(name_or_path))


@cache
def _builtin(name: str) -> Preset:
    from recollect.presets import files

    return files.builtin(name)
