"""Columns without what is gone: no id, name or tag of a deleted memory may get into a file."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.stores.resident.codes import Ids
from recollect.stores.resident.columns import CODED, ColumnsCopy


def compacted(copied: ColumnsCopy) -> ColumnsCopy:
    """The living memories only, moved together, and the values that they have. The rows of vectors stay as they are."""
    data = dict(copied.data)
    alive = data["alive"]
    ids, conversations = copied.ids, copied.conversations
    if not alive.all():
        moved = np.cumsum(alive, dtype=np.int32) - np.int32(1)
        data = {name: column[alive] for name, column in data.items()}
        for step in ("before", "after"):
            data[step] = np.where(data[step] < 0, np.int32(-1), moved[data[step]])
        numbers, firsts, which = np.unique(data["conversation"], return_index=True, return_inverse=True)
        data["conversation"] = firsts.astype(np.int32)[which]
        renumbered = dict(zip(numbers.tolist(), firsts.tolist(), strict=True))
        conversations = {name: renumbered[old] for name, old in conversations.items() if old in renumbered}
        conversations = dict(sorted(conversations.items(), key=lambda item: item[1]))
        ids = Ids()
        ids.extend(copied.ids[at] for at in np.flatnonzero(alive).tolist())
    values = dict(copied.values)
    for name in CODED:
        data[name], values[name] = _used(data[name], values[name], always=name == "superseded_by")
    return ColumnsCopy(data, ids, values, conversations, copied.vectors)


def _used(column: NDArray[np.int32], values: list[Any], always: bool) -> tuple[NDArray[np.int32], list[Any]]:
    """A column of codes without those that none has; the first code stays where it must `always` be there."""
    used = np.bincount(column, minlength=len(values)) > 0
    used[:1] |= always
    if used.all():
        return column, values
    again = (np.cumsum(used) - 1).astype(np.int32)
    return again[column], [value for value, is_used in zip(values, used.tolist(), strict=True) if is_used]
