"""Models of both protocols at a server of the tests, and the ways to ask them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from recollect import ModelError
from recollect.models.llm import Message
from recollect.models.llm.anthropic import AnthropicLlm
from recollect.models.llm.chat import Chat
from recollect.models.llm.openai import OpenAiLlm
from support.model_server import ModelServer

QUESTION = [Message("user", "where is the office?")]
KINDS: dict[str, tuple[type[Chat], str]] = {"openai": (OpenAiLlm, "/v1"), "anthropic": (AnthropicLlm, "")}
"""What speaks a protocol, and how the URL of an endpoint for it ends."""
Connect = Callable[..., Chat]
OPENAI_ONLY = pytest.mark.parametrize("kind", ["openai"])
ANTHROPIC_ONLY = pytest.mark.parametrize("kind", ["anthropic"])


@contextmanager
def connecting(kind: str, server: ModelServer, pauses: list[float]) -> Iterator[Connect]:
    made: list[Chat] = []

    def connect(**options: Any) -> Chat:
        llm, base = KINDS[kind]
        made.append(llm(f"{server.url}{base}", "m", **{"sleep": pauses.append, **options}))
        return made[-1]

    yield connect
    for llm in made:
        llm.close()


def ways(llm: Chat) -> list[Callable[[], str]]:
    """To ask for the whole, and for a stream."""
    return [lambda: llm.complete(QUESTION), lambda: "".join(llm.stream(QUESTION))]


def collected(pieces: Iterator[str]) -> tuple[list[str], ModelError]:
    """What came before the error, and the error."""
    texts: list[str] = []
    try:
        for piece in pieces:
            texts.append(piece)
    except ModelError as error:
        return texts, error
    raise AssertionError(f"no error after {texts}")
