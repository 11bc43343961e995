"""What an import puts on shelves is what the engine could have stored there itself; else nothing is imported."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support import plain
from support.served import served
from support.stores import STORES, located

from recollect import AccessError, InputError, Memory, RecollectError

AT = datetime(2026, 3, 1, 12, tzinfo=UTC).isoformat()


@pytest.fixture(params=STORES)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    with Memory(located(request.param, tmp_path / "m"), embedder="none") as memory:
        yield memory


def thing(
    shelf: str, key: str, body: dict[str, Any], *, account: str | None = "mallory", parent: str | None = None
) -> dict[str, Any]:
    owner = {"parent": parent, "account": account, "agent": None}
    return {"shelf": shelf, "key": key, "body": body, **owner, "created_at": AT, "changed_at": AT, "version": 1}


def talk(key: str = "c1", **fields: Any) -> dict[str, Any]:
    body = {"title": "t", "channel_id": "x", "channel": "general", "status": "active", "ended_at": None}
    return thing("conversations", key, body | {"ref_code": "AAAAAAAAAAA"} | fields, parent="c1")


def room(key: str, **fields: Any) -> dict[str, Any]:
    return thing("channels", key, {"id": "a", "workspace": "default", "name": key, "description": ""} | fields)


def ref(code: str, /, **fields: Any) -> dict[str, Any]:
    return thing("ref_codes", code, {"conversation": "c1", "key": "c1"} | fields, parent="c1")


def case(**fields: Any) -> dict[str, Any]:
    return thing("cases", "k", {"question": "q", "texts": ["x"]} | fields)


def note(**fields: Any) -> dict[str, Any]:
    return thing("scratchpad", "k", {"key": "k", "value": 1} | fields, parent="c1")


def document(*things: dict[str, Any]) -> bytes:
    return json.dumps({"format": "recollect", "schema_version": 1, "memories": [], "things": things}).encode()


UNREADABLE: dict[str, dict[str, Any]] = {
    "a title of null": talk(title=None),
    "a title of 5": talk(title=5),
    "a title of two lines": talk(title="a\nb"),
    "a title too long": talk(title="x" * 201),
    "a status": talk(status="bogus"),
    "an end in words": talk(ended_at="never"),
    "an end of 5": talk(ended_at=[5]),
    "a channel of a list": talk(channel=[1]),
    "a channel of blanks": talk(channel="  "),
    "a ref code of an object": talk(ref_code={}),
    "the key of another's conversation": talk('["c1","ann",null]'),
    "a question of 5": case(question=5),
    "a limit in words": case(limit="x"),
    "a limit of 0": case(limit=0),
    "ids of 5": case(ids=5),
    "ids that are none": case(ids=["a b"]),
    "a note's key of 5": note(key=5),
    "a note's key of an object": note(key={}),
    "a channel's name of 5": room("k", name=5),
    "a channel under another key": room("k", name="general"),
    "a channel's description of false": room("k", description=False),
    "general with a description": room("general", description="HACKED"),
    "general with an owner": room("general"),
    "a ref code to 5": ref("BBBBBBBBBBB", key=5),
    "a ref code to a list": ref("BBBBBBBBBBB", key=[], conversation={}),
    "a ref code to nothing": ref("BBBBBBBBBBB"),
    "a ref code that is none": ref("my-conversation"),
    "no shelf": thing("keys", "k", {}),
}


@pytest.mark.parametrize("bad", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_thing_that_no_facet_could_have_stored_is_refused(memory: Memory, bad: dict[str, Any]) -> None:
    mallory = memory.at(account="mallory")
    with pytest.raises(InputError, match="thing 2") as refused:
        mallory.import_(io.BytesIO(document(room("lab", description="mine"), bad)))
    assert refused.value.field == "source"
    assert [channel.name for channel in memory.channels.list()] == ["general"]
    assert memory.conversations.list() == memory.cases.list() == []


@pytest.mark.parametrize("shelf", ["jobs", "reviews"])
def test_what_concerns_everybody_is_imported_by_a_view_of_everything(memory: Memory, shelf: str) -> None:
    body = {"job": "decay", "last_run": AT} if shelf == "jobs" else {"told": "x"}
    for account in ("mallory", None):
        with pytest.raises(AccessError, match="thing 1"):
            memory.at(account="mallory").import_(io.BytesIO(document(thing(shelf, "decay", body, account=account))))
    memory.import_(io.BytesIO(document(thing(shelf, "decay", body, account=None))))
    with pytest.raises(InputError, match="thing 1"):
        memory.import_(io.BytesIO(document(thing(shelf, "other", {"job": 5, "told": 5}, account=None))))


def test_an_import_over_http_breaks_no_list(memory: Memory) -> None:
    with served(memory) as server:
        mallory = server.headers("member", tenant="default", account="mallory")
        ann = server.headers("member", tenant="default", account="ann")
        for name, bad in UNREADABLE.items():
            answer = plain.post(f"{server.url}/v1/import", headers=mallory, content=document(bad))
            assert answer.status_code == 400, name
            assert "thing 1" in answer.text
        for path in ("/conversations", "/channels", "/cases"):
            assert plain.get(f"{server.url}/v1{path}", headers=ann).status_code == 200


def test_everything_on_the_shelves_survives_a_move_to_another_workspace(memory: Memory) -> None:
    source, target = memory.at(workspace="one"), memory.at(workspace="two")
    source.channels.create("ops", "what runs where")
    talks = [source.conversations.start("a"), source.conversations.start("b", channel="ops")]
    source.conversations.end(talks[0].id)
    source.at(conversation=talks[1].id).scratchpad.write("k", {"a": 1})
    source.cases.save("q", texts=["x"])
    out = io.BytesIO()
    source.export(out)
    target.channels.create("ops", "the same name, another id")
    target.import_(io.BytesIO(out.getvalue()))
    assert target.channels.get("general").workspace_id == "two"
    assert [one.id for one in target.conversations.list(channel="general", status="idle")] == [talks[0].id]
    assert [one.id for one in target.conversations.list(channel="ops")] == [talks[1].id]
    assert target.conversations.get(talks[1].ref_code).title == "b"
    assert target.at(conversation=talks[1].id).scratchpad.read("k") == {"a": 1}
    assert [one.question for one in target.cases.list()] == ["q"]


def test_an_account_imports_its_own_conversation(memory: Memory) -> None:
    ann = memory.at(account="ann")
    talk = ann.conversations.start("mine")
    out = io.BytesIO()
    ann.export(out)
    ann.forget(account="ann")
    with pytest.raises(RecollectError):
        ann.conversations.get(talk.ref_code)
    ann.import_(io.BytesIO(out.getvalue()))
    assert ann.conversations.get(talk.ref_code).title == "mine"
