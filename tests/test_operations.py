"""The table of operations: every public method is in it, and says what it does in words and facts."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import msgspec
import pytest

from recollect import AsyncMemory, Memory
from recollect.operations import (
    OWNERS,
    Operation,
    all_operations,
    find_operation,
    former_names_of,
    operations_of,
    owner_class,
    served_operations,
    signature,
)
from recollect.remote.calls import remote
from recollect.server import openapi

_NO_OPERATIONS = {"at", "close", "conversation", "whiteboard"}
"""Methods that give a view or an object with methods of its own, and the end of it all."""
_NAMES = frozenset(
    ("account", "agent", "channel", "conversation", "id", "ids", "memory_id", "session_id", "step", "workflow")
)


def operations() -> Iterator[Operation]:
    yield from all_operations().values()


@pytest.mark.parametrize("owner", OWNERS, ids=lambda owner: owner or "memory")
def test_every_public_method_is_an_operation(owner: str) -> None:
    public = {
        name
        for name, value in vars(owner_class(owner)).items()
        if inspect.isfunction(value) and not name.startswith("_")
    }
    verbs = {operation.verb for operation in operations_of(owner).values()}
    assert public - set(former_names_of(owner)) - verbs <= _NO_OPERATIONS
    assert verbs <= public


def test_every_argument_has_words_that_end_with_a_stop() -> None:
    wordless = [
        f"{operation.name}.{parameter.name}"
        for operation in operations()
        for parameter in signature(operation.name).takes
        if not parameter.doc.endswith((".", "…"))
    ]
    outcomes = {f"moments.record_{kind}" for kind in ("task", "tool", "decision", "content", "delegation")}
    # What `remember` takes besides is written down there.
    assert [name for name in wordless if name.rpartition(".")[0] not in outcomes] == []


def test_every_operation_says_in_a_sentence_what_it_does() -> None:
    wordless = [name for name in all_operations() if not signature(name).doc.partition("\n")[0].endswith((".", ":"))]
    assert wordless == []


def test_an_argument_that_names_something_says_what() -> None:
    unnamed = [
        f"{operation.name}.{parameter.name}"
        for operation in operations()
        for parameter in signature(operation.name).takes
        if parameter.name in _NAMES and not parameter.names and parameter.hint is not bool
    ]
    made_by_the_call = {"sessions.create.session_id"}
    recorded = {f"moments.record_{kind}" for kind in ("task", "tool", "decision", "content", "delegation")}
    assert {name for name in unnamed if name.rpartition(".")[0] not in recorded} <= made_by_the_call


def test_what_an_operation_does_fits_its_method_and_rank() -> None:
    for operation in served_operations().values():
        if operation.method == "GET":
            assert operation.does == "reads", operation.name
        if operation.method == "DELETE":
            assert operation.does == "removes", operation.name
        assert (operation.rank == "reader") is (operation.does == "reads") or operation.rank == "admin", operation.name


def test_openapi_has_one_status_and_words_for_every_argument() -> None:
    document = msgspec.json.decode(openapi.document())
    by_id = {call["operationId"]: call for methods in document["paths"].values() for call in methods.values()}
    for operation in served_operations().values():
        call = by_id[operation.name]
        assert set(call["responses"]) == {"201" if operation.does == "creates" else "200", "default"}, operation.name
        body = call.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
        fields = document["components"]["schemas"].get(body.get("$ref", "").rpartition("/")[2], {})
        described = {name: part.get("description") for name, part in fields.get("properties", {}).items()}
        for parameter in call["parameters"]:
            described[parameter["name"]] = parameter.get("description") or parameter["schema"].get("description")
        for parameter in signature(operation.name).takes:
            assert parameter.name in described, (operation.name, parameter.name)
            assert (described[parameter.name] or "") == parameter.doc, (operation.name, parameter.name)


def test_remote_and_async_memories_take_the_same_arguments() -> None:
    for name, operation in operations_of("").items():
        plain = inspect.signature(getattr(Memory, name))
        assert inspect.signature(getattr(AsyncMemory, name)).parameters == plain.parameters, name
        if name in served_operations():
            assert inspect.signature(getattr(remote(Memory), operation.verb)).parameters == plain.parameters, name


def test_a_former_name_is_no_operation() -> None:
    with pytest.raises(KeyError):
        find_operation("conversations.idle")
    assert list(former_names_of("conversations")) == ["idle"]
