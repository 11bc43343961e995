"""The bodies of things on shelves: one struct per shelf, which facets read and an import is checked against."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from recollect.values.errors import InputError

ALIASES, ANSWERS, PROPOSALS = "aliases", "answers", "proposals"
CHANNELS, CONVERSATIONS, REF_CODES = "channels", "conversations", "ref_codes"
REF_CODE_LENGTH = 11
"""Letters and digits in the code that stands for a conversation in a link."""
DEFAULT_CHANNEL = "general"
LONGEST_TITLE = 200
LONGEST_DESCRIPTION = 500
MOST_LEFT_OUT = 100
"""Memories that an answer names of those that were left out of it."""

Status = Literal["active", "idle", "archived"]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]


def is_ref_code(name: str) -> bool:
    """Whether a name has the form of a ref code. It may be a conversation's id all the same."""
    return len(name) == REF_CODE_LENGTH and name.isascii() and name.isalnum()


class Body(msgspec.Struct, frozen=True):
    """Further fields are left alone: a later version may write more."""


class AliasBody(Body, frozen=True):
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=80)]
    also: Annotated[str, msgspec.Meta(min_length=1, max_length=80)]
    saved_at: datetime | None = None
    channel: Name | None = None


class UsedMemory(Body, frozen=True):
    """A memory that went into an answer."""

    id: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    relevance: float | None = None


class UnusedMemory(Body, frozen=True):
    """A memory that was left out of an answer, and why."""

    id: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    why: Annotated[str, msgspec.Meta(max_length=500)]


class AnswerBody(Body, frozen=True):
    memories: tuple[UsedMemory, ...]
    tokens: Annotated[int, msgspec.Meta(ge=0)]
    question: Annotated[str, msgspec.Meta(max_length=2000)] | None = None
    question_sha256: Annotated[str, msgspec.Meta(min_length=64, max_length=64)] | None = None
    left_out: Annotated[tuple[UnusedMemory, ...], msgspec.Meta(max_length=MOST_LEFT_OUT)] = ()
    erased: Annotated[int, msgspec.Meta(ge=0)] = 0
    channel: Name | None = None


class CaseBody(Body, frozen=True):
    question: Annotated[str, msgspec.Meta(min_length=1, max_length=2000)]
    ids: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 10
    saved_at: datetime | None = None
    channel: Name | None = None


class ChannelBody(Body, frozen=True):
    id: Annotated[str, msgspec.Meta(min_length=1, max_length=32)]
    workspace: str | None
    name: Name
    description: Annotated[str, msgspec.Meta(max_length=LONGEST_DESCRIPTION)]


class ConversationBody(Body, frozen=True):
    title: Annotated[str, msgspec.Meta(max_length=LONGEST_TITLE)]
    channel_id: Annotated[str, msgspec.Meta(min_length=1, max_length=32)]
    channel: Name
    status: Status
    ended_at: datetime | None
    ref_code: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]


class JobBody(Body, frozen=True):
    job: str
    owner: str | None = None
    until: datetime | None = None
    last_run: datetime | None = None


ProposedAct = Literal["forget", "correct", "replace"]
"""What a proposal would do; `replace` lets the second of two memories take the place of the first."""


class ProposalBody(Body, frozen=True):
    id: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    act: ProposedAct
    asked: Annotated[str, msgspec.Meta(max_length=500)]
    ids: tuple[str, ...] = ()
    value: Annotated[str, msgspec.Meta(max_length=500)] = ""
    asked_at: datetime | None = None
    channel: Name | None = None


class RefCodeBody(Body, frozen=True):
    conversation: Name
    key: str
    channel: Name | None = None


class ReviewBody(Body, frozen=True):
    told: Annotated[str, msgspec.Meta(max_length=500)]


class NoteBody(Body, frozen=True):
    key: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    value: Any
    channel: Name | None = None


BODIES: dict[str, type[Body]] = {
    ALIASES: AliasBody,
    ANSWERS: AnswerBody,
    "cases": CaseBody,
    CHANNELS: ChannelBody,
    CONVERSATIONS: ConversationBody,
    "jobs": JobBody,
    PROPOSALS: ProposalBody,
    REF_CODES: RefCodeBody,
    "reviews": ReviewBody,
    "scratchpad": NoteBody,
}
"""By shelf. An import may put things on these shelves and no others."""


def check_body(shelf: str, body: dict[str, Any]) -> None:
    """InputError where the facet of a shelf could not read this body. Shelves without a struct are not checked."""
    if shelf not in BODIES:
        return
    try:
        msgspec.convert(body, BODIES[shelf])
    except (msgspec.ValidationError, OverflowError) as error:
        problem, _, field = str(error).partition(" - at `$")
        raise InputError(f"body{field.rstrip('`')}", f"{problem[:1].lower()}{problem[1:]}") from None


def default_channel_id(tenant: str, workspace: str | None) -> str:
    """The id of the channel `general`, the same whether the channel was stored yet or not."""
    return hashlib.sha256(f"{tenant}\0{workspace}\0{DEFAULT_CHANNEL}".encode()).hexdigest()[:32]
