"""The verb `about`: all that names somebody or something, under any of its names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recollect.recall.hits import Hits
from recollect.recall.question import Question
from recollect.recall.run import RecallRun
from recollect.values import validation
from recollect.values.errors import InputError
from recollect.view import View

_LONGEST = 200


def about(view: View, name: str, conditions: Mapping[str, Any], *, limit: int, touch: bool) -> Hits:
    name = " ".join(validation.query(name, "name").replace('"', " ").split())
    if not name or len(name) > _LONGEST:
        raise InputError("name", f"must be 1 to {_LONGEST} characters")
    limit = validation.count(limit, "limit", high=1000)
    where = view.narrowed("live", conditions)
    hits = RecallRun(view, Question(f'"{name}"', [where], limit, min_relevance=0.0, exact=True, names=True)).hits()
    if touch:
        view.touch([hit.memory for hit in hits])
    return hits
