"""A server with something in it, and a browser before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.browser import Watched, launched, need_browser
from support.served import Served, served

from recollect import Memory

HOSTILE = "<script>alert('x')</script><img src=x onerror=alert(1)> \"' onmouseover=alert(2) {{ 7 * 7 }} </textarea>"


class Filled:
    """What there is to be looked at."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        for number in range(55):
            memory.remember(f"the lighthouse log has page {number}", kind="finding", tags=["log"], source="import")
        first = memory.remember("Ada likes green tea", kind="preference", tags=["drinks"], source="chat")
        self.ada = memory.revise(first.id, content="Ada likes black tea with milk").id
        self.atlas = memory.at(agent="atlas").remember("The deploy key rotates on Monday", kind="procedure").id
        self.hostile = memory.remember(HOSTILE, source=HOSTILE[:60], metadata={HOSTILE: HOSTILE}, kind="fact").id
        self.home = memory.remember(f"I live in Bonn {HOSTILE}").id
        self.old = memory.remember("An old plan that nobody follows").id
        memory.archive(self.old)
        talk = memory.conversations.start(HOSTILE[:150])
        self.talk = talk.id
        said = [memory.conversations.say(talk.id, "user", text) for text in ("Beans?", "Beans in May", "Roses too")]
        self.said = said[1].id
        memory.at(conversation=talk.id).scratchpad.write("plan", {"next": "buy beans", "odd": HOSTILE})
        self.answer = memory.context(
            [{"role": "user", "content": f"what does Ada like? {HOSTILE}"}], min_relevance=0.0
        ).id
        memory.cases.save(f"what is {HOSTILE}?", texts=[HOSTILE])

    def paths(self) -> dict[str, str]:
        return {
            "overview": "/",
            "health": "/health",
            "memories": "/memories",
            "search": "/memories?q=script+alert+img",
            "conversation": f"/memories?conversation={self.talk}",
            "new": "/memories?new=1",
            "nothing": "/memories?kind=nothing",
            "memory": f"/memories/{self.ada}?q=what+does+Ada+like",
            "hostile": f"/memories/{self.hostile}?q=script",
            "turn": f"/memories/{self.said}?related=1",
            "lab": "/lab?q=alert+script+tea&against=atlas",
            "bare lab": "/lab",
            "context": "/context?messages=user:+%3Cscript%3Ealert(1)%3C/script%3E+tea&budget=400",
            "timeline": "/timeline?q=tea",
            "answers": "/answers",
            "profile": "/profile",
            "answer": f"/answers/{self.answer}",
        }


@pytest.fixture
def site(memory: Memory) -> Iterator[Served]:
    with served(memory, single=True) as site:
        yield site


@pytest.fixture
def filled(site: Served) -> Filled:
    return Filled(site.serving.memory)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Not for the whole run: while playwright is there, no other test of this process can start an event loop."""
    need_browser()
    with launched() as browser:
        yield browser


@pytest.fixture
def tab(browser: Any, site: Served) -> Iterator[Callable[..., Watched]]:
    """A new tab of whoever started the server. At the end nothing bad may have been seen in it."""
    tabs: list[Watched] = []

    def new(**options: Any) -> Watched:
        tabs.append(Watched(browser, site.url, f"{site.url}/enter?ticket={site.serving.ticket()}", **options))
        return tabs[-1]

    yield new
    for one in tabs:
        one.context.close()
        one.check()
