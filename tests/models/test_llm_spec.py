"""Models named by a text."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence

import pytest
from support.model_server import ModelServer, model_server, says

from recollect import InputError, ModelError
from recollect.models.llm import Llm, Message, llm_for, open_llm

QUESTION = [Message("user", "where is the office?")]


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RECOLLECT_LLM", "RECOLLECT_LLM_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as server:
        yield server


@pytest.mark.parametrize(
    ("spec", "shown"),
    [
        ("openai:gpt-4o", "<OpenAiLlm gpt-4o at https://api.openai.com/v1/chat/completions>"),
        ("anthropic:claude-x", "<AnthropicLlm claude-x at https://api.anthropic.com/v1/messages>"),
        ("https://host/v1#a/b:7b", "<OpenAiLlm a/b:7b at https://host/v1/chat/completions>"),
        ("http://localhost:11434/v1#qwen3:8b", "<OpenAiLlm qwen3:8b at http://localhost:11434/v1/chat/completions>"),
        ("anthropic+https://host#claude-x", "<AnthropicLlm claude-x at https://host/v1/messages>"),
        ("anthropic+http://me:pw@[::1]:8/v1/?k=s#c", "<AnthropicLlm c at http://[::1]:8/v1/messages>"),
    ],
)
def test_every_form_names_a_model(spec: str, shown: str) -> None:
    llm = open_llm(spec)

    assert repr(llm) == shown
    later = llm_for(spec)
    assert later is not None
    assert llm is not None
    assert later.name == llm.name
    assert "pw" not in repr(later)


def test_none_is_none() -> None:
    assert open_llm("none") is None
    assert llm_for("none") is None


BAD = [
    "",
    "None",
    "openai",
    "openai:",
    "openai://host",
    "anthropic:",
    "gpt-4o",
    "sk-abcdefghijklmnop",
    "https://host/v1",
    "https://host/v1#",
    "https://#m",
    "https://host:port/v1#m",
    "http://[::1/v1#m",
    "anthropic+https://host",
    "anthropic+ftp://host#m",
    "ftp://host/v1#m",
    "openai:two words",
    "openai:new\nline",
    "openai:" + "x" * 201,
]


@pytest.mark.parametrize("spec", BAD)
def test_a_text_that_names_none_is_refused_at_once_and_not_repeated(spec: str) -> None:
    for refuse in (open_llm, llm_for):
        with pytest.raises(InputError, match=r"^llm: must be none, openai:MODEL, .*https://host/v1#model") as caught:
            refuse(spec)
        assert caught.value.field == "llm"
        assert "abcdefgh" not in str(caught.value)


def test_it_is_asked_over_both_protocols(server: ModelServer) -> None:
    for spec in (f"{server.url}/v1#m", f"anthropic+{server.url}#m"):
        llm = open_llm(spec, key="k", retries=0)
        assert llm is not None
        assert llm.complete(QUESTION) == "You said: where is the office?"
        llm.close()

    assert [request.path for request in server.requests] == ["/v1/chat/completions", "/v1/messages"]
    assert (server.headers[0]["authorization"], server.headers[1]["x-api-key"]) == ("Bearer k", "k")


def test_the_variable_names_the_model(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert llm_for(None) is None
    monkeypatch.setenv("RECOLLECT_LLM", "none")
    assert llm_for(None) is None
    monkeypatch.setenv("RECOLLECT_LLM", "nonsense")
    assert llm_for("none") is None
    with pytest.raises(InputError, match="llm"):
        llm_for(None)

    monkeypatch.setenv("RECOLLECT_LLM", f"{server.url}/v1#m")
    server.then(says("yes"), says("in pieces"))
    llm = llm_for(None)
    assert llm is not None
    assert (llm.name, server.requests) == ("m", [])
    assert llm.complete(QUESTION, max_tokens=9, temperature=0.3) == "yes"
    assert list(llm.stream(QUESTION)) == ["in ", "pieces"]
    assert (server.bodies[0]["max_tokens"], server.bodies[0]["temperature"]) == (9, 0.3)
    assert server.requests[0].port == server.requests[1].port  # one connection: it was opened once
    llm.close()


def test_a_model_of_ones_own_is_taken_as_it_is() -> None:
    class Parrot:
        name = "parrot"

        def complete(self, messages: Sequence[Message], *, max_tokens: int = 1024, temperature: float = 0.0) -> str:
            return messages[-1].content

        def stream(
            self, messages: Sequence[Message], *, max_tokens: int = 1024, temperature: float = 0.0
        ) -> Iterator[str]:
            yield messages[-1].content

        def close(self) -> None: ...

    parrot: Llm = Parrot()
    assert llm_for(parrot) is parrot


def test_without_httpx_it_says_what_to_install_when_it_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    llm = llm_for("openai:m")

    assert llm is not None
    with pytest.raises(ModelError, match=r"pip install httpx"):
        llm.complete(QUESTION)


def test_naming_a_model_imports_and_connects_nothing() -> None:
    script = """
import json, sys
from recollect.models.llm import llm_for, summarise
llm_for("openai:m").close()
print(json.dumps(sorted(sys.modules)))
"""
    modules = set(json.loads(subprocess.check_output([sys.executable, "-c", script])))
    assert "recollect.models.llm.spec" in modules
    assert not modules & {"numpy", "httpx", "recollect.models.endpoint", "recollect.models.llm.openai", "asyncio"}
