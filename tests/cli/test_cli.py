"""The command as a user has it: real processes, pipes, terminals and exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.command_line import ANSI, CLEAN, MODULE, SECRET, recollect, shell, started, store, terminal

from recollect import Memory


def test_two_processes_share_a_memory() -> None:
    stored = started("remember", "Alice prefers tabs", "--kind", "preference")
    recalled = started("recall", "which indentation does Alice want?")

    assert stored.returncode == recalled.returncode == 0
    assert stored.stdout.startswith("Remembered ")
    assert "Alice prefers tabs" in recalled.stdout
    assert "\x1b" not in stored.stdout + recalled.stdout


def test_the_console_script_is_the_same_command() -> None:
    script = Path(sys.executable).with_name("recollect")

    done = subprocess.run([script, "--version"], capture_output=True, encoding="utf-8", timeout=30)

    assert done.stdout == started("--version").stdout


@pytest.mark.parametrize("module", ["msgspec", "click"])
@pytest.mark.parametrize("command", [MODULE, [str(Path(sys.executable).with_name("recollect"))]], ids=["-m", "script"])
def test_an_interrupt_while_modules_are_imported_is_quiet(here: Path, command: list[str], module: str) -> None:
    (here / f"{module}.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")

    done = subprocess.run([*command, "list"], env=CLEAN | {"PYTHONPATH": str(here)}, capture_output=True, timeout=60)

    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


@pytest.mark.parametrize(
    ("line", "codes"),
    [
        ("recollect remember tea >&-", "0"),
        ("recollect list >&-", "0"),
        ("recollect list --json >&- 2>&-", "0"),
        ("recollect remember <&-", "1"),
        ("recollect remember coffee <&- >&- 2>&-", "0"),
        ("recollect show nonsense! 2>&-", "1"),
    ],
)
def test_a_closed_stream_is_like_dev_null(line: str, codes: str) -> None:
    store("water")

    done = shell(f"({line}); echo $? > code")

    assert Path("code").read_text() == f"{codes}\n"
    assert "Traceback" not in done.stderr
    with Memory("./memory") as memory:
        words = {record.text for record in memory.list()}
    assert words == {"water", *(word for word in ("tea", "coffee") if f"remember {word}" in line)}


def test_agents_can_pipe_in_and_read_json() -> None:
    told = json.loads(
        recollect("remember", "--lines", "--json", input="a pot of tea\nthe teas of spring and their harvest\n").stdout
    )
    hits = json.loads(recollect("recall", "tea", "--json", RECOLLECT_STORE="./memory").stdout)

    assert {hit["memory"]["id"] for hit in hits} <= set(told["ids"])
    assert hits[0]["memory"]["content"] == "a pot of tea"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["recall", "x", "--store", "./nowhere"], 1),
        (["show", "nonsense!"], 1),
        (["list", "--workspace", "a\tb"], 1),
        (["remember", f"key {SECRET}"], 1),
        (["remember", "tea", "--store", "/proc/nowhere/memory"], 1),
        (["import", "/"], 1),
        (["export", "/proc/nowhere/out.json"], 1),
        (["recall"], 2),
        (["recal", "x"], 2),
        (["list", "--limit", "many"], 2),
    ],
)
def test_failures_end_in_one_line_and_the_right_code(words: list[str], code: int) -> None:
    Path("memory").mkdir()

    done = recollect(*words, "--json")

    assert done.returncode == code
    error = json.loads(done.stdout)["error"]
    assert set(error) == {"type", "message", "field"}
    assert SECRET not in done.stdout + done.stderr
    if code == 1:
        assert done.stderr == f"recollect: {error['message']}\n"


def test_a_damaged_file_is_one_line() -> None:
    store("tea")
    Path("memory/default/workspaces/default/memory.db").write_bytes(b"not a database at all" * 1000)

    for words in (["recall", "tea"], ["remember", "more"]):
        done = recollect(*words)
        assert done.returncode == 1
        assert done.stderr.startswith("recollect: ")
        assert done.stderr.count("\n") == 1
    diagnosed = recollect("doctor")
    assert diagnosed.returncode == 1
    assert "damaged" in diagnosed.stdout + diagnosed.stderr


@pytest.mark.parametrize("words", ["list -n 100000", "list -n 100000 --json", "export", "recall -n 1000 line"])
def test_a_reader_that_leaves_early_is_no_error(words: str) -> None:
    store(*(f"line {n} {'x' * 200}" for n in range(1000)))

    done = shell(f"recollect {words} | head -c 10")

    assert len(done.stdout) == 10
    assert done.stderr.split() == ["141", "0"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", ["list", "list --json", "export", "--help"])
def test_a_full_disk_behind_the_output_is_one_line(words: str) -> None:
    store("tea")

    done = shell(f"recollect {words} > /dev/full")

    assert done.stderr.splitlines()[0] == "recollect: No space left on device"
    assert done.stderr.splitlines()[1:] == ["1"]


def test_control_c_ends_with_130() -> None:
    store("tea", tags=["drinks"])

    shown, code = terminal("forget", "--tag", "drinks", answer=b"\x03")

    assert code == 130
    assert "Forget 1 memory?" in shown
    assert "tea" in recollect("list").stdout


def test_forgetting_by_condition_asks_first() -> None:
    store("tea", "coffee", tags=["drinks"])

    shown, code = terminal("forget", "--tag", "drinks", answer=b"n\n")
    assert code == 1
    assert "2 memories would be forgotten" in shown
    assert "recollect: nothing was forgotten" in shown
    assert "coffee" in recollect("list").stdout

    shown, code = terminal("forget", "--tag", "drinks", answer=b"y\n")
    assert code == 0
    assert "Forgot 2 memories" in shown
    assert recollect("list").stdout == "Nothing matched.\n"

    shown, code = terminal("forget", "--tag", "drinks")
    assert (shown, code) == ("Nothing matched, so nothing was forgotten.\n", 0)


def test_without_text_a_person_is_told_to_give_some() -> None:
    for words in (["remember"], ["import"]):
        shown, code = terminal(*words)
        assert code == 2
        assert "pipe it in" in shown


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_everything_fits_the_terminal(columns: int) -> None:
    long = "Alice and Bob discussed tabs versus spaces at length " * 4
    cjk = "日本語のメモ: 東京オフィスは来週の月曜日から金曜日まで閉まっています。" * 3
    ident = store(long, cjk, tags=["style"])[0].id

    from rich.cells import cell_len

    for words in (["list"], ["recall", "-x", "Alice"], ["recall", "Alice"]):
        shown, code = terminal(*words, columns=columns)
        assert code == 0
        assert max(cell_len(ANSI.sub("", line)) for line in shown.split("\n")) <= columns
        assert ident[-8:] in shown
    assert ident in terminal("show", ident, columns=columns)[0]


def test_colour_is_for_terminals_that_want_it() -> None:
    store("tea")

    assert "\x1b[" in terminal("list")[0]
    assert "\x1b" not in terminal("list", NO_COLOR="1")[0]
    assert "\x1b" not in recollect("list").stdout
    assert "\x1b[" in recollect("list", FORCE_COLOR="1").stdout


def test_output_that_the_encoding_cannot_say_is_escaped() -> None:
    store("日本")

    done = started("list", PYTHONIOENCODING="latin-1")

    assert done.returncode == 0
    assert "\\u65e5\\u672c" in done.stdout


def test_long_work_shows_its_progress_on_a_terminal_only() -> None:
    lines = "".join(f"line {n}\n" for n in range(3000))
    done = recollect("remember", "--lines", input=lines)

    assert done.stderr == "Started a new memory in ./memory\n"
    assert done.stdout == "Remembered 3,000 memories.\n"


def test_the_demo_tells_its_story_and_leaves_the_users_memory_alone(here: Path) -> None:
    done = recollect("demo", RECOLLECT_STORE=str(here / "mine"), RECOLLECT_AGENT="me", RECOLLECT_PRESET="atlas")

    assert done.returncode == 0
    for line in ('$ recollect recall "which indentation does Alice want?"', "Alice prefers spaces", "intact", "Undid"):
        assert line in done.stdout
    assert list(here.iterdir()) == []


def test_the_demo_sums_up_its_steps_as_json() -> None:
    story = json.loads(recollect("demo", "--json").stdout)

    assert story["ok"] is True
    assert len(story["steps"]) == 10
    assert all(step["ok"] and step["command"] and step["output"] for step in story["steps"])
    assert [step["exit_code"] for step in story["steps"]].count(1) == 1
    assert SECRET not in "".join(step["output"] for step in story["steps"])


@pytest.mark.parametrize("words", [["recall", "tea"], ["recall", "tea", "--json"], ["remember", "tea"], ["--version"]])
def test_a_quick_command_loads_only_what_it_needs(words: list[str]) -> None:
    store("tea")
    unwanted = "rich", "asyncio", "recollect.cli.demo", "recollect.cli.presets", "recollect.cli.care"
    script = f"""
import sys
from recollect.cli import main
try:
    main()
except SystemExit:
    print([name for name in {unwanted!r} if name in sys.modules], file=sys.stderr)
"""

    done = subprocess.run(
        [sys.executable, "-c", script, *words], env=CLEAN, capture_output=True, encoding="utf-8", timeout=30
    )

    assert done.stderr == "[]\n"


DRIVING = "alert \x1b]0;owned\x07 \x1b[2J \x9b31m \u202e red"


@pytest.mark.slow
@pytest.mark.parametrize("colour", ["1", ""])
@pytest.mark.parametrize(
    "words",
    [
        "list",
        "recall alert",
        "recall --explain alert",
        "show ID",
        "history ID",
        "why ID",
        "context alert",
        "audit",
        "forget ID --yes",
        "export",
        "export --json",
        "list --json",
        "context alert --json",
        'call recall {"query":"alert"}',
        "sessions get s ID --store ledger:memory --preset ledger",
        "sessions export s --store ledger:memory --preset ledger",
        "sessions export s --format json --store ledger:memory --preset ledger",
        "sessions export s --json --store ledger:memory --preset ledger",
    ],
)
def test_nothing_that_is_stored_reaches_a_terminal_as_a_control(words: str, colour: str) -> None:
    """Not even in JSON, where most but not all of these characters are escaped in any case."""
    if "ledger:" in words:
        with Memory("ledger:memory", preset="ledger") as memory:
            memory.sessions.create("u", session_id="s")
            ident = memory.sessions.add("s", {"type": "finding", "content": DRIVING})
    else:
        with Memory("./memory") as memory:
            ident = memory.remember(DRIVING, metadata={DRIVING: DRIVING}).id

    shown, code = terminal(*words.replace("ID", ident).split(), **({} if colour else {"NO_COLOR": "1"}))

    assert code == 0, shown
    assert "alert" in shown or words.startswith(("why", "audit", "forget"))
    assert not set(ANSI.sub("", shown)) & set("\x1b\x07\x9b\u202e")
    for sent in ("\x1b]0;", "\x1b[2J", "\x9b"):
        assert sent not in shown
