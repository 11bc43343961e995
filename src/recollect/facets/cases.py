"""Questions that must go on finding what they find: kept beside the memories, and asked again by `recollect eval`."""

from __future__ import annotations

import builtins
import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from recollect.facets.shelf import Shelf
from recollect.policies.secrets import screen
from recollect.stores.shelves import Thing
from recollect.values import validation
from recollect.values.errors import InputError
from recollect.view import View

SHELF = "cases"
_MOST = 50
_LONGEST = 2000


class Case(msgspec.Struct, frozen=True, omit_defaults=True):
    """A question, and what must be among the first that are recalled for it."""

    question: str
    ids: tuple[str, ...] = ()
    """Memories by their ids; a newer version of one counts as it."""
    texts: tuple[str, ...] = ()
    """Words that one of the memories must have, whatever their case."""
    limit: int = 10
    saved_at: datetime | None = None

    @property
    def key(self) -> str:
        """The key of a case: its question."""
        return hashlib.blake2b(self.question.encode(), digest_size=8).hexdigest()


def checked(case: Case) -> Case:
    """InputError where there is nothing to be asked, or nothing to be found."""
    question = validation.query(case.question, "question").strip()
    if not 0 < len(question) <= _LONGEST:
        raise InputError("question", f"must be 1 to {_LONGEST:,} characters")
    ids = tuple(validation.memory_ids(case.ids, "ids"))
    texts = tuple(validation.query(text, "texts").strip() for text in case.texts)
    if not ids and not texts:
        raise InputError("ids", "name at least one memory or text that must be found")
    if not all(texts) or len(ids) + len(texts) > _MOST:
        raise InputError("texts", f"must not be empty, and with the ids at most {_MOST}")
    limit = validation.count(case.limit, "limit", high=1000)
    return msgspec.structs.replace(case, question=question, ids=ids, texts=texts, limit=limit)


class Cases:
    """The cases that a view sees: its own, and those of nobody."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._shelf = Shelf(view, SHELF, _case, action="case")

    def save(self, question: str, *, ids: Sequence[str] = (), texts: Sequence[str] = (), limit: int = 10) -> Case:
        """Keep a case, in place of the one with the same question."""
        view, address = self._view, self._view.address
        with view.logging_refusals("cases"):
            view.screen_address()
            named = tuple(validation.sequence(ids, "ids")), tuple(validation.sequence(texts, "texts"))
            case = checked(Case(question, *named, limit, view.now()))
            for field, text in (("question", case.question), ("texts", " ".join(case.texts))):
                screen(view.preset.secrets, field, text)
        room = {} if address.channel is None else {"channel": address.channel}
        path = msgspec.json.encode((address.account, address.agent, case.key, *room.values())).decode()
        body = msgspec.to_builtins(case) | room
        self._shelf.save("saved a case", self._shelf.thing(path, body, None, address.account, address.agent))
        return case

    def list(self) -> builtins.list[Case]:
        """In the order in which they were first saved."""
        return self._shelf.list()

    def remove(self, question: str) -> int:
        """The case with this question. Returns how many there were."""
        with self._view.logging_refusals("cases"):
            question = validation.query(question, "question").strip()
        with self._shelf.transaction():
            things = [thing for thing in self._shelf.things() if thing.body["question"] == question]
            self._shelf.remove("removed a case", things)
        return len(things)


def _case(thing: Thing) -> Case:
    body: dict[str, Any] = thing.body
    return msgspec.convert(body, Case)
