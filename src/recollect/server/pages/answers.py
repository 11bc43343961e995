"""Answers: which memories were put before the model for each, with what to do about a wrong one."""

from __future__ import annotations

from typing import Any

from recollect.server.pages.site import Visit, page
from recollect.values.errors import InputError, NotFoundError

_SIZE = 50


@page("/answers", "Answers", template="answers.html", nav="Answers")
def answers(visit: Visit) -> dict[str, Any]:
    rules = visit.memory.preset.context
    after = visit.query("after")
    data: dict[str, Any] = {"after": after, "keep": rules.keep, "days": rules.keep_days, "next": None, "problem": ""}
    try:
        listed = visit.memory.answers(limit=_SIZE + 1, after=after or None)
    except (InputError, NotFoundError) as error:
        return {**data, "answers": [], "problem": str(error)}
    following = listed[_SIZE - 1].id if len(listed) > _SIZE else None
    return {**data, "answers": listed[:_SIZE], "next": following}


@page("/answers/{id}", "Sources of an answer", template="answer.html")
def answer(visit: Visit) -> dict[str, Any]:
    return {"answer": visit.memory.sources(visit.parts["id"]), "may_change": visit.caller.may("member")}
