"""How many tokens a text is for a model.

`estimate` needs nothing, and is mostly within a tenth for English, code and JSON, within a fifth for other languages.
`counter` counts exactly where tiktoken and its table are at hand: `memory.context(messages, count=counter("gpt-4o"))`.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tiktoken import Encoding

Count = Callable[[str], int]

_log = logging.getLogger(__name__)

# The weights are fitted to cl100k_base and o200k_base on conversations, code, JSON, documents and thirty languages.
# A text is told by the classes of its letters alone, so that all is done by translating and counting bytes.

_CONTINUATION = bytes(range(0x80, 0xC0))
_NO_LEAD = bytes(range(0xC0))


def _classes(**members: str | bytes) -> bytes:
    """A table for `translate`: each byte becomes the first letter of its class's name, or a blank."""
    table = bytearray(b" " * 256)
    for name, characters in members.items():
        for byte in characters.encode() if isinstance(characters, str) else characters:
            table[byte] = ord(name[0])
    return bytes(table)


_LOWER = "abcdefghijklmnopqrstuvwxyz"
_MARKS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
_CONTROL = bytes(byte for byte in (*range(0x20), 0x7F) if byte != 0x09)
_ALPHABETS = bytes((*range(0xC3, 0xE0), 0xE1))
"""What letters of other alphabets begin with in UTF-8, Indic ones apart."""
_BY_KIND = _classes(
    lower=_LOWER.encode() + _ALPHABETS, upper=_LOWER.upper(), digit="0123456789", mark=_MARKS, newline=_CONTROL
)
_WORDS = _classes(word=_LOWER.encode() + _LOWER.upper().encode() + _ALPHABETS)
_BREAKS = _classes(mark=_MARKS.encode() + _CONTROL)
_DIGITS = _classes(digit="0123456789")
_ENDINGS = _classes(word=_LOWER.encode() + _LOWER.upper().encode() + _ALPHABETS, vowel="aiou")
"""English words rarely end in these: those that do are often another language's, and more than one token."""

_SCRIPTS: tuple[tuple[bytes, float], ...] = (
    (bytes(range(0xD0, 0xD4)), 0.14),  # Cyrillic
    (bytes(range(0xE4, 0xEA)), 0.82),  # Chinese characters
    (bytes((0xE3,)), 0.68),  # kana
    (bytes(range(0xEA, 0xEE)), 0.76),  # Hangul
    (bytes(range(0xD8, 0xE0)), 0.16),  # Arabic
    (bytes((0xE0,)), 0.4),  # Indic scripts and Thai
    (bytes((0xE2,)), 1.1),  # typographic marks and symbols
    (bytes(range(0xF0, 0x100)), 2.1),  # emoji
    (bytes((0xC2,)), 0.5),  # marks of Latin-1
    (bytes((0xCC, 0xCD)), 1.0),  # combining accents
    (bytes((0xCB, 0xCE, 0xCF)), 0.25),  # Greek
    (bytes(range(0xD4, 0xD8)), 0.30),  # Armenian, Hebrew
    (bytes((0xEE, 0xEF)), 0.6),  # full-width forms
)
"""What a letter adds, by the byte that it begins with."""
_ACCENTED = bytes(range(0xC3, 0xCB))
_ACCENT = 1.6


def estimate(text: str) -> int:
    """About as many tokens as OpenAI's models make of it, rather more than fewer.

    Older and smaller vocabularies take more for scripts other than Latin: cl100k_base (GPT-4) half again for Russian,
    twice for Arabic, three times for Hindi.
    """
    if not text:
        return 0
    letters = text.encode("utf-8", "surrogatepass")
    total = 0.0
    if not text.isascii():
        total = _foreign(letters)
        letters = letters.translate(None, _CONTINUATION)
    letters += b" "
    kinds, words = letters.translate(_BY_KIND), letters.translate(_WORDS)
    total += 0.632 * words.count(b"w ") + 0.324 * words.count(b"www")
    total += 0.6 * letters.translate(_ENDINGS).count(b"v ")
    total += 0.133 * kinds.count(b"u")
    if turns := kinds.count(b"lu"):
        total += 1.55 * turns - 0.8 * kinds.count(b"lllu")  # camelCase is cheaper than random letters
    total += 0.567 * letters.translate(_BREAKS).count(b"m ") + 0.079 * kinds.count(b"m") + 0.698 * kinds.count(b" m")
    total += 0.538 * kinds.count(b"n") + 0.25 * kinds.count(b" " * 16)
    if b"d" in kinds:
        digits = letters.translate(_DIGITS)
        total += 1.384 * digits.count(b"d ") + 1.064 * digits.count(b"dddd") + 0.97 * kinds.count(b" d")
    return int(total + 0.5) or 1


def _foreign(letters: bytes) -> float:
    """What letters beyond ASCII add."""
    begun = letters.translate(None, _NO_LEAD)
    size, total = len(begun), 0.0
    for leads, weight in _SCRIPTS:
        total += weight * (size - len(begun.translate(None, leads)))
    accented = size - len(begun.translate(None, _ACCENTED))
    vietnamese = letters.count(b"\xe1\xba") + letters.count(b"\xe1\xbb")
    # Vietnamese words are short and mostly whole tokens, whatever their accents.
    total += _ACCENT * max(accented - 3 * vietnamese, 0) + 0.1 * vietnamese
    return total + 0.21 * (begun.count(b"\xe1") - vietnamese)


_TABLES = {
    "o200k_base": (
        "fb374d419588a4632f3f557e76b4b70aebbca790",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
    "cl100k_base": (
        "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
}
"""What tiktoken calls the file of each encoding in its cache, and the checksum that it must have."""
_SAME_TABLE = {"o200k_harmony": "o200k_base"}
_CLAUDE = 1.15
"""The one table that Anthropic published, Claude 2's, makes 7 to 14 % more of English and code than o200k_base does."""


def counter(model: str | None = None) -> Count:
    """Counts as the model does, where tiktoken is installed and has its table already; an estimate otherwise.

    Nothing is ever fetched: `tiktoken.get_encoding("o200k_base")` run once with a network fills its cache. Without a
    model, and for models that tiktoken does not know, it is o200k_base. For Claude it is an estimate, as Anthropic
    publishes no table; leave some room in scripts other than Latin.
    """
    name = (model or "").lower()
    if "claude" in name:
        return _claude
    if find_spec("tiktoken") is None:
        _log.info("tokens are estimated: tiktoken is not installed (`pip install tiktoken`)")
        return estimate
    encoding = _encoding_name(name.rpartition("/")[2])
    try:
        loaded = _loaded(encoding)
    except Exception as error:  # whatever a table or a plugin of tiktoken's may raise
        _log.info("tokens are estimated: tiktoken could not load %s (%s)", encoding, error)
        return estimate
    if loaded is None:
        _log.info("tokens are estimated: tiktoken has no table of %s in its cache, and nothing is fetched", encoding)
        return estimate
    return lambda text: len(loaded.encode_ordinary(text))


def _claude(text: str) -> int:
    return int(estimate(text) * _CLAUDE + 0.5)


def _encoding_name(model: str) -> str:
    from tiktoken.model import encoding_name_for_model

    try:
        return encoding_name_for_model(model)
    except KeyError:
        return "o200k_base"


def _loaded(encoding: str) -> Encoding | None:
    """None where loading it would fetch it."""
    from tiktoken.registry import ENCODINGS, get_encoding

    is_available = encoding in ENCODINGS or _cached(_SAME_TABLE.get(encoding, encoding))
    return get_encoding(encoding) if is_available else None


def _cached(encoding: str) -> bool:
    """Whether tiktoken has the table, whole: one that is damaged it would delete and fetch again."""
    default = os.path.join(tempfile.gettempdir(), "data-gym-cache")
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR", default))
    if not folder or encoding not in _TABLES:
        return False
    name, checksum = _TABLES[encoding]
    try:
        return sha256(Path(folder, name).read_bytes()).hexdigest() == checksum
    except OSError:
        return False
