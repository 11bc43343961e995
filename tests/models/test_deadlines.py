"""An endpoint that sends a byte now and then, or nothing at all, holds nobody longer than its deadline."""

from __future__ import annotations

import threading
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


def test_an_answer_that_drips_ends_with_the_deadline() -> None:
    drip = Drip()
    with model_server() as server:
        server.always(drip)
        llm = OpenAiLlm(f"{server.url}/v1", "m", deadline=0.3)
        with closing(llm), pytest.raises(ModelError, match="did not answer before the deadline"):
            llm.complete(_ASKED)
        assert drip.left.wait(60)  # the connection is closed, and nothing more is read
        assert len(server.requests) == 1
        assert 0 < drip.bytes < 10_000


def test_a_silent_endpoint_is_not_asked_again_after_the_deadline() -> None:
    gone = threading.Event()
    with model_server() as server:
        server.always(silent(gone))
        llm = OpenAiLlm(f"{server.url}/v1", "m", timeout=60, retries=4, deadline=0.2, sleep=lambda _: None)
        with closing(llm):
            with pytest.raises(ModelError):
                llm.complete(_ASKED)
            with pytest.raises(ModelError):
                list(llm.stream(_ASKED))
        assert len(server.requests) == 2
        gone.set()


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
    monkeypatch.setattr(extracting, "SECONDS", 0.3)
    drip, gone = Drip(), threading.Event()
    with model_server() as server:
        for behaviour in (drip, silent(gone)):
            before = len(server.requests)
            server.always(behaviour)
            llm = OpenAiLlm(f"{server.url}/v1", "m")
            with closing(llm), Memory(tmp_path / str(before), llm=llm, embedder="none") as memory:
                with memory.conversation("about databases") as talk:
                    talk.say("user", "We decided to use PostgreSQL for the archive.")
                assert [one.kind for one in memory.list(kind="decision")] == ["decision"]
            assert len(server.requests) == before + 1
        gone.set()
        assert drip.left.wait(60)
        server.always(says("[]"))
