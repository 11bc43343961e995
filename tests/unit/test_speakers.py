"""Who said a memory, and of whom a question asks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.retrieval.speakers import Voice, asked, prefix, settle, speaker, without_names


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("Alice: I like tea", "Alice", "I like tea"),
        ("Mary Ann Lee: hello", "Mary Ann Lee", "hello"),
        ("Dr. O'Brien: rest", "Dr. O'Brien", "rest"),
        ("Jean-Luc: oui", "Jean-Luc", "oui"),
        ("Élodie: bonjour", "Élodie", "bonjour"),
        ("Иван Петров: привет", "Иван Петров", "привет"),
        ("प्रिया: नमस्ते", "प्रिया", "नमस्ते"),
        ("محمد: مرحبا", "محمد", "مرحبا"),
        ("田中：こんにちは", "田中", "こんにちは"),
        ("田中: こんにちは", "田中", "こんにちは"),
    ],
)
def test_a_name_before_a_colon_speaks(text: str, name: str, said: str) -> None:
    found = prefix(text)
    assert found is not None
    assert (found[0], text[found[1] :]) == (name, said)
    assert speaker(text) == Voice(name.lower(), False, "")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no name here",
        "alice: small letters are no name",
        "иван: строчные",
        "Mary ann: one of them small",
        "One Two Three Four: too many words",
        "https://example.org",
        "Time:12:30",
        "12: a number",
        "3D Printer: begins with a number",
        " Alice: not at the beginning",
        ": nobody",
        "-: a dash",
    ],
)
def test_what_is_no_name_does_not_speak(text: str) -> None:
    assert prefix(text) is None
    assert speaker(text, "user") == Voice("", False, "user")


@pytest.mark.parametrize(
    ("metadata", "voice"),
    [
        ({"speaker": "Bob"}, Voice("bob", True, "user")),
        ({"speaker": "  Bob   Stone "}, Voice("bob stone", True, "user")),
        ({"speaker": " "}, Voice("alice", False, "user")),
        ({"speaker": 7}, Voice("alice", False, "user")),
        ({"other": "Bob"}, Voice("alice", False, "user")),
        (None, Voice("alice", False, "user")),
    ],
)
def test_a_speaker_that_was_given_comes_first(metadata: dict[str, object] | None, voice: Voice) -> None:
    assert speaker("Alice: hello", "user", metadata) == voice


def test_a_name_must_begin_two_turns_of_the_conversation() -> None:
    voices = [
        speaker("Alice: hello", "user"),
        speaker("Bob: hi", "user"),
        speaker("Alice: tea?", "user"),
        speaker("Bob: alone here", "assistant"),
        speaker("Note: buy milk"),
        speaker("no name", "assistant"),
        speaker("no name"),
        speaker("told once", "user", {"speaker": "Carol"}),
        speaker("no name", "assistant"),
    ]
    conversations = ["a", "a", "a", "b", "b", "b", "b", "b", "b"]
    assert settle(voices, conversations) == [
        "alice",
        "user",
        "alice",
        "assistant",
        "",
        "assistant",
        "",
        "carol",
        "assistant",
    ]
    assert settle([], []) == []


PEOPLE = {
    "alice",
    "bob stone",
    "dr. smith",
    "dr. jones",
    "o'brien",
    "jean-luc",
    "иван",
    "प्रिया",
    "田中",
    "user",
    "assistant",
}


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("What does Alice drink?", {"alice"}),
        ("What is ALICE's dog called?", {"alice"}),
        ("What do Alice and Stone share?", {"alice", "bob stone"}),
        ("an Alice-related question", {"alice"}),
        ("Where is malice?", set()),
        ("Who is Dr. Jones?", {"dr. jones"}),
        ("Where does O'Brien's sister live?", {"o'brien"}),
        ("Where does O’Hara live?", set()),
        ("Is Jean-Luc here?", {"jean-luc"}),
        ("Where does Ivan live?", set()),
        ("Где живёт Иван?", {"иван"}),
        ("प्रिया कहाँ रहती है?", {"प्रिया"}),
        ("田中さんは何が好き?", {"田中"}),
        ("What is my dog called?", {"user"}),
        ("what did i say", {"user"}),
        ("What did you recommend?", {"assistant"}),
        ("What did you tell me?", set()),  # of both
        ("What does Alice think of me?", {"alice"}),
        ("Which user is it?", set()),  # the word is no name
        ("", set()),
    ],
)
def test_whom_a_question_is_about(query: str, named: set[str]) -> None:
    assert asked(query, PEOPLE) == named


def test_everybody_is_nobody_in_particular() -> None:
    assert asked("What do Alice and Bob plan?", {"alice", "bob"}) == set()
    assert asked("What do Alice and Bob plan?", {"alice", "bob", "carol"}) == {"alice", "bob"}
    assert asked("What did Alice say?", {"alice", ""}) == set()
    assert asked("What did I say?", {"user"}) == set()
    assert asked("What did I say?", {"alice"}) == set()
    assert asked("What did I say?", set()) == set()


@pytest.mark.parametrize(
    ("query", "named", "bare"),
    [
        ("What does Alice drink?", {"alice"}, "What does drink?"),
        ("What is alice's dog called?", {"alice"}, "What is dog called?"),
        ("What is Alice’s dog called?", {"alice"}, "What is dog called?"),
        ("What do Bob Stone and Bobby eat?", {"bob stone"}, "What do and Bobby eat?"),
        ("Who is O'Brien?", {"o'brien"}, "Who is ?"),
        ("Is malice bad?", {"alice"}, "Is malice bad?"),
        ("Где живёт Иван?", {"иван"}, "Где живёт ?"),
        ("प्रिया कहाँ रहती है?", {"प्रिया"}, "कहाँ रहती है?"),
        ("田中さんは何が好き?", {"田中"}, "さんは何が好き?"),
        ("What did the user say?", {"user"}, "What did the user say?"),
        ("Alice?", {"alice"}, "Alice?"),  # nothing else was asked
        ("What (a+b)* does C++ mean?", {"c++"}, "What (a+b)* does mean?"),
        ("What does Alice drink?", set(), "What does Alice drink?"),
    ],
)
def test_names_are_left_out_of_what_is_embedded(query: str, named: set[str], bare: str) -> None:
    assert without_names(query, named) == bare


names = st.text(min_size=1, max_size=12) | st.sampled_from(["alice", "dr. smith", "田中", "user", "...", "(", "a\\"])


@given(st.text(), st.sets(names, max_size=4))
def test_any_question_and_any_name_can_be_read(query: str, speakers: set[str]) -> None:
    named = asked(query, speakers)
    assert named <= speakers
    assert named != speakers or not named
    assert without_names(query, named).strip() or not query.strip()


@given(st.text(), st.none() | st.sampled_from(["user", "assistant"]))
def test_any_text_can_have_a_speaker(text: str, role: str | None) -> None:
    voice = speaker(text, role)
    assert settle([voice, voice], [1, 1]) == [voice.name or role or ""] * 2
    assert settle([voice, voice], [1, 2]) == [role or ""] * 2
