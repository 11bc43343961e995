"""What a context is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, tzinfo

import msgspec

from recollect.context.messages import Transcript
from recollect.context.sections import Section
from recollect.policies.injection import Placing, SystemMessages
from recollect.text.tokens import Count
from recollect.values.filters import has_tag
from recollect.values.record import Record
from recollect.view import View


class Request(msgspec.Struct, frozen=True):
    view: View
    talk: Transcript
    query: str
    """What memories are looked for with: the user's last words, unless the caller says otherwise."""
    count: Count
    budget: int | None = None
    limit: int | None = None
    min_relevance: float | None = None
    ids: bool = True
    """Whether memories are shown with their ids, for tools that take them."""
    place: Placing = "system"
    system_messages: SystemMessages = "many"
    zone: tzinfo = UTC
    participants: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()

    asked: str = ""
    """All that the query was made from."""
    without_tags: tuple[str, ...] = ()
    """Memories with one of these, or one below it, are left out."""

    profile: Section | None = None
    """What stands before the memories. What it has is not shown again among them."""

    def may_show(self, record: Record) -> bool:
        return not self.is_in_profile(record) and not any(has_tag(record.tags, tag) for tag in self.without_tags)

    def is_in_profile(self, record: Record) -> bool:
        return self.profile is not None and any(item.id == record.id for item in self.profile.items)

    def touch(self, records: Sequence[Record]) -> None:
        """Count the memories that go into the context as retrieved."""
        if records:
            self.view.touch(records)
