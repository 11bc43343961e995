"""An endpoint that sends a byte now and then, or nothing at all, holds nobody longer than its deadline."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from support.model_server import Behaviour, Request, model_server, says, status

from recollect import InputError, Memory, ModelError
from recollect.models.llm import Message, extracting
from recollect.models.llm.openai import OpenAiLlm

_ASKED = [Message("user", "hello")]


class Drip:
    """Bytes of an answer that never ends, until the client has gone."""

    def __init__(self) -> None:
        self.bytes = 0
        self.left = threading.Event()

    def __call__(self, request: Request, *_: object) -> None:
        request.send_response(200)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", "100000000")
        request.end_headers()
        try:
            while True:
                request.wfile.write(b" ")
                request.wfile.flush()
                self.bytes += 1
                threading.Event().wait(0.01)
        except OSError:
            self.left.set()


def silent(gone: threading.Event) -> Behaviour:
    return lambda *_: gone.wait(60) and None


def until_it_arrives(arrived: Callable[[], bool], ask: Callable[[float], None]) -> None:
    """Ask with longer and longer deadlines: on a busy machine a short one is over before the endpoint is reached."""
    for deadline in (0.3, 1.0, 4.0, 16.0):
        ask(deadline)
        if arrived():
            return
    pytest.fail("the endpoint was not reached within 16 s")


def test_an_answer_that_drips_ends_with_the_deadline() -> None:
    drip = Drip()

    def ask(deadline: float) -> None:
        llm = OpenAiLlm(f"{server.url}/v1", "m", deadline=deadline)
        before = len(server.requests)
        with closing(llm), pytest.raises(ModelError, match="did not answer before the deadline"):
            llm.complete(_ASKED)
        assert len(server.requests) <= before + 1

    with model_server() as server:
        server.always(drip)
        until_it_arrives(lambda: drip.bytes > 0, ask)
        assert drip.left.wait(60)  # the connection is closed, and nothing more is read


def test_a_silent_endpoint_is_not_asked_again_after_the_deadline() -> None:
    gone = threading.Event()
    asked = list[int]()

    def ask(deadline: float) -> None:
        llm = OpenAiLlm(f"{server.url}/v1", "m", timeout=60, retries=4, deadline=deadline, sleep=lambda _: None)
        before = len(server.requests)
        with closing(llm):
            with pytest.raises(ModelError):
                llm.complete(_ASKED)
            with pytest.raises(ModelError):
                list(llm.stream(_ASKED))
        asked.append(len(server.requests) - before)

    with model_server() as server:
        server.always(silent(gone))
        until_it_arrives(lambda: asked[-1] >= 2, ask)
        gone.set()
    assert asked[-1] == 2


def test_a_pause_that_does_not_fit_is_not_waited_for() -> None:
    pauses: list[float] = []
    with model_server() as server:
        server.always(status(503, Retry_After="7"))
        llm = OpenAiLlm(f"{server.url}/v1", "m", deadline=5, sleep=pauses.append)
        with closing(llm), pytest.raises(ModelError):
            llm.complete(_ASKED)
        assert (len(server.requests), pauses) == (1, [])


def test_a_deadline_is_checked() -> None:
    with pytest.raises(InputError, match=r"^deadline: "):
        OpenAiLlm("http://localhost/v1", "m", deadline=0)


def test_the_end_of_a_conversation_waits_for_no_slow_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules keep what the model did not read in time."""
    assert extracting.SECONDS == 10.0
    drip, gone = Drip(), threading.Event()

    def talk_to(behaviour: Behaviour, deadline: float) -> None:
        monkeypatch.setattr(extracting, "SECONDS", deadline)
        server.always(behaviour)
        llm = OpenAiLlm(f"{server.url}/v1", "m")
        folder = tmp_path / f"{len(server.requests)}-{deadline}"
        with closing(llm), Memory(folder, llm=llm, embedder="none") as memory:
            with memory.conversation("about databases") as talk:
                talk.say("user", "We decided to use PostgreSQL for the archive.")
            assert [one.kind for one in memory.list(kind="decision")] == ["decision"]

    with model_server() as server:
        until_it_arrives(lambda: drip.bytes > 0, lambda deadline: talk_to(drip, deadline))
        before = len(server.requests)
        until_it_arrives(lambda: len(server.requests) > before, lambda deadline: talk_to(silent(gone), deadline))
        assert len(server.requests) == before + 1
        gone.set()
        assert drip.left.wait(60)
        server.always(says("[]"))
