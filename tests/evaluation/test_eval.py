"""Measuring recall through the command, on small data sets of our own in the two published formats."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from recollect import InputError, Memory, ModelError
from recollect.cli.app import cli
from recollect.evaluation import datasets, reliability
from recollect.evaluation.datasets import DatasetError
from recollect.evaluation.run import Setup, opened
from recollect.recall.hits import Hits

Run = Callable[..., Result]
SVG = "{http://www.w3.org/2000/svg}"
SECRET = "the key is AKIA" + "Z7QX4MPL2RWT9KDN"


def turn(ident: str, speaker: str, text: str, **more: str) -> dict[str, str]:
    return {"speaker": speaker, "dia_id": ident, "text": text, **more}


def asked(question: str, category: int, *evidence: str) -> dict[str, Any]:
    return {"question": question, "answer": 7, "evidence": list(evidence), "category": category}


LOCOMO: list[dict[str, Any]] = [
    {
        "sample_id": "talk-1",
        "event_summary": {"ignored": True},
        "conversation": {
            "speaker_a": "Ines",
            "speaker_b": "Bruno",
            "session_1_date_time": "12:05 am on 3 March, 2024",
            "session_1": [
                turn("D1:1", "Ines", "We adopted a greyhound called Turnip."),
                turn("D1:2", "Bruno", "Lovely! I am still repairing the sailing boat."),
                turn("D1:3", "Ines", "Look at him.", blip_caption="a dog asleep on a yellow sofa"),
            ],
            "session_2_date_time": "4:30 pm on 9 March, 2024",
            "session_2": [turn("D2:1", "Bruno", "The boat got a new mast on Thursday.")],
            "session_3_date_time": "1:00 pm on 10 March, 2024",
        },
        "qa": [
            asked("What is the greyhound called?", 4, "D1:1"),
            asked("Which repairs did the boat get?", 1, "D1:02; D:2:1"),
            asked("Who sleeps on the yellow sofa?", 3, "D1:3"),
            asked("Which violin does Bruno play?", 5, "D1:2"),
            asked("Who painted the fence?", 2),
            asked("Who sold the fence?", 2, "D9:9"),
        ],
    },
    {
        "sample_id": "talk-2",
        "conversation": {
            "session_1_date_time": "9:15 am on 1 June, 2024",
            "session_1": [turn("D1:1", "Olu", "The bakery opens at six."), turn("D1:2", "Kim", "Buy rye bread then.")],
        },
        "qa": [asked("When does the bakery open?", 2, "D1:1")],
    },
]


def said(role: str, content: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


SHARED = [said("user", "Which tea is mild?"), said("assistant", "White tea is mild and a little sweet.")]


def chat(ident: str, kind: str, question: str, date: str, sessions: dict[str, Any], *answers: str) -> dict[str, Any]:
    return {
        "question_id": ident,
        "question_type": kind,
        "question": question,
        "answer": "…",
        "question_date": date,
        "haystack_dates": ["2024/05/02 (Thu) 08:30"] * len(sessions),
        "haystack_session_ids": list(sessions),
        "haystack_sessions": list(sessions.values()),
        "answer_session_ids": list(answers),
    }


LONGMEMEVAL = [
    chat(
        "q1",
        "multi-session",
        "How many lamps did I buy?",
        "2024/05/20 (Mon) 10:00",
        {
            "lamps_1": [
                said("user", "I bought a desk lamp made of brass.", has_answer=True),
                said("assistant", "A brass desk lamp sounds elegant.", has_answer=False),
            ],
            "lamps_2": [said("user", "Two floor lamps came today, so I bought three.", has_answer=True)],
            "tea": SHARED,
        },
        "lamps_1",
        "lamps_2",
    ),
    chat(
        "q2",
        "single-session-assistant",
        "Which tea did you call mild?",
        "2024/05/21 (Tue) 10:00",
        {"tea": [SHARED[0], SHARED[1] | {"has_answer": True}]},
        "tea",
    ),
    chat("q3_abs", "multi-session", "How many boats?", "2024/05/21 (Tue) 10:00", {"tea": SHARED}, "tea"),
]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("FORCE_COLOR", "NO_COLOR", "COLUMNS", "RECOLLECT_STORE", "RECOLLECT_PRESET"):
        monkeypatch.delenv(name, raising=False)
    Path("locomo.json").write_text(json.dumps(LOCOMO))
    Path("longmemeval.json").write_text(json.dumps(LONGMEMEVAL))
    return tmp_path


@pytest.fixture
def run() -> Run:
    def run(*words: str, code: int = 0, env: dict[str, str] | None = None) -> Result:
        result = CliRunner().invoke(cli, ["eval", *words], env=env)
        assert result.exit_code == code, (words, result.stdout, result.stderr, result.exception)
        return result

    return run


def measured(run: Run, *words: str, **options: Any) -> dict[str, Any]:
    return json.loads(run(*words, "--json", **options).stdout)


# The two data sets


def test_locomo_is_measured_by_turns_and_category(run: Run) -> None:
    got = measured(run, "locomo", "locomo.json")

    assert (got["dataset"], got["questions"], got["left_out"]) == ("LoCoMo", 4, 3)
    assert got["ingest"]["memories"] == 6
    assert got["ingest"]["refused"] == 0
    assert set(got["turns"]["categories"]) == {"single-hop", "multi-hop", "open-domain", "temporal"}
    assert got["turns"]["overall"]["questions"] == 4
    assert got["turns"]["overall"]["recall"]["20"] == 1.0
    assert got["turns"]["categories"]["single-hop"]["recall"]["1"] == 1.0
    assert got["turns"]["categories"]["multi-hop"]["recall"]["1"] == 0.5
    assert got["turns"]["categories"]["multi-hop"]["all"]["3"] == 1.0
    assert "sessions" not in got


def test_longmemeval_is_measured_by_turns_and_sessions(run: Run) -> None:
    got = measured(run, "longmemeval", "longmemeval.json")

    assert (got["dataset"], got["questions"], got["left_out"]) == ("LongMemEval", 2, 1)
    assert got["ingest"]["memories"] == 5  # the tea session is in three haystacks
    assert set(got["turns"]["categories"]) == {"multi-session", "single-session-assistant"}
    assert got["sessions"]["categories"]["single-session-assistant"]["recall"]["1"] == 1.0
    assert got["sessions"]["categories"]["multi-session"]["all"] == {"1": 0, "3": 1, "5": 1, "10": 1, "20": 1}
    assert got["sessions"]["overall"]["mrr@10"] == 1.0


def test_a_report_says_what_was_measured_and_when(run: Run) -> None:
    got = measured(run, "locomo", "locomo.json", "--preset", "atlas", "--store", "notebook:./kept")

    assert (got["preset"], got["store"], got["file"]["name"]) == ("atlas", "notebook:./kept", "locomo.json")
    assert (got["embedder"], got["model"]) == ("none", "none")
    assert abs((datetime.now(UTC) - datetime.fromisoformat(got["date"])).total_seconds()) < 60
    assert 0 < got["recall_ms"]["p50"] <= got["recall_ms"]["p95"]
    assert got["ingest"]["per_second"] > 0
    assert len(got["file"]["sha256"]) == 64


@pytest.mark.parametrize("name", ["locomo", "longmemeval"])
def test_the_same_is_measured_again(run: Run, name: str) -> None:
    first, second = (measured(run, name, f"{name}.json") for _ in range(2))

    assert first["turns"] == second["turns"]
    assert first.get("sessions") == second.get("sessions")


@pytest.mark.parametrize("store", ["./kept", "ledger:./kept", "notebook:./kept"])
def test_every_kind_of_store_can_be_measured_and_is_kept_where_it_was_asked_for(run: Run, store: str) -> None:
    measured(run, "locomo", "locomo.json", "--store", store)

    with Memory(store) as memory:
        assert memory.workspaces() == ["talk-1", "talk-2"]
        kept = {each.metadata["turn"]: each for each in memory.at(workspace="talk-1").list()}
    assert kept["D1:3"].content == "Ines: Look at him. [image: a dog asleep on a yellow sofa]"
    assert kept["D1:3"].created_at == datetime(2024, 3, 3, 0, 5, tzinfo=UTC)
    assert kept["D2:1"].created_at == datetime(2024, 3, 9, 16, 30, tzinfo=UTC)
    assert (kept["D2:1"].address.conversation, kept["D2:1"].role) == ("session_2", None)


def test_the_turns_of_longmemeval_keep_role_session_and_date(run: Run) -> None:
    run("longmemeval", "longmemeval.json", "--store", "./kept")

    with Memory("./kept") as memory:
        kept = {each.metadata["turn"]: each for each in memory.at(workspace="longmemeval").list()}
    assert kept["tea:2"].role == "assistant"
    assert kept["tea:2"].address.conversation == "tea"
    assert kept["tea:2"].created_at == datetime(2024, 5, 2, 8, 30, tzinfo=UTC)


def test_without_a_store_nothing_is_left_behind(run: Run, here: Path) -> None:
    before = sorted(here.iterdir())
    run("locomo", "locomo.json", env={"RECOLLECT_STORE": "./mine"})

    assert sorted(here.iterdir()) == before


def test_a_store_that_holds_the_data_already_is_refused(run: Run) -> None:
    run("locomo", "locomo.json", "--store", "./kept")

    assert "talk-1 already; give another folder" in run("locomo", "locomo.json", "--store", "./kept", code=1).stderr


class Watched(Memory):
    """Keeps what it was made with."""

    given: dict[str, Any]

    def __init__(self, store: Any, *, embedder: Any = "left out", **options: Any) -> None:
        Watched.given = {"embedder": embedder, **options}
        super().__init__(store, **options)


def test_a_question_is_asked_at_its_own_time_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.evaluation.run.Memory", Watched)
    dataset, asked_at = datasets.load("longmemeval", "longmemeval.json"), list[datetime]()
    with opened(Setup()) as bench:
        bench.store(dataset, lambda done: None)
        bench.ask(dataset, lambda done: asked_at.append(Watched.given["clock"]()))
        kept = bench.memory.at(workspace="longmemeval").list()

    assert asked_at == [datetime(2024, 5, 20, 10, tzinfo=UTC), datetime(2024, 5, 21, 10, tzinfo=UTC)]
    assert {each.access_count for each in kept} == {0}


@pytest.mark.parametrize(("setup", "handed"), [(Setup(), "left out"), (Setup(embedder="local"), "local")])
def test_the_embedder_is_handed_to_the_memory(monkeypatch: pytest.MonkeyPatch, setup: Setup, handed: str) -> None:
    monkeypatch.setattr("recollect.evaluation.run.Memory", Watched)
    with opened(setup):
        assert Watched.given["embedder"] == handed


class Slow(Watched):
    """Tells when questions are asked before its vectors were made."""

    finished = False
    early: list[str]

    def embed(self, *, wait: bool = True, progress: Any = None) -> int:
        for number in range(1, 6):
            progress(number)
        Slow.finished = True
        return 5

    def recall(self, query: str, **options: Any) -> Hits:
        if not Slow.finished:
            Slow.early.append(query)
        return super().recall(query, **options)


def test_questions_wait_until_all_vectors_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.evaluation.run.Memory", Slow)
    dataset, told = datasets.load("longmemeval", "longmemeval.json"), list[int]()
    Slow.early, Slow.finished = [], False
    with opened(Setup(embedder="local")) as bench:
        bench.store(dataset, lambda done: None)
        vectors = bench.embed(dataset, told.append)
        bench.ask(dataset, lambda done: None)

    assert vectors.number == 5
    assert told == [1, 2, 3, 4, 5]
    assert Slow.early == []


def test_an_embedder_that_makes_no_vector_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.evaluation.run.Memory", Watched)
    dataset = datasets.load("locomo", "locomo.json")
    with opened(Setup(embedder="local")) as bench:
        bench.store(dataset, lambda done: None)
        with pytest.raises(ModelError, match="there is no model"):
            bench.embed(dataset, lambda done: None)
    with opened(Setup()) as bench:
        bench.store(dataset, lambda done: None)
        assert bench.embed(dataset, lambda done: None).number == 0


def test_turns_that_may_not_be_stored_are_counted_and_missed(run: Run) -> None:
    changed = json.loads(json.dumps(LONGMEMEVAL))
    changed[0]["haystack_sessions"][0][0]["content"] = SECRET
    changed[0]["haystack_sessions"][0][1]["content"] = " "
    Path("longmemeval.json").write_text(json.dumps(changed))
    got = measured(run, "longmemeval", "longmemeval.json")

    assert (got["ingest"]["memories"], got["ingest"]["refused"]) == (3, 2)
    assert got["turns"]["categories"]["multi-session"]["recall"]["20"] == 0.5


def test_few_questions_are_taken_from_the_whole_file_and_asked_of_all_turns(run: Run) -> None:
    got = measured(run, "locomo", "locomo.json", "--limit-questions", "2")
    pooled = measured(run, "longmemeval", "longmemeval.json", "--limit-questions", "1")
    many = measured(run, "locomo", "locomo.json", "--limit-questions", "99")

    assert set(got["turns"]["categories"]) == {"single-hop", "open-domain"}
    assert (got["questions"], got["ingest"]["memories"]) == (2, 4)
    assert (pooled["questions"], pooled["ingest"]["memories"]) == (1, 5)
    assert many["questions"] == 4


def test_sessions_of_one_name_with_other_words_are_told_apart() -> None:
    other = chat(
        "q4", "multi-session", "?", "2024/05/21", {"tea": [said("user", "I like coffee.", has_answer=True)]}, "tea"
    )
    corpus = datasets.longmemeval(json.dumps([*LONGMEMEVAL, other]).encode()).corpora[0]

    assert corpus.questions[-1].turns == {"tea-2:1"}
    assert corpus.questions[-1].sessions == {"tea-2"}
    assert len(corpus.turns) == len({each.id for each in corpus.turns}) == 6


# What people see


def test_people_see_tables(run: Run) -> None:
    shown = run("longmemeval", "longmemeval.json").stdout

    assert "questions  2 (1 that nothing answers were left out)" in shown
    assert "memories   5\n" in shown
    assert "store      sqlite, in a temporary folder" in shown
    assert shown.count("category") == 4
    assert "R@1  R@3  R@5  R@10  R@20  NDCG@10  MRR@10" in shown
    assert "any@5  any@10  any@20  all@5  all@10  all@20" in shown
    assert max(map(len, shown.splitlines())) < 80


def test_the_plot_is_an_image_with_a_line_for_each_category(run: Run) -> None:
    shown = run("longmemeval", "longmemeval.json", "--plot", "recall.svg").stdout
    root = ElementTree.parse("recall.svg").getroot()

    assert "Drew recall.svg" in shown
    assert root.tag == f"{SVG}svg"
    assert len(root.findall(f"{SVG}polyline")) == 2 * 3  # turns and sessions; two categories and all
    assert len(root.findall(f"{SVG}circle")) == 2 * 3 * 5
    assert {"all", "multi-session", "k = 20"} <= {each.text for each in root.iter(f"{SVG}text")}


def test_names_in_a_plot_cannot_break_it(run: Run) -> None:
    changed = json.loads(json.dumps(LONGMEMEVAL))
    changed[0]["question_type"] = '<b> & "c"'
    Path("longmemeval.json").write_text(json.dumps(changed))
    run("longmemeval", "longmemeval.json", "--plot", "recall.svg", "--json")

    assert '<b> & "c"' in {each.text for each in ElementTree.parse("recall.svg").getroot().iter(f"{SVG}text")}


def test_the_real_command_prints_one_document_and_nothing_else(here: Path) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith("RECOLLECT_")}
    command = [sys.executable, "-m", "recollect", "eval", "locomo", "locomo.json", "--json", "--plot", "recall.svg"]
    done = subprocess.run(command, env=env, capture_output=True, encoding="utf-8", timeout=60)

    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["questions"] == 4
    assert (here / "recall.svg").is_file()


# What goes wrong


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("locomo", "", "is empty"),
        ("locomo", "[]", "no question with evidence"),
        ("longmemeval", "[]", "no question with evidence"),
        ("locomo", "not json", "this is not JSON"),
        ("locomo", '{"a": 1}', "this is not LoCoMo as it is published"),
        ("longmemeval", '[{"question": 1}]', "this is not LongMemEval as it is published"),
        ("locomo", json.dumps(LONGMEMEVAL), "It looks like LongMemEval: recollect eval longmemeval"),
        ("longmemeval", json.dumps(LOCOMO), "It looks like LoCoMo: recollect eval locomo"),
        ("locomo", json.dumps([{"conversation": {}, "qa": []}]), "conversation 1 has no turns"),
        ("locomo", json.dumps([LOCOMO[0], LOCOMO[0]]), "two conversations with the sample_id talk-1"),
        (
            "locomo",
            json.dumps([{"conversation": {"session_1": [turn("D1:1", "A", "b")]}, "qa": []}]),
            "session_1 has no session_1_date_time",
        ),
        (
            "locomo",
            json.dumps(
                [{"conversation": {"session_1": [turn("D1:1", "A", "b")], "session_1_date_time": "today"}, "qa": []}]
            ),
            "'today' is not a time such as",
        ),
        ("longmemeval", json.dumps([LONGMEMEVAL[0] | {"haystack_dates": []}]), "question q1: its sessions, their ids"),
        ("longmemeval", json.dumps([LONGMEMEVAL[0] | {"question_date": "2024/13/01"}]), "'2024/13/01' is not a time"),
        ("longmemeval", json.dumps([LONGMEMEVAL[0] | {"question_date": "soon"}]), "'soon' is not a time such as"),
    ],
)
def test_a_file_of_another_shape_is_refused_in_one_line(run: Run, name: str, content: str, told: str) -> None:
    Path("other.json").write_text(content)
    problem = run(name, "other.json", code=1).stderr

    assert told in problem
    assert problem.count("\n") == 1
    with pytest.raises(DatasetError):
        datasets.load(name, "other.json")  # type: ignore[arg-type]


def test_bytes_that_are_not_text_are_refused(run: Run) -> None:
    Path("other.json").write_bytes(b'[{"conversation": {"a": "\xff\xfe"}, "qa": []}]')

    assert "recollect: file: " in run("locomo", "other.json", code=1).stderr


def test_a_missing_file_is_told_to_people_and_programs(run: Run) -> None:
    assert "nowhere.json" in run("locomo", "nowhere.json", code=1).stderr
    assert json.loads(run("locomo", "nowhere.json", "--json", code=1).stdout)["error"]["type"] == "FileNotFoundError"


def test_a_wrong_shape_names_the_field_to_programs(run: Run) -> None:
    Path("other.json").write_text("{}")
    error = json.loads(run("locomo", "other.json", "--json", code=1).stdout)["error"]

    assert (error["type"], error["field"]) == ("DatasetError", "file")
    assert issubclass(DatasetError, InputError)


def test_a_plot_that_cannot_be_written_is_refused_before_the_work(run: Run) -> None:
    problem = run("locomo", "locomo.json", "--store", "./kept", "--plot", "no/where.svg", code=1).stderr

    assert "there is no folder no to write where.svg in" in problem
    assert not Path("kept").exists()


@pytest.mark.parametrize("words", [["locomo"], ["locomo", "locomo.json", "--limit-questions", "0"], ["other", "x"]])
def test_a_command_that_is_not_understood_exits_with_2(run: Run, words: list[str]) -> None:
    run(*words, code=2)


def test_what_nothing_answers_is_asked_too(run: Run) -> None:
    got = measured(run, "locomo", "locomo.json", "--abstain")["abstained"]
    assert got["asked"]["greeting"] == got["asked"]["nonsense"] >= 20
    first, *_, last = got["curve"]
    assert first["min_relevance"] == 0.0
    assert last["empty"]["greeting"] == last["empty"]["nonsense"] == 1.0
    assert first["empty"]["answered"] <= last["empty"]["answered"]
    assert first["recall@10"] >= last["recall@10"]
    assert "Nothing came back" in run("locomo", "locomo.json", "--abstain").stdout


def test_how_often_all_that_answers_is_in_a_context(run: Run) -> None:
    points = measured(run, "locomo", "locomo.json", "--budget")["budgets"]
    assert [point["budget"] for point in points] == [500, 1000, 2000, 4000]
    for point in points:
        assert 0.0 < point["context"] <= 1.0
        assert 0.0 < point["by_score"] <= 1.0
        assert 0 < point["tokens"] <= point["budget"]
    assert "All that answers is there" in run("locomo", "locomo.json", "--budget").stdout
    assert "budgets" not in measured(run, "locomo", "locomo.json")


def test_how_often_what_is_said_to_be_likely_is_right(run: Run) -> None:
    got = measured(run, "locomo", "locomo.json", "--reliability", "drawn.svg")["reliability"]
    assert sum(group["number"] for group in got["hits"]) > sum(group["number"] for group in got["answered"]) > 0
    drawn = Path("drawn.svg").read_text("utf-8")
    assert ElementTree.fromstring(drawn).tag.endswith("svg")
    assert drawn.count("<circle") == len(got["hits"]) + len(got["answered"])
    shown = run("locomo", "locomo.json", "--reliability", "drawn.svg", "--plot", "recall.svg").stdout
    assert "A hit is right" in shown
    assert "Drew recall.svg\nDrew drawn.svg" in shown.replace("\x1b[1m", "").replace("\x1b[0m", "")
    assert "there is no folder no" in run("locomo", "locomo.json", "--reliability", "no/where.svg", code=1).stderr


def test_what_is_said_is_compared_with_what_is_right() -> None:
    pairs = [(0.25, True), (0.25, False), (0.25, False), (0.25, False), (0.95, True), (1.0, True), (0.0, False)]
    result = reliability.measured(pairs, [(0.5, True)])
    assert [(group.number, group.expected, group.right) for group in result.hits] == [
        (1, 0.0, 0.0),
        (4, 0.25, 0.25),
        (2, 0.975, 1.0),
    ]
    assert result.error == pytest.approx(2 * 0.025 / 7)
    assert result.answered_error == 0.5
    assert reliability.measured([], []).error == 0.0
