"""Questions that must go on finding what they find: kept beside the memories, and asked again by `recollect eval`."""

from __future__ import annotations

import builtins
import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

import msgspec

from recollect.facets.shelf import Shelf
from recollect.operations import Doc, Names, operation
from recollect.policies.secrets import screen
from recollect.stores.shelves import ShelfItem
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

    @operation("POST /cases", does="creates")
    def save(
        self,
        question: Annotated[str, Doc("The question.")],
        *,
        ids: Annotated[Sequence[str], Names("memory"), Doc("The ids of memories that it must find.")] = (),
        texts: Annotated[Sequence[str], Doc("Texts that it must find.")] = (),
        limit: Annotated[int, Doc("Among how many of the best hits.")] = 10,
    ) -> Case:
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

    @operation("GET /cases")
    def list(self) -> builtins.list[Case]:
        """In the order in which they were first saved."""
        return self._shelf.list()

    @operation("DELETE /cases", does="removes")
    def remove(self, question: Annotated[str, Doc("The question of the case.")]) -> int:
        """The case with this question. Returns how many there were."""
        with self._view.logging_refusals("cases"):
            question = validation.query(question, "question").strip()
        with self._shelf.transaction():
            items = [item for item in self._shelf.things() if item.body["question"] == question]
            self._shelf.remove("removed a case", items)
        return len(items)


def _case(item: ShelfItem) -> Case:
    body: dict[str, Any] = item.body
    return msgspec.convert(body, Case)
