"""From a conversation to what is sent to the model: sections in order, cut in a fixed order where they do not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import tzinfo
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec

from recollect import validation
from recollect.context.messages import SYSTEM, Message, Unit, parse, result_of
from recollect.context.request import Request
from recollect.context.sections import Context, Drafted, Item, LeftOut, Report, Section, Share
from recollect.context.styles import block, working
from recollect.context.styles import journal as diary
from recollect.context.styles import notebook as notes
from recollect.policies.injection import Block, Diary, NoInjection, Notes, Working
from recollect.text.fence import CLOSE, OPEN, inside
from recollect.text.tokens import Count, estimate
from recollect.view import View

if TYPE_CHECKING:
    from recollect.models.llm import Condensed

_STYLES: dict[type, Callable[[Request, Any], Drafted]] = {
    Block: block.draft,
    Notes: notes.draft,
    Diary: diary.draft,
    Working: working.draft,
    NoInjection: lambda request, style: Drafted(()),
}
"""What makes the sections of each style of injection."""
_SUMMARIES = 64
_LONGEST_QUERY = 2000
"""Letters of a message, from its end, that memories are looked for with."""


class Summary(msgspec.Struct, frozen=True):
    """Older turns as one message."""

    text: str
    by: str


def context(
    view: View,
    messages: Sequence[Message],
    *,
    budget: int | None,
    system: Any,
    query: str | None,
    limit: int | None,
    min_relevance: float | None,
    ids: bool,
    participants: Iterable[str],
    skills: Iterable[str],
    zone: tzinfo,
    count: Count | None,
) -> Context:
    # An empty prompt is none, but says that the form is Anthropic's.
    talk = parse(messages, system or None, None if system is None else "anthropic")
    request = Request(
        view,
        talk,
        validation.query(talk.asked[-_LONGEST_QUERY:] if query is None else query),
        count or estimate,
        None if budget is None else validation.count(budget, "budget", high=100_000_000),
        None if limit is None else validation.count(limit, "limit", high=1000),
        None if min_relevance is None else validation.importance(min_relevance, "min_relevance"),
        validation.flag(ids, "ids"),
        zone,
        tuple(validation.label(name, "participants") for name in participants),
        tuple(validation.label(name, "skills") for name in validation.sequence(skills, "skills")),
        talk.asked if query is None else query,
    )
    style = view.preset.context
    skilled = _skills(request)
    drafted = _STYLES[type(style)](request, style)
    # As they will stand: what is joined to the system prompt comes before everything else.
    sections = [*skilled, *drafted.sections, *_group(request.participants)]
    sections.sort(key=lambda one: one.where != "prompt")
    return _Assembly(request, sections, list(drafted.left_out), drafted.prompt).context()


def _skills(request: Request) -> list[Section]:
    """What the agent can do and how it shall behave, whole whatever the budget."""
    found = request.view.skills.for_agent(request.view.address.agent, request.skills)
    return [Section("skills", tuple(Item(skill.text) for skill in found), where="each")] if found else []


def _group(participants: Sequence[str]) -> list[Section]:
    """Who else takes part."""
    if not participants:
        return []
    lines = ("You are participating in a group conversation.", f"Other participants: {', '.join(participants)}.")
    return [Section("participants", (Item("\n\n".join(lines)),), where="prompt")]


class _Assembly:
    def __init__(self, request: Request, sections: list[Section], left_out: list[LeftOut], prompt: str) -> None:
        self._request = request
        self._talk = request.talk
        self._sections = sections
        self._left_out = left_out
        self._prompt = prompt if not self._talk.system else ""
        self._units = list(self._talk.units)
        self._sizes = {id(unit): unit.tokens(request.count) for unit in self._units}
        self._summary: Summary | None = None

    def context(self) -> Context:
        self._fit()
        before, system = self._before()
        condensed = [self._condensed(self._summary)] if self._summary else []
        messages = [*before, *condensed, *(message for unit in self._units for message in unit.messages)]
        report = self._report()
        self._audit(report)
        return Context(
            [dict(message) for message in messages],
            report,
            system,
            tuple(item.id for section in self._sections for item in section.items if item.id is not None),
            "\n\n".join(text for section in self._sections for text in section.texts()),
        )

    # Fitting

    def _tokens(self) -> int:
        count = self._request.count
        total = sum(self._sizes[id(unit)] for unit in self._units) + self._system_tokens()
        total += sum(section.tokens(count) for section in self._sections)
        return total + (count(self._summary.text) if self._summary else 0)

    def _system_tokens(self) -> int:
        return Unit(self._talk.system).tokens(self._request.count) + self._request.count(self._prompt)

    def _fit(self) -> None:
        """Older turns first, then what each section may do without, in order."""
        budget = self._request.budget
        if budget is None:
            return
        if self._tokens() > budget:
            self._condense(budget)
        for number, section in enumerate(self._sections):
            while section.fewest is not None and len(section.items) > section.fewest and self._tokens() > budget:
                kept = max(section.fewest, len(section.items) - section.step)
                why = f"beyond the budget of {budget:,} tokens"
                section, gone = section.cut(kept)
                self._sections[number] = section
                self._left_out += [LeftOut(section.name, why, self._request.count(item.text), item.id) for item in gone]

    def _condense(self, budget: int) -> None:
        """All but the latest turns into one message. What the system says among them stays."""
        rules = self._request.view.preset.context.turns
        older = [unit for unit in self._units[: self._window(rules.keep)] if unit.role not in SYSTEM]
        if not older:
            return
        request, gone = self._request, {id(unit) for unit in older}
        before = sum(self._sizes[key] for key in gone)
        # At most half as long as what it stands for, its frame included; and no longer than there is room for it,
        # because it says less than a memory.
        frame = request.count(_summary(len(older), ""))
        room = min(rules.summary_tokens, before // 2 - frame, budget - (self._tokens() - before) - frame)
        summary = self._told(older, room) if room > 0 else None
        if summary is None or request.count(summary.text) >= before:
            summary = Summary(f"{len(older)} earlier turns were left out.", "local")
        removed = before - request.count(summary.text)
        if removed <= 0:
            return
        self._summary = summary
        self._units = [unit for unit in self._units if id(unit) not in gone]
        self._left_out.append(LeftOut("turns", f"{len(older)} earlier turns became one message", removed))

    def _window(self, keep: int) -> int:
        """Where the turns begin that stay. Not with an answer to what is gone: then with what was asked, too."""
        start = max(len(self._units) - keep, 0)
        answers = start > 0 and self._units[start].role == "assistant" and self._units[start - 1].role == "user"
        return start - 1 if answers else start

    def _told(self, older: Sequence[Unit], tokens: int) -> Summary | None:
        """What these turns said, unless that is nothing."""
        said = [f"{unit.role}: {unit.text}" for unit in older if unit.text]
        made, model = _short(self._request, said, tokens), self._request.view.llm
        by = model.name if model is not None and made.by == "model" else made.by
        return Summary(_summary(len(older), made.text), by) if made.text else None

    # Putting together

    def _before(self) -> tuple[list[Message], Any]:
        """What comes before the conversation: messages for OpenAI's clients, `system` for Anthropic's."""
        joined = [text for one in self._sections if one.where == "prompt" for text in one.texts()]
        apart = [text for one in self._sections if one.where != "prompt" for text in one.texts()]
        given = list(self._talk.system)
        if self._talk.style == "anthropic":
            return [], _appended(given[0]["content"] if given else self._prompt, [*joined, *apart])
        if not given and (self._prompt or joined):
            given = [{"role": "system", "content": self._prompt}]
        if joined:
            given[-1] = {**given[-1], "content": _appended(given[-1].get("content") or "", joined)}
        return [*given, *({"role": "system", "content": text} for text in apart)], None

    def _condensed(self, summary: Summary) -> Message:
        # Anthropic's conversations know no system messages.
        return {"role": "system" if self._talk.style == "openai" else "user", "content": summary.text}

    def _report(self) -> Report:
        count, talk = self._request.count, self._talk
        given = [text for unit in self._units for one in unit.messages if (text := result_of(one))]
        results = sum(map(count, given))
        turns = sum(self._sizes[id(unit)] for unit in self._units) - results
        summary = [Share("summary", count(self._summary.text), 1)] if self._summary else []
        shares = [
            Share("system", self._system_tokens(), len(talk.system) or int(bool(self._prompt))),
            *(Share(one.name, one.tokens(count), len(one.items)) for one in self._sections),
            *summary,
            Share("turns", turns, len(self._units)),
            Share("tool results", results, len(given)),
        ]
        by = self._summary.by if self._summary else None
        used = [share for share in shares if share.items]
        return Report(self._request.budget, self._tokens(), tuple(used), tuple(self._left_out), by)

    def _audit(self, report: Report) -> None:
        view = self._request.view
        cut = [one for one in report.left_out if one.tokens]
        if view.preset.context.audit and cut:
            sources = list(dict.fromkeys(one.section for one in cut))
            message = f"context truncated: {report.removed:,} tokens removed from {', '.join(sources)}"
            view.log(view.place, "warn", message, tokens=report.removed, sources=sources, budget=report.budget)


def _summary(turns: int, text: str) -> str:
    """Fenced, because what users said must not gain the rank of the message that it is now in."""
    return f"Summary of {turns} earlier turns:\n{OPEN}\n{inside(text)}\n{CLOSE}"


def _short(request: Request, said: Sequence[str], tokens: int) -> Condensed:
    """Once for the same turns: a model may be asked many times while a conversation stands still."""
    from recollect.models.llm import condense

    view, known = request.view, request.view.memo("summaries")
    name = view.llm.name if view.llm is not None else ""
    key = sha256("\0".join([name, str(tokens), *said]).encode("utf-8", "surrogatepass")).digest()
    made = known.get((key, request.count))
    if made is None:
        made = condense(view.llm, said, tokens, count=request.count)
        if not made.problem:
            while len(known) >= _SUMMARIES:
                known.pop(next(iter(known)), None)
            known[key, request.count] = made
    return made


def _appended(content: Any, texts: Sequence[str]) -> Any:
    """Text after text, or a block after blocks, in a new object."""
    if isinstance(content, str):
        return "\n\n".join(filter(None, [content, *texts]))
    return [*content, *({"type": "text", "text": text} for text in texts)]
