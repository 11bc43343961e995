"""An agent that does what it likes to a memory and knows what must be there in the end, for tests of many at once."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial

from recollect import Memory, Record

ASKED = [{"role": "user", "content": "where is the heron?"}]
WORKSPACES = ("shop", "barn")


def number_apart(memory: Memory, first: int = 400) -> None:
    """Have a notebook's account count from there: an id then means one memory, of the workspace or the account."""
    ann = memory.at(account="ann", workspace="shop")
    if ann.remember("passing", kind="preference", tier="account", tags=["x"]).id.startswith("m-"):
        item = {"content": "passing", "kind": "preference", "tier": "account", "tags": ["x"]}
        ann.remember_many(item for _ in range(first))
    ann.forget(tag="x", erase=True)


class Agent:
    """Writes in two workspaces and of an account that others use as well, and never touches what another wrote."""

    def __init__(self, memory: Memory, name: str, tiers: Sequence[str] = ("account", "workspace")) -> None:
        self.name, self.draw, self.tiers = name, random.Random(name), tiers
        self.views = {place: memory.at(workspace=place, account="ann", agent=name) for place in WORKSPACES}
        self.live: dict[tuple[str, str], str] = {}
        """The texts by place and id."""
        self.gone: set[tuple[str, str]] = set()

    def act(self) -> None:
        """Something or other. Only what was acknowledged counts, so what fails may be tried again."""
        writing = [self.remember, self.remember, self.remember_many, self.revise, self.forget, self.undo, self.archive]
        self.draw.choice([*writing, *self._reads()])()

    def _reads(self) -> list[Callable[[], object]]:
        view = self.draw.choice([*self.views.values()])
        return [
            partial(view.recall, "heron"),
            view.list,
            partial(view.context, ASKED),
            view.stats,
            partial(view.query, {"text": "heron"}),
            partial(view.audit.search, "heron"),
        ]

    def _text(self) -> str:
        return f"heron {self.draw.random()} of {self.name}"

    def _keep(self, record: Record) -> tuple[str, str]:
        place = "account" if record.tier == "account" else record.address.workspace
        self.live[place, record.id] = record.text
        return place, record.id

    def _view(self, place: str) -> Memory:
        return self.views[self.draw.choice(WORKSPACES) if place == "account" else place]

    def remember(self) -> tuple[str, str]:
        view, tier = self._view("account"), self.draw.choice(self.tiers)
        return self._keep(view.remember(self._text(), kind="preference", tier=tier))  # type: ignore[arg-type]

    def remember_many(self) -> None:
        tiers = self.draw.choices(self.tiers, k=3)
        items = [{"content": self._text(), "kind": "preference", "tier": tier} for tier in tiers]
        for record in self._view("account").remember_many(items):
            self._keep(record)

    def _chosen(self) -> tuple[str, str]:
        return self.draw.choice([*self.live]) if self.live else self.remember()

    def revise(self) -> None:
        place, ident = self._chosen()
        revised = self._view(place).revise(ident, content=self._text())
        del self.live[place, ident]
        self._keep(revised)

    def forget(self) -> None:
        place, ident = self._chosen()
        assert self._view(place).forget(ident, erase=self.draw.random() < 0.2).count >= 1
        del self.live[place, ident]
        self.gone.add((place, ident))

    def undo(self) -> None:
        view = self._view("account")
        record = view.remember(self._text())
        self._keep(record)
        view.undo()
        del self.live[view.address.workspace, record.id]
        self.gone.add((view.address.workspace, record.id))

    def archive(self) -> None:
        place, ident = self._chosen()
        view = self._view(place)
        view.archive(ident)
        view.restore(ident)

    def check(self) -> None:
        """Everything that was acknowledged is there as it was said, and nothing else of this agent's."""
        stored: dict[tuple[str, str], str] = {}
        for place, view in self.views.items():
            for record in view.list(limit=100_000):
                assert record.digest() == record.checksum
                stored["account" if record.tier == "account" else place, record.id] = record.text
        assert stored == self.live
        for view in self.views.values():
            assert {hit.memory.text for hit in view.recall("heron", limit=20)} <= {*self.live.values()}


def check(memory: Memory) -> None:
    """The files are as they should be."""
    for place in WORKSPACES:
        assert memory.at(workspace=place).verify() == []
    assert all(log.ok for log in memory.audit.verify())
