"""Of hits that say the same, one."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.recall.hits import Hit
from recollect.text.words import normal
from recollect.values.record import Record


def distinct(hits: Sequence[Hit], same_above: float | None) -> list[Hit]:
    """Each text once; and where a cosine is given, of memories that mean the same only the best."""
    seen: set[tuple[str, object]] = set()
    distinct_hits: list[Hit] = []
    for hit in hits:
        key = saying(hit.memory)
        if key not in seen and not _same(hit, distinct_hits, same_above):
            seen.add(key)
            distinct_hits.append(hit)
    return distinct_hits


def saying(record: Record) -> tuple[str, object]:
    """Equal for those of which one is enough: the same words of the same speaker."""
    return normal(record.text), str(record.metadata.get("speaker"))


def _same(hit: Hit, earlier: Sequence[Hit], above: float | None) -> bool:
    vector = hit.memory.floats if above is not None else None
    if above is None or vector is None:
        return False
    import numpy as np

    a = np.array(vector, np.float32)
    for other in earlier:
        if other.memory.embedding_model == hit.memory.embedding_model and (theirs := other.memory.floats) is not None:
            b = np.array(theirs, np.float32)
            if a.shape == b.shape and float(a @ b) > above * float(np.linalg.norm(a) * np.linalg.norm(b)):
                return True
    return False
