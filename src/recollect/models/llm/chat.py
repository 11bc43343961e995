"""What the protocols of remote models have in common."""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from recollect.models.endpoint import Endpoint, RefusedError, Service
from recollect.models.llm.base import LONGEST_NAME, Message, Role
from recollect.values import validation
from recollect.values.errors import InputError

_MOST_TOKENS = 1_000_000
_RENAMED = {"max_tokens": "max_completion_tokens"}
_NOT_TAKEN = re.compile(r"support|deprecated|only the default", re.IGNORECASE)


class Chat(ABC):
    """A model at an endpoint. `timeout` is the seconds without a sign of life, `retries` the tries after the first.

    `deadline` is the seconds for a whole answer, all tries and reading included; of a stream, for its first piece.
    """

    _service: Service

    def __init__(
        self,
        url: str,
        model: str,
        *,
        key: str | None = None,
        timeout: float = 60.0,
        retries: int = 4,
        deadline: float = 120.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._name = validation.label(model, "model", LONGEST_NAME)
        retries = validation.count(retries, "retries", low=0)
        self._endpoint = Endpoint(url, self._service, key, timeout, retries, sleep, deadline)
        self._unwanted: set[str] = set()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._name} at {self._endpoint.shown}>"

    @property
    def name(self) -> str:
        return self._name

    def complete(self, messages: Sequence[Message], *, max_tokens: int = 1024, temperature: float = 0.0) -> str:
        body = {**self._body(_checked(messages)), **_limits(max_tokens, temperature)}
        while True:
            sent = self._accepted(body)
            try:
                return self._endpoint.post(sent, self._whole)
            except RefusedError as refusal:
                self._learn(refusal, sent)

    def stream(self, messages: Sequence[Message], *, max_tokens: int = 1024, temperature: float = 0.0) -> Iterator[str]:
        """Nothing is sent before the first piece is asked for."""
        body = {**self._body(_checked(messages)), **_limits(max_tokens, temperature), "stream": True}
        return self._streamed(body)

    def close(self) -> None:
        self._endpoint.close()

    def _streamed(self, body: dict[str, Any]) -> Iterator[str]:
        while True:
            sent = self._accepted(body)
            try:
                yield from self._endpoint.stream(sent, self._pieces)
                return
            except RefusedError as refusal:  # is never in the middle of an answer
                self._learn(refusal, sent)

    def _accepted(self, body: dict[str, Any]) -> dict[str, Any]:
        """Renames or drops parameters that this server is known to refuse."""
        sent = dict(body)
        for name in sorted(self._unwanted & body.keys()):
            value = sent.pop(name)
            if name in _RENAMED:
                sent[_RENAMED[name]] = value
        return sent

    def _learn(self, refusal: RefusedError, sent: dict[str, Any]) -> None:
        """Which parameters a model takes is in no list, but its refusal names the one that it does not."""
        if refusal.status in (400, 422) and _NOT_TAKEN.search(refusal.answer):
            for name in ("temperature", "max_tokens"):
                if name in sent and name in refusal.answer and _RENAMED.get(name, name) in refusal.answer:
                    self._unwanted.add(name)
                    return
        raise refusal

    @abstractmethod
    def _body(self, messages: list[tuple[Role, str]]) -> dict[str, Any]: ...

    @abstractmethod
    def _whole(self, content: bytes) -> str:
        """The text of an answer."""

    @abstractmethod
    def _pieces(self, events: Iterator[bytes]) -> Iterator[str]:
        """The text in the data of each event."""


def _checked(messages: Sequence[Message]) -> list[tuple[Role, str]]:
    if not messages or isinstance(messages, str) or not all(isinstance(message, Message) for message in messages):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError("messages", "must be a list of one Message or more")
    # JSON cannot hold half a surrogate pair.
    return [(message.role, message.content.encode("utf-8", "replace").decode()) for message in messages]


def _limits(max_tokens: int, temperature: float) -> dict[str, Any]:
    if not 0.0 <= temperature <= 2.0:
        raise InputError("temperature", "must be a number from 0 to 2")
    return {"max_tokens": validation.count(max_tokens, "max_tokens", high=_MOST_TOKENS), "temperature": temperature}
