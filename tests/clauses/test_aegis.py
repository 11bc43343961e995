"""Aegis, "Agent Memory Spec": secrets are refused and repeated nowhere, and words in common rank.

No secret stands in this file in one piece, so that scanners of the repository have nothing to find.
"""

import io
import json
import logging
import traceback
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from recollect import InputError, Memory, SecretError

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MARK = "Quagga"
"""In every secret here, so that any piece of one that got anywhere is found."""

SECRETS = {
    "sk-": "my key is sk-" + MARK,
    "ghp_": "use gh" + "p_" + MARK,
    "gho_": "use gh" + "o_" + MARK,
    "glpat-": "gl" + "pat-" + MARK,
    "xoxb-": "xo" + "xb-" + MARK,
    "xoxp-": "xo" + "xp-" + MARK,
    "Bearer": "Authorization: Bear" + "er " + MARK,
    "token": "token" + ": " + MARK,
    "password": "the Password" + ": " + MARK,
    "blob": "it is " + MARK + "aB3" * 12,
}


@pytest.fixture
def aegis(tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path / "memory", preset="aegis", clock=lambda: NOW) as memory:
        memory.remember("something harmless", tags=["first"])
        yield memory


def _first(memory: Memory) -> str:
    return memory.list(newest_first=False)[0].id


def _forged(memory: Memory, secret: str) -> io.BytesIO:
    out = io.BytesIO()
    memory.export(out)
    document = json.loads(out.getvalue())
    document["memories"][0]["metadata"] = {"note": secret}
    return io.BytesIO(json.dumps(document).encode())


WAYS: dict[str, Callable[[Memory, str], object]] = {
    "text": lambda m, secret: m.remember(secret),
    "JSON": lambda m, secret: m.remember({"notes": ["fine", {"more": secret}]}),
    "metadata": lambda m, secret: m.remember("fine", metadata={"note": secret}),
    "source": lambda m, secret: m.remember("fine", source=secret),
    "one of many": lambda m, secret: m.remember_many(["fine", {"content": secret}]),
    "revision": lambda m, secret: m.revise(_first(m), content=secret),
    "reason": lambda m, secret: m.forget(_first(m), reason=secret),
    "audit": lambda m, secret: m.audit.record("note", secret),
    "import": lambda m, secret: m.import_(_forged(m, secret)),
}


@pytest.mark.clause("AEG-03")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", SECRETS)
def test_a_secret_is_refused_with_the_documents_words_and_repeated_nowhere(
    tmp_path: Path, aegis: Memory, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture,
    kind: str, way: str,
) -> None:  # fmt: skip
    caplog.set_level(logging.DEBUG)
    before = aegis.list(state=None)
    with pytest.raises(SecretError) as caught:
        WAYS[way](aegis, SECRETS[kind])
    error = caught.value
    assert "text appears to contain a secret — not stored" in str(error)
    assert str(error) == f"{error.field}: {error.problem}"
    assert aegis.list(state=None) == before
    (entry,) = aegis.audit.search(limit=1)
    assert (entry.action, entry.meta["error"], entry.meta["rule"]) == ("refuse", "SecretError", error.rule)
    aegis.close()
    told = [str(error), repr(error), repr(error.args), repr(vars(error)), repr(entry), caplog.text, *capfd.readouterr()]
    told += traceback.format_exception(error)
    assert MARK not in "".join(told)
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and MARK.encode() in path.read_bytes()]


@pytest.mark.clause("AEG-03")
@pytest.mark.parametrize("preset", ["aegis", "recollect"])
@pytest.mark.parametrize("prefix", ["sk-", "gh" + "p_", "gl" + "pat-", "xo" + "xb-"])
def test_a_tag_can_be_a_secret_too(tmp_path: Path, preset: str, prefix: str) -> None:
    with Memory(tmp_path / "memory", preset=preset) as memory:
        with pytest.raises(SecretError, match="tags: text appears to contain a secret") as caught:
            memory.remember("fine", tags=["fine", f"{prefix}{MARK}1234567890"])
        assert MARK not in repr(caught.value)
        assert memory.stats().total == 0
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and MARK.encode() in path.read_bytes()]


@pytest.mark.clause("AEG-03")
@pytest.mark.parametrize(
    "text",
    [
        "User prefers Python over JavaScript",
        "Project uses PostgreSQL 16 on port 5432",
        "tokens are counted, passwords are not stored",
        "the risk-free task",
        "commit " + "0123456789abcdef" * 2 + "01234567",
        "ABC" * 12 + "ab1",
    ],
)
def test_ordinary_text_is_not_taken_for_a_secret(aegis: Memory, text: str) -> None:
    assert aegis.remember(text).content == text


def test_text_has_at_most_500_characters_and_5_tags(aegis: Memory) -> None:
    assert aegis.remember("x y " * 125, tags=list("abcde")).tags == tuple("abcde")
    with pytest.raises(InputError, match="content: 501 characters is over the limit of 500"):
        aegis.remember("x y " * 125 + "z")
    with pytest.raises(InputError, match="tags: 6 tags are over the limit of 5"):
        aegis.remember("fine", tags=list("abcdef"))


@pytest.mark.clause("AEG-10")
def test_a_recall_is_ranked_by_words_in_common_and_recency(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory", preset="aegis", clock=lambda: NOW) as memory:
        memory.remember("Deploy target is AWS us-east-1", created_at=NOW - timedelta(hours=2))
        memory.remember("The deploy of the project", created_at=NOW - timedelta(minutes=3))
        hits = memory.recall("what is the AWS target for the deploy of this project")
    told = [{part.name: part.value for part in hit.explain().parts} for hit in hits]
    assert told == [
        {"words": 3.0, "recency": pytest.approx(0.1 / 2)},  # deploy, target, aws
        {"words": 1.0, "recency": 1.0},  # deploy; project is a stopword
    ]
    assert [hit.score for hit in hits] == pytest.approx([3.05, 2.0])
    assert all(hit.explain().how == "sum" for hit in hits)


def test_the_folder_can_be_copied(tmp_path: Path, aegis: Memory) -> None:
    import shutil

    before = aegis.list()
    aegis.close()
    shutil.copytree(tmp_path / "memory", tmp_path / "copy")
    with Memory(tmp_path / "copy", preset="aegis") as copy:
        assert copy.list() == before
        assert copy.doctor().ok
