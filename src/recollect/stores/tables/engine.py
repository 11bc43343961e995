"""What the tables of a store offer to the code that all stores of tables share, and in what their SQL differs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Protocol

from recollect.stores.audit import Entry
from recollect.stores.port import Place
from recollect.stores.touches import Touches
from recollect.values.errors import CorruptionError

Rows = list[tuple[Any, ...]]
What = Literal["memory", "thing", "audit", "undo", "head", "drop"]
"""What a row is part of. A tenant that is being copied to another server has the changes of each copied once more."""
PAGE = 500
"""Rows that are read at a time: no transaction stays open while a caller works with them."""
FOREVER = 1 << 62


class Statement(NamedTuple):
    sql: str
    values: Any = ()
    prepare: bool | None = None
    """False for one whose plan depends on the values; else it is prepared when it comes often."""


class Dialect(NamedTuple):
    """In what the SQL of stores differs."""

    mark: str
    """What stands for a value."""
    prefix: str
    """What stands before the name of a table."""
    here: str
    """The condition that a row is of the place."""
    here_columns: tuple[str, ...]
    """The columns that it compares, which stand first in every table."""
    here_values: Callable[[Place], tuple[str, ...]]
    """Their values."""
    whole: str
    """SELECT … FROM …: the columns of a memory with its vector and the name of the model, from `memories m`."""
    lean: str
    """The same without content and vector, which are NULL."""
    tag: str
    """The condition that a memory has a tag, or one below it."""
    tag_values: Callable[[str, str], tuple[str, ...]]
    """What the condition is given for a tenant and a tag."""
    meta_has: str
    """The condition that the meta of an audit entry has a text."""
    message_has: str
    """The condition that the message of an audit entry has a text, which is given case-folded."""
    text_may_have: str
    """The condition that a memory's text has a case-folded text, or has letters that SQL folds in other ways."""
    more_of_entry: tuple[str, ...] = ()
    """Columns of an audit entry that other stores do without."""
    to_text: Callable[[str], str] = str
    """A text as a column takes it, and back."""
    from_text: Callable[[str], str] = str
    lists: bool = False
    """Whether one value can be a list."""

    @property
    def most_values(self) -> int:
        """How many values one statement may compare with."""
        return 1 << 30 if self.lists else 400

    def among(self, column: str, values: Sequence[Any]) -> str:
        """The condition that a column has one of these values."""
        return f"{column} = ANY(?)" if self.lists else f"{column} IN ({', '.join('?' * len(values))})"

    def among_values(self, values: Sequence[Any]) -> Sequence[Any]:
        return (list(values),) if self.lists else values


@lru_cache(maxsize=1024)
def rendered(dialect: Dialect, template: str) -> str:
    """A statement in the SQL of a store: `?` is a value, `{t}` stands before a table, `{here}` is the place.

    `{here_m}` and `{here_o}` are the place of the rows of a table that is called `m` or `o`.
    """
    for name in ("m", "o"):
        if f"{{here_{name}}}" in template:
            here = dialect.here
            for column in dialect.here_columns:
                here = here.replace(f"{column} =", f"{name}.{column} =")
            template = template.replace(f"{{here_{name}}}", here)
    keys = "".join(f"{column}, " for column in dialect.here_columns)
    sql = template.replace("{here}", dialect.here).replace("{here_columns}", keys)
    return sql.replace("{t}", dialect.prefix).replace("?", dialect.mark)


@lru_cache(maxsize=256)
def insert(dialect: Dialect, table: str, columns: tuple[str, ...], end: str = "", rows: int = 1) -> str:
    names = (*dialect.here_columns, *columns)
    row = f"({', '.join('?' * len(names))})"
    sql = f"INSERT INTO {{t}}{table} ({', '.join(names)}) VALUES {', '.join([row] * rows)}{end}"
    return rendered(dialect, sql)


class Tables(Protocol):
    """All calls join the transaction of this thread, where there is one."""

    @property
    def dialect(self) -> Dialect: ...

    @property
    def touches(self) -> Mapping[Place, Touches]:
        """Retrievals that are counted but not written yet, by place."""
        ...

    def rows(self, place: Place, sql: str, values: Sequence[Any] = ()) -> Rows:
        """No rows where nothing was ever stored."""
        ...

    def writing(self, place: Place) -> AbstractContextManager[object]:
        """The transaction of a place, which is made where nothing was ever stored."""
        ...

    def run(
        self,
        place: Place,
        statements: Sequence[Statement],
        what: What,
        keys: Iterable[Sequence[Any]],
        wait: bool = True,
    ) -> list[Rows]:
        """Change rows, in a transaction. `keys` are those of the rows. Without `wait` there is no answer."""
        ...

    def last_entry(self, place: Place) -> tuple[int, str]:
        """In a transaction: the number of the last audit entry that was ever appended, and its hash."""
        ...

    def appended(self, place: Place, entry: Entry) -> None:
        """In a transaction: this entry is the last one now."""
        ...

    def next_item(self, place: Place) -> int | None:
        """In a transaction: the number of a new thing on a shelf; None where the table counts by itself."""
        ...

    def unreadable(self, place: Place, what: str, error: Exception) -> CorruptionError:
        """What a caller is told of a row that is not as it was written."""
        ...


def rows_in(tables: Tables, place: Place, template: str, values: Sequence[Any] = ()) -> Rows:
    """The rows of a question whose first values are those of the place."""
    dialect = tables.dialect
    return tables.rows(place, rendered(dialect, template), (*dialect.here_values(place), *values))
