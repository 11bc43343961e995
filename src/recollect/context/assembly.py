"""Sections and conversation put together, cut in a fixed order where they do not fit, and counted as they are sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from recollect.context import answers
from recollect.context.messages import SYSTEM, Message, MessageGroup, result_of, tokens_of
from recollect.context.request import Request
from recollect.context.sections import Context, Item, LeftOut, Report, Section, Share
from recollect.context.summaries import summary_of
from recollect.text.fence import CLOSE, OPEN, inside
from recollect.values.record import new_id

_FRAME_TOKENS = 8
"""What a summary costs besides its own: a message around it, or empty lines before it."""
_TEXT_PARTS = ("text", "input_text")
_SHORT_SUMMARY_TOKENS = 24
"""Memories and knowledge are cut before the summary's text is shorter than this."""


class Summary(msgspec.Struct, frozen=True):
    """Older turns as one message."""

    text: str
    by: str | None
    """What made it: a model's name, or `local`. None for a note that they were left out."""


class Assembly:
    def __init__(self, request: Request, sections: list[Section], left_out: list[LeftOut], prompt: str) -> None:
        talk = request.talk
        self._request = request
        self._anthropic = talk.style == "anthropic"
        self._sections = sections
        self._left_out = left_out
        self._system = list(talk.system)
        self._units = list(talk.units)
        if request.system_messages == "one" and not self._anthropic:
            self._gather()
        if prompt and not any(map(_says_something, self._system)):
            self._system = []
        self._prompt = prompt if not self._system else ""
        self._sizes = {
            id(message): tokens_of(message, request.count) for unit in self._units for message in unit.messages
        }
        self._older: list[MessageGroup] = []
        self._summary: Summary | None = None

    def _gather(self) -> None:
        """All that the system says into the first message."""
        system_messages = [message for unit in self._units if unit.role in SYSTEM for message in unit.messages]
        self._units = [unit for unit in self._units if unit.role not in SYSTEM]
        if all_said := [*self._system, *system_messages]:
            contents = [message.get("content") or "" for message in all_said]
            self._system = [{**all_said[0], "content": _appended(contents[0], contents[1:])}]

    def context(self) -> Context:
        self._fit()
        messages, system = self._sent()
        report = self._report()
        self._audit(report)
        made = Context(
            [
                _copied(message) for message in messages
            ],  # copies, so that changes to them do not reach the caller's messages
            report,
            system,
            tuple(item.id for section in self._sections for item in section.items if item.id is not None),
            "\n\n".join(text for section in self._sections for text in section.texts()),
            new_id(),
        )
        answers.keep(self._request, made, self._sections)
        return made

    # Fitting

    def _tokens(self) -> int:
        """The tokens of the whole request."""
        messages, system = self._sent()
        count, sizes = self._request.count, self._sizes
        total = sum(sizes[id(message)] if id(message) in sizes else tokens_of(message, count) for message in messages)
        return total + (tokens_of({"role": "system", "content": system}, count) if system else 0)

    def _fit(self) -> None:
        """Cut to the budget: older turns first, then the optional items of each section, in order.

        The summary of the turns takes the room that is left. It may be short, but sections are cut before it is empty.
        """
        budget, whole = self._request.budget, self._tokens()
        if budget is None or whole <= budget:
            return
        self._set_older_turns_aside()
        left = self._tokens()
        removed, cut = whole - left, list[LeftOut]()
        # What stays in the system prompt is cut last: it is the same in every call.
        for number, section in sorted(enumerate(self._sections), key=lambda numbered: numbered[1].stays):
            while section.fewest is not None and len(section.items) > section.fewest:
                if left + self._summary_needs() <= budget:
                    break
                section, gone = section.cut(max(section.fewest, len(section.items) - section.step))
                self._sections[number] = section
                before, left = left, self._tokens()
                cut += self._cut(section.name, gone, before - left)
        if self._older:
            self._condense(budget - left)
            removed -= self._tokens() - left
            how = "became one message" if self._summary and self._summary.by else "were left out"
            self._left_out.append(LeftOut("turns", f"{len(self._older)} earlier turns {how}", removed))
        self._left_out += cut

    def _cut(self, section: str, gone: Sequence[Item], removed: int) -> list[LeftOut]:
        """Report entries for items that were cut together; the last one gets the tokens of their frame, too."""
        why, sizes = (
            f"beyond the budget of {self._request.budget:,} tokens",
            [self._request.count(item.text) for item in gone],
        )
        sizes[-1] += removed - sum(sizes)
        return [LeftOut(section, why, size, item.id) for size, item in zip(sizes, gone, strict=True)]

    def _set_older_turns_aside(self) -> None:
        """Take all but the latest turns out of the conversation. System messages among them stay."""
        rules = self._request.view.preset.context.turns
        start = max(len(self._units) - rules.keep, 0)
        asked = self._asked_before(start) if rules.from_question else None
        self._older = [unit for unit in self._units[:start] if unit.role not in SYSTEM and unit is not asked]
        gone = {id(unit) for unit in self._older}
        self._units = [unit for unit in self._units if id(unit) not in gone]

    def _longest_summary(self) -> int:
        """The most tokens of a summary: with its frame, half of the turns it replaces. No summary if 0 or less."""
        count, rules = self._request.count, self._request.view.preset.context.turns
        before = sum(unit.tokens(count) for unit in self._older)
        return min(rules.summary_tokens, before // 2 - count(_summary(len(self._older), "")))

    def _note(self) -> Summary | None:
        """What stands for older turns if there is no room for a summary; None if it is longer than they are."""
        count, note = self._request.count, Summary(f"{len(self._older)} earlier turns were left out.", None)
        # Anthropic's conversations begin with the user, and the note is the user's there.
        needed = self._begins_with_an_answer()
        return note if needed or count(note.text) < sum(unit.tokens(count) for unit in self._older) else None

    def _summary_needs(self) -> int:
        """The fewest tokens, all included, for which sections are cut."""
        if not self._older:
            return 0
        count = self._request.count
        if (longest := self._longest_summary()) > 0:
            return count(_summary(len(self._older), "")) + _FRAME_TOKENS + min(_SHORT_SUMMARY_TOKENS, longest)
        note = self._note()
        return count(note.text) + _FRAME_TOKENS if note else 0

    def _condense(self, room: int) -> None:
        """One message for the older turns that fits: a summary, else a note, else none."""
        text_room = room - self._request.count(_summary(len(self._older), "")) - _FRAME_TOKENS
        tokens, bare = min(self._longest_summary(), text_room), self._tokens()
        note = self._note()
        for summary in (self._summarize(self._older, tokens) if tokens > 0 else None, note):
            self._summary = summary
            if summary is not None and self._tokens() - bare <= room:
                return
        # Nothing fits: either the parts that may never be cut exceed the budget, or only the note is left.
        self._summary = note if room < 0 or self._begins_with_an_answer() else None

    def _begins_with_an_answer(self) -> bool:
        return self._anthropic and bool(self._units) and not self._units[0].asks

    def _asked_before(self, start: int) -> MessageGroup | None:
        """The question before `start`, if the turns that stay would begin with its answer."""
        if start == 0 or start >= len(self._units) or self._units[start].asks:
            return None
        return next((unit for unit in reversed(self._units[:start]) if unit.asks), None)

    def _summarize(self, older: Sequence[MessageGroup], tokens: int) -> Summary | None:
        """A summary of these turns; None if they have no text."""
        lines = [f"{unit.role}: {unit.text}" for unit in older if unit.text]
        made, model = summary_of(self._request, lines, tokens), self._request.view.llm
        by = model.name if model is not None and made.by == "model" else made.by
        return Summary(_summary(len(older), made.text), by) if made.text else None

    # Putting together

    def _sent(self) -> tuple[list[Message], Any]:
        """Messages, and Anthropic's `system`."""
        before, system = self._before()
        late = self._texts(late=True)
        asked = next((unit for unit in reversed(self._units) if unit.asks), None) if late else None
        messages = before
        for unit in self._units:
            if unit is asked:
                messages += self._with(late, unit)
            else:
                messages += unit.messages
        return messages, system

    def _texts(self, late: bool, *where: str) -> list[str]:
        """What sections say, of those that go to one place."""
        return [
            text
            for section in self._sections
            if section.late == late and (not where or section.where in where)
            for text in section.texts()
        ]

    def _before(self) -> tuple[list[Message], Any]:
        """What comes before the conversation: messages for OpenAI's clients, `system` for Anthropic's."""
        joined, apart = self._texts(False, "prompt"), self._texts(False, "block", "each")
        messages = list(self._system)
        summary = [self._summary.text] if self._summary else []
        if self._anthropic:
            system = _appended(messages[0]["content"] if messages else self._prompt, [*joined, *apart])
            # Anthropic's conversations know no system messages.
            return [{"role": "user", "content": text} for text in summary], system
        if self._request.system_messages != "many":
            joined, apart, summary = [*joined, *apart, *summary], [], []
        if not messages and (self._prompt or joined):
            messages = [{"role": "system", "content": self._prompt}]
        if joined:
            messages[-1] = {**messages[-1], "content": _appended(messages[-1].get("content") or "", joined)}
        return [*messages, *({"role": "system", "content": text} for text in [*apart, *summary])], None

    def _with(self, late: Sequence[str], unit: MessageGroup) -> list[Message]:
        """The user's message with the memories before it."""
        first, *rest = unit.messages
        memories = "\n\n".join(late)
        if self._request.place == "before_last":
            return [{"role": "user", "content": memories}, first, *rest]
        return [{**first, "content": _joined(memories, first.get("content") or "")}, *rest]

    def _report(self) -> Report:
        count = self._request.count
        tool_results = [text for unit in self._units for message in unit.messages if (text := result_of(message))]
        results = sum(map(count, tool_results))
        turns = sum(self._sizes[id(message)] for unit in self._units for message in unit.messages) - results
        system = MessageGroup(tuple(self._system)).tokens(count) + count(self._prompt)
        summary = [Share("summary", count(self._summary.text), 1)] if self._summary else []
        shares = [
            Share("system", system, len(self._system) or int(bool(self._prompt))),
            *(Share(section.name, section.tokens(count), len(section.items)) for section in self._sections),
            *summary,
            Share("turns", turns, len(self._units)),
            Share("tool results", results, len(tool_results)),
        ]
        total = self._tokens()
        used = _whole([share for share in shares if share.items], total)
        by = self._summary.by if self._summary else None
        return Report(self._request.budget, total, tuple(used), tuple(self._left_out), by)

    def _audit(self, report: Report) -> None:
        view = self._request.view
        cut = [left_out for left_out in report.left_out if left_out.tokens]
        if view.preset.context.audit and cut:
            sources = list(dict.fromkeys(item.section for item in cut))
            message = f"context truncated: {report.removed:,} tokens removed from {', '.join(sources)}"
            view.log(view.place, "warn", message, tokens=report.removed, sources=sources, budget=report.budget)


def _whole(shares: list[Share], total: int) -> list[Share]:
    """The shares, made to add up: the tokens around texts are counted for the conversation."""
    rest = total - sum(share.tokens for share in shares)
    at = next((number for number, share in enumerate(shares) if share.name == "turns"), 0)
    return [
        msgspec.structs.replace(share, tokens=share.tokens + rest) if number == at else share
        for number, share in enumerate(shares)
    ]


def _says_something(message: Message) -> bool:
    """Whether a system message is more than blanks."""
    content = message.get("content")
    parts = cast("list[Any]", content) if isinstance(content, list | tuple) else [{"type": "text", "text": content}]
    return any(str(part.get("text") or "").strip() or part.get("type") not in _TEXT_PARTS for part in parts)


def _summary(turns: int, text: str) -> str:
    """A summary as text. It is fenced, because users' words must not gain the authority of a system message."""
    return f"Summary of {turns} earlier turns:\n{OPEN}\n{inside(text)}\n{CLOSE}"


def _appended(content: Any, further: Sequence[Any]) -> Any:
    """One content after another, in a new object."""
    for more in further:
        content = _joined(content, more)
    return content


def _joined(first: Any, second: Any) -> Any:
    """Text and text with an empty line between them; parts where either has parts."""
    if isinstance(first, str) and isinstance(second, str):
        return "\n\n".join(filter(None, (first, second)))
    parts = [*(first if not isinstance(first, str) else ()), *(second if not isinstance(second, str) else ())]
    # The Responses API has names of its own for parts.
    kind = "input_text" if any(str(part.get("type")).startswith("input_") for part in parts) else "text"
    texts = [[{"type": kind, "text": side}] if isinstance(side, str) and side else side for side in (first, second)]
    return [part for side in texts for part in side]


def _copied(value: Any) -> Any:
    """A copy of nested lists and dicts; other values are shared."""
    if isinstance(value, Mapping):
        return {key: _copied(item) for key, item in cast("Mapping[Any, Any]", value).items()}
    return [_copied(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value
