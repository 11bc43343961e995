"""Which memories went into which answer: kept with each context, bounded, and erased with what it names."""

from __future__ import annotations

import hashlib
import io
import json
import logging
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.common import Clock
from support.served import served
from support.stores import STORES, located, traces

from recollect import AccessError, InputError, Memory, NotFoundError
from recollect.context import Context
from recollect.memory import view_of
from recollect.presets import load
from recollect.values.errors import ReadOnlyError

TABS, TEA = "Alice wants tabs in Python code", "Bob drinks green tea"
ASKED = "which indentation does Alice want in Python?"
WORD = "zanzibarnuts"


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return located(request.param, tmp_path / "store" / "memory")


def ask(memory: Memory, question: str = ASKED, **options: Any) -> Context:
    return memory.context([{"role": "user", "content": question}], **options)


def keeping(**changes: Any) -> Any:
    preset = load("recollect")
    return msgspec.structs.replace(preset, context=msgspec.structs.replace(preset.context, **changes))


def ids(memory: Memory) -> set[str]:
    return {answer.id for answer in memory.answers(limit=1000)}


def test_an_answer_tells_its_question_its_memories_and_what_was_left_out(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        tabs, _ = memory.remember_many([TABS, TEA])
        made = ask(memory)
        answer = memory.sources(made.id)
        assert (answer.id, answer.question, answer.erased) == (made.id, ASKED, 0)
        assert [used.id for used in answer.memories] == list(made.memories) == [tabs.id]
        assert [(used.content, used.state) for used in answer.memories] == [(TABS, "live")]
        assert 0 < (answer.memories[0].relevance or 0) <= 1
        share = next(share for share in made.report.sections if share.name == "memories")
        assert answer.tokens == share.tokens
        said = memory.context([{"role": "user", "content": TABS}, {"role": "user", "content": ASKED}])
        assert ids(memory) == {made.id}  # nothing was put in
        memory.remember("Alice wants four spaces in Markdown")
        said = memory.context(
            [{"role": "user", "content": TABS}, {"role": "user", "content": ASKED}], min_relevance=0.0
        )
        left = memory.sources(said.id).left_out
        assert [(one.id, one.why) for one in left] == [(tabs.id, "it is in the conversation already")]


def test_what_is_left_out_is_bounded(tmp_path: Path) -> None:
    with Memory(tmp_path, embedder="none", preset=keeping(memories=200)) as memory:
        memory.remember_many([f"Alice wants tabs in file {number}" for number in range(150)])
        turns = [{"role": "user", "content": f"Alice wants tabs in file {number}"} for number in range(130)]
        made = memory.context([*turns, {"role": "user", "content": "where does Alice want tabs?"}])
        assert len([left for left in made.report.left_out if left.id]) > 100
        assert len(memory.sources(made.id).left_out) == 100


def test_answers_list_the_latest_first_page_by_page(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        memory.remember(TABS)
        made = [ask(memory, f"{ASKED} {number}").id for number in range(5)]
        assert [answer.id for answer in memory.answers()] == made[::-1]
        first = memory.answers(limit=2)
        assert [answer.id for answer in first] == made[:2:-1]
        assert [answer.id for answer in memory.answers(after=first[-1].id)] == made[2::-1]
        with pytest.raises(NotFoundError, match="is not known"):
            memory.answers(after="0" * 32)
        with pytest.raises(NotFoundError, match="is not known"):
            memory.sources("0" * 32)


def test_what_became_of_the_memories_since(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        tabs = memory.remember(TABS)
        made = ask(memory).id
        second = memory.revise(tabs.id, content="Alice wants two spaces")
        third = memory.revise(second.id, content="Alice wants four spaces")
        (used,) = memory.sources(made).memories
        assert (used.state, used.content, used.replaced_by) == ("superseded", TABS, third.id)
        memory.archive(third.id)
        assert memory.sources(made).memories[0].replaced_by == third.id
        memory.forget(third.id)
        answer = memory.sources(made)
        assert answer.question == ASKED
        assert [(used.state, used.content, used.text) for used in answer.memories] == [
            ("forgotten", None, "was forgotten")
        ]
        memory.undo()
        assert memory.sources(made).memories[0].content == TABS


def test_it_is_there_after_a_restart_and_for_a_second_process(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        memory.remember(TABS)
        made = ask(memory).id
    with Memory(url, embedder="none") as memory:
        assert memory.sources(made).question == ASKED
        code = (
            "import sys; from recollect import Memory\n"
            "with Memory(sys.argv[1], embedder='none') as memory:\n"
            "    print(memory.sources(sys.argv[2]).question)\n"
            "    print(memory.context([{'role': 'user', 'content': sys.argv[3]}]).id)"
        )
        out = subprocess.run([sys.executable, "-c", code, url, made, ASKED], capture_output=True, text=True, check=True)
        question, other = out.stdout.split("\n")[:2]
        assert question == ASKED
        assert ids(memory) == {made, other}


def test_it_is_written_when_the_process_ends_without_close(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        memory.remember(TABS)
    code = (
        "import sys; from recollect import Memory\n"
        "memory = Memory(sys.argv[1], embedder='none')\n"
        "print(memory.context([{'role': 'user', 'content': sys.argv[2]}]).id)"
    )
    out = subprocess.run([sys.executable, "-c", code, url, ASKED], capture_output=True, text=True, check=True)
    with Memory(url, embedder="none") as memory:
        assert ids(memory) == {out.stdout.strip()}


WALLS: list[dict[str, str]] = [{"agent": "a"}, {"account": "u"}, {"channel": "ops"}, {"conversation": "c1"}]
OTHERS: list[dict[str, str]] = [{"agent": "b"}, {"account": "v"}, {"channel": "dev"}, {"conversation": "c2"}]


@pytest.mark.parametrize(
    ("mine", "theirs"), [*zip(WALLS, OTHERS, strict=True)], ids=["agent", "account", "channel", "talk"]
)
def test_nobody_sees_the_answers_of_another(url: str, mine: dict[str, str], theirs: dict[str, str]) -> None:
    with Memory(url, embedder="none") as memory:
        memory.remember(TABS)
        me, other = memory.at(**mine), memory.at(**theirs)
        made = ask(me).id
        assert ids(me) == ids(memory) == {made}
        assert ids(other) == set()
        with pytest.raises(NotFoundError, match="is not known"):
            other.sources(made)
        ((part, name),) = mine.items()
        assert getattr(me.sources(made), part) == name


def test_memories_that_a_view_may_not_see_are_not_shown_to_it(tmp_path: Path) -> None:
    with Memory(tmp_path, embedder="none") as memory:
        memory.at(agent="a").remember(TABS)
        made = ask(memory).id  # the owner's, who sees the memories of all agents
        (used,) = memory.at(agent="b").sources(made).memories
        assert (used.state, used.content) == ("hidden", None)


@pytest.mark.parametrize("keep", ["ids", "nothing"])
def test_the_preset_says_what_is_kept(url: str, keep: str) -> None:
    with Memory(url, embedder="none", preset=keeping(keep=keep)) as memory:
        tabs = memory.remember(TABS)
        made = ask(memory, f"{ASKED} {WORD}")
        assert len(made.id) == 32
        if keep == "nothing":
            assert memory.answers() == []
        else:
            answer = memory.sources(made.id)
            digest = hashlib.sha256(f"{ASKED} {WORD}".encode()).hexdigest()
            assert (answer.question, answer.question_sha256) == (None, digest)
            assert [used.id for used in answer.memories] == [tabs.id]
        assert traces(url, WORD.encode()) == []


def test_a_question_with_a_credential_is_not_kept(tmp_path: Path) -> None:
    secret = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH"
    with Memory(f"sqlite:{tmp_path}/store/memory", embedder="none") as memory:
        memory.remember(TABS)
        made = ask(memory, f"{ASKED} my key is {secret}").id
        assert (memory.sources(made).question, memory.sources(made).question_sha256) == (None, None)
        memory.close()
        assert traces(f"sqlite:{tmp_path}/store/memory", secret.encode()) == []


def test_a_context_writes_nothing_itself(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory(url, embedder="none") as memory:
        memory.remember(TABS)
        view = view_of(memory)
        kept: list[Any] = []
        keep = view.store.keep
        monkeypatch.setattr(
            view.store, "keep", lambda place, item, **more: kept.append(item) or keep(place, item, **more)
        )
        made = ask(memory).id
        ask(memory, "nothing of this is known: xylophone")
        assert kept == []
        view.settle_answers()
        assert [item.key for item in kept] == [made]


def test_a_store_that_refuses_stops_no_context_and_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with Memory(tmp_path, embedder="none") as memory:
        memory.remember(TABS)
        view = view_of(memory)

        def refused(*_: Any, **__: Any) -> Any:
            raise OSError("the disk is full")

        with monkeypatch.context() as patched:
            patched.setattr(view.store, "keep", refused)
            with caplog.at_level(logging.WARNING, "recollect.answers"):
                made = ask(memory)
                assert TABS in made.text
                assert memory.answers() == []
            assert "the disk is full" in caplog.text
        assert ids(memory) == {made.id}  # it was tried again


def test_a_store_that_can_only_be_read_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory(tmp_path, embedder="none") as memory:
        memory.remember(TABS)

        def refused(*_: Any, **__: Any) -> Any:
            raise ReadOnlyError("read-only")

        with monkeypatch.context() as patched:
            patched.setattr(view_of(memory).store, "keep", refused)
            assert TABS in ask(memory).text
            assert memory.answers() == []
        assert memory.answers() == []


def test_too_old_and_too_many_ones_go(url: str, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.stores.answers.MOST_ANSWERS", 3)
    monkeypatch.setattr("recollect.stores.answers._TRIM", "no id ends so")
    with Memory(url, embedder="none", clock=clock) as memory:
        memory.remember(TABS)
        old = ask(memory).id
        clock.forward(days=29)
        assert memory.maintain(jobs=["answers"]).jobs == ()
        assert ids(memory) == {old}
        young = [ask(memory).id for _ in range(2)]
        clock.forward(days=2)
        planned = memory.maintain(dry_run=True, jobs=["answers"])
        assert [job.count for job in planned.jobs] == [1]
        assert ids(memory) == {old, *young}
        memory.maintain()
        assert ids(memory) == {*young}
        younger = [ask(memory).id for _ in range(3)]
        memory.maintain()
        assert ids(memory) == {*younger}


def test_writing_bounds_them_where_nobody_runs_maintenance(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.stores.answers.MOST_ANSWERS", 3)
    monkeypatch.setattr("recollect.stores.answers._TRIM", "")
    with Memory(url, embedder="none") as memory:
        memory.remember(TABS)
        made = [ask(memory).id for _ in range(7)]
        assert [answer.id for answer in memory.answers()] == made[:-4:-1]


# Erasing


@pytest.mark.parametrize("when", ["before it is written", "once it is written"])
def test_erasing_a_memory_takes_it_out_of_every_answer_with_the_question(url: str, when: str) -> None:
    with Memory(url, embedder="none") as memory:
        memory.remember("an ordinary memory that stays")
        nuts, other = memory.remember_many([f"Alice eats {WORD} for lunch", "Alice eats bread for breakfast"])
        made = ask(memory, f"does Alice eat {WORD} for lunch or breakfast?", min_relevance=0.0).id
        if when == "once it is written":
            assert {used.id for used in memory.sources(made).memories} >= {nuts.id, other.id}
        memory.forget(nuts.id, erase=True)
        answer = memory.sources(made)
        assert (answer.question, answer.question_sha256, answer.erased) == (None, None, 1)
        assert nuts.id not in {used.id for used in answer.memories}
        assert other.id in {used.id for used in answer.memories}
        assert traces(url, WORD.encode()) == []
        assert memory.doctor().ok


def test_what_another_process_has_not_written_yet_does_not_bring_erased_words_back(url: str) -> None:
    with Memory(url, embedder="none") as memory, Memory(url, embedder="none") as other:
        memory.remember("Alice eats bread for breakfast")
        nuts = memory.remember(f"Alice eats {WORD} for lunch")
        made = ask(other, f"does Alice eat {WORD} for lunch?", min_relevance=0.0).id
        memory.forget(nuts.id, erase=True)
        view_of(other).settle_answers()
        assert traces(url, WORD.encode()) == []
        assert nuts.id not in str([answer for answer in memory.answers() if answer.id == made])


def test_undo_brings_no_erased_words_back(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        talk = memory.conversations.start("lunch").id
        nuts = memory.remember(f"Alice eats {WORD} for lunch")
        bread = memory.remember("Alice eats bread for breakfast")
        made = ask(memory.at(conversation=talk), f"does Alice eat {WORD} for lunch?").id
        kept = ask(memory.at(conversation=talk), "who eats bread for breakfast?").id
        assert [used.id for used in memory.sources(kept).memories] == [bread.id]
        receipt = memory.forget(conversation=talk)
        assert ids(memory) == set()
        memory.forget(nuts.id, erase=True)
        assert traces(url, WORD.encode()) == []
        memory.undo(receipt.entries[0])
        assert ids(memory) == {kept}
        assert traces(url, WORD.encode()) == []
        assert made not in ids(memory)


def test_forgetting_a_conversation_takes_its_answers_and_undo_brings_them_back(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        memory.remember(TABS)
        talk = memory.conversations.start("indentation").id
        inside, outside = ask(memory.at(conversation=talk)).id, ask(memory).id
        before = memory.sources(inside)
        assert before.conversation == talk
        memory.forget(conversation=talk)
        assert ids(memory) == {outside}
        memory.undo()
        assert memory.sources(inside) == before
        memory.forget(conversation=talk, erase=True)
        assert ids(memory) == {outside}


def test_erasing_a_person_takes_the_persons_answers(url: str) -> None:
    with Memory(url, embedder="none") as memory:
        memory.remember(TABS)
        ask(memory.at(account="u1"), f"{ASKED} I like {WORD}")
        others = ask(memory.at(account="u2")).id, ask(memory).id
        memory.forget(account="u1", erase=True)
        assert ids(memory) == {*others}
        assert traces(url, WORD.encode()) == []


def test_a_memory_of_an_account_is_erased_from_the_answers_of_every_workspace(url: str) -> None:
    if url.startswith("notebook"):
        pytest.skip("a notebook has one workspace")
    with Memory(url, embedder="none") as memory:
        nuts = memory.at(account="u1").remember(f"I prefer {WORD} for lunch", tier="account")
        for workspace in ("default", "shop"):
            view = memory.at(workspace=workspace)
            view.remember("something else")
            ask(view.at(account="u1"), f"do I prefer {WORD} for lunch?")
            assert [used.id for used in view.answers()[0].memories] == [nuts.id]
        memory.at(account="u1").forget(nuts.id, erase=True)
        for workspace in ("default", "shop"):
            (answer,) = memory.at(workspace=workspace).answers()
            assert (answer.question, answer.memories, answer.erased) == (None, (), 1)
        assert traces(url, WORD.encode()) == []


def test_a_context_makes_no_workspace_and_brings_no_forgotten_one_back(url: str) -> None:
    if url.startswith("notebook"):
        pytest.skip("a notebook has one workspace")
    with Memory(url, embedder="none") as memory, Memory(url, embedder="none") as other:
        memory.at(account="u1").remember(TABS, tier="account")
        shop = memory.at(workspace="shop")
        shop.remember(TABS)
        assert ask(other.at(workspace="shop")).memories
        shop.forget(workspace="shop")
        assert ask(memory.at(workspace="typo", account="u1")).memories
        for one in (memory, other):
            view_of(one).settle_answers()
        assert not {"shop", "typo"} & {*memory.workspaces()}


def test_they_go_with_an_export_and_a_backup(tmp_path: Path) -> None:
    with Memory(tmp_path / "first", embedder="none") as memory:
        memory.remember(TABS)
        made = ask(memory).id
        out = io.BytesIO()
        memory.export(out)
        second = ask(memory).id
        memory.backup(tmp_path / "copy")
    with Memory(tmp_path / "other", embedder="none") as other:
        other.import_(io.BytesIO(out.getvalue()))
        assert other.sources(made).question == ASKED
        assert [used.content for used in other.sources(made).memories] == [TABS]
    with Memory(tmp_path / "copy", embedder="none") as copy:
        assert ids(copy) == {made, second}
    forged = json.loads(out.getvalue())
    next(thing for thing in forged["things"] if thing["shelf"] == "answers")["body"]["memories"] = [{"id": 7}]
    with Memory(tmp_path / "third", embedder="none") as third, pytest.raises(InputError, match="shelf answers"):
        third.import_(io.BytesIO(json.dumps(forged).encode()))


# Over HTTP


def test_over_http(tmp_path: Path) -> None:
    with Memory(tmp_path, embedder="none") as memory, served(memory) as server:
        memory.remember(TABS)
        with server.memory("member", agent="a") as a, server.memory("member", agent="b") as b:
            made = ask(a)
            assert a.sources(made.id).question == ASKED
            assert [answer.id for answer in a.answers(limit=1)] == [made.id]
            assert b.answers() == []
            with pytest.raises(NotFoundError):
                b.sources(made.id)
        with server.memory("reader") as reader:
            assert ids(reader) == {made.id}
            assert ask(reader).memories == made.memories
            assert ids(reader) == {made.id}  # a reader changes nothing
            with pytest.raises(AccessError):
                reader.forget(made.memories[0])


def test_time_is_that_of_the_memory(tmp_path: Path) -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    with Memory(tmp_path, embedder="none", clock=lambda: now) as memory:
        memory.remember(TABS)
        assert memory.sources(ask(memory).id).at == now
        assert view_of(memory).oldest_answer() == now - timedelta(days=30)
