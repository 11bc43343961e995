"""`recollect sources`: the memories of an answer, and the commands that correct or forget them."""

from __future__ import annotations

import json

from support.command_line import called

from recollect import Memory

TABS = "Alice wants tabs in Python code"
ASKED = "which indentation does Alice want?"


def test_an_answer_is_shown_with_the_commands_that_correct_or_forget_its_memories() -> None:
    with Memory("./memory", embedder="none") as memory:
        tabs = memory.remember(TABS)
    assert called("sources").stdout == "No memory went into an answer yet.\n"
    made = json.loads(called("context", ASKED, "--json").stdout)["id"]
    listed = called("sources").stdout
    assert made[-8:] in listed
    assert ASKED in listed
    shown = called("sources", made[-8:]).stdout
    assert ASKED in shown
    assert TABS in shown
    assert f"recollect revise {tabs.id[-8:]}" in shown
    assert f"recollect forget {tabs.id[-8:]}" in shown
    assert called("revise", tabs.id[-8:], "Alice wants spaces").returncode == 0
    with Memory("./memory", embedder="none") as memory:
        newer = memory.list()[0].id
    shown = called("sources", made).stdout
    assert f"was replaced by {newer[-8:]}" in shown
    assert f"recollect forget {newer[-8:]}" in shown
    assert called("forget", newer[-8:], "--yes").returncode == 0
    assert "was forgotten" in called("sources", made).stdout
    assert json.loads(called("sources", made, "--json").stdout)["memories"][0]["state"] == "forgotten"
    assert called("forget", newer, "--erase", "--yes").returncode == 0
    assert ASKED not in called("sources", made).stdout
    missing = called("sources", "0" * 32)
    assert missing.returncode != 0
    assert "is not known" in missing.stderr


def test_the_latest_are_listed_by_number() -> None:
    with Memory("./memory", embedder="none") as memory:
        memory.remember(TABS)
        made = [memory.context([{"role": "user", "content": f"{ASKED} {number}"}]).id for number in range(3)]
    listed = json.loads(called("sources", "--limit", "2", "--json").stdout)
    assert [answer["id"] for answer in listed] == made[:0:-1]
