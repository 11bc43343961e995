"""How far a recall reaches: from a conversation to its channel, the workspace and the account."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.concepts import Concepts, Floats, texts

from recollect import Memory
from recollect.values.record import TIERS


class Apart(Concepts):
    """No two texts mean the same, and a question means a little of each."""

    def __init__(self) -> None:
        super().__init__("apart", 128)
        self._axes: dict[str, int] = {}

    def _vector(self, text: str) -> Floats:
        vector = np.zeros(128, np.float32)
        vector[self._axes.setdefault(text, len(self._axes))] = 1.0
        return vector

    def embed_query(self, text: str) -> Floats:
        return np.full(128, 128**-0.5, np.float32)


@pytest.fixture(params=["none", "apart"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    embedder = "none" if request.param == "none" else Apart()
    with Memory(tmp_path / "memory", preset="inklings", embedder=embedder) as memory:
        for conversation, channel, mark in [("c1", "red", "own "), ("c2", "red", "other "), ("c3", "blue", "other ")]:
            here = memory.at(channel=channel, conversation=conversation)
            here.remember(f"the owl of the {mark}conversation {conversation}", tier="conversation")
            here.remember(f"the owl of the channel {channel}, said in {conversation}", tier="channel")
        memory.at(channel="blue", conversation="c3").remember(
            "the owl of the workspace, said in blue", tier="workspace"
        )
        memory.at(channel="blue", conversation="c3").remember(
            "the owl of the account", tier="account", kind="preference"
        )
        yield memory


OF_C1 = "the owl of the own conversation c1"
OF_RED = {"the owl of the channel red, said in c1", "the owl of the channel red, said in c2"}
OF_WORKSPACE, OF_ACCOUNT = "the owl of the workspace, said in blue", "the owl of the account"


@pytest.mark.clause("INK-12")
def test_a_conversation_sees_itself_its_channel_the_workspace_and_the_account(memory: Memory) -> None:
    assert set(texts(memory.at(channel="red", conversation="c1").recall("owl", limit=50))) == {
        OF_C1,
        *OF_RED,
        OF_WORKSPACE,
        OF_ACCOUNT,
    }


@pytest.mark.clause("INK-12")
def test_with_a_channel_given_channel_memories_are_of_that_channel_only(memory: Memory) -> None:
    found = memory.at(channel="red").recall("owl", limit=50)
    assert {hit.memory.text for hit in found if hit.memory.tier == "channel"} == OF_RED
    assert set(texts(found)) >= {OF_WORKSPACE, OF_ACCOUNT}
    tiers = memory.at(channel="red").recall("owl", limit=50, tier="channel")
    assert set(texts(tiers)) == OF_RED


@pytest.mark.clause("INK-12")
def test_every_tier_gives_its_own(memory: Memory) -> None:
    view = memory.at(channel="red", conversation="c1")
    of = {tier: set(texts(view.recall("owl", limit=50, tier=tier))) for tier in TIERS}
    assert of == {"conversation": {OF_C1}, "channel": OF_RED, "workspace": {OF_WORKSPACE}, "account": {OF_ACCOUNT}}


@pytest.mark.clause("INK-12")
def test_a_wider_tier_never_pushes_out_the_only_answer_of_the_conversation(memory: Memory) -> None:
    view = memory.at(channel="red", conversation="c1")
    view.remember("Ute keeps the spare key under the birdbath", tier="conversation")
    memory.remember_many([{"content": f"a key of shelf {n}", "tier": "workspace"} for n in range(40)])
    drawers = [f"a key of drawer {n}" for n in range(40)]
    memory.remember_many({"content": key, "tier": "account", "kind": "preference"} for key in drawers)
    found = view.recall("where does Ute keep the spare key?", limit=5)
    assert found[0].memory.text == "Ute keeps the spare key under the birdbath"
    others = memory.at(channel="red", conversation="c2").recall("where does Ute keep the spare key?", limit=50)
    assert "Ute keeps the spare key under the birdbath" not in texts(others)
