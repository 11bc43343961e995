"""Passages of a document that look like secrets: they are masked, and the rest of the document is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from recollect.policies.secrets import Screen, find

if TYPE_CHECKING:
    from recollect.documents.blocks import TextBlock

MASK = "[left out: it looks like a secret]"
_KEY_BEGINS, _KEY_ENDS = ("-----BEGIN ", "PRIVATE KEY"), "-----END "


class Masked(NamedTuple):
    blocks: list[TextBlock]
    left_out: list[str]
    """Where each was and which rule it broke: `line 7: password`. Nothing of what was there."""
    rule: str
    """The first rule that was broken; empty if none was."""
    rest: bool
    """Whether anything is left of the document."""


def mask(blocks: Sequence[TextBlock], rules: Screen, by_line: bool) -> Masked:
    """The document without its secrets. `by_line` where a block's place is the number of its first line."""
    masked: list[TextBlock] = []
    left_out: list[str] = []
    first_rule, rest, in_key = "", False, False
    for block in blocks:
        rule = find(block.text, rules) or ("private-key" if in_key else None)
        if rule is None:
            masked.append(block)
            rest = rest or (bool(block.text.strip()) and block.level == 0)
            continue
        first_rule = first_rule or rule
        text, places = _masked_lines(block, rules, by_line, in_key)
        in_key = _goes_on(block.text, in_key)
        rest = rest or bool(text.replace(MASK, "").strip())
        left_out += places
        masked.append(block._replace(text=text))
    return Masked(masked, left_out, first_rule, rest)


def _goes_on(text: str, in_key: bool) -> bool:
    """Whether a private key that began in this block or before it has not ended: an empty line may part it."""
    begins = text.rfind(_KEY_BEGINS[0])
    if begins >= 0 and _KEY_BEGINS[1] in text[begins:]:
        return _KEY_ENDS not in text[begins:]
    return in_key and _KEY_ENDS not in text


def _masked_lines(block: TextBlock, rules: Screen, by_line: bool, in_key: bool) -> tuple[str, list[str]]:
    lines = block.text.split("\n")
    broken = {number: rule for number, line in enumerate(lines) if (rule := find(line, rules))}
    whole = in_key or any(rule.endswith("private-key") for rule in broken.values())
    text = "\n".join(MASK if number in broken else line for number, line in enumerate(lines))
    if whole or not broken or find(text, rules):
        # A secret that spans several lines is masked as a whole.
        rule = next(iter(broken.values()), None) or find(block.text, rules) or "private-key"
        return MASK, [f"{_place(block, min(broken, default=0), by_line)}: {rule}"]
    return text, [f"{_place(block, number, by_line)}: {rule}" for number, rule in broken.items()]


def _place(block: TextBlock, line: int, by_line: bool) -> str:
    return f"line {int(block.at.removeprefix('line ')) + line}" if by_line else block.at
