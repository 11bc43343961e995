"""Pasted blocks that are told line by line: code, logs, tracebacks, diffs, queries, dumps, chats, recipes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from recollect.text.late_pattern import LatePattern


class LeftBlock(NamedTuple):
    """What was left out, and why."""

    reason: str
    text: str


class Span(NamedTuple):
    start: int
    end: int
    reason: str
    instead: str = "\n"


_FENCE = LatePattern(r"^[ \t]*(```|~~~)[^\n]*\n.*?(?:^[ \t]*\1[ \t]*$|\Z)", re.M | re.S)
_QUOTED = LatePattern(r"(?:^[ \t]*on [^\n]{6,80} wrote:[ \t]*\n+)?(?:^[ \t]*>(?!>>)[^\n]*(?:\n|\Z))+", re.M | re.I)
_KINDS: tuple[tuple[str, LatePattern], ...] = (
    (
        "a traceback",
        LatePattern(
            r"\s*Traceback \(most|\s+at [\w.$<>/]+\(|\s*File \".*\", line \d+|goroutine \d+|panic: |"
            r"Exception in thread|"
            r"(?:[\w$]+\.)*[A-Z]\w*(?:Error|Exception|Warning|Interrupt)(?::| *$|\.)|Caused by: |\s*\.{3} \d+ more|"
            r"\s*/?\S+\.(?:go|py|rs|cc?|cpp|java|jsx?|tsx?|rb|php|cs|kt|swift):\d+|Segmentation fault"
        ),
    ),
    (
        "a log",
        LatePattern(
            r"\s*\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d|\[?\d\d:\d\d:\d\d[\],.]|"
            r"\[?(?:ERROR|WARN(?:ING)?|INFO|DEBUG|TRACE|FATAL|CRITICAL)\]?:? |(?:GET|POST|PUT|DELETE|PATCH|HEAD) /|"
            r"npm (?:ERR|WARN)|(?:fatal|error|warning)(?:\[\w+\])?: |\S+ \S+ \S+ \[\d\d/\w{3}/\d{4}|level=\w+ "
        ),
    ),
    ("a diff", LatePattern(r"diff --git |index [0-9a-f]{5,}\.\.|@@ |(?:---|\+\+\+) [ab]?/")),
    (
        "a query",
        LatePattern(
            r"\s*(?:SELECT\b.*\bFROM|INSERT INTO|UPDATE \w+ SET|DELETE FROM|CREATE (?:TABLE|INDEX|VIEW)|ALTER TABLE|"
            r"DROP TABLE|WITH \w+ AS \()"
        ),
    ),
    (
        "a shell session",
        LatePattern(
            r"\s*(?:\$|❯|%|root@\S+#|\w+@[\w-]+[:~]\S*\$) \S|(?:[A-Z_]{3,}=\S+ )?(?:sudo|git|docker|kubectl|npm|"
            r"npx|pip|curl|"
            r"ls|cd|ssh|cargo|make|brew|apt|python3?|grep|psql|terraform|helm) [^.!?]*(?: --?\w|&&| \| )"
        ),
    ),
    (
        "code",
        LatePattern(
            r"\s*(?:def \w+\(|class \w+.*:\s*$|import [\w.]+(?: as \w+)?\s*$|from [\w.]+ import |#include|"
            r"return\b.*[;)]\s*$|"
            r"(?:const|let|var|val|auto|int|char|float|double|string|bool) \w+ ?(?::[^=]+)?=|(?:public|private|"
            r"protected|static|export|async|"
            r"fn|func|function|fun) \w+|(?:if|for|while|switch|else if) ?\(.*\) ?\{?|for .+ in .+[:;]|while .+:$|"
            r"if .+:$|@\w+\s*$|"
            r"[\w.$]+ ?(?:=|:=|\+=|<-) ?(?![A-Za-z][\w' ]*(?:$|,| [a-z])|\d+ [a-z]+ [a-z])(?:[\w.\"'\[({&$*-])|"
            r"[\w.$]+ ?(?::=|\+=|<-) ?\w|[\w$]*[._$][\w.$]* ?= ?\w|[\w.$]+=[\w.]+\s*$|assert |print\(|"
            r"console\.log\(|</?\w+[^>]*>|\}|\{|"
            r"<\?php|//)"
            r"|.*(?:[;{]\s*$|\) ?=> ?|\bsuper\(|__\w+__)|\s*[\w.]+\([^)]*\);?\s*$"
        ),
    ),
    ("a dump of data", LatePattern(r"\s*[\[\]{}],?\s*$|\s*\"[\w.-]+\"\s*: |\s*\{.*:.*\},?\s*$|"
        r"\s*<\w+>.*</\w+>\s*$|---\s*$")),
    ("a table", LatePattern(r"\S+(?: {2,}|\t)\S+(?: {2,}|\t)\S|\|.*\|\s*$")),
    (
        "a chat of others",
        LatePattern(
            r"\s*\[?\d{1,2}:\d\d(?::\d\d)?(?: ?[ap]m)?\]? *(?:- )?[\w .]{1,20}: |(?:assistant|user|system|ai|"
            r"human|chatgpt|bot): ", re.I
        ),
    ),
    (
        "a recipe",
        LatePattern(
            r"\s*[-*•]?\s*(?:\d+(?:[./]\d+)?|[½¼¾⅓]|an?|one|two)\s*(?:cups?|tbsp|tsp|tablespoons?|teaspoons?|g|"
            r"kg|ml|dl|cl|l|oz|"
            r"lbs?|pkg|cloves?|pinch|sticks?) (?:of )?[a-z]", re.I
        ),
    ),
)  # fmt: skip
_RUNS_ON = frozenset(("a traceback", "a log", "a shell session", "a diff", "a recipe", "a query"))
"""Their further lines look like anything, up to an empty line."""
_NEEDS_TWO = frozenset(("a recipe", "a table"))
_COMMENT = LatePattern(r"\s*(?:#|//|--|/\*|\*|<!--)(?!#)")
_PATCHED = LatePattern(r"[-+](?=[^\s])|[-+ ]\s|\\ No newline")
_ADDED = LatePattern(r"\+(?!\d[\d ]{5,})\S")
_TECHNICAL = LatePattern(
    r"\s*-?\s*(?:host|port|ssl\w*|pool|timeout|image|version|replicas|env|path|url|uri|debug|log_?level|user|"
    r"database|db|"
    r"driver|region|namespace|kind|spec|metadata|labels|ports?|volumes|services|command|entrypoint|retries|cache|"
    r"enabled|api_?version|type|status|id|uuid|key|value|schema|table|max_\w+|min_\w+|\w+_\w+)\s*[:=](?: |$)"
)


def fences(text: str) -> Iterator[Span]:
    for fence in _FENCE.finditer(text):
        yield Span(fence.start(), fence.end(), "code")


def quoted_lines(text: str) -> Iterator[Span]:
    for quote in _QUOTED.finditer(text):
        yield Span(quote.start(), quote.end(), "a quotation")


def pasted(text: str) -> Iterator[Span]:
    """Runs of lines of one kind, with the lines between them that belong to them."""
    lines = text.splitlines(keepends=True)
    kinds = _kinds(lines)
    if not any(kinds):
        return
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    at = 0
    while at < len(lines):
        if not (kind := kinds[at]):
            at += 1
            continue
        end = _end(lines, kinds, at)
        while at and kind == "code" and _COMMENT.match(lines[at - 1]):
            at -= 1
        yield Span(starts[at], starts[end], kind)
        at = end


def _kinds(lines: list[str]) -> list[str]:
    kinds = [_kind(line) for line in lines]
    for kind in _NEEDS_TWO:
        if kinds.count(kind) == 1:
            kinds[kinds.index(kind)] = ""
    technical = [at for at, line in enumerate(lines) if _TECHNICAL.match(line)]
    if len(technical) > 2:
        for at in technical:
            kinds[at] = kinds[at] or "a dump of data"
    added = [at for at, line in enumerate(lines) if _ADDED.match(line)]
    if len(added) > 1:
        for at in added:
            kinds[at] = "a diff"
    return kinds


def _kind(line: str) -> str:
    if len(line) > 2 and not line.isspace():
        for kind, pattern in _KINDS:
            if pattern.match(line):
                return kind
    return ""


def _end(lines: list[str], kinds: list[str], at: int) -> int:
    """The number of the line after a block."""
    kind, end = kinds[at], at + 1
    while end < len(lines):
        line = lines[end]
        runs_on = kind in _RUNS_ON and not line.isspace() and not line.rstrip().endswith("?")
        indented = line[:1] in " \t" and not line.isspace()
        more = next((later for later in range(end, min(end + 3, len(lines))) if kinds[later]), None)
        if kinds[end] or runs_on or indented or _COMMENT.match(line) or (kind == "a diff" and _PATCHED.match(line)):
            kind = kinds[end] or kind
            end += 1
        elif more is not None and (line.isspace() or kind in _RUNS_ON):
            end = more
        else:
            break
    return end
