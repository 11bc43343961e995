"""What stays of a conversation: the turns are read once more, and what matters of them becomes memories."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

from msgspec.structs import replace

from recollect.facets.conversations.settling import close_tasks, settle
from recollect.facets.requests import heed
from recollect.policies.extraction import Extracted, Said, extract
from recollect.policies.importance import assess
from recollect.policies.personal import mark, marked
from recollect.text.sentences import sentences
from recollect.text.words import stems
from recollect.values.errors import InputError, SecretError
from recollect.values.record import MAX_SOURCES, Record, Tier
from recollect.verbs.remember import remember
from recollect.view import View

TURN = "conversation"
"""The kind of turns."""


def persist(
    view: View, conversation: str, turns: Sequence[Record], start: int = 0, *, ask_model: bool = True
) -> list[Record]:
    """Act on the requests of these turns and store their facts, from the turn `start` on.

    A fact that is stored already is counted, and not stored again.
    """
    heeded = heed(view, [Said(turn.role or "user", mark(turn.text, view.preset.personal)) for turn in turns], start)
    statements = [fact for fact in heeded.facts_left(read(view, heeded.turns, ask_model)) if fact.turn >= start]
    words_of = [frozenset(stems(turn.text)) for turn in turns] if statements else []
    lineage = [{"derived_from": _sources(statement, turns, words_of)} for statement in statements]
    records = keep(view, statements, conversation, lineage)
    close(view, heeded.turns[start:])
    return records


def close(view: View, turns: Sequence[Said]) -> None:
    """Put away the tasks that users say are done in these turns."""
    spoken = [sentence.text for turn in turns if turn.role == "user" for sentence in sentences(turn.text)]
    close_tasks(placed(view, (), None)[0], [sentence for sentence in spoken if len(sentence) <= _LONGEST_DONE])


_LONGEST_DONE = 200
"""Characters of a sentence that says that a task is done."""


def _sources(statement: Extracted, turns: Sequence[Record], words_of: Sequence[Set[str]]) -> list[str]:
    """The turn that a statement was taken from, and every other that has words of it which that turn has not."""
    words = set(stems(statement.text)) - words_of[statement.turn]
    others = [turn.id for turn, its in zip(turns, words_of, strict=True) if words and not words.isdisjoint(its)]
    return [turns[statement.turn].id, *others][:MAX_SOURCES]


def read(view: View, turns: Sequence[Said], ask_model: bool = True) -> list[Extracted]:
    """By rules, and by the view's model, if it has one that may be asked."""
    if view.llm is None or not ask_model:
        return extract(turns)
    from recollect.models.llm.extracting import extracted

    return extracted(view.llm, turns)


def keep(
    view: View, facts: Sequence[Extracted], conversation: str | None, more: Sequence[dict[str, Any]] = ()
) -> list[Record]:
    """Outside the conversation, so that the same told in two of them is one memory. What is refused is left out.

    `more` has further fields for each.
    """
    if not facts:
        return []
    items = [_item(view, fact) | (more[at] if more else {}) for at, fact in enumerate(facts)]
    try:
        return stored(view, items, conversation)
    except InputError:
        if len(items) == 1:
            return []
    records: list[Record] = []
    for at, fact in enumerate(facts):
        records += keep(view, [fact], conversation, more[at : at + 1])
    return records


def stored(view: View, items: Sequence[dict[str, Any]], conversation: str | None) -> list[Record]:
    """Store them, and let them take the place of what they say is so no longer."""
    outside, fields = placed(automatic(view).as_one_change(), items, conversation)
    records = remember(outside, fields, once=True)
    settle(outside, records)
    return records


def automatic(view: View) -> View:
    """The view, as it stores what nobody asked to be stored: the preset may be stricter with personal data then."""
    preset = view.preset
    return replace(view, preset=replace(preset, personal=preset.personal.of_automatic()))


def without_refused(view: View, text: str) -> str:
    """A turn that is stored word for word: without the sentences that hold what is refused automatically.

    What is masked keeps its mark, of which `remember` makes a mask and a tag. Refusals are logged.
    """
    marked_text = mark(text, view.preset.personal)
    rules = automatic(view).preset.personal
    for sentence in sentences(marked_text) if marked_text != text else ():
        refused = [type for type in marked(sentence.text) if rules.action(type, view.preset.secrets) == "refuse"]
        if refused:
            marked_text = marked_text.replace(sentence.text, "", 1)
            view.log_refusal("remember", SecretError("content", refused[0]))
    return marked_text if marked_text == text else marked_text.strip()


def placed(view: View, items: Sequence[dict[str, Any]], conversation: str | None) -> tuple[View, list[dict[str, Any]]]:
    """Outside the conversation, but naming it, and as far to be seen as the preset says of their kinds."""
    tiers = view.preset.conversations.tiers
    address = replace(view.address, conversation=None)
    outside = replace(view, address=address, bound=view.bound - {"conversation"}, acting=view.acting or view)
    named = [conversation] if conversation else None
    return outside, [
        item | {"tier": item.get("tier") or _tier(view, tiers.get(item["kind"])), "references": named} for item in items
    ]


def _tier(view: View, tier: Tier | None) -> Tier:
    return "workspace" if tier is None or (tier == "channel" and view.address.channel is None) else tier


def _item(view: View, fact: Extracted) -> dict[str, Any]:
    return {
        "content": fact.text,
        "kind": fact.kind,
        "role": fact.role,
        "importance": max(fact.importance, assess(fact.text, view.preset.importance).score),
        "source": view.preset.conversations.source,
    }
