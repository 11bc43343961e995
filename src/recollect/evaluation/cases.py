"""Cases of one's own: a file of questions with what must be found, asked of a memory as it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from recollect.facets.cases import Case, checked
from recollect.memory import Memory
from recollect.recall.hits import Hit
from recollect.values.errors import InputError


class Outcome(msgspec.Struct, frozen=True):
    """What a question brought up."""

    question: str
    passed: bool
    found: dict[str, int]
    """What was expected and is there, with its place."""
    missing: dict[str, str]
    """What was expected and is not, with why."""
    hits: int


def load(path: str) -> list[Case]:
    """JSONL, a case a line, or one JSON list. InputError names the line that is none."""
    data = Path(path).read_bytes()
    if data.lstrip().startswith(b"["):
        return [_decoded(msgspec.json.encode(case), at) for at, case in enumerate(_list(data), 1)]
    cases = [_decoded(line, at) for at, line in enumerate(data.splitlines(), 1) if line.strip()]
    if not cases:
        raise InputError("file", f"{path} has no cases")
    return cases


def _list(data: bytes) -> list[object]:
    try:
        return msgspec.json.decode(data, type=list[object])
    except RecursionError:
        raise InputError("file", "is nested too deeply") from None
    except msgspec.DecodeError as error:
        raise InputError("file", f"is not JSON: {error}") from None


def _decoded(line: bytes, at: int) -> Case:
    try:
        return checked(msgspec.json.decode(line, type=Case))
    except RecursionError:
        raise InputError("file", f"case {at} is nested too deeply") from None
    except (msgspec.DecodeError, InputError) as error:
        raise InputError("file", f"case {at} is none: {error}") from None


def dump(cases: Iterable[Case]) -> bytes:
    """As `load` reads it."""
    return b"".join(msgspec.json.encode(case) + b"\n" for case in cases)


def run(memory: Memory, cases: Sequence[Case]) -> list[Outcome]:
    """Ask each of them. Nothing counts as retrieved."""
    return [_ask_case(memory, case) for case in cases]


def _ask_case(memory: Memory, case: Case) -> Outcome:
    hits = memory.recall(case.question, limit=case.limit, touch=False)
    places = {hit.memory.id: at for at, hit in enumerate(hits, 1)}
    ranks: dict[str, int] = {}
    missing: dict[str, str] = {}
    for ident in case.ids:
        current = places.get(ident) or places.get(memory.diagnose(ident).current or "")
        if current:
            ranks[ident] = current
        else:
            absence = memory.recall(case.question, limit=case.limit, touch=False, why_not=ident).absence
            missing[ident] = absence.reason if absence else "it was not recalled"
    for text in case.texts:
        if at := _with(hits, text):
            ranks[text] = at
        else:
            missing[text] = "none that was recalled has this text"
    return Outcome(case.question, not missing, ranks, missing, len(hits))


def _with(hits: Sequence[Hit], text: str) -> int | None:
    folded = text.casefold()
    return next((at for at, hit in enumerate(hits, 1) if folded in hit.memory.text.casefold()), None)
