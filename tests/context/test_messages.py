"""A caller's conversation: read in every style, cut only between units, never changed."""

import copy
from itertools import count as numbers
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.context.messages import Transcript, parse, result_of, text_of, tokens_of
from recollect.values.errors import InputError

Message = dict[str, Any]
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 100_000}}


def _user(text: str) -> Message:
    return {"role": "user", "content": text}


def _said(text: str) -> Message:
    return {"role": "assistant", "content": text}


def _calls(*ids: str) -> Message:
    calls = [{"id": id, "type": "function", "function": {"name": "look", "arguments": "{}"}} for id in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _result(id: str, content: Any = "sunny") -> Message:
    return {"role": "tool", "tool_call_id": id, "content": content}


def _uses(*ids: str) -> Message:
    uses = [{"type": "tool_use", "id": id, "name": "look", "input": {}} for id in ids]
    return {"role": "assistant", "content": [{"type": "text", "text": "I look."}, *uses]}


def _used(*ids: str, content: Any = "sunny") -> Message:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": content} for id in ids]}


def _item(kind: str, id: str, **more: Any) -> Message:
    return {"type": kind, "call_id": id, **more}


def _sizes(messages: list[Message], **more: Any) -> list[int]:
    return [len(unit.messages) for unit in parse(messages, **more).units]


def _length(text: str) -> int:
    return len(text)


# Units


@pytest.mark.parametrize(
    ("messages", "sizes"),
    [
        ([], []),
        ([_user("hi"), _said("hello")], [1, 1]),
        ([_user("hi"), _calls("1"), _result("1"), _said("sunny")], [1, 2, 1]),
        ([_calls("1", "2", "3"), _result("1"), _result("2"), _result("3"), _user("thanks")], [4, 1]),
        ([_calls("1", "2"), _result("2"), _result("1"), _calls("3"), _result("3")], [3, 2]),
        ([_calls("1"), _user("wait"), _result("1"), _user("go on")], [3, 1]),
        ([_calls("1"), _calls("2"), _result("1"), _result("2"), _said("done")], [4, 1]),
        ([_calls("1"), _result("1"), _calls("1"), _result("1")], [2, 2]),
        ([{"role": "assistant", "function_call": {"name": "look"}}, {"role": "function", "content": "x"}], [2]),
    ],
)
def test_a_call_and_its_results_are_one_unit_for_openai(messages: list[Message], sizes: list[int]) -> None:
    assert _sizes(messages) == sizes


@pytest.mark.parametrize(
    ("messages", "sizes"),
    [
        ([_user("hi"), _uses("1"), _used("1"), _said("sunny")], [1, 2, 1]),
        ([_uses("1", "2"), _used("1", "2"), _user("thanks")], [2, 1]),
        ([_uses("1", "2"), _used("1"), _used("2"), _uses("3"), _used("3")], [3, 2]),
        ([_uses("1", "2"), _used("2"), _said("so far"), _used("1")], [4]),
    ],
)
def test_a_call_and_its_results_are_one_unit_for_anthropic(messages: list[Message], sizes: list[int]) -> None:
    assert _sizes(messages, system="be kind") == sizes
    assert parse(messages).style == "anthropic"


@pytest.mark.parametrize(
    ("messages", "sizes"),
    [
        ([_user("hi"), _item("function_call", "1"), _item("function_call_output", "1"), _said("sunny")], [1, 2, 1]),
        (
            [
                _item("function_call", "1"),
                _item("function_call", "2"),
                _item("function_call_output", "1"),
                _item("function_call_output", "2"),
                _user("thanks"),
            ],
            [4, 1],
        ),
        (
            [
                {"type": "reasoning", "summary": []},
                _item("function_call", "1"),
                _item("function_call_output", "1"),
                {"type": "reasoning", "summary": []},
                {"type": "message", "role": "assistant", "content": "sunny"},
            ],
            [3, 2],
        ),
        ([{"type": "reasoning"}, _said("sunny"), {"type": "message", "role": "user", "content": "ok"}], [2, 1]),
        ([{"type": "reasoning"}, _item("web_search_call", "1"), _user("ok")], [2, 1]),
        ([{"type": "reasoning"}, _item("custom_tool_call", "1"), _item("custom_tool_call_output", "1")], [3]),
        (
            [
                _item("function_call", "1"),
                {"type": "reasoning"},
                _item("function_call", "2"),
                _item("function_call_output", "2"),
                _item("function_call_output", "1"),
            ],
            [5],
        ),
    ],
)
def test_a_call_and_its_results_are_one_unit_among_items_of_responses(
    messages: list[Message], sizes: list[int]
) -> None:
    assert _sizes(messages) == sizes


@pytest.mark.parametrize("orphan", [_result("x"), _used("x"), _item("function_call_output", "x"), {"role": "tool"}])
def test_a_result_without_its_call_stays_where_it_is(orphan: Message) -> None:
    assert _sizes([orphan]) == [1]
    assert _sizes([orphan, _user("hi"), _said("hello")]) == [1, 1, 1]
    assert sum(_sizes([_user("hi"), orphan, _said("hello")])) == 3


def test_a_unit_speaks_as_its_first_message() -> None:
    talk = parse([_user("hi"), _calls("1"), _result("1"), _item("function_call", "2")])
    assert [unit.role for unit in talk.units] == ["user", "assistant", "assistant"]


# Styles and system messages


@pytest.mark.parametrize("role", ["system", "developer"])
def test_what_the_system_says_first_is_apart(role: str) -> None:
    first, second, later = ({"role": role, "content": text} for text in ("be kind", "be brief", "it is noon"))
    talk = parse([first, second, _user("hi"), later])
    assert talk.style == "openai"
    assert talk.system == (first, second)
    assert [unit.role for unit in talk.units] == ["user", role]


@pytest.mark.parametrize("system", ["be kind", [{"type": "text", "text": "be kind"}], ({"type": "text", "text": "x"},)])
def test_a_system_prompt_beside_the_messages_is_anthropics(system: Any) -> None:
    talk = parse([_user("hi")], system)
    assert talk.style == "anthropic"
    assert talk.system[0]["content"] == (list(system) if isinstance(system, tuple) else system)


@pytest.mark.parametrize(
    ("part", "style"),
    [
        ({"type": "image", "source": {"type": "base64", "data": "AA"}}, "anthropic"),
        ({"type": "thinking", "thinking": "hm"}, "anthropic"),
        ({"type": "text", "text": "hi"}, "openai"),
        (PICTURE, "openai"),
        ({"type": "input_text", "text": "hi"}, "openai"),
    ],
)
def test_parts_tell_whose_style_it_is(part: Message, style: str) -> None:
    assert parse([{"role": "user", "content": [part]}]).style == style
    assert parse([{"role": "user", "content": [part]}], style="anthropic").style == "anthropic"


# Words, results and tokens


def test_what_was_asked_is_what_the_user_said_last() -> None:
    asked = {"role": "user", "content": [{"type": "text", "text": " where? "}, PICTURE]}
    talk = parse([_user("hi"), asked, _said("here"), _user("  "), _calls("1"), _result("1")])
    assert talk.last_question == "where?"
    assert parse([_uses("1"), _used("1")]).last_question == ""
    assert Transcript("openai", (), ()).last_question == ""


@pytest.mark.parametrize(
    ("message", "said", "given"),
    [
        (_user("hi"), "hi", ""),
        (_result("1"), "", "sunny"),
        (_result("1", [{"type": "text", "text": "sunny"}, {"type": "text", "text": "warm"}]), "", "sunny\nwarm"),
        (_used("1", "2"), "", "sunny\nsunny"),
        (_used("1", content=[{"type": "text", "text": "sunny"}, {"type": "image", "source": {}}]), "", "sunny"),
        (_item("function_call_output", "1", output="sunny"), "", "sunny"),
        (_item("function_call_output", "1", output=[{"type": "input_text", "text": "sunny"}]), "", "sunny"),
        (_item("computer_call_output", "1", output={"type": "computer_screenshot", "image_url": "data:"}), "", ""),
        (_item("shell_call_output", "1", output={"code": 0}), "", '{"code":0}'),
        ({"type": "reasoning", "content": [{"type": "reasoning_text", "text": "hm"}]}, "", ""),
        (_uses("1"), "I look.", ""),
        (_calls("1"), "", ""),
        ({"role": "assistant"}, "", ""),
    ],
)
def test_words_and_results_are_told_apart(message: Message, said: str, given: str) -> None:
    assert text_of(message) == said
    assert result_of(message) == given


def test_all_that_a_model_reads_counts() -> None:
    assert tokens_of(_user("12345"), _length) == 9
    assert tokens_of({"role": "assistant"}, _length) == 4
    assert tokens_of(_calls("1", "2"), _length) > tokens_of(_calls("1"), _length) > 40
    assert tokens_of(_item("function_call", "1", name="look", arguments="{}"), _length) == 10
    assert tokens_of(_item("custom_tool_call", "1", input="12345"), _length) == 9
    assert tokens_of(_result("1", [{"type": "text", "text": "12345"}]), _length) == 9
    assert tokens_of({"role": "user", "content": "\ud800"}, _length) == 5
    assert tokens_of(_used("1", content={"\ud800": {1, 2}}), _length) > 4


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": [PICTURE]},
        _result("1", [PICTURE]),
        _used("1", content=[{"type": "image", "source": {"type": "base64", "data": "A" * 100_000}}]),
        _item("computer_call_output", "1", output={"type": "computer_screenshot", "image_url": "A" * 100_000}),
        _item("function_call_output", "1", output=[{"type": "input_image", "image_url": "A" * 100_000}]),
    ],
)
def test_a_picture_counts_as_one_and_not_by_its_bytes(message: Message) -> None:
    assert 1600 <= tokens_of(message, _length) < 1700
    assert len(result_of(message)) < 100


# Bad input


@pytest.mark.parametrize(
    ("messages", "field"),
    [
        ("hi", "messages"),
        (None, "messages"),
        ({"role": "user"}, "messages"),
        (["hi"], "messages[0]"),
        ([_user("hi"), None], "messages[1]"),
        ([_user("hi"), {}], "messages[1].role"),
        ([{"content": "hi"}], "messages[0].role"),
        ([{"role": 7, "content": "hi"}], "messages[0].role"),
        ([{"role": 7, "type": "message", "content": "hi"}], "messages[0].role"),
        ([_user("hi"), _user("hi"), {"role": "user", "content": 7}], "messages[2].content"),
        ([{"role": "user", "content": {"type": "text"}}], "messages[0].content"),
        ([{"role": "user", "content": [{"type": "text", "text": "hi"}, "hi"]}], "messages[0].content[1]"),
        ([{"role": "user", "content": [None]}], "messages[0].content[0]"),
    ],
)
def test_a_bad_message_is_named(messages: Any, field: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(messages)
    assert caught.value.field == field


@pytest.mark.parametrize("system", [7, {"type": "text"}, ["be kind"], [None]])
def test_a_bad_system_prompt_is_named(system: Any) -> None:
    with pytest.raises(InputError, match="system"):
        parse([_user("hi")], system)


# Any conversation

words = st.text(max_size=8)


@st.composite
def _turns(draw: st.DrawFn, style: str) -> list[Message]:
    """A conversation that the API would take: every call is answered, in any order, perhaps with words between."""
    ids, messages = map(str, numbers()), [_user(draw(words))]
    for _ in range(draw(st.integers(0, 5))):
        kind = draw(st.sampled_from(["user", "assistant", "tools"]))
        if kind != "tools":
            messages.append({"role": kind, "content": draw(words)})
            continue
        called = [next(ids) for _ in range(draw(st.integers(1, 4)))]
        answered = draw(st.permutations(called))
        if style == "openai":
            messages += [_calls(*called), *(_result(id, draw(words)) for id in answered)]
        elif style == "anthropic":
            at = draw(st.integers(0, len(answered) - 1))
            messages += [_uses(*called), *(_used(*some) for some in (answered[:at], answered[at:]) if some)]
        else:
            items = [_item("function_call", id, name="look", arguments="{}") for id in called]
            if draw(st.booleans()):
                items.insert(draw(st.integers(0, len(items) - 1)), {"type": "reasoning", "summary": []})
            messages += [*items, *(_item("function_call_output", id, output=draw(words)) for id in answered)]
    return messages


def _called(message: Message) -> set[str]:
    parts = message["content"] if isinstance(message.get("content"), list) else []
    found = {call["id"] for call in message.get("tool_calls", ())} | {one["id"] for one in parts if "id" in one}
    return found | ({message["call_id"]} if message.get("type") == "function_call" else set())


def _answers(message: Message) -> set[str]:
    parts = message["content"] if isinstance(message.get("content"), list) else []
    found = {one["tool_use_id"] for one in parts if "tool_use_id" in one} | {message.get("tool_call_id")} - {None}
    return found | ({message["call_id"]} if message.get("type") == "function_call_output" else set())


@pytest.mark.parametrize("style", ["openai", "anthropic", "responses"])
@given(data=st.data())
def test_units_are_the_conversation_and_keep_calls_with_results(data: st.DataObject, style: str) -> None:
    messages = data.draw(_turns(style))
    before = copy.deepcopy(messages)
    talk = parse(messages)
    assert [message for unit in talk.units for message in unit.messages] == messages == before
    assert all(
        same is one for same, one in zip((m for unit in talk.units for m in unit.messages), messages, strict=True)
    )
    for unit in talk.units:
        called = set().union(*map(_called, unit.messages))
        assert set().union(*map(_answers, unit.messages)) == called
        assert unit.tokens(_length) >= 4 * len(unit.messages)
        assert len(unit.messages) == 1 or called
    assert messages == before


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
keys = st.sampled_from(
    ["role", "type", "content", "tool_calls", "call_id", "output", "tool_call_id", "text", "summary"]
)
roles = st.sampled_from(["user", "assistant", "tool", "function", "system", "developer"])


@given(
    st.lists(st.builds(lambda role, more: {**more, "role": role}, roles, st.dictionaries(keys, anything)), max_size=5)
)
def test_odd_messages_are_refused_or_read_whole(messages: list[Message]) -> None:
    try:
        talk = parse(messages)
    except InputError:
        return
    assert [*talk.system, *(message for unit in talk.units for message in unit.messages)] == messages
    assert sum(unit.tokens(_length) for unit in talk.units) >= 4 * (len(messages) - len(talk.system))
    assert isinstance(talk.last_question, str)
    assert all(isinstance(result_of(message), str) for message in messages)


def test_a_result_without_an_id_is_still_a_result() -> None:
    call = {"role": "assistant", "content": "let me see"}
    result = {"role": "tool", "content": "42 degrees"}

    (unit,) = parse([call, result]).units

    assert unit.messages == (call, result)
    assert (result_of(result), text_of(result)) == ("42 degrees", "")
