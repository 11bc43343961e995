"""From a conversation to what is sent to the model: sections in order, cut in a fixed order where they do not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import tzinfo
from typing import Any

import msgspec

from recollect.context.assembly import Assembly
from recollect.context.messages import Message, parse
from recollect.context.profile import profile_section
from recollect.context.request import Request
from recollect.context.sections import Context, Drafted, Item, Section
from recollect.context.styles import block, working
from recollect.context.styles import journal as diary
from recollect.context.styles import notebook as notes
from recollect.policies.injection import Block, Diary, NoInjection, Notes, Placing, SystemMessages, Working
from recollect.text.tokens import Count, estimate
from recollect.values import validation
from recollect.view import View

_STYLES: dict[type, Callable[[Request, Any], Drafted]] = {
    Block: block.draft,
    Notes: notes.draft,
    Diary: diary.draft,
    Working: working.draft,
    NoInjection: lambda request, style: Drafted(()),
}
"""What makes the sections of each style of injection."""
_LONGEST_QUERY = 2000
"""Letters of a message, from its end, that memories are looked for with."""


def context(
    view: View,
    messages: Sequence[Message],
    *,
    budget: int | None,
    system: Any,
    query: str | None,
    limit: int | None,
    min_relevance: float | None,
    ids: bool,
    place: Placing | None,
    system_messages: SystemMessages | None,
    participants: Iterable[str],
    skills: Iterable[str],
    zone: tzinfo,
    count: Count | None,
    without_tags: Iterable[str] | None = None,
    profile: bool | None = None,
) -> Context:
    # An empty prompt is none, but says that the form is Anthropic's.
    talk = parse(messages, system or None, None if system is None else "anthropic")
    style = view.preset.context
    request = Request(
        view,
        talk,
        validation.query(talk.last_question[-_LONGEST_QUERY:] if query is None else query),
        count or estimate,
        None if budget is None else validation.count(budget, "budget", high=100_000_000),
        None if limit is None else validation.count(limit, "limit", high=1000),
        None if min_relevance is None else validation.importance(min_relevance, "min_relevance"),
        validation.flag(ids, "ids"),
        style.place if place is None else validation.choice(place, "place", Placing),
        style.system_messages
        if system_messages is None
        else validation.choice(system_messages, "system_messages", SystemMessages),
        validation.zone(zone),
        tuple(validation.label(name, "participants") for name in validation.sequence(participants, "participants")),
        tuple(validation.label(name, "skills") for name in validation.sequence(skills, "skills")),
        talk.last_question if query is None else query,
        view.tags(style.without_tags if without_tags is None else without_tags),
    )
    if style.profile if profile is None else validation.flag(profile, "profile"):
        request = msgspec.structs.replace(request, profile=profile_section(request))
    skilled = _skills(request)
    drafted = _STYLES[type(style)](request, style)
    late = request.place != "system" and any(unit.asks for unit in talk.units)
    memories = [section.moved() if late and not section.stays else section for section in drafted.sections]
    # In the order of the request: sections that are joined to the system prompt come first.
    profiles = [request.profile] if request.profile is not None else []
    sections = [*profiles, *skilled, *memories, *_group(request.participants)]
    sections.sort(key=lambda section: section.where != "prompt")
    return Assembly(request, sections, list(drafted.left_out), drafted.prompt).context()


def _skills(request: Request) -> list[Section]:
    """What the agent can do and how it shall behave, whole whatever the budget."""
    skills = request.view.skills.for_agent(request.view.address.agent, request.skills)
    return [Section("skills", tuple(Item(skill.text) for skill in skills), where="each", stays=True)] if skills else []


def _group(participants: Sequence[str]) -> list[Section]:
    """Who else takes part."""
    if not participants:
        return []
    lines = ("You are participating in a group conversation.", f"Other participants: {', '.join(participants)}.")
    return [Section("participants", (Item("\n\n".join(lines)),), where="prompt", stays=True)]
