"""Models named by a text, as in a setting."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from recollect.models.llm.base import LONGEST_NAME, Llm, Message
from recollect.values.errors import InputError

_FORMS = "none, openai:MODEL, anthropic:MODEL, https://host/v1#model or anthropic+https://host#model"


class _Named(NamedTuple):
    protocol: str
    url: str
    """Empty for the provider's own."""
    model: str


def open_llm(spec: str, **options: Any) -> Llm | None:
    """The model that a text names; None for `none`.

    `openai:MODEL` and `anthropic:MODEL` are at their makers; `https://host/v1#model` is at any endpoint that speaks as
    OpenAI's does, and `anthropic+https://host#model` at one that speaks as Anthropic's does. Options are `key`,
    `timeout`, `retries`, `deadline` and `sleep`. It is connected to when it is first asked.
    """
    named = _parse(spec)
    if named is None:
        return None
    if named.protocol == "anthropic":
        from recollect.models.llm.anthropic import ANTHROPIC, AnthropicLlm

        return AnthropicLlm(named.url or ANTHROPIC, named.model, **options)
    from recollect.models.llm.openai import OPENAI, OpenAiLlm

    return OpenAiLlm(named.url or OPENAI, named.model, **options)


def llm_for(wanted: str | Llm | None) -> Llm | None:
    """The model wanted, or that of the variable `RECOLLECT_LLM`, or none. It is opened when it is first used."""
    spec = os.environ.get("RECOLLECT_LLM", "") or "none" if wanted is None else wanted
    if not isinstance(spec, str):
        return spec
    named = _parse(spec)
    return None if named is None else _Later(spec, named.model)


class _Later:
    """A model that is opened when it is first asked."""

    def __init__(self, spec: str, name: str) -> None:
        self._spec = spec
        self._name = name
        self._opened: dict[str, Llm] = {}

    def __repr__(self) -> str:
        return f"<Llm {self._name}>"

    @property
    def name(self) -> str:
        return self._name

    def complete(self, messages: Sequence[Message], *, max_tokens: int = 1024, temperature: float = 0.0) -> str:
        return self._llm.complete(messages, max_tokens=max_tokens, temperature=temperature)

    def stream(self, messages: Sequence[Message], *, max_tokens: int = 1024, temperature: float = 0.0) -> Iterator[str]:
        return self._llm.stream(messages, max_tokens=max_tokens, temperature=temperature)

    def close(self) -> None:
        for llm in self._opened.values():
            llm.close()

    @property
    def _llm(self) -> Llm:
        if not self._opened:
            llm = open_llm(self._spec)
            assert llm is not None
            # Of two threads that open it at once, one wins, and no lock is left held by a thread that a fork loses.
            self._opened.setdefault("llm", llm)
        return self._opened["llm"]


def _parse(spec: str) -> _Named | None:
    if spec == "none":
        return None
    kind, _, rest = spec.partition(":")
    place, _, model = spec.partition("#")
    if kind in ("openai", "anthropic"):
        named = _Named(kind, "", rest)
    elif kind in ("anthropic+https", "anthropic+http"):
        named = _Named("anthropic", place.removeprefix("anthropic+"), model)
    elif kind in ("https", "http"):
        named = _Named("openai", place, model)
    else:
        named = _Named("", "", "")
    tidy = spec.isprintable() and " " not in spec and not named.model.startswith("//")
    if not tidy or not 0 < len(named.model) <= LONGEST_NAME or (named.url and not _is_url(named.url)):
        # The value is not quoted: it may be a key, or contain a password.
        raise InputError("llm", f"must be {_FORMS}")
    return named


def _is_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return False
