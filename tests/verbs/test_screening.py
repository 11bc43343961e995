"""Every field that is kept is screened for secrets, and a refusal repeats nothing. None stands here in one piece."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from support.stores import STORES, located, traces

from recollect import InputError, Memory, SecretError
from recollect.values.record import Record, new_id
from recollect.verbs.export import _encode as encode  # pyright: ignore[reportPrivateUsage]

KEY = "sk-" + "proj-4f9d2c7b1a8e"
"""Short enough for an id, and legal as a name, an id and a kind."""
LONG = "gh" + "p_" + "aB3dE5gH7jK9mN1pQ3sT5vX7zA9cE1gI3kM5"
UUID = "550e8400-e29b-41d4-a716-446655440000"
SHA = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return located(request.param, tmp_path / "memory")


@pytest.fixture
def memory(url: str) -> Iterator[Memory]:
    with Memory(url) as memory:
        yield memory


def is_refused(memory: Memory, url: str, field: str, secret: str, verb: Callable[[], object]) -> bool:
    """In the error, its chain, the files and their names there is nothing of it."""
    with pytest.raises(SecretError) as caught:
        verb()
    assert caught.value.field == field
    shown: BaseException | None = caught.value
    while shown is not None:
        assert secret not in f"{shown!r}"
        shown = None if shown.__suppress_context__ else shown.__context__
    memory.close()
    assert traces(url, secret.encode()) == []
    return True


FIELDS: list[tuple[str, dict[str, Any]]] = [
    ("kind", {"kind": KEY}),
    ("kind", {"kind": LONG}),
    ("conversation", {"conversation": KEY}),
    ("conversation", {"conversation": "password" + ":hunter2"}),
    ("channel", {"channel": KEY}),
    ("references", {"references": [KEY]}),
    ("references", {"references": (LONG,)}),
    ("references", {"references": {KEY}}),
    ("tags", {"tags": [KEY]}),
    ("source", {"source": KEY}),
    ("embedding_model", {"embedding": [1.0], "embedding_model": KEY}),
    ("metadata", {"metadata": {"name": "DB_PASS" + "WORD", "value": "hunter2hunter2"}}),
]


@pytest.mark.clause("AEG-03")
@pytest.mark.parametrize(("field", "given"), FIELDS, ids=[f"{field}-{at}" for at, (field, _) in enumerate(FIELDS)])
def test_no_field_of_a_memory_takes_a_secret(
    memory: Memory, url: str, caplog: pytest.LogCaptureFixture, field: str, given: dict[str, Any]
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = next((text for text in (KEY, LONG) if text in str(given)), "hunter2")
    record = memory.remember("a heron")
    assert is_refused(memory, url, field, secret, lambda: memory.remember("a fox", **given))
    if not {"conversation", "channel"} & given.keys():
        assert is_refused(memory, url, field, secret, lambda: memory.revise(record.id, **given))
    assert secret not in caplog.text
    assert memory.audit.search("refused")[0].meta["field"] == field


@pytest.mark.parametrize("part", ["tenant", "workspace", "account", "channel", "conversation", "agent"])
def test_nothing_is_written_under_a_name_that_is_a_secret(memory: Memory, url: str, part: str) -> None:
    view = memory.at(**{part: KEY})
    record = memory.remember("a heron")
    export = io.BytesIO()
    memory.export(export)
    assert is_refused(memory, url, part, KEY, lambda: view.remember("a fox"))
    assert is_refused(memory, url, part, KEY, lambda: view.audit.record("note", "did something"))
    assert is_refused(memory, url, part, KEY, lambda: view.import_(io.BytesIO(export.getvalue())))
    if part not in ("tenant", "workspace", "channel"):
        assert is_refused(memory, url, part, KEY, lambda: view.revise(record.id, content="a fox"))
    if part == "conversation":
        assert is_refused(memory, url, part, KEY, lambda: view.scratchpad.write("plan", "rest"))
    with pytest.raises(InputError):
        view.remember(" ")  # refused for another reason, which is logged too
    assert view.list() is not None  # what is there already can be read, and forgotten
    with pytest.raises(SecretError, match=f"^{part}: "):
        memory.at(**{part: "password" + ":hunter2"}).remember("a fox")


def test_an_agent_whose_name_is_a_secret_is_not_in_the_audit_log(memory: Memory, url: str) -> None:
    record = memory.remember("a heron")
    memory.at(agent=KEY).forget(record.id)
    memory.close()
    assert traces(url, KEY.encode()) == []


def exported(record: Record, **changes: Any) -> bytes:
    """As an export of an older recollect may have it."""
    record = replace(record, id=new_id(), **changes)
    head = b'{"format":"recollect","schema_version":1,"memories":[\n'
    return head + encode(replace(record, checksum=record.digest())) + b"\n]}\n"


@pytest.mark.parametrize(
    ("field", "secret"),
    [("kind", KEY), ("kind", LONG), ("references", KEY), ("embedding_model", KEY), ("source", LONG), ("tags", KEY)],
)
def test_an_import_takes_no_secret_in_any_field(memory: Memory, url: str, field: str, secret: str) -> None:
    value = (secret,) if field in ("tags", "references") else secret
    document = exported(memory.remember("a heron"), **{field: value})
    assert is_refused(memory, url, field, secret, lambda: memory.import_(io.BytesIO(document)))


@pytest.mark.parametrize("part", ["account", "channel", "conversation", "agent"])
def test_an_import_takes_no_secret_for_a_name(memory: Memory, url: str, part: str) -> None:
    record = memory.remember("a heron")
    document = exported(record, address=replace(record.address, **{part: KEY}))
    assert is_refused(memory, url, part, KEY, lambda: memory.import_(io.BytesIO(document)))


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("user_id", {"user_id": "gh" + "p_aB3dE5gH7jK9"}),
        ("session_id", {"user_id": "bob", "session_id": "gh" + "p_aB3dE5gH7jK9"}),
        ("preferences", {"user_id": "bob", "preferences": {"custom": {"api_" + "key": "9f8e7d6c5bgh"}}}),
        ("preferences", {"user_id": "bob", "preferences": {"language": "gh" + "p_aB3dE5gH7jK9"}}),
    ],
)
def test_a_session_takes_no_secret(tmp_path: Path, field: str, given: dict[str, Any]) -> None:
    with Memory(url := f"ledger:{tmp_path / 'memory'}", preset="ledger") as memory:
        secret = "gh" + "p_aB3" if "gh" + "p_" in str(given) else "9f8e7d6c5bgh"
        assert is_refused(memory, url, field, secret, lambda: memory.sessions.create(**given))
        assert memory.sessions.list() == []


ULID = "01J9ZQ3W8X5V7T2R4P6N8M0K1H"


@pytest.mark.parametrize("name", [UUID, UUID.replace("-", ""), SHA, SHA.upper(), ULID, "alice@example.com"])
def test_ids_of_other_programs_are_no_secrets(memory: Memory, name: str) -> None:
    view = memory.at(workspace=name, account=name, agent=name)
    record = view.remember("a heron", conversation=name, channel=name, source=name, references=[UUID[:32], ULID])
    assert view.revise(record.id, content="a fox", metadata={"name": "commit", "value": SHA}).content == "a fox"


BLOB = "aB3dE5gH7jK9mN1pQ3sT5vX7zA9cE1gI3kM5oQ7sU9wY1"


def test_an_id_of_mixed_letters_is_no_secret_for_a_conversation(memory: Memory) -> None:
    assert memory.remember("a heron", conversation=BLOB, channel=BLOB)
    with pytest.raises(SecretError):
        memory.remember(f"a heron {BLOB}")


def test_a_secret_in_json_by_the_name_beside_it(memory: Memory) -> None:
    pair = {"name": "DB_PASS" + "WORD", "value": "hunter2hunter2"}
    several = {"env": [{"name": "HOST", "value": "db1"}, pair]}
    for content in (pair, several, json.dumps(pair), json.dumps(several, indent=2)):
        with pytest.raises(SecretError):
            memory.remember(content)
