"""From what a caller says to a record that may be stored: validation, screening, and the preset's defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, cast

from msgspec.structs import replace

from recollect.policies.importance import assess
from recollect.policies.kinds import judge_kind
from recollect.policies.personal import judge, masked_content
from recollect.policies.retention import expiry
from recollect.policies.secrets import screen, screen_name
from recollect.presets import Preset
from recollect.values import validation
from recollect.values.errors import AccessError, InputError, SecretError
from recollect.values.record import Address, Lifetime, Record, Role, Tier, digest, new_id, parse_time, render

_NO_METADATA: dict[str, Any] = {}
WHITEBOARD = "whiteboard"
"""The kind of whiteboard entries, which all agents read, each with its author."""

_CHECKS: dict[str, Callable[[Any], Any]] = {
    "content": validation.content,
    "kind": validation.kind,
    "importance": validation.importance,
    "tags": validation.tags,
    "role": lambda value: validation.choice(value, "role", Role),
    "source": lambda value: validation.label(value, "source"),
    "conversation": lambda value: validation.name(value, "conversation"),
    "channel": lambda value: validation.name(value, "channel"),
    "created_at": lambda value: parse_time(value, "created_at"),
    "expires_at": lambda value: parse_time(value, "expires_at"),
    "valid_from": lambda value: parse_time(value, "valid_from"),
    "valid_until": lambda value: parse_time(value, "valid_until"),
    "references": validation.references,
    "derived_from": validation.sources,
    "metadata": validation.metadata,
    "tier": lambda value: validation.choice(value, "tier", Tier),
    "lifetime": lambda value: validation.choice(value, "lifetime", Lifetime),
    "shared": lambda value: validation.flag(value, "shared"),
    "again": lambda value: validation.flag(value, "again"),
    "embedding": validation.embedding,
    "embedding_model": lambda value: validation.label(value, "embedding_model"),
}


def draft_record(
    fields: Mapping[str, Any], view: Address, preset: Preset, now: datetime, *, is_final: bool = True
) -> Record:
    """A record ready to be stored at the view's address, from the arguments of `remember`. Changes nothing.

    One that is not final gets its checksum when it is dated, by `stored_at`.
    """
    rules = preset.remember
    _screen_names(fields, preset)
    values = _checked(fields, rules.any_tags)
    get = values.get
    content = values["content"]
    text = content if isinstance(content, str) else render(content)
    kind = get("kind") or judge_kind(text, rules.kinds, rules.kind)
    tags, metadata = get("tags", ()), get("metadata", _NO_METADATA)
    if rules.max_chars is not None and len(text) > rules.max_chars:
        raise InputError("content", f"{len(text):,} characters is over the limit of {rules.max_chars:,}")
    if rules.max_tags is not None and len(tags) > rules.max_tags:
        raise InputError("tags", f"{len(tags)} tags are over the limit of {rules.max_tags}")
    content, text, more_tags = _without_personal(content, text, metadata, preset)
    if more_tags:
        tags = tuple(dict.fromkeys([*tags, *more_tags]))[: max(len(tags), _most_tags(preset))]
    validation.validity(get("valid_from"), get("valid_until"))
    for field in ("tags", "references", "derived_from"):  # which may have been given as anything that can be iterated
        if names := get(field):
            screen(preset.secrets, field, " ".join(names))
    if get("shared"):
        view = replace(view, agent=None)
    tier, address = _place(values, view) if len(values) > 1 else (_widest(view), view)
    if get("lifetime") == "conversation" and address.conversation is None:
        raise InputError("lifetime", "conversation needs a conversation, with which it ends; there is none")
    if tier == "account" and rules.account_kinds:
        _check_account(kind, "embedding" in values, rules.account_kinds)
    ident, role, created = new_id(), get("role"), get("created_at", now)
    importance, expires = _worth(values, text, kind, created, preset)
    return Record(
        ident,
        address,
        tier,
        kind,
        content,
        importance,
        created,
        created,
        tags,
        role,
        get("source", rules.source),
        get("lifetime") or ("conversation" if tier == "conversation" else rules.lifetime),
        get("references", ()),
        metadata,
        0,
        expires,
        None,
        None,
        get("embedding"),
        get("embedding_model"),
        digest(ident, tier, kind, role, content, created) if is_final else "",
        derived_from=get("derived_from", ()),
        valid_from=get("valid_from"),
        valid_until=get("valid_until"),
    )


def _without_personal(
    content: Any, text: str, metadata: Mapping[str, Any], preset: Preset
) -> tuple[Any, str, tuple[str, ...]]:
    """The content and its text as they may be stored, and the tags for the personal data in them and in the metadata.

    SecretError if there is a secret, or personal data that the preset refuses or that cannot be masked.
    """
    personal, secrets = preset.personal, preset.secrets
    judged = judge("content", text, personal, secrets)
    if judged.text != text:
        content = masked_content(content, personal, secrets)
        text = content if isinstance(content, str) else render(content)
        if type := judge("content", text, personal, secrets).masked:
            raise SecretError("content", type)  # it is not within one text
    if not metadata:
        return content, text, judged.tags
    beside = judge("metadata", render(metadata), replace(personal, topics="ignore"), secrets)
    if beside.masked:
        raise SecretError("metadata", beside.masked)
    return content, text, (*judged.tags, *beside.tags)


def _most_tags(preset: Preset) -> int:
    return validation.MAX_TAGS if preset.remember.max_tags is None else preset.remember.max_tags


def stored_at(record: Record, now: datetime, fields: Mapping[str, Any]) -> Record:
    """A draft, dated when it is stored: drafts of several processes are stored in another order than they are made.

    A time that the caller gave in `fields` stays.
    """
    if fields.get("created_at") is not None or now <= record.created_at:
        return record if record.checksum else replace(record, checksum=record.digest())
    expires = record.expires_at
    if expires is not None and fields.get("expires_at") is None:
        with suppress(OverflowError):  # after the last date there is
            expires += now - record.created_at
    checksum = digest(record.id, record.tier, record.kind, record.role, record.content, now)
    return replace(record, created_at=now, accessed_at=now, expires_at=expires, checksum=checksum)


_NAMES = ("kind", "channel", "conversation")
_LABELS = ("source", "embedding_model", "tags", "references", "derived_from")


def _screen_names(fields: Mapping[str, Any], preset: Preset) -> None:
    """Checked first, because the errors of other checks quote the value."""
    if len(fields) == 1:
        return
    for field in _NAMES:
        if isinstance(value := fields.get(field), str):
            screen_name(preset.secrets, field, value)
    for field in _LABELS:
        value = fields.get(field)
        for text in cast("Sequence[Any]", value) if isinstance(value, list | tuple) else (value,):
            if isinstance(text, str):
                screen(preset.secrets, field, text)


def signed(record: Record, author: str | None) -> Record:
    """On the whiteboard under the name of the view that writes it, whatever the caller says."""
    if record.kind != WHITEBOARD:
        return record
    others = {key: value for key, value in record.metadata.items() if key != "author"}
    return replace(record, metadata=others if author is None else others | {"author": author})


def _check_account(kind: str, embedded: bool, kinds: Sequence[str]) -> None:
    if kind not in kinds:
        raise InputError("kind", f"the tier account holds {' and '.join(kinds)} only; store a {kind} in the workspace")
    if embedded:
        raise InputError("embedding", "the tier account holds no vectors; leave it out")


def _checked(fields: Mapping[str, Any], any_tags: bool) -> dict[str, Any]:
    """The values that were given, each checked by its rule. Content is always among them."""
    if len(fields) == 1 and "content" in fields:  # as most are
        return {"content": validation.content(fields["content"])}
    checks = {**_CHECKS, "tags": validation.any_tags} if any_tags else _CHECKS
    try:
        values = {field: checks[field](value) for field, value in fields.items() if value is not None}
    except KeyError as unknown:
        names, name = ", ".join(sorted(_CHECKS)), str(unknown.args[0])[:48].encode("ascii", "backslashreplace").decode()
        raise InputError(name, f"is not a field of a memory; known: {names}") from None
    if "content" not in values:
        validation.content(None)
    if "embedding_model" in values and "embedding" not in values:
        raise InputError("embedding_model", "names the model of an embedding, and there is none")
    return values


def _worth(
    values: dict[str, Any], text: str, kind: str, created: datetime, preset: Preset
) -> tuple[float, datetime | None]:
    """Importance and expiry: the caller's, or what the preset's rules say."""
    importance, expires, explicit = values.get("importance"), values.get("expires_at"), False
    if importance is None or (expires is None and preset.retention.explicit_is_permanent):
        judged = assess(text, preset.importance)
        importance, explicit = judged.score if importance is None else importance, judged.explicit
    if expires is None:
        expires = expiry(preset.retention, kind, created, explicit)
    elif expires <= created:
        raise InputError("expires_at", "must be later than created_at")
    return importance, expires


def _widest(view: Address) -> Tier:
    """Who sees a memory unless the caller says so: the channel if there is one, else the workspace."""
    return "workspace" if view.channel is None else "channel"


def _place(values: dict[str, Any], view: Address) -> tuple[Tier, Address]:
    channel = _within("channel", values.get("channel"), view.channel)
    conversation = _within("conversation", values.get("conversation"), view.conversation)
    address = view
    if channel is not view.channel or conversation is not view.conversation:
        address = Address(view.tenant, view.workspace, view.account, channel, conversation, view.agent)
    tier: Tier = values.get("tier") or _widest(address)
    if tier == "account":
        return tier, Address(view.tenant, None, view.account, None, conversation, view.agent)
    if tier in ("channel", "conversation") and getattr(address, tier) is None:
        raise InputError(tier, f"is needed for a memory of the tier {tier}")
    return tier, address


def _within(part: str, value: str | None, bound: str | None) -> str | None:
    if value is None or value == bound:
        return bound
    if bound is not None:
        raise AccessError(f"{part}: this view is bound to {bound} and cannot write to another {part}")
    return value
