"""The tables of one server, for the code that all stores of tables share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from recollect.stores.audit import Entry
from recollect.stores.port import Place
from recollect.stores.postgres.server import Runner
from recollect.stores.postgres.statements import rows_of, workspace_of
from recollect.stores.postgres.transaction import OpenTransaction, ServerTransaction
from recollect.stores.rows import COLUMNS
from recollect.stores.tables.engine import Dialect, Rows, Statement, What
from recollect.stores.touches import Touches
from recollect.values.errors import CorruptionError

# The tenant is a value here, too: Citus sends a statement to one worker only if every part of it says which.
_TAG = """EXISTS (SELECT 1 FROM {s}.tags t WHERE t.tenant = ? AND t.workspace = m.workspace AND t.tag = ?
    AND t.seq = m.seq)"""


def _where(place: Place) -> tuple[str, str]:
    return place.tenant, workspace_of(place)


def _tag_values(tenant: str, tag: str) -> tuple[str, str]:
    return tenant, tag


def _without_nul(text: str) -> str:
    """No column of text takes NUL."""
    return text.replace("\x01", "\x011").replace("\0", "\x010") if "\0" in text or "\x01" in text else text


def _with_nul(text: str) -> str:
    return text.replace("\x010", "\0").replace("\x011", "\x01") if "\x01" in text else text


BESIDE = ("tags", "refs", "derived_from", "metadata", "checksum", "schema_version", "text", "data")
"""Columns of a memory that are in the table `contents`."""
_SELECT = ", ".join(f"c.{name}" if name in BESIDE else f"m.{name}" for name in COLUMNS)
_LEAN = _SELECT.replace("c.text, c.data", "NULL, NULL")
_JOINED = "FROM {t}memories m JOIN {t}contents c USING (tenant, workspace, seq)"

DIALECT = Dialect(
    mark="%s",
    prefix="{s}.",
    here="tenant = %s AND workspace = %s",
    here_columns=("tenant", "workspace"),
    here_values=_where,
    whole=f"SELECT {_SELECT}, e.vector, e.model {_JOINED} LEFT JOIN {{t}}embeddings e USING (tenant, workspace, seq)",
    lean=f"SELECT {_LEAN}, NULL::bytea, NULL {_JOINED}",
    tag=_TAG,
    tag_values=_tag_values,
    meta_has="strpos(meta, ?) > 0",
    message_has="strpos(folded, ?) > 0",
    text_may_have='(strpos(lower(c.text COLLATE "C"), ?) > 0 OR octet_length(c.text) <> m.length)',
    to_text=_without_nul,
    from_text=_with_nul,
    more_of_entry=("folded",),
    lists=True,
)


class PostgresTables:
    dialect = DIALECT

    def __init__(self, server: Runner, touches: Mapping[Place, Touches]) -> None:
        self._runner = server
        self.touches = touches

    def rows(self, place: Place, sql: str, values: Sequence[Any] = ()) -> Rows:
        return self._runner.rows(place.tenant, sql, values, binary=True)

    def writing(self, place: Place) -> ServerTransaction:
        return self._runner.writing((place,), steps=1)

    def run(
        self,
        place: Place,
        statements: Sequence[Statement],
        what: What,
        keys: Iterable[Sequence[Any]],
        wait: bool = True,
    ) -> list[Rows]:
        self._work.changed(place, what, keys)
        if wait:
            return [rows_of(cursor) for cursor in self._work.run(statements)]
        self._work.later(statements)
        return []

    @property
    def _work(self) -> OpenTransaction:
        transaction = self._runner.transaction
        assert transaction is not None
        return transaction

    def last_entry(self, place: Place) -> tuple[int, str]:
        head = self._work.heads[place]
        return head.entries, head.sealed

    def appended(self, place: Place, entry: Entry) -> None:
        transaction = self._work
        transaction.heads[place] = transaction.heads[place]._replace(entries=entry.seq, sealed=entry.hash)

    def next_item(self, place: Place) -> int:
        transaction = self._work
        transaction.heads[place] = transaction.heads[place]._replace(things=transaction.heads[place].things + 1)
        return transaction.heads[place].things

    def unreadable(self, place: Place, what: str, error: Exception) -> CorruptionError:
        return CorruptionError(f"{place}: {what} cannot be read ({error})")
