"""Every command, in this process: quick, and on a real folder."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
from click.testing import CliRunner, Result

from recollect import Memory, Record
from recollect.cli.app import cli
from recollect.facets.proposals import propose
from recollect.presets import load, names

FIVE = ("store", "preset", "tenant", "workspace", "agent")
SECRET = "AKIA" + "Z7QX4MPL2RWT9KDN"

Run = Callable[..., Result]


def leaves(command: click.Command = cli, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from leaves(found, (*path, name))
    else:
        yield path, command


LEAVES = dict(leaves())


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("FORCE_COLOR", "NO_COLOR", "COLUMNS", *(f"RECOLLECT_{name.upper()}" for name in FIVE)):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def run() -> Run:
    def run(*words: str, input: str | bytes | None = None, code: int = 0, env: dict[str, str] | None = None) -> Result:
        result = CliRunner().invoke(cli, words, input=input, env=env)
        assert result.exit_code == code, (words, result.stdout, result.stderr, result.exception)
        return result

    return run


@pytest.fixture
def stored() -> list[Record]:
    with Memory("./memory") as memory:
        return [
            memory.remember("Alice prefers tabs", kind="preference", tags=["style"]),
            memory.remember("We decided to deploy on Fridays", tags=["ops.deploy"]),
            memory.remember({"server": {"name": "pelican", "ports": [80, 443]}}, source="inventory"),
        ]


def get(ident: str) -> Record:
    with Memory("./memory") as memory:
        return memory.get(ident)


# What all commands have in common


def test_every_command_has_help_with_an_example(run: Run) -> None:
    for path, command in LEAVES.items():
        shown = run(*path, "--help").stdout
        example = shown.partition("Example:")[2]

        assert command.get_short_help_str(), path
        assert example.startswith("\n    recollect " + " ".join(path)) or f"recollect {path[0]}" in example, path


@pytest.mark.parametrize(
    "group", ["audit", "cases", "eval", "knowledge", "ledger", "models", "presets", "scratchpad", "tools", "workflows"]
)
def test_every_group_has_help_with_an_example(run: Run, group: str) -> None:
    assert f"Example:\n    recollect {group}" in run(group, "--help").stdout


def test_every_command_takes_the_shared_options() -> None:
    for path, command in LEAVES.items():
        options = {option: param for param in command.params for option in param.opts}

        assert "--json" in options, path
        for name in (*FIVE, "account", "channel", "conversation"):
            assert f"--{name}" in options, path
            assert options[f"--{name}"].envvar == f"RECOLLECT_{name.upper()}", (path, name)


def test_every_command_has_its_line_in_the_help(run: Run) -> None:
    shown = run("help", "--all").stdout

    assert all(f"\n  {path[0]}" in shown for path in LEAVES)
    assert "..." not in shown.partition("Options:")[2]


JSON: dict[tuple[str, ...], tuple[str, ...]] = {
    ("init",): (),
    ("remember",): ("something new",),
    ("recall",): ("tabs",),
    ("list",): (),
    ("show",): ("0",),
    ("diagnose",): ("0",),
    ("context",): ("tabs",),
    ("sources",): (),
    ("journal", "add"): ("something new",),
    ("journal", "list"): (),
    ("journal", "prompt"): (),
    ("journal", "consolidate"): (),
    ("revise",): ("0", "something else"),
    ("history",): ("0",),
    ("orient",): ("tabs",),
    ("consult",): ("tabs",),
    ("query",): ("tabs",),
    ("scratchpad", "write"): ("plan", "tests first", "--conversation", "talk"),
    ("scratchpad", "read"): ("plan", "--conversation", "talk"),
    ("scratchpad", "list"): ("--conversation", "talk"),
    ("scratchpad", "clear"): ("--conversation", "talk"),
    ("about",): ("Alice",),
    ("profile",): (),
    ("aliases", "save"): ("PostgreSQL", "pg"),
    ("aliases", "list"): (),
    ("aliases", "remove"): ("bird", "--yes"),
    ("proposals", "list"): (),
    ("proposals", "confirm"): ("PROPOSAL", "--yes"),
    ("proposals", "dismiss"): ("PROPOSAL",),
    ("cases", "save"): ("what does Alice prefer?", "--text", "tabs"),
    ("cases", "list"): (),
    ("cases", "remove"): ("what does Alice prefer?", "--yes"),
    ("forget",): ("0",),
    ("undo",): (),
    ("archive",): ("0",),
    ("restore",): ("1",),
    ("stats",): (),
    ("doctor",): (),
    ("maintain",): (),
    ("simulate",): (),
    ("compact",): (),
    ("verify",): (),
    ("audit", "search"): (),
    ("audit", "verify"): (),
    ("workspaces", "list"): (),
    ("workspaces", "remove"): ("default", "--yes"),
    ("channels", "list"): (),
    ("channels", "create"): ("ops", "what runs where"),
    ("conversations", "list"): (),
    ("conversations", "start"): ("planning",),
    ("conversations", "show"): ("talk",),
    ("conversations", "say"): ("talk", "tea at four"),
    ("conversations", "end"): ("talk",),
    ("conversations", "archive"): ("talk",),
    ("backup",): ("copy",),
    ("copy",): ("memory", "copy"),
    ("export",): ("out.json",),
    ("import",): ("in.json",),
    ("presets", "list"): (),
    ("presets", "show"): ("atlas",),
    ("models", "list"): (),
    ("models", "path"): (),
    ("help",): (),
    ("completion", "show"): ("--shell", "bash"),
    ("tools", "list"): (),
    ("tools", "call"): ("remember", '{"content": "something new"}'),
}

ELSEWHERE = {
    ("demo",),
    ("embed",),
    ("completion", "install"),
    ("mcp",),
    ("serve",),
    ("ui",),
    ("models", "pull"),
    ("models", "remove"),
}
ELSEWHERE |= {
    path
    for path in LEAVES
    if path[0] in ("db", "eval", "keys", "knowledge", "ledger", "people", "prove", "tenants", "workflows")
}
"""Asked by tests named after them and by test_cli.py, in processes and folders of their own."""


def test_every_command_is_asked_for_json() -> None:
    assert {*JSON} | ELSEWHERE == set(LEAVES)


@pytest.mark.parametrize("path", JSON, ids=" ".join)
def test_every_command_prints_one_json_document(run: Run, stored: list[Record], path: tuple[str, ...]) -> None:
    with Memory("./memory") as memory:
        memory.archive(stored[1].id)
        memory.at(conversation="talk").conversations.start("herons")
        memory.at(conversation="talk").scratchpad.write("plan", "tests first")
        memory.cases.save("what does Alice prefer?", texts=["tabs"])
        memory.aliases.save("owl", "bird")
        memory.context([{"role": "user", "content": "does Alice prefer tabs?"}])
        memory.export("in.json")
        proposal = propose(memory._view, "forget", "forget all of Alice", [stored[0].id, stored[2].id], "")
    words = [stored[int(word)].id if word.isdigit() else word for word in JSON[path]]
    words = [proposal if word == "PROPOSAL" else word for word in words]

    result = run(*path, *words, "--json")

    assert result.stdout.count("\n") == 1
    assert json.loads(result.stdout) not in (None, "")
    assert result.stderr == ""


@pytest.mark.parametrize("words", [["--store", "./x", "--json", "remember", "tea"], ["remember", "tea", "--store=./x"]])
def test_shared_options_may_stand_before_or_after_the_command(run: Run, words: list[str]) -> None:
    run(*words)

    with Memory("./x") as memory:
        assert [record.content for record in memory.list()] == ["tea"]


def test_shared_options_may_stand_before_a_command_of_a_group(run: Run, stored: list[Record]) -> None:
    assert json.loads(run("--json", "audit", "verify").stdout)["ok"] is True
    assert json.loads(run("audit", "--json", "verify").stdout)["ok"] is True


def test_the_later_of_two_options_counts_and_a_variable_counts_least(run: Run) -> None:
    run("--store", "a", "remember", "tea", "--store", "b", env={"RECOLLECT_STORE": "c"})

    assert [name for name in "abc" if Path(name).exists()] == ["b"]


def test_the_address_can_come_from_variables(run: Run) -> None:
    parts = ("tenant", "workspace", "agent", "account", "channel", "conversation")
    env = {f"RECOLLECT_{part.upper()}": f"some-{part}" for part in parts}

    record = json.loads(run("remember", "tea", "--json", env=env | {"RECOLLECT_STORE": "./elsewhere"}).stdout)

    assert record["address"] == {part: f"some-{part}" for part in parts}
    assert Path("elsewhere/some-tenant/workspaces/some-workspace/memory.db").exists()


def test_the_preset_can_come_from_a_variable(run: Run) -> None:
    record = json.loads(run("remember", "tea", "--json", env={"RECOLLECT_PRESET": "atlas"}).stdout)

    assert record["kind"] == "conversation"
    assert record["expires_at"] is not None


def test_an_agent_sees_its_own_and_what_is_shared(run: Run) -> None:
    run("remember", "shared tea")
    run("remember", "atlas tea", "--agent", "atlas")
    run("remember", "borea tea", "--agent", "borea")

    seen = json.loads(run("list", "--agent", "atlas", "--json").stdout)

    assert {record["content"] for record in seen} == {"shared tea", "atlas tea"}


@pytest.mark.parametrize(("typed", "meant"), [("recal", "recall"), ("rember", "remember"), ("LIST", "list")])
def test_a_misspelt_command_gets_a_suggestion(run: Run, typed: str, meant: str) -> None:
    assert f"did you mean '{meant}'?" in run(typed, code=2).stderr


def test_a_command_like_no_other_gets_the_list(run: Run) -> None:
    assert "the commands are init, demo, help, remember" in run("xyzzy", code=2).stderr


def test_the_version(run: Run) -> None:
    from recollect import __version__

    assert run("--version").stdout == f"recollect {__version__}\n"


# Refusals


@pytest.mark.parametrize(
    "words",
    [
        ["recall", "x"],
        ["list"],
        ["show", "abcdef"],
        ["doctor"],
        ["stats"],
        ["export"],
        ["forget", "abcdef"],
        ["undo"],
        ["audit", "verify"],
        ["workspaces", "list"],
    ],
)
def test_a_missing_store_is_an_error_that_says_what_to_do(run: Run, words: list[str]) -> None:
    result = run(*words, code=1)

    assert result.stdout == ""
    assert result.stderr.startswith("recollect: store: there is no memory at ./memory; run `recollect init`")
    assert result.stderr.count("\n") == 1
    assert not Path("memory").exists()


def test_a_file_is_no_store(run: Run) -> None:
    Path("memory").write_text("hello")

    for words in (["list"], ["init"], ["remember", "tea"]):
        assert "./memory is a file" in run(*words, code=1).stderr
    assert Path("memory").read_text() == "hello"


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["list", "--workspace", "a\tb"], "workspace"),
        (["list", "--tenant", ""], "tenant"),
        (["remember", "tea", "--importance", "2"], "importance"),
        (["remember", "tea", "--kind", "No Kind"], "kind"),
        (["remember", "tea", "--expires", "soon"], "expires"),
        (["remember", " "], "content"),
        (["remember", "--content-json", "{"], "content"),
        (["recall", "tea", "--since", "soon"], "since"),
        (["list", "--tag", "no tag"], "tags"),
        (["list", "--preset", "atlass"], "preset"),
        (["show", "abc"], "id"),
        (["show", "../x"], None),
        (["import", "missing.json"], "source"),
    ],
)
def test_a_refusal_names_the_field(run: Run, stored: list[Record], words: list[str], field: str | None) -> None:
    result = run(*words, "--json", code=1)

    error = json.loads(result.stdout)["error"]
    assert error["field"] == field
    assert result.stderr == f"recollect: {error['message']}\n"


@pytest.mark.parametrize(
    "words",
    [
        ["recall"],
        ["remember", "x", "--lines"],
        ["remember", "--meta", "novalue", "x"],
        ["list", "--limit", "0"],
        ["list", "--state", "gone"],
        ["forget"],
        ["forget", "abcdef", "--tag", "x"],
        ["nonsense"],
        ["list", "--nonsense"],
    ],
)
def test_wrong_usage_is_exit_code_2(run: Run, stored: list[Record], words: list[str]) -> None:
    assert "Error: " in run(*words, code=2).stderr
    assert "message" in json.loads(run(*words, "--json", code=2).stdout)["error"]


def test_a_secret_is_refused_and_repeated_nowhere(run: Run, stored: list[Record]) -> None:
    result = run("remember", f"the key is {SECRET}", "--json", code=1)

    assert json.loads(result.stdout)["error"]["type"] == "SecretError"
    assert SECRET not in result.output
    assert "remember refused" in run("audit", "search", "refused").stdout


def test_the_doctor_says_what_is_done_with_personal_data_in_a_text(run: Run) -> None:
    text = "my visa is 4111 1111 1111 1111, my pin is 4471 and I am diabetic"
    findings = {
        found["problem"]: found for found in json.loads(run("doctor", "--text", text, "--json").stdout)["findings"]
    }
    assert findings["card"]["advice"] == "kept with a tag; automatically refused"
    assert findings["card"]["examples"] == ["•••• 1111"]
    assert findings["pin"]["advice"].startswith("refused")
    assert findings["health"]["advice"] == "kept with the tag sensitive.health"
    shown = run("doctor", "--text", text).stdout
    assert "4471" not in shown
    assert "kept with a tag" in shown
    assert "No personal data" in run("doctor", "--text", "I like tea").stdout


def test_json_after_the_end_of_options_is_text(run: Run) -> None:
    assert run("remember", "--", "--json", "is", "an", "option").stdout.startswith("Remembered ")
    assert run("show", "--", "nothing", "--json", code=2).stdout == ""


# Ids


def test_an_id_may_be_whole_short_a_beginning_or_a_uuid(run: Run, stored: list[Record]) -> None:
    ident = stored[0].id
    uuid = f"{ident[:8]}-{ident[8:12]}-{ident[12:16]}-{ident[16:20]}-{ident[20:]}".upper()

    # Ids of the same millisecond have the same beginning but for the last digits.
    for typed in (ident, ident[-8:], ident[-8:].upper(), ident[-12:], ident[:31], uuid):
        assert json.loads(run("show", typed, "--json").stdout)["id"] == ident


def test_an_ambiguous_id_lists_the_candidates(run: Run, stored: list[Record]) -> None:
    message = run("show", stored[0].id[:6], code=1).stderr

    assert "is the beginning or end of 3 memories" in message
    assert all(record.id in message for record in stored)


def test_an_unknown_id_is_not_found(run: Run, stored: list[Record]) -> None:
    assert json.loads(run("show", "f" * 32, "--json", code=1).stdout)["error"]["type"] == "NotFoundError"
    assert json.loads(run("show", "ffffffff", "--json", code=1).stdout)["error"]["type"] == "NotFoundError"


def test_tables_show_ids_that_other_commands_take(run: Run, stored: list[Record]) -> None:
    for line in run("list").stdout.splitlines()[1:]:
        assert run("show", line.split()[0])


# Remember


def test_remember_takes_every_field(run: Run, stored: list[Record]) -> None:
    words = ["--kind", "decision", "--importance", "0.9", "--tag", "a", "--tag", "b.c", "--role", "user"]
    words += ["--source", "chat", "--expires", "7d", "--meta", "ticket=42", "--meta", "by=alice=bob"]
    words += ["--ref", stored[0].id[-8:], "--tier", "account"]

    record = msgspec.json.decode(run("remember", "use", "tea", *words, "--json").stdout, type=Record)

    assert (record.content, record.kind, record.importance, record.tags) == ("use tea", "decision", 0.9, ("a", "b.c"))
    assert (record.role, record.source, record.tier) == ("user", "chat", "account")
    assert record.metadata == {"ticket": 42, "by": "alice=bob"}
    assert record.references == (stored[0].id,)
    assert record.expires_at is not None
    assert round((record.expires_at - record.created_at).total_seconds() / 86_400) == 7
    assert get(record.id) == record


def test_remember_says_what_it_stored_and_with_v_why_it_matters(run: Run) -> None:
    shown = run("remember", "We decided to pay $200", "--tag", "money", "-v").stdout

    assert "fact · importance 0.90 · #money" in shown
    assert "0.50 base +0.20 decision +0.20 money" in shown
    assert "as given" in run("remember", "tea", "--importance", "0.1", "-v").stdout


def test_remember_says_when_it_starts_a_new_memory(run: Run) -> None:
    assert "Started a new memory in ./memory" in run("remember", "tea").stderr
    assert run("remember", "tea").stderr == ""


@pytest.mark.parametrize("words", [[], ["-"]])
def test_text_may_come_from_stdin(run: Run, words: list[str]) -> None:
    record = json.loads(run("remember", *words, "--json", input="two\nlines\n\n").stdout)

    assert record["content"] == "two\nlines"


def test_json_content_is_kept_as_json(run: Run) -> None:
    record = json.loads(run("remember", "--content-json", '{"a": [1, null]}', "--json").stdout)

    assert record["content"] == {"a": [1, None]}


def test_lines_are_memories(run: Run) -> None:
    told = json.loads(run("remember", "--lines", "--tag", "bulk", "--json", input="one\n\n  two  \nthree").stdout)

    assert told["stored"] == 3
    assert [get(ident).content for ident in told["ids"]] == ["one", "two", "three"]
    assert get(told["ids"][0]).tags == ("bulk",)


def test_many_lines_are_stored_in_batches(run: Run) -> None:
    assert run("remember", "--lines", input="".join(f"line {n}\n" for n in range(2500))).stdout == (
        "Remembered 2,500 memories.\n"
    )
    assert json.loads(run("stats", "--json").stdout)["total"] == 2500


def test_jsonl_lines_are_fields_and_options_fill_the_gaps(run: Run) -> None:
    lines = '{"content": "one", "kind": "task"}\n{"content": {"two": 2}, "tags": ["own"]}\n'

    told = json.loads(run("remember", "--jsonl", "--kind", "note", "--tag", "bulk", "--json", input=lines).stdout)

    one, two = (get(ident) for ident in told["ids"])
    assert (one.content, one.kind, one.tags) == ("one", "task", ("bulk",))
    assert (two.content, two.kind, two.tags) == ({"two": 2}, "note", ("own",))


@pytest.mark.parametrize(
    ("how", "lines", "problem"),
    [
        ("--lines", f"fine\nkey {SECRET}\n", "line 2: content: text appears to contain a secret"),
        ("--jsonl", '{"content": "fine"}\n[1]\n', "line 2: must be a JSON object"),
        ("--jsonl", '{"content": "fine"}\n\n{"content": "x", "colour": 1}\n', "line 3: colour: is not a field"),
        ("--jsonl", '{"content": "fine"}\n{oops\n', "line 2: is not JSON"),
    ],
)
def test_one_bad_line_and_nothing_is_stored(run: Run, how: str, lines: str, problem: str) -> None:
    assert problem in run("remember", how, input=lines, code=1).stderr
    with Memory("./memory") as memory:
        assert memory.list() == []


def test_text_that_is_not_utf_8_is_refused(run: Run) -> None:
    assert "stdin: is not UTF-8 text" in run("remember", input=b"\xff\xfe", code=1).stderr


# Recall and read


def test_recall_shows_the_best_first(run: Run, stored: list[Record]) -> None:
    shown = run("recall", "which", "indentation", "does", "Alice", "want?").stdout.splitlines()

    assert shown[0].split() == ["score", "id", "made", "memory"]
    assert shown[1].split(None, 4)[1:] == [stored[0].id[-8:], "just", "now", "Alice prefers tabs"]


def test_recall_gives_hits_with_explanations_as_json(run: Run, stored: list[Record]) -> None:
    (hit,) = json.loads(run("recall", "Fridays", "--json").stdout)

    assert hit["memory"]["id"] == stored[1].id
    assert hit["score"] == pytest.approx(sum(part["share"] for part in hit["explanation"]["parts"]))
    assert hit["explanation"]["text"].startswith(f"{hit['score']:.3f} = ")


@pytest.mark.parametrize("preset", names())
def test_every_formula_can_be_explained(run: Run, stored: list[Record], preset: str) -> None:
    shown = run("recall", "-x", "tabs", "--preset", preset).stdout

    assert "Alice prefers tabs" in shown
    parts = load(preset).ranking
    assert "━" in shown or type(parts).__name__ == "Fusion"


def test_explanations_show_how_the_score_adds_up(run: Run, stored: list[Record]) -> None:
    shown = run("recall", "--explain", "tabs").stdout

    assert "  text   1.00 × 4    = 4.000  ━" in shown
    assert "+ alone                0.800  ━" in shown
    assert "speaker" not in shown


def test_recall_says_plainly_that_nothing_matched(run: Run, stored: list[Record]) -> None:
    assert run("recall", "zebra").stdout == "Nothing matched.\n"
    assert json.loads(run("recall", "zebra", "--json").stdout) == []
    assert (
        "There is no workspace shop; the workspaces are: default." in run("recall", "x", "--workspace", "shop").stdout
    )


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["--kind", "preference"], 1),
        (["--kind", "task"], 0),
        (["--tag", "style"], 1),
        (["--since", "1h"], 1),
        (["--until", "1h"], 0),
        (["--since", "2020-01-01", "--until", "2999-01-01"], 1),
        (["--min-importance", "0.9"], 0),
        (["--from-conversation", "c1"], 0),
        (["--limit", "1"], 1),
        (["--tier", "account"], 0),
        (["--source", "chat"], 0),
        (["--role", "user"], 0),
    ],
)
def test_recall_and_list_share_conditions(run: Run, stored: list[Record], words: list[str], found: int) -> None:
    assert len(json.loads(run("recall", "tabs", *words, "--json").stdout)) == found
    limit = [] if "--limit" in words else ["-n", "50"]
    listed = {record["id"] for record in json.loads(run("list", *words, "--json", *limit).stdout)}
    if "--limit" not in words:
        assert (stored[0].id in listed) == bool(found)


def test_a_recall_counts_unless_told_not_to(run: Run, stored: list[Record]) -> None:
    run("recall", "tabs", "--no-touch")
    assert get(stored[0].id).access_count == 0

    run("recall", "tabs")
    assert get(stored[0].id).access_count == 1


def test_list_says_that_there_are_more(run: Run, stored: list[Record]) -> None:
    result = run("list", "-n", "2")

    assert len(result.stdout.splitlines()) == 3
    assert "There are more than these 2" in result.stderr
    assert run("list", "-n", "3").stderr == ""


def test_list_shows_other_states(run: Run, stored: list[Record]) -> None:
    run("archive", stored[0].id)

    assert "Alice" not in run("list").stdout
    assert "archived" in run("list", "--state", "archived").stdout
    assert len(json.loads(run("list", "--state", "all", "--json").stdout)) == 3
    assert json.loads(run("list", "--oldest-first", "--json").stdout)[0]["id"] == stored[1].id


def test_show_tells_everything(run: Run, stored: list[Record]) -> None:
    shown = run("show", stored[2].id[-8:]).stdout

    for fact in (stored[2].id, "server.name: pelican", "source      inventory", "recalled    never", "matches"):
        assert fact in shown


def test_what_is_stored_cannot_drive_the_terminal(run: Run) -> None:
    run("remember", "alert \x1b[31m red", "--source", "x", "--meta", "k=\x1b[2J")

    ident = json.loads(run("list", "--json").stdout)[0]["id"]
    for words in (
        ["list"],
        ["recall", "alert"],
        ["recall", "-x", "alert"],
        ["show", ident],
        ["history", ident],
        ["context", "alert"],
    ):
        shown = run(*words).stdout
        assert "\x1b" not in shown
        assert "alert \\x1b[31m red" in shown


def test_a_context_has_its_memories_where_they_are_wanted(run: Run, stored: list[Record]) -> None:
    made = {
        place: json.loads(run("context", "What does Alice prefer?", "--place", place, "--json").stdout)["messages"]
        for place in ("system", "before_last", "last_user")
    }
    assert {place: len(messages) for place, messages in made.items()} == {
        "system": 2,
        "before_last": 2,
        "last_user": 1,
    }
    assert made["system"][0]["role"] == "system"
    assert "nothing relevant" in run("context", "What does Alice prefer?", "--min-relevance", "1").stdout


# Change


def test_revise_keeps_history(run: Run, stored: list[Record]) -> None:
    new = json.loads(run("revise", stored[0].id[-8:], "Alice", "prefers", "spaces", "--json").stdout)

    assert "Alice prefers spaces" in run("recall", "Alice").stdout
    assert "tabs" not in run("recall", "Alice").stdout
    versions = run("history", new["id"]).stdout.splitlines()
    assert "superseded" in versions[1]
    assert "live" in versions[2]
    why = run("why", stored[0].id).stdout
    assert f"superseded by {new['id']}" in why


def test_revise_can_change_fields_alone_and_read_stdin(run: Run, stored: list[Record]) -> None:
    one = json.loads(run("revise", stored[0].id, "--importance", "0.9", "--tag", "new", "--json").stdout)
    two = json.loads(run("revise", one["id"], "-", "--json", input="from stdin\n").stdout)

    assert (one["content"], one["importance"], one["tags"]) == ("Alice prefers tabs", 0.9, ["new"])
    assert (two["content"], two["importance"], two["tags"]) == ("from stdin", 0.9, ["new"])


def test_forget_gives_a_receipt_and_can_be_undone(run: Run, stored: list[Record]) -> None:
    shown = run("forget", stored[0].id[-8:], "--reason", "outdated").stdout

    assert shown.startswith("Forgot 1 memory: outdated\n")
    assert stored[0].id in shown
    assert run("recall", "tabs").stdout == "Nothing matched.\n"
    assert "is gone (forgot 1 memory: outdated)" in run("why", stored[0].id[-8:]).stdout
    undo = shown.rpartition("recollect ")[2].split()
    assert run(*undo).stdout.startswith("Undid: forgot 1 memory\n")
    assert get(stored[0].id).content == "Alice prefers tabs"


def test_a_suggested_command_works_as_it_is(run: Run) -> None:
    where = ["--store", "my memory", "--agent", "atlas"]
    run("remember", "tea", "--tag", "drinks", *where)

    shown = run("forget", "--tag", "drinks", "--yes", *where).stdout
    words = shlex.split(shown.rpartition("recollect ")[2])

    assert words[2:] == where
    assert run(*words).stdout.startswith("Undid: forgot 1 memory")


def test_forget_counts_earlier_versions(run: Run, stored: list[Record]) -> None:
    new = json.loads(run("revise", stored[0].id, "spaces", "--json").stdout)

    assert "Forgot 2 memories (1 earlier version among them)" in run("forget", new["id"]).stdout


def test_forget_by_condition_without_a_terminal_needs_yes(run: Run, stored: list[Record]) -> None:
    for tag in ("style", "nothing-has-this"):
        refused = run("forget", "--tag", tag, code=1)
        assert "give --yes" in refused.stderr
    assert "Forget 1 memory?" in run("forget", "--tag", "ops", code=1).stderr
    assert get(stored[0].id)

    assert "Forgot 1 memory" in run("forget", "--tag", "style", "--yes").stdout
    assert run("forget", "--tag", "style", "--yes").stdout.startswith("Nothing matched")


@pytest.mark.parametrize(
    ("words", "count"),
    [
        (["--since", "1h"], 3),
        (["--until", "1h"], 0),
        (["--tag", "ops"], 1),
        (["--tag", "ops", "--until", "1h"], 0),
        (["--from-conversation", "c1"], 0),
    ],
)
def test_forget_conditions(run: Run, stored: list[Record], words: list[str], count: int) -> None:
    assert json.loads(run("forget", *words, "--yes", "--json").stdout)["count"] == count


def test_erase_cannot_be_undone(run: Run, stored: list[Record]) -> None:
    assert "this cannot be undone" in run("forget", stored[0].id, "--erase", "--yes").stdout
    assert not any(b"prefers tabs" in path.read_bytes() for path in Path("memory").rglob("*") if path.is_file())


def test_undo_takes_back_the_last_change(run: Run, stored: list[Record]) -> None:
    run("archive", stored[0].id)
    run("undo")

    assert get(stored[0].id).archived_at is None


def test_archive_and_restore(run: Run, stored: list[Record]) -> None:
    idents = [record.id[-8:] for record in stored[:2]]

    assert run("archive", *idents, "--reason", "old").stdout.count("Archived ") == 2
    assert "archived by hand" in run("why", idents[0]).stdout
    assert run("restore", *idents).stdout.count("Restored ") == 2
    assert "can be recalled" in run("why", idents[0]).stdout
    assert "is not archived" in run("restore", idents[0], code=1).stderr


# Move


def test_export_and_import(run: Run, stored: list[Record]) -> None:
    assert run("export", "out.json").stdout == "Exported 3 memories to out.json\n"
    assert run("import", "out.json", "--store", "new").stdout == "Imported 3 memories.\n"
    assert "3 of the file were there already" in run("import", "out.json", "--store", "new").stdout

    piped = run("export", "--json").stdout
    assert len(json.loads(piped)["memories"]) == 3
    assert json.loads(run("import", "-", "--store", "other", "--json", input=piped).stdout) == {
        "added": 3,
        "unchanged": 0,
        "damaged": [],
    }


def test_an_export_that_cannot_be_written_is_one_line(run: Run, stored: list[Record]) -> None:
    message = run("export", "no/such/folder/out.json", code=1).stderr

    assert message.startswith("recollect: ")
    assert message.count("\n") == 1


# Care


def test_init_makes_the_folder_once(run: Run) -> None:
    assert "Made the folder" in run("init").stdout
    assert Path("memory").stat().st_mode & 0o777 == 0o700
    assert run("list").stdout.startswith("Nothing matched. Nothing was stored here yet")
    assert "There is a memory in" in run("init").stdout
    assert json.loads(run("init", "--json").stdout)["created"] is False


def test_stats(run: Run, stored: list[Record]) -> None:
    shown = run("stats").stdout

    assert shown.startswith("3 memories · ")
    assert "preference      1" in shown


def test_doctor_is_content_with_a_good_memory(run: Run, stored: list[Record]) -> None:
    assert run("doctor").stdout == "Looked at 3 memories: everything is fine\n"


def test_doctor_fails_on_errors_only(run: Run, stored: list[Record]) -> None:
    run("remember", "Alice prefers tabs", "--kind", "preference", "--again")
    warned = run("doctor").stdout
    assert "1 warning" in warned
    assert "duplicates  1" in warned

    Path("loose.toml").write_text("[secrets]\nenabled = false\n")
    secret = json.loads(run("remember", f"key {SECRET}", "--preset", "./loose.toml", "--json").stdout)
    found = run("doctor", code=1).stdout
    assert "1 error, 1 warning" in found
    assert secret["id"][-8:] in found
    assert json.loads(run("doctor", "--json", code=1).stdout)["ok"] is False


def test_maintain_and_compact(run: Run, stored: list[Record]) -> None:
    assert run("maintain").stdout == "Nothing to do.\n"
    run("remember", "ok thanks", "--importance", "0.05", "--preset", "atlas")
    planned = run("maintain", "--early", "--dry-run", "--preset", "atlas").stdout
    assert planned.startswith("Would archive 1 memory")
    assert run("maintain", "--early", "--preset", "atlas").stdout.startswith("Archived 1 memory")

    run("forget", stored[0].id)
    assert run("compact").stdout.startswith("Compacted; ")
    assert "can no longer be undone" in run("undo", code=1).stderr


def test_maintain_says_why_and_holds_back(run: Run) -> None:
    Path("mine.toml").write_text('extends = "inklings"\n[maintenance]\nask_least = 0\n')
    preset = ("--preset", "./mine.toml")
    for number in range(3):
        run("remember", f"faint {number}", "--importance", "0.001", *preset)
    shown = run("maintain", *preset).stdout
    assert "it would take 3 of 3 in the workspace default, more than 30% at once" in shown
    assert "3 memories held back; --review asks about each, --force does it" in shown
    assert "relevance 0.001 is below 0.01" in shown
    assert run("maintain", *preset).stdout == "Nothing to do.\n"  # not due
    held = json.loads(run("maintain", "--job", "consolidate", "--json", *preset).stdout)["jobs"][0]
    assert (held["outcome"], len(held["held"]), held["steps"]) == ("held", 3, [])
    assert "--review asks on a terminal" in run("maintain", "--review", *preset, code=2).stderr
    assert "leave out --dry-run" in run("maintain", "--watch", "--dry-run", *preset, code=2).stderr
    forced = run("maintain", "--job", "consolidate", "--force", *preset).stdout
    assert forced.startswith("Archived 3 memories (consolidate)")


def test_reviewing_asks_about_each_change(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from recollect.cli import maintaining

    Path("mine.toml").write_text('extends = "inklings"\n[maintenance]\nask_least = 0\n')
    preset = ("--preset", "./mine.toml")
    ids = [
        json.loads(run("remember", "the same words", "--importance", importance, *preset, "--json").stdout)["id"]
        for importance in ("0.9", "0.9", "0.001")
    ]
    monkeypatch.setattr(maintaining, "piped", lambda: False)
    answers = iter([False, True])
    asked: list[str] = []
    monkeypatch.setattr("click.confirm", lambda question, **_: (asked.append(question), next(answers))[1])
    shown = run("maintain", "--review", *preset).stdout
    assert asked == ["Archive it?", "Merge it?"]
    assert "stays" in shown
    assert [get(ident).superseded_by for ident in ids] == [ids[1], None, None]
    assert get(ids[2]).archived_at is None


def test_simulate_shows_what_is_left_and_draws_it(run: Run, stored: list[Record]) -> None:
    quiet = run("simulate").stdout
    assert "Nothing will happen to them." in quiet
    run("remember", "a word between us", "--kind", "conversation", "--preset", "atlas")
    shown = run("simulate", "--preset", "atlas", "--days", "10", "--svg", "left.svg").stdout
    assert re.search(r"conversation +workspace +1 +0 +█+▁+", shown)
    assert "its time to live is over" in shown
    assert Path("left.svg").read_text().startswith("<svg")
    assert "is there already" in run("simulate", "--svg", "left.svg", code=1).stderr
    assert "cannot write nowhere/left.svg" in run("simulate", "--svg", "nowhere/left.svg", code=1).stderr
    assert "days: " in run("simulate", "--days", "0", code=1).stderr


def test_audit_search(run: Run, stored: list[Record]) -> None:
    run("forget", stored[0].id, "--reason", "outdated", "--agent", "atlas")

    assert "forgot 1 memory: outdated" in run("audit", "search", "OUTDATED").stdout
    assert run("audit", "search", "zebra").stdout == "No entry matched.\n"
    about = json.loads(run("audit", "search", "--about", stored[0].id[-8:], "--json").stdout)
    assert [entry["action"] for entry in about] == ["forget", "remember"]


def test_audit_verify_shows_every_log_and_its_head(run: Run, stored: list[Record]) -> None:
    run("remember", "for everyone", "--tier", "account")

    shown = run("audit", "verify").stdout
    assert "intact  default/default  3 entries" in shown
    assert "intact  default (what its accounts share)  1 entry" in shown
    head = json.loads(run("audit", "verify", "--json").stdout)["logs"][0]["head"]
    assert f"head {head}" in shown


def test_audit_verify_fails_on_a_log_that_was_changed(run: Run, stored: list[Record]) -> None:
    tamper("UPDATE audit SET message = 'nothing happened' WHERE seq = 2", "DELETE FROM audit WHERE seq = 3")

    shown = run("audit", "verify", code=1).stdout

    assert "BROKEN  default/default" in shown
    assert "entry 2 does not match its hash" in shown
    assert "missing at the end" in shown
    assert json.loads(run("audit", "verify", "--json", code=1).stdout)["ok"] is False
    assert "audit log broken" in run("doctor", code=1).stdout


def test_doctor_finds_a_row_that_was_changed(run: Run, stored: list[Record]) -> None:
    tamper("UPDATE memories SET importance = 0.9, text = 'Alice prefers emacs' WHERE seq = 1")

    assert "does not match its checksum" in run("doctor", code=1).stdout
    assert "does not match its checksum" in run("show", stored[0].id, code=1).stderr


def tamper(*statements: str) -> None:
    import apsw

    connection = apsw.Connection("memory/default/workspaces/default/memory.db")
    for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        connection.execute(statement)
    connection.close()


def test_workspaces(run: Run, stored: list[Record], monkeypatch: pytest.MonkeyPatch) -> None:
    run("remember", "milk", "--workspace", "shop")
    run("remember", "mine", "--tier", "account", "--workspace", "shop")

    counts: Any = json.loads(run("workspaces", "list", "--json").stdout)
    assert counts == [{"name": "default", "memories": 3}, {"name": "shop", "memories": 1}]
    assert json.loads(run("workspaces", "--workspace", "shop", "--json").stdout) == counts[1:]
    monkeypatch.setenv("RECOLLECT_WORKSPACE", "shop")
    assert json.loads(run("workspaces", "--json").stdout) == counts
    monkeypatch.delenv("RECOLLECT_WORKSPACE")
    assert "give --yes" in run("workspaces", "forget", "shop", code=1).stderr
    missed = run("workspaces", "forget", "shpo", "--yes", code=1).stderr
    assert "there is no workspace shpo; the workspaces are: default, shop" in missed
    assert run("workspaces", "forget", "shop", "--yes").stdout.startswith("Removed the workspace shop and 1 memory")
    assert [found["name"] for found in json.loads(run("workspaces", "list", "--json").stdout)] == ["default"]


@pytest.mark.parametrize("name", names())
def test_a_preset_is_shown_as_toml_that_means_the_same(run: Run, name: str) -> None:
    shown = run("presets", "show", name).stdout
    Path("mine.toml").write_text(shown)

    assert tomllib.loads(shown)["name"] == name
    assert load("./mine.toml") == load(name)
    assert json.loads(run("presets", "show", "./mine.toml", "--json").stdout) == json.loads(
        run("presets", "show", "--preset", name, "--json").stdout
    )


def test_rules_of_a_preset_are_shown_too(run: Run) -> None:
    Path("mine.toml").write_text(
        '[[importance.rules]]\nname = "über"\npattern = "\\\\d+ \\"x\\""\nchange = 0.1\n'
        '[[importance.rules]]\nname = "two"\npattern = "two"\n[retention.ttl_days]\n"my-kind" = 3\n'
    )
    Path("again.toml").write_text(run("presets", "show", "./mine.toml").stdout)

    assert load("./again.toml") == load("./mine.toml")


def test_presets_are_listed(run: Run) -> None:
    shown = run("presets", "list").stdout

    assert all(name in shown for name in names())


def test_doctor_merges_what_says_the_same(run: Run, stored: list[Record]) -> None:
    run("remember", "alice prefers tabs!", "--kind", "preference")
    shown = run("doctor", "--fix", "duplicates", "--dry-run").stdout
    assert "keep" in shown
    assert "merge" in shown
    assert "Would merge 1 duplicate into 1 memory." in shown
    assert "give --yes" in run("doctor", "--fix", "duplicates", code=1).stderr
    assert len(json.loads(run("list", "--json").stdout)) == 4

    assert json.loads(run("doctor", "--fix", "duplicates", "--yes", "--json").stdout)["merged"] == 1
    assert len(json.loads(run("list", "--json").stdout)) == 3
    assert run("doctor", "--fix", "duplicates").stdout == "No two memories say the same.\n"
    run("undo")
    assert len(json.loads(run("list", "--json").stdout)) == 4


def test_a_conversation_on_the_command_line(run: Run) -> None:
    run("channels", "create", "travel", "where to go")
    assert "travel" in run("channels").stdout
    ref = json.loads(run("conversations", "start", "the trip", "--in", "travel", "--json").stdout)["ref_code"]
    assert ref in run("conversations").stdout
    run("conversations", "say", ref, "Hi! We decided to go by train.")
    run("conversations", "say", ref, "I'll keep that in mind.", "--as", "assistant")
    assert "idle" in run("conversations", "idle", ref).stdout
    assert [record["content"] for record in json.loads(run("list", "--json").stdout)] == ["We decided to go by train."]
    assert "has ended already" in run("conversations", "idle", ref, code=1).stderr
    assert "archived" in run("conversations", "archive", ref).stdout
    assert run("conversations").stdout == "There are no conversations here.\n"
