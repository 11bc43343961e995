"""What may be stored. Every refusal names the field and the limit, changes nothing, and is logged once."""

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from recollect import InputError, Memory
from recollect.policies.secrets import Screen
from recollect.presets import Preset
from recollect.values.validation import MAX_CONTENT_BYTES, MAX_DEPTH, MAX_DIMENSIONS, MAX_METADATA_BYTES
from recollect.verbs.diagnose import StoreStats

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
NAN, INFINITY = math.nan, math.inf


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    with Memory(tmp_path_factory.mktemp("validation") / "memory", clock=lambda: NOW) as memory:
        memory.remember("something that is there already")
        yield memory


def counts(memory: Memory) -> StoreStats:
    return replace(memory.stats(), size_bytes=0)


def nested(levels: int) -> Any:
    value: Any = "core"
    for _ in range(levels):
        value = [value]
    return value


class Circle(list[Any]):
    def __init__(self) -> None:
        super().__init__([self])


REFUSED: list[tuple[str, Any, str]] = [
    ("content", None, "must not be empty"),
    ("content", "", "must not be empty or blank"),
    ("content", " \n\t\u2003", "must not be empty or blank"),
    ("content", {}, "must not be empty"),
    ("content", [], "must not be empty"),
    ("content", (), "must not be empty"),
    ("content", "x" * (MAX_CONTENT_BYTES + 1), "1,048,577 bytes is over the limit of 1,048,576 bytes"),
    ("content", "ü" * (MAX_CONTENT_BYTES // 2 + 1), "1,048,578 bytes is over the limit of 1,048,576 bytes"),
    ("content", ["x" * MAX_CONTENT_BYTES], "1,048,580 bytes is over the limit of 1,048,576 bytes"),
    ("content", "half a \ud83d smile", "lone surrogate at character 7"),
    ("content", {"a": "\udc00"}, "lone surrogate"),
    ("content", {"\udc00": "a"}, "lone surrogate"),
    ("content", b"bytes", "it holds a bytes"),
    ("content", {"a": b"bytes"}, "it holds a bytes"),
    ("content", {"a": {1, 2}}, "it holds a set"),
    ("content", {"at": NOW}, "it holds a datetime"),
    ("content", object(), "it holds a object"),
    ("content", {1: "a"}, "has the key 1; JSON keys are text"),
    ("content", [{"a": {None: 1}}], "has the key None; JSON keys are text"),
    ("content", {("a", "b"): 1}, "has the key tuple; JSON keys are text"),
    ("content", NAN, "NaN or infinity"),
    ("content", {"a": [1.0, INFINITY]}, "NaN or infinity"),
    ("content", {"a": -INFINITY}, "NaN or infinity"),
    ("content", nested(MAX_DEPTH + 1), f"nested deeper than the limit of {MAX_DEPTH} levels"),
    ("content", Circle(), f"nested deeper than the limit of {MAX_DEPTH} levels"),
    ("metadata", "text", "must be a JSON object, not str"),
    ("metadata", [("a", 1)], "must be a JSON object, not list"),
    ("metadata", {1: 2}, "has the key 1; JSON keys are text"),
    ("metadata", {"a": NAN}, "NaN or infinity"),
    ("metadata", {"a": b""}, "it holds a bytes"),
    ("metadata", {"a": "\ud800"}, "lone surrogate"),
    ("metadata", {"a": "x" * MAX_METADATA_BYTES}, "65,544 bytes is over the limit of 65,536 bytes"),
    ("metadata", {"a": nested(MAX_DEPTH)}, f"nested deeper than the limit of {MAX_DEPTH} levels"),
    ("importance", -0.001, "-0.001 must be a number from 0 to 1"),
    ("importance", 1.001, "1.001 must be a number from 0 to 1"),
    ("importance", NAN, "nan must be a number from 0 to 1"),
    ("importance", INFINITY, "inf must be a number from 0 to 1"),
    ("importance", True, "True must be a number from 0 to 1"),
    ("importance", "0.5", "'0.5' must be a number from 0 to 1"),
    ("importance", [0.5], "list must be a number from 0 to 1"),
    ("importance", 10**5000, "int must be a number from 0 to 1"),
    ("kind", "", "'' must be 1 to 32 of a-z, 0-9, '_' or '-'"),
    ("kind", "Fact", "'Fact' must be 1 to 32 of a-z"),
    ("kind", "1st", "starting with a letter"),
    ("kind", "a b", "must be 1 to 32"),
    ("kind", "fact\n", r"'fact\n' must be 1 to 32"),
    ("kind", "x" * 33, "must be 1 to 32"),
    ("kind", "fäct", "must be 1 to 32 of a-z"),
    ("kind", 5, "5 must be 1 to 32"),
    ("tags", "style", "must be a list, not str"),
    ("tags", b"style", "must be a list, not bytes"),
    ("tags", 5, "must be a list, not int"),
    ("tags", [""], "'' must be 1 to 32 letters, digits, '-' or '_'"),
    ("tags", ["two words"], "'two words' must be 1 to 32 letters"),
    ("tags", ["x" * 33], "must be 1 to 32 letters"),
    ("tags", ["a..b"], "a '.' separates levels"),
    ("tags", [".a"], "a '.' separates levels"),
    ("tags", ["a."], "a '.' separates levels"),
    ("tags", ['a"b'], "must be 1 to 32 letters"),
    ("tags", ["a%"], "must be 1 to 32 letters"),
    ("tags", [None], "None must be 1 to 32 letters"),
    ("tags", [["a"]], "list must be 1 to 32 letters"),
    ("tags", [f"t{number}" for number in range(65)], "65 tags are over the limit of 64"),
    ("references", "abc", "must be a list, not str"),
    ("references", ["../x"], "'../x' must be 1 to 32 letters, digits, '_' or '-'"),
    ("references", ["x" * 33], "must be 1 to 32 letters, digits"),
    ("references", [f"r{number}" for number in range(257)], "257 references are over the limit of 256"),
    ("source", "", "must be 1 to 64 printable characters on one line"),
    ("source", "two\nlines", "must be 1 to 64 printable characters on one line"),
    ("source", "x" * 65, "must be 1 to 64 printable characters"),
    ("source", 5, "must be 1 to 64 printable characters"),
    ("source", "\ud800", "must be 1 to 64 printable characters"),
    ("role", "robot", "'robot' must be one of user, assistant, system, tool_result"),
    ("role", ["user"], "list must be one of user"),
    ("tier", "galaxy", "'galaxy' must be one of account, workspace, channel, conversation"),
    ("tier", "channel", "is needed for a memory of the tier channel"),
    ("tier", "conversation", "is needed for a memory of the tier conversation"),
    ("lifetime", "for_ever", "'for_ever' must be one of long_term, short_term, conversation"),
    ("conversation", "", "'' must be 1 to 64 bytes of printable text"),
    ("conversation", "a\nb", "must be 1 to 64 bytes of printable text"),
    ("conversation", " a", "without spaces at its ends"),
    ("channel", "x" * 65, "must be 1 to 64 bytes"),
    ("channel", "ä" * 33, "must be 1 to 64 bytes"),
    ("channel", 7, "7 must be 1 to 64 bytes"),
    ("created_at", "soon", "'soon' is not an ISO 8601 time"),
    ("created_at", 1_700_000_000, "must be a datetime or ISO 8601 text, not int"),
    ("expires_at", "2026-99-01", "is not an ISO 8601 time"),
    ("expires_at", NOW, "must be later than created_at"),
    ("expires_at", NOW - timedelta(days=1), "must be later than created_at"),
    ("embedding", [], f"0 dimensions are outside 1 to {MAX_DIMENSIONS}"),
    ("embedding", [0.0] * (MAX_DIMENSIONS + 1), f"{MAX_DIMENSIONS + 1} dimensions are outside 1 to {MAX_DIMENSIONS}"),
    ("embedding", [0.1, NAN], "must not contain NaN or infinity"),
    ("embedding", [0.1, INFINITY], "must not contain NaN or infinity"),
    ("embedding", [INFINITY, -INFINITY], "must not contain NaN or infinity"),
    ("embedding", [1e39], "must be a sequence of numbers that fit float32"),
    ("embedding", ["0.1"], "must be a sequence of numbers that fit float32"),
    ("embedding", "0.1", "must be a sequence of numbers that fit float32"),
    ("embedding", b"\x00\x00\x80\x3f", "must be a sequence of numbers that fit float32"),
    ("embedding", 0.5, "must be a sequence of numbers that fit float32"),
    ("embedding_model", "", "must be 1 to 64 printable characters"),
]


@pytest.mark.clause("LED-20", "INK-02")
@pytest.mark.parametrize(
    ("field", "value", "problem"), REFUSED, ids=[f"{field}-{n}" for n, (field, _, _) in enumerate(REFUSED)]
)
def test_a_bad_value_is_refused_by_field_and_limit_and_changes_nothing(
    memory: Memory, field: str, value: Any, problem: str
) -> None:
    before, logged = counts(memory), memory.audit.verify()[0].entries
    with pytest.raises(InputError) as caught:
        memory.remember_many([{"content": "fine"}, {"content": "fine too", field: value}])
    error = caught.value
    assert problem in str(error)
    assert str(error).startswith(f"{error.field}: ")
    assert error.field == (value if problem.startswith("is needed") else field)
    assert len(str(error)) < 250
    assert isinstance(error, ValueError)
    assert counts(memory) == before
    assert memory.audit.verify()[0].entries == logged + 1
    (entry,) = memory.audit.search(limit=1)
    assert (entry.action, entry.meta["verb"], entry.meta["field"]) == ("refuse", "remember", error.field)


ACCEPTED: list[tuple[str, Any, Any]] = [
    ("content", "x" * MAX_CONTENT_BYTES, "x" * MAX_CONTENT_BYTES),
    ("content", ["ü" * (MAX_CONTENT_BYTES // 2 - 2)], ["ü" * (MAX_CONTENT_BYTES // 2 - 2)]),
    ("content", nested(MAX_DEPTH), nested(MAX_DEPTH)),
    ("content", "a\x00b\r\n\u2028\x1f", "a\x00b\r\n\u2028\x1f"),
    ("content", ("a", ("b", {"c": (1,)})), ["a", ["b", {"c": [1]}]]),
    ("content", False, False),
    ("content", 0, 0),
    ("content", {"a": None}, {"a": None}),
    ("content", 2**70, 2**70),
    ("importance", 0, 0.0),
    ("importance", 1, 1.0),
    ("kind", "x" * 32, "x" * 32),
    ("kind", "a-b_9", "a-b_9"),
    ("tags", ["x" * 32, "a.b.c", "größe", "_-"], ("x" * 32, "a.b.c", "größe", "_-")),
    ("tags", ("b", "a", "b"), ("b", "a")),
    ("tags", (tag for tag in ("from", "a", "generator")), ("from", "a", "generator")),
    ("tags", [f"t{number}" for number in range(64)], tuple(f"t{number}" for number in range(64))),
    ("references", ["a", "a", "_-9"], ("a", "_-9")),
    ("metadata", {"a": ("b", 1.5)}, {"a": ["b", 1.5]}),
    ("metadata", {"a": nested(MAX_DEPTH - 1)}, {"a": nested(MAX_DEPTH - 1)}),
    ("source", "Größe & co. <x>", "Größe & co. <x>"),
    ("role", "tool_result", "tool_result"),
    ("lifetime", "short_term", "short_term"),
    ("created_at", datetime(2026, 2, 1, 8), datetime(2026, 2, 1, 8, tzinfo=UTC)),
    ("created_at", "2026-02-01T08:00:00+05:30", datetime(2026, 2, 1, 2, 30, tzinfo=UTC)),
    ("created_at", "0001-01-01", datetime(1, 1, 1, tzinfo=UTC)),
    ("expires_at", "9999-12-31T23:59:59.999999Z", datetime.max.replace(tzinfo=UTC)),
]


@pytest.mark.parametrize(("field", "value", "kept"), ACCEPTED, ids=range(len(ACCEPTED)))
def test_a_value_within_the_limits_comes_back_as_it_went(memory: Memory, field: str, value: Any, kept: Any) -> None:
    stored = memory.remember_many([{"content": "fine", field: value, "again": True}])[0]
    assert getattr(stored, field) == kept
    assert memory.get(stored.id) == stored


@pytest.mark.parametrize("part", ["conversation", "channel"])
@pytest.mark.parametrize("name", ["a", "9", "_", "x" * 64, "Ada.Lovelace@example.org", "a+b-c"])
def test_names_may_have_what_addresses_have(memory: Memory, part: str, name: str) -> None:
    stored = memory.remember("fine", **{part: name})
    assert getattr(memory.get(stored.id).address, part) == name


def test_an_embedding_is_kept_as_float32(memory: Memory) -> None:
    stored = memory.get(memory.remember("fine", embedding=[0.5, -1, 0.1], embedding_model="mini").id)
    assert stored.floats == pytest.approx((0.5, -1.0, 0.1))
    assert stored.floats[:2] == (0.5, -1.0)
    assert stored.embedding_model == "mini"


@pytest.mark.parametrize("name", ["bogus", "Content", "id", "", 5, "\ud800", "x" * 500])
def test_an_unknown_field_is_named(memory: Memory, name: Any) -> None:
    before = counts(memory)
    with pytest.raises(InputError, match="is not a field of a memory; known: again, channel, content") as caught:
        memory.remember_many([{"content": "fine"}, {"content": "fine", name: "x"}])
    assert caught.value.field[:4] == str(name)[:4].replace("\ud800", "\\ud8")
    assert counts(memory) == before


@pytest.mark.parametrize("items", ["a text", b"bytes", {"content": "one dict"}, 5, None])
def test_many_are_given_as_a_list(memory: Memory, items: Any) -> None:
    before = counts(memory)
    with pytest.raises(InputError, match=r"^items: must be a list"):
        memory.remember_many(items)
    assert counts(memory) == before


@pytest.mark.parametrize("item", [5, None, ["a"], b"x"])
def test_each_of_many_is_text_or_a_dict(memory: Memory, item: Any) -> None:
    with pytest.raises(InputError, match=r"^items: each must be text or a dict"):
        memory.remember_many(["fine", item])


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        (5, "must be text, not int"),
        (None, "must be text, not NoneType"),
        ("\ud800", "lone surrogate at character 0"),
        ("x" * (MAX_CONTENT_BYTES + 1), "over the limit of 1,048,576 bytes"),
    ],
)
def test_a_query_is_text(memory: Memory, query: Any, problem: str) -> None:
    with pytest.raises(InputError, match=rf"^query: .*{problem}"):
        memory.recall(query)


@pytest.mark.parametrize("limit", [0, -1, True, 1.0, "5", 1001, 10**5000], ids=range(7))
def test_a_limit_is_a_whole_number_in_its_range(memory: Memory, limit: Any) -> None:
    with pytest.raises(InputError, match=r"^limit: .*must be a whole number from 1 to 1,000$"):
        memory.recall("build", limit=limit)


@pytest.mark.parametrize("zone", ["Nope/X", "Europe/Vienna", 2, timedelta(hours=2)], ids=repr)
def test_a_zone_is_a_time_zone(memory: Memory, zone: Any) -> None:
    talk = [{"role": "user", "content": "the build"}]
    for ask in (
        lambda: memory.recall("build", zone=zone),
        lambda: memory.context(talk, zone=zone),
        lambda: memory.orient("build", zone=zone),
    ):
        with pytest.raises(InputError, match=r"^zone: .*must be a time zone"):
            ask()


@pytest.mark.parametrize(
    ("condition", "problem"),
    [
        ({"state": "gone"}, "must be one of live, expired, archived, superseded"),
        ({"kind": "No"}, "must be 1 to 32"),
        ({"tier": "no"}, "must be one of account"),
        ({"role": "no"}, "must be one of user"),
        ({"source": ""}, "must be 1 to 64 printable"),
        ({"tags": "no"}, "must be a list"),
        ({"since": "no"}, "ISO 8601"),
        ({"until": 5}, "ISO 8601"),
        ({"min_importance": 2}, "number from 0 to 1"),
        ({"conversation": "no\n"}, "must be 1 to 64"),
    ],
)
def test_a_condition_is_checked_like_the_field_it_is_about(
    memory: Memory, condition: dict[str, Any], problem: str
) -> None:
    (field,) = condition
    with pytest.raises(InputError, match=rf"^{field}: .*{problem}"):
        memory.list(**condition)
    if field != "state":
        with pytest.raises(InputError, match=rf"^{field}: .*{problem}"):
            memory.recall("build", **condition)


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(
    SCALARS | TEXT, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4), max_leaves=12
)
CONTENT = JSON.filter(lambda value: value not in (None, [], {}) and not (isinstance(value, str) and not value.strip()))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(CONTENT, min_size=1, max_size=8), st.dictionaries(TEXT, JSON, max_size=3))
def test_any_content_survives_storing_exporting_and_importing(contents: list[Any], metadata: dict[str, Any]) -> None:
    plain = Preset(name="plain", secrets=Screen(enabled=False))
    with TemporaryDirectory() as name:
        folder = Path(name)
        with Memory(folder / "one", preset=plain) as one, Memory(folder / "two", preset=plain) as two:
            stored = one.remember_many({"content": content, "metadata": metadata} for content in contents)
            assert json.dumps([record.content for record in stored]) == json.dumps(contents)
            one.export(folder / "export.json")
            two.import_(folder / "export.json")
            for record in stored:
                assert one.get(record.id) == two.get(record.id) == record
                assert json.dumps(two.get(record.id).content) == json.dumps(record.content)
                assert json.dumps(two.get(record.id).metadata) == json.dumps(metadata)
