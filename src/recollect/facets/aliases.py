"""Other names for the same thing: pg is PostgreSQL. A question with the one finds what has the other."""

from __future__ import annotations

import builtins
from datetime import datetime
from typing import Annotated, Any

import msgspec

from recollect.facets.shelf import Shelf
from recollect.operations import Doc, operation
from recollect.policies.secrets import screen
from recollect.recall.aliases import MOST_ALIASES
from recollect.stores.shelves import ShelfItem
from recollect.text.segment import fold
from recollect.values import validation
from recollect.values.bodies import ALIASES
from recollect.values.errors import InputError
from recollect.view import View

_LONGEST = 80


class Alias(msgspec.Struct, frozen=True, omit_defaults=True):
    """Two names for one thing. Neither is the better one."""

    name: str
    also: str
    saved_at: datetime | None = None


class Aliases:
    """The aliases of a workspace that a view sees: its own, and those of nobody."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._shelf = Shelf(view, ALIASES, _alias, action="alias")

    @operation("POST /aliases", does="creates")
    def save(
        self,
        name: Annotated[str, Doc("A name, as memories may have it.")],
        also: Annotated[str, Doc("Another name for the same.")],
    ) -> Alias:
        """Have questions with one of two names find what has the other."""
        view, address = self._view, self._view.address
        with view.logging_refusals("aliases"):
            view.screen_address()
            alias = Alias(_checked(name, "name"), _checked(also, "also"), view.now())
            if fold(alias.name) == fold(alias.also):
                raise InputError("also", "is the same as the name")
            for field in ("name", "also"):
                screen(view.preset.secrets, field, getattr(alias, field))
        room = {} if address.channel is None else {"channel": address.channel}
        pair = sorted((fold(alias.name), fold(alias.also)))
        key = msgspec.json.encode((address.account, address.agent, *pair, *room.values())).decode()
        item = self._shelf.thing(key, msgspec.to_builtins(alias) | room, None, address.account, address.agent)
        with self._shelf.transaction():
            if not self._shelf.stored(key) and len([*view.store.shelf(view.place, ALIASES)]) >= MOST_ALIASES:
                raise InputError("name", f"a workspace has at most {MOST_ALIASES:,} aliases; remove some first")
            self._shelf.save("saved an alias", item)
        return alias

    @operation("GET /aliases")
    def list(self) -> builtins.list[Alias]:
        """In the order in which they were first saved."""
        return self._shelf.list()

    @operation("DELETE /aliases", does="removes")
    def remove(self, name: Annotated[str, Doc("One of the two names.")]) -> int:
        """Every alias with this name. Returns how many there were."""
        with self._view.logging_refusals("aliases"):
            folded = fold(_checked(name, "name"))
        with self._shelf.transaction():
            things = [*self._shelf.things()]
            items = [item for item in things if folded in (fold(item.body["name"]), fold(item.body["also"]))]
            self._shelf.remove("removed an alias", items)
        return len(items)


def _checked(name: Any, field: str) -> str:
    label = validation.label(validation.query(name, field).strip(), field, _LONGEST)
    if not any(map(str.isalnum, label)):
        raise InputError(field, "must have a letter or a digit")
    return label


def _alias(item: ShelfItem) -> Alias:
    return msgspec.convert(item.body, Alias)
