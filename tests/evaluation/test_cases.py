"""Cases of one's own: kept beside the memories, asked again from the command line."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from recollect import InputError, Memory, NotFoundError, SecretError
from recollect.cli.app import cli
from recollect.evaluation import cases


@pytest.fixture
def known(memory: Memory) -> Memory:
    memory.remember("Ada drinks green tea")
    memory.remember("Bora was born in Ankara")
    return memory


def test_a_case_is_kept_and_replaced_by_its_question(known: Memory) -> None:
    known.cases.save("what does Ada drink?", texts=["coffee"])
    known.cases.save("what does Ada drink?", texts=["tea"], limit=3)
    known.cases.save("where was Bora born?", texts=["Ankara"])
    assert [(case.question, case.texts, case.limit) for case in known.cases.list()] == [
        ("what does Ada drink?", ("tea",), 3),
        ("where was Bora born?", ("Ankara",), 10),
    ]
    assert known.cases.remove("what does Ada drink?") == 1
    assert known.cases.remove("what does Ada drink?") == 0
    assert len(known.cases.list()) == 1


def test_saving_a_case_is_audited_and_can_be_undone(known: Memory) -> None:
    known.cases.save("what does Ada drink?", texts=["tea"])
    assert known.audit.search(action="case")[0].message == "saved a case"
    known.undo()
    assert known.cases.list() == []


def test_cases_are_exported(known: Memory, tmp_path: Path) -> None:
    known.cases.save("what does Ada drink?", texts=["tea"])
    out = io.BytesIO()
    known.export(out)
    out.seek(0)
    with Memory(tmp_path / "other") as other:
        other.import_(out)
        assert [case.question for case in other.cases.list()] == ["what does Ada drink?"]


def test_an_agent_sees_its_own_cases_and_those_of_nobody(known: Memory) -> None:
    known.at(agent="atlas").cases.save("what does atlas know?", texts=["tea"])
    known.cases.save("what does Ada drink?", texts=["tea"])
    assert len(known.at(agent="atlas").cases.list()) == 2
    assert [case.question for case in known.at(agent="bora").cases.list()] == ["what does Ada drink?"]


@pytest.mark.parametrize(
    "given",
    [
        {"question": "", "texts": ["tea"]},
        {"question": "what?"},
        {"question": "what?", "texts": [" "]},
        {"question": "what?", "texts": ["tea"], "limit": 0},
        {"question": "what?", "ids": ["no id"]},
    ],
)
def test_a_case_without_sense_is_refused(known: Memory, given: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        known.cases.save(**given)
    assert known.cases.list() == []


def test_a_case_holds_no_secret(known: Memory) -> None:
    with pytest.raises(SecretError):
        known.cases.save("what is sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789?", texts=["tea"])


def test_what_was_revised_is_still_found_by_its_old_id(known: Memory) -> None:
    old = known.remember("Chen drives a red car")
    case = known.cases.save("what does Chen drive?", ids=[old.id])
    new = known.revise(old.id, content="Chen drives a blue car")
    (outcome,) = cases.run(known, [case])
    assert outcome.passed
    known.forget(new.id)
    (outcome,) = cases.run(known, [case])
    assert not outcome.passed
    assert "no such memory" in outcome.missing[old.id]
    with pytest.raises(NotFoundError):
        known.get(old.id)


def test_running_cases_counts_no_retrieval(known: Memory) -> None:
    cases.run(known, [known.cases.save("what does Ada drink?", texts=["tea"])])
    assert {record.access_count for record in known.list()} == {0}


def test_a_file_is_read_as_it_was_written(known: Memory, tmp_path: Path) -> None:
    known.cases.save("what does Ada drink?", texts=["tea"], limit=5)
    path = tmp_path / "cases.jsonl"
    path.write_bytes(cases.dump(known.cases.list()))
    assert cases.load(str(path)) == known.cases.list()
    path.write_text('[{"question": "what?", "texts": ["tea"]}]')
    assert [case.question for case in cases.load(str(path))] == ["what?"]


@pytest.mark.parametrize("content", ["", "[", "nonsense", '{"question": "what?"}', '{"texts": ["tea"]}'])
def test_a_file_that_holds_no_cases_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(content)
    with pytest.raises(InputError, match="file"):
        cases.load(str(path))


def test_the_command_fails_when_a_case_does(known: Memory, store_url: str, tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text('{"question": "what does Ada drink?", "texts": ["tea"]}\n')
    asked = ["eval", "cases", str(path), "--store", store_url]
    good = CliRunner().invoke(cli, asked)
    assert (good.exit_code, "1 case, 0 failed" in good.output) == (0, True), good.output
    with path.open("a") as file:
        file.write('{"question": "what does Ada drink?", "texts": ["whisky"]}\n')
    bad = CliRunner().invoke(cli, [*asked, "--json"])
    assert bad.exit_code == 1
    told = json.loads(bad.output)
    assert (told["cases"], told["failed"]) == (2, 1)
    assert told["outcomes"][1]["missing"] == {"whisky": "none that was recalled has this text"}
