"""A tokenizer.json, of whatever kind, as something that turns text into token ids."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import msgspec

from recollect.models.embedders.wordpiece import WordPiece, pad_id, supports
from recollect.values.errors import ModelError


class Tokenizer(Protocol):
    pad_id: int

    def encode(self, text: str) -> list[int]: ...


def load_tokenizer(path: Path, max_tokens: int) -> Tokenizer:
    """Our own for BERT's WordPiece; for any other kind the package that defines the format, where it is installed."""
    try:
        document = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        if supports(document):
            return WordPiece(document, max_tokens)
        padding = pad_id(document)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise ModelError(f"{path}: is not a tokenizer.json ({error}); install the model again") from None
    if find_spec("tokenizers") is None:
        raise ModelError(f"{path}: is not the WordPiece of BERT; for other kinds, run `pip install tokenizers`")
    try:
        return _Foreign(path, max_tokens, padding)
    except Exception as error:  # that package raises nothing narrower
        raise ModelError(f"{path}: is not a tokenizer.json ({error}); install the model again") from None


class _Foreign:
    def __init__(self, path: Path, max_tokens: int, pad_id: int) -> None:
        self._tokenizer = import_module("tokenizers").Tokenizer.from_file(str(path))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_tokens)
        self.pad_id = pad_id

    def encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text.encode("utf-8", "ignore").decode()).ids
