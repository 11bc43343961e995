"""Many threads that do everything at once to one memory: none waits for ever, and what was said is what is stored."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest
from support.common import LONG, SECONDS
from support.concepts import Concepts
from support.crowd import Agent, check, number_apart
from support.watchdog import PATIENCE, opened, together

from recollect import Memory


@pytest.mark.parametrize("embedder", ["none", "concepts"])
def test_eight_threads_do_everything_in_two_workspaces_and_of_one_account(url: str, embedder: str) -> None:
    with opened(url, embedder=Concepts() if embedder == "concepts" else "none") as memory:
        number_apart(memory)
        agents = [Agent(memory, f"agent{n}") for n in range(8)]

        def work(agent: Agent) -> Callable[[], None]:
            return lambda: [agent.act() for _ in range(30 if LONG else 15)] and None

        together(*map(work, agents))
        for agent in agents:
            together(agent.check)
        together(lambda: check(memory))


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 200)
def test_sixteen_threads_go_on_for_long(url: str, store: str) -> None:
    tiers = ("workspace",) if store == "notebook" else ("account", "workspace")  # whose ids would soon mean two things
    with opened(url, embedder=Concepts()) as memory:
        agents = [Agent(memory, f"agent{n}", tiers) for n in range(16)]
        end = time.monotonic() + SECONDS

        def work(agent: Agent) -> Callable[[], None]:
            def until_the_end() -> None:
                while time.monotonic() < end:
                    agent.act()

            return until_the_end

        together(*map(work, agents), seconds=SECONDS + 3 * PATIENCE)
        for agent in agents:
            together(agent.check)
        together(lambda: check(memory))
    with opened(url) as again:
        for agent in agents:
            agent.views = Agent(again, agent.name).views
            together(agent.check)


QUOTA = 5


def with_quota(preset: str, folder: Path) -> Path:
    """The preset as it is, but for a quota that is reached at once."""
    text = files("recollect.presets").joinpath(f"{preset}.toml").read_text()
    lines = [f"quota = {QUOTA}" if line.startswith("quota =") else line for line in text.splitlines()]
    assert f"quota = {QUOTA}" in lines
    small = folder / f"small-{preset}.toml"
    small.write_text("\n".join(lines))
    return small


@pytest.mark.parametrize("preset", ["aegis", "atlas", "inklings"])
def test_one_agent_writes_in_two_workspaces_and_its_quota_holds(url: str, preset: str, tmp_path: Path) -> None:
    with opened(url, preset=with_quota(preset, tmp_path), embedder="none") as memory:

        def work(name: str) -> Callable[[], None]:
            view = memory.at(workspace=name, agent="ada")
            return lambda: [view.remember(f"heron {n} in the {name}", kind="fact") for n in range(20)] and None

        together(work("shop"), work("barn"))
        assert live(memory) <= QUOTA
        memory.at(workspace="shop", agent="ada").remember("the last heron", kind="fact")
        assert live(memory) <= QUOTA
        assert memory.at(workspace="shop", agent="ada").list()[0].text == "the last heron"


def live(memory: Memory) -> int:
    return sum(len(memory.at(workspace=name, agent="ada").list()) for name in ("shop", "barn"))
