"""Help by name, completion, errors as JSON, and what is shown in columns."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.command_line import called, store

from recollect import Memory
from recollect.cli.app import cli
from recollect.cli.recalling import shown_scores


def test_help_by_name() -> None:
    assert called("help").stdout == called("--help").stdout
    assert called("help", "recall").stdout == called("recall", "--help").stdout
    assert called("help", "audit", "search").stdout == called("audit", "search", "--help").stdout
    assert json.loads(called("help", "recall", "--json").stdout)["command"] == "recollect recall"


@pytest.mark.parametrize("words", [["recal"], ["recall", "more"], ["audit", "nothing"]])
def test_help_for_what_is_not_there(words: list[str]) -> None:
    done = called("help", *words, "--json")
    assert done.returncode == 2
    assert words[-1] in json.loads(done.stdout)["error"]["message"]


@pytest.mark.parametrize(
    ("shell", "path"),
    [
        ("bash", ".local/share/bash-completion/completions/recollect"),
        ("zsh", ".zfunc/_recollect"),
        ("fish", ".config/fish/completions/recollect.fish"),
    ],
)
def test_completion_is_installed(here: Path, shell: str, path: str) -> None:
    home = {"HOME": str(here), "XDG_DATA_HOME": "", "XDG_CONFIG_HOME": ""}
    done = called("completion", "install", SHELL=f"/usr/bin/{shell}", **home)
    assert done.returncode == 0, done.stderr
    script = (here / path).read_text()
    assert "_RECOLLECT_COMPLETE" in script
    assert called("completion", "show", "--shell", shell).stdout == script
    assert called("completion", "install", "--shell", shell, **home).returncode == 0
    (here / path).write_text("somebody's own")
    refused = called("completion", "install", "--shell", shell, "--json", **home)
    assert refused.returncode == 1
    assert json.loads(refused.stdout)["error"]["field"] == "shell"
    assert (here / path).read_text() == "somebody's own"


def test_completion_needs_a_shell_that_it_knows() -> None:
    refused = called("completion", "install", SHELL="/bin/csh")
    assert refused.returncode == 1
    assert "bash, zsh, fish" in refused.stderr


@pytest.mark.parametrize(
    ("words", "wanted"),
    [("recollect rec", "recall"), ("recollect audit ver", "verify"), ("recollect recall --exp", "--explain")],
)
def test_what_is_typed_is_completed(words: str, wanted: str) -> None:
    done = called(_RECOLLECT_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(words.count(" ")))
    assert wanted in done.stdout


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("recollect --workspace ", {"default", "shop"}),
        ("recollect --workspace sh", {"shop"}),
        ("recollect --json --workspace sh", {"shop"}),
        ("recollect --preset l", {"ledger"}),
        ("recollect --store ./memory --agent ", {"atlas"}),
        ("recollect knowledge --workspace sh", {"shop"}),
        ("recollect --agent atlas rec", {"recall"}),
        ("recollect recall --workspace sh", {"shop"}),
        ("recollect query --kind ", {"preference"}),
        ("recollect presets show l", {"ledger"}),
        ("recollect workspaces remove ", {"default", "shop"}),
        ("recollect tools call rec", {"recall"}),
        ("recollect help arch", {"archive"}),
        ("recollect help audit v", {"verify"}),
        ("recollect help recall ", set()),
        ("recollect knowledge remove --store ", {""}),
        ("recollect knowledge add ./me", {"./me"}),
    ],
)
def test_values_are_completed_before_and_after_the_command(words: str, wanted: set[str]) -> None:
    store("tea", kind="preference")
    with Memory("./memory") as memory:
        memory.at(workspace="shop").remember("till")
        memory.at(agent="atlas").remember("mine", kind="preference")
    done = called(_RECOLLECT_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(words.count(" ")))
    values = {line.partition(",")[2] for line in done.stdout.split()}
    assert values == wanted


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("kb", "knowledge"),
        ("kb add", "knowledge add"),
        ("why", "diagnose"),
        ("call", "tools call"),
        ("keys revoke", "keys remove"),
        ("sessions drop", "ledger remove"),
    ],
)
def test_help_knows_old_names(old: str, new: str) -> None:
    done = called("help", *old.split())
    assert (done.returncode, done.stdout) == (0, called("help", *new.split()).stdout)


def test_an_export_replaces_a_file_only_if_told_to(here: Path) -> None:
    store("tea")
    (here / "out.json").write_text("precious")
    refused = called("export", "out.json", "--json")
    assert refused.returncode == 1
    assert json.loads(refused.stdout)["error"]["field"] == "file"
    assert (here / "out.json").read_text() == "precious"
    assert called("export", "out.json", "--force").returncode == 0
    assert "tea" in (here / "out.json").read_text()

    called("sessions", "create", "ann", "--id", "s1", "--store", "ledger:./log")
    (here / "s.jsonl").write_text("precious")
    assert called("sessions", "export", "s1", "-o", "s.jsonl", "--store", "ledger:./log").returncode == 1
    assert called("sessions", "export", "s1", "-o", "s.jsonl", "-f", "--store", "ledger:./log").returncode == 0


def test_scores_stand_in_a_column() -> None:
    assert shown_scores([12.5, 0.04, 0.0]) == ["12.500", " 0.040", " 0.000"]
    assert shown_scores([0.04, 0.0123]) == ["0.04000", "0.01230"]
    assert shown_scores([]) == []


def test_the_parts_of_a_score_stand_in_a_column_and_their_names_are_true() -> None:
    store("Alice prefers tabs", "tabs are wide", conversation="c1")
    store("the tabs of the browser")
    shown = called("recall", "tabs", "--explain").stdout
    ends = {len(line[: line.rindex(".") + 4]) for line in re.findall(r"^ .*\.\d{3}(?=\s+━)", shown, re.MULTILINE)}
    assert len(ends) == 1, shown
    with Memory("./memory") as memory:
        for hit in memory.recall("tabs"):
            names = {part.name for part in hit.explain().parts}
            assert ("conversation" in names) == (hit.memory.address.conversation is not None)
            assert ("alone" in names) == (hit.memory.address.conversation is None)


def test_a_name_that_is_not_utf_8_is_told_in_json_too() -> None:
    store("Alice prefers tabs")
    name = b"w\xff.json".decode(errors="surrogateescape")
    written = called("export", name, "--json")
    assert (written.returncode, json.loads(written.stdout)["file"]) == (0, name)
    for words in (
        ("import", f"no{name}"),
        ("list", "--preset", name),
        ("knowledge", "show", name),
        ("list", "--tenant", name),
    ):
        refused = called(*words, "--json")
        assert (refused.returncode, list(json.loads(refused.stdout))) == (1, ["error"]), words


@pytest.mark.parametrize("name", ["x" * 300, "😀" * 100, " a", ""])
def test_a_tenant_is_a_name_for_every_command(name: str) -> None:
    store("Alice prefers tabs")
    refused = called("list", "--tenant", name or " ", "--json")
    error = json.loads(refused.stdout)["error"]
    assert (refused.returncode, error["field"]) == (1, "tenant")
    assert "must be 1 to 64 bytes of printable text" in error["message"]


def test_help_of_no_command_is_refused() -> None:
    for words in (("help", "-"), ("help", "--", "-5")):
        refused = called(*words)
        assert (refused.returncode, "has no command" in refused.stderr) == (2, True), words


def test_a_drawing_that_cannot_be_written_is_one_document() -> None:
    store("Alice prefers tabs")
    refused = called("simulate", "--svg", "nowhere/x.svg", "--json")
    assert (refused.returncode, json.loads(refused.stdout)["error"]["field"]) == (1, "svg")


def test_a_key_that_is_not_there_is_not_asked_about() -> None:
    store("Alice prefers tabs")
    assert "there is no key nokey" in called("keys", "remove", "nokey").stderr


def test_of_a_long_value_that_is_refused_only_the_beginning_is_told() -> None:
    refused = called("list", "--role", "x" * 70_000)
    assert refused.returncode == 2
    assert len(refused.stderr) < 5_000


def _paths() -> list[tuple[str, ...]]:
    import click

    found: list[tuple[str, ...]] = []
    for name in cli.list_commands(click.Context(cli)):
        command = cli.get_command(click.Context(cli), name)
        inside = command.list_commands(click.Context(command)) if isinstance(command, click.Group) else []
        found += [(name, one) for one in inside] or [(name,)]
    return found


def test_every_error_is_json_under_json() -> None:
    from click.testing import CliRunner

    for path in _paths():
        result = CliRunner().invoke(cli, [*path, "--json", "--no-such-option"])
        assert result.exit_code == 2, path
        error = json.loads(result.stdout)["error"]
        assert {*error} == {"type", "field", "message"}, path
        assert "--no-such-option" in error["message"], path


OPENING = [
    ["remember", "tea"],
    ["recall", "tea"],
    ["list"],
    ["show", "0" * 32],
    ["why", "0" * 32],
    ["context", "tea"],
    ["journal", "list"],
    ["revise", "0" * 32, "tea"],
    ["history", "0" * 32],
    ["forget", "0" * 32],
    ["undo"],
    ["archive", "0" * 32],
    ["restore", "0" * 32],
    ["stats"],
    ["doctor"],
    ["maintain"],
    ["simulate"],
    ["embed"],
    ["compact"],
    ["verify"],
    ["rebuild"],
    ["migrate"],
    ["audit"],
    ["audit", "verify"],
    ["workspaces"],
    ["sessions"],
    ["sessions", "create", "ann"],
    ["sessions", "search", "tea"],
    ["backup", "copy"],
    ["copy", "memory", "copy"],
    ["export"],
    ["import", "in.json"],
    ["call", "recall", '{"query": "tea"}'],
    ["init"],
    ["mcp"],
]


@pytest.mark.parametrize("words", OPENING, ids=" ".join)
def test_a_store_that_cannot_be_used_is_told_as_json(here: Path, words: list[str]) -> None:
    from click.testing import CliRunner

    (here / "memory").write_text("a file")
    (here / "in.json").write_text("{}")
    result = CliRunner().invoke(cli, [*words, "--json"])
    assert result.exit_code == 1, result.stdout
    assert {*json.loads(result.stdout)["error"]} == {"type", "field", "message"}


@pytest.mark.parametrize(
    "words",
    [["remember", "tea"], ["call", "remember", '{"content": "tea"}'], ["journal", "add", "tea", "--agent", "zoe"]],
    ids=" ".join,
)
def test_what_only_stores_has_no_model_at_work(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from recollect import memory

    made: list[object] = []

    def making(*given: object) -> None:
        made.append(given)

    monkeypatch.setattr(memory, "Embedding", making)
    monkeypatch.setenv("RECOLLECT_EMBEDDER", "http://127.0.0.1:9/v1#m")
    assert CliRunner().invoke(cli, words).exit_code == 0
    assert made == []
    CliRunner().invoke(cli, ["recall", "tea"])
    assert made


def test_an_embedder_that_is_none_is_told_also_where_none_is_needed() -> None:
    refused = called("remember", "tea", "--embedder", "nonsense", "--json")
    assert refused.returncode == 1
    assert json.loads(refused.stdout)["error"]["field"] == "embedder"
