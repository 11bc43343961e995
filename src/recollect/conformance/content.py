"""Claims about what a memory may hold: any text, any JSON, any vector."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from recollect.conformance.samples import delete, keep, sample, stored
from recollect.stores.port import Store
from recollect.values.record import Record, pack

TEXTS: dict[str, str] = {
    "letters with marks": "Žluťoučký kůň, naïve façade, cafe\u0301 and café",
    "newlines": "one\r\ntwo\n\n\tthree\rfour\u2028five\u2029six\x85seven",
    "NUL": "before\x00after\x00",
    "control characters": "".join(map(chr, range(32))) + "\x7f",
    "emoji": "👩‍👩‍👧‍👦 🏴󠁧󠁢󠁥󠁮󠁧󠁿 ❤️ 🇨🇿",
    "right to left": "שלום עולם — مرحبا \u202egnirts\u202c end",
    "edges of unicode": "\ud7ff\ue000\uffff\U00010000\U0010ffff",
    "quotes and SQL": 'Robert\'); DROP TABLE memories;-- "x" `y` \\ %s ? :a $1 {}',
    "surrounding blanks": "  \t padded \n ",
    "one letter": "x",
    "a megabyte": "forty-two words of one megabyte 0123456 " * 26214 + "and the rest.   ",
    "a megabyte without a space": "x" * 1_048_576,
}

JSONS: dict[str, Any] = {
    "nested": {"a": {"b": [{"c": [[], {}, [[None]]]}, "d"]}},
    "large whole numbers": [2**53 + 1, 2**63, 2**64 - 1, -(2**63), 10**40],
    "fractions": [0.1, 1e-320, 1.7976931348623157e308, -1.5e-7, 100.0],
    "empty strings": {"": "", "list": ["", {"": ""}]},
    "nothing and truth": [None, True, False, 0, 1],
    "text that needs escapes": {'key "quoted"\n\x00': "\\ \u2028 😀 \x1f"},
    "a number": 42,
    "false": False,
    "a list of texts": ["first", "second"],
}


class ContentClaims:
    """A store changes nothing of what it is given."""

    @pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
    def test_text_survives(self, store: Store, text: str) -> None:
        (record,) = keep(store, sample(text))
        assert _intact(stored(store, record.id), text)

    def test_all_of_it_is_there_for_another_process(self, store: Store, reopen: Callable[[], Store]) -> None:
        records = keep(store, *map(sample, [*TEXTS.values(), *JSONS.values()]))
        with closing(reopen()) as other:
            assert all(_intact(stored(other, record.id), record.content) for record in records)

    @pytest.mark.parametrize("value", JSONS.values(), ids=JSONS)
    def test_json_survives_with_its_types(self, store: Store, value: Any) -> None:
        (record,) = keep(store, sample(value, metadata={"same": value}))
        back = stored(store, record.id)
        assert back is not None
        # repr tells 1, 1.0 and True apart, which == does not.
        assert repr(back.content) == repr(value)
        assert repr(back.metadata) == repr({"same": value})
        assert back.digest() == record.checksum

    @pytest.mark.parametrize("dimensions", [1, 768, 1536, 4096])
    def test_embeddings_are_little_endian_float32(self, store: Store, dimensions: int) -> None:
        vector = [(-1) ** n * (n + 0.5) / dimensions for n in range(dimensions)]
        (record,) = keep(store, sample("embedded", embedding=pack(vector), embedding_model="test"))
        back = stored(store, record.id)
        assert back is not None
        assert back.embedding is not None
        assert len(back.embedding) == 4 * dimensions
        assert back.embedding == pack(vector)
        assert back.floats == record.floats

    def test_a_megabyte_can_be_deleted_again(self, store: Store) -> None:
        (record,) = keep(store, sample(TEXTS["a megabyte"]))
        delete(store, record)
        assert stored(store, record.id) is None


def _intact(back: Record | None, content: Any) -> bool:
    # Not a bare ==: pytest would spend minutes on the difference between two megabytes.
    return back is not None and back.content == content and back.digest() == back.checksum
