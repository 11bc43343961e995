"""WordPiece tokens as BERT has them, from a tokenizer.json.

The classes of characters are those of Unicode 8, by which the vocabularies in use were made, and not those of this
Python: a text has the same tokens, and so the same vector, whichever Python reads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any
from unicodedata import normalize

import msgspec

_REMEMBERED_WORDS = 50_000
_REMEMBERED_LENGTH = 64


class WordPiece:
    """`encode` gives at most `max_tokens` ids, those that begin and end a text included."""

    def __init__(self, document: dict[str, Any], max_tokens: int) -> None:
        model, options = document["model"], document["normalizer"]
        self._vocabulary: dict[str, int] = model["vocab"]
        self._longest = max(map(len, self._vocabulary))
        self._prefix: str = model["continuing_subword_prefix"]
        self._unknown = self._vocabulary[model["unk_token"]]
        self._max_letters: int = model["max_input_chars_per_word"]
        self._before, self._after = _ends(document["post_processor"])
        self._most = max_tokens - len(self._after)
        self.pad_id = pad_id(document)

        classes = _classes()
        self._lower: bool = options["lowercase"]
        self._strip: bool = self._lower if options["strip_accents"] is None else options["strip_accents"]
        self._dropped = re.compile(f"[{classes['dropped']}]+") if options["clean_text"] else None
        self._marks = re.compile(f"[{classes['marks']}]+")
        spaces = classes["spaces"] + ("" if options["clean_text"] else classes["breaks"])
        self._word = re.compile(f"[^{spaces}]+")
        alone = classes["punctuation"] + (classes["ideographs"] if options["handle_chinese_chars"] else "")
        self._piece = re.compile(f"[{alone}]|[^{alone}]+")
        self._added = {token["content"]: int(token["id"]) for token in document["added_tokens"]}
        longest_first = sorted(self._added, key=len, reverse=True)
        self._marker = re.compile(f"({'|'.join(map(re.escape, longest_first)) or '(?!)'})")
        self._words: dict[str, list[int]] = {}

    def encode(self, text: str) -> list[int]:
        ids = self._before.copy()
        words, most = self._words, self._most
        for at, part in enumerate(self._marker.split(text)):
            if at % 2:
                ids.append(self._added[part])
                continue
            for match in self._word.finditer(part):
                word = match.group()
                token_ids = words.get(word)
                ids += self._learn(word) if token_ids is None else token_ids
                if len(ids) >= most:
                    break
            if len(ids) >= most:
                break
        return ids[:most] + self._after

    def _learn(self, word: str) -> list[int]:
        ids = list(islice(self._ids(word), self._most))
        if len(word) <= _REMEMBERED_LENGTH:
            if len(self._words) >= _REMEMBERED_WORDS:
                self._words.clear()
            self._words[word] = ids
        return ids

    def _ids(self, word: str) -> Iterator[int]:
        for piece in self._piece.finditer(self._normalize(word)):
            yield from self._split(piece.group())

    def _normalize(self, word: str) -> str:
        if self._dropped:
            word = self._dropped.sub("", word)
        if self._strip and not word.isascii():
            word = self._marks.sub("", normalize("NFD", word))
        if not self._lower:
            return word
        # Python writes a capital sigma at the end of a word as ς; BERT goes letter by letter.
        return word.replace("Σ", "σ").lower()

    def _split(self, piece: str) -> list[int]:
        """The longest beginning that the vocabulary has, then the longest of what is left, and so on."""
        if len(piece) > self._max_letters:
            return [self._unknown]
        ids: list[int] = []
        start, prefix = 0, ""
        while start < len(piece):
            for end in range(min(len(piece), start + self._longest), start, -1):
                token_id = self._vocabulary.get(prefix + piece[start:end])
                if token_id is not None:
                    ids.append(token_id)
                    start, prefix = end, self._prefix
                    break
            else:
                return [self._unknown]
        return ids


def supports(document: dict[str, Any]) -> bool:
    """Whether a tokenizer.json says what `WordPiece` does."""
    kinds = [_part(document, name).get("type") for name in ("model", "normalizer", "pre_tokenizer")]
    added = document.get("added_tokens", ())
    return (
        kinds == ["WordPiece", "BertNormalizer", "BertPreTokenizer"]
        and _part(document, "post_processor").get("type") in ("TemplateProcessing", "BertProcessing")
        and not any(token["normalized"] or token["single_word"] for token in added)
    )


def pad_id(document: dict[str, Any]) -> int:
    return _part(document, "padding").get("pad_id", 0)


def _part(document: dict[str, Any], name: str) -> dict[str, Any]:
    return document.get(name) or {}


def _ends(processor: dict[str, Any]) -> tuple[list[int], list[int]]:
    """The ids that go before and after every text."""
    if processor["type"] == "BertProcessing":
        return [processor["cls"][1]], [processor["sep"][1]]
    before: list[int] = []
    after: list[int] = []
    ends = before
    for part in processor["single"]:
        if "Sequence" in part:
            ends = after
        else:
            ends += processor["special_tokens"][part["SpecialToken"]["id"]]["ids"]
    return before, after


def _classes() -> dict[str, str]:
    """The insides of regular expressions' brackets, by name."""
    document = Path(__file__).with_name("characters.json").read_bytes()
    names = msgspec.json.decode(document, type=dict[str, list[str]])
    return {name: "".join(map(_range, " ".join(lines).split())) for name, lines in names.items()}


def _range(text: str) -> str:
    first, _, last = text.partition("-")
    return rf"\U{int(first, 16):08x}-\U{int(last or first, 16):08x}"
