"""What of a conversation is kept, measured on labelled sentences and on whole transcripts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.stores import STORES, located

from recollect import Memory
from recollect.policies.extraction import Said, extract, judge

HERE = Path(__file__).parent
SENTENCES = [line.split("\t") for line in (HERE / "extraction_sentences.tsv").read_text().splitlines() if line]
TRANSCRIPTS: list[dict[str, Any]] = json.loads((HERE / "extraction_transcripts.json").read_text())


@pytest.mark.clause("INK-18")
def test_most_of_what_matters_is_found_and_little_else(record_property: Any) -> None:
    """0.95 and 0.71 when the rules first met these sentences, which were written without knowing them."""
    found = missed = wrong = 0
    for label, role, text in SENTENCES:
        kept = judge(text.replace("’", "'"), role) is not None
        found += kept and label != "none"
        wrong += kept and label == "none"
        missed += not kept and label != "none"
    precision, recall = found / (found + wrong), found / (found + missed)
    record_property("precision", precision)
    record_property("recall", recall)
    assert len(SENTENCES) >= 300
    assert precision >= 0.95
    assert recall >= 0.85


@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=lambda one: one["title"])
@pytest.mark.parametrize("store", STORES)
def test_a_conversation_leaves_what_was_stated_and_changed(
    transcript: dict[str, Any], store: str, tmp_path: Path
) -> None:
    with Memory(located(store, tmp_path / "m"), preset="recollect", embedder="none") as memory:
        for _ in range(2):  # the same again leaves nothing more
            with memory.conversation(transcript["title"]) as talk:
                for turn in transcript["turns"]:
                    talk.say(turn["role"], turn["text"])
        texts = [record.text for record in memory.list(limit=1000)]
    assert len(texts) == len(set(texts))
    lost = [piece for piece in transcript["keep"] if not any(piece in text for text in texts)]
    assert len(lost) <= 1, lost
    assert [new for _, new in transcript["changes"] if not any(new in text for text in texts)] == []


def test_little_of_what_is_left_is_junk() -> None:
    kept = junk = lost = stated = 0
    for transcript in TRANSCRIPTS:
        worth = [*transcript["keep"], *transcript["fine"]]
        texts = [one.text for one in extract([Said(turn["role"], turn["text"]) for turn in transcript["turns"]])]
        kept += len(texts)
        junk += sum(not any(piece in text for piece in worth) for text in texts)
        stated += len(transcript["keep"])
        lost += sum(not any(piece in text for text in texts) for piece in transcript["keep"])
    assert junk / kept <= 0.1
    assert lost / stated <= 0.03


def test_questions_weeks_later_are_answered(tmp_path: Path) -> None:
    """By words alone; a model finds more."""
    asked = answered = 0
    for number, transcript in enumerate(TRANSCRIPTS):
        with Memory(tmp_path / str(number), embedder="none") as memory:
            with memory.conversation() as talk:
                for turn in transcript["turns"]:
                    talk.say(turn["role"], turn["text"])
            for question, wanted in transcript["questions"]:
                asked += 1
                hits = memory.recall(question, min_relevance=0.0)  # is it kept at all, and found?
                answered += any(wanted in hit.memory.text for hit in hits)
    assert answered / asked >= 0.85


ANSWERED = [
    ("What is your dog called?", "Bello", "What is your dog called? Bello"),
    ("Where do you live?", "In Porto.", "Where do you live? In Porto."),
    ("What is your dog called?", "Yes", None),
    ("Shall I book it for you?", "Tuesday", None),
    ("The dog barks.", "Bello", None),
    ("What is your dog called?", "What?", None),
]


@pytest.mark.parametrize(("asked", "said", "kept"), ANSWERED)
def test_a_short_answer_is_kept_with_what_was_asked(asked: str, said: str, kept: str | None) -> None:
    found = extract([Said("assistant", asked), Said("user", said)])
    assert [one.text for one in found] == ([kept] if kept else [])


def test_a_pronoun_brings_its_sentence() -> None:
    found = extract([Said("user", "My sister Clara lives in Vienna. She works at a clinic.")])
    assert [one.text for one in found][-1] == "My sister Clara lives in Vienna. She works at a clinic."


@pytest.mark.parametrize(
    "text", ["Ich wohne seit März in Graz.", "私はポルトに住んでいます。", "Vivo en Lisboa desde mayo."]
)
def test_statements_in_other_languages_are_kept(text: str) -> None:
    assert [one.text for one in extract([Said("user", text)])] == [text]
    assert extract([Said("user", f"{text[:-1]}?")]) == []
    assert extract([Said("assistant", text)]) == []


def test_vital_facts_matter_more_than_tasks() -> None:
    allergy, task = extract([Said("user", "I'm allergic to peanuts. I have to send the list to Ann tomorrow.")])
    assert allergy.importance > task.importance


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_no_text_takes_long(role: str) -> None:
    """Patterns that look far back and ahead must not be lured into doing so for ever."""
    hostile = [
        "a " * 5000,
        "the " * 3000 + "x",
        "I " * 4000,
        "my " * 3000 + "!",
        "A" * 20_000,
        "Ann " * 4000,
        ", " * 5000,
    ]
    for text in hostile:
        extract([Said(role, text)])
        judge(text[:600], role)


TOLD = [
    "I'm really allergic to bees",
    "i can't eat gluten",
    "I'm just vegetarian, not vegan",
    "Book me a table for 4, I am vegan",
    "What can I eat, given that I have diabetes?",
    "My mother died this morning.",
    "I got fired today.",
]


@pytest.mark.parametrize("text", TOLD)
def test_what_is_vital_is_kept_whatever_is_around_it(text: str) -> None:
    (found,) = extract([Said("user", text)])
    assert (found.text, found.kind) == (text, "fact")


def test_dictation_without_full_stops_is_read_in_pieces() -> None:
    said = (
        "ok so basically I am allergic to peanuts and " + "then we went along the river and looked at boats and " * 14
    )
    assert [one.text for one in extract([Said("user", said)])] == ["ok so basically I am allergic to peanuts"]


MATERIAL = [
    "Write a story: I am a pirate. I live in a castle.",
    "Summarise this mail:\nFrom: bob@example.org\n\nI am allergic to cats. We decided to close.",
    "Please translate: My dog is called Bello.",
    "> I love pineapples.\n> We decided to close.\n\nWhat does he mean?",
]


@pytest.mark.parametrize("text", MATERIAL)
def test_what_others_wrote_is_not_what_the_user_says(text: str) -> None:
    assert extract([Said("user", text)]) == []


def test_an_answer_that_may_be_a_secret_is_not_kept() -> None:
    for asked in ("What is your password?", "What's your PIN?", "Can you tell me your code?"):
        assert extract([Said("assistant", asked), Said("user", "Tr0ub4dor&3xyz!")]) == []


def test_code_and_blocks_that_were_put_in_are_left() -> None:
    text = "<memories>\n- (2026-01-01) My dog is called Bello\n</memories>\n\n```\nmy_dog is 3\n```\nThanks!"
    assert extract([Said("user", text)]) == []


def test_every_rule_has_a_name_that_explains() -> None:
    for label, role, text in SENTENCES:
        if (judged := judge(text, role)) and label != "none":
            assert re.fullmatch(r"[a-z][a-z' ]+", judged[1])


def kept_of(*turns: str) -> list[str]:
    """What is kept of turns of the user and the assistant, one after the other."""
    return [one.text for one in extract([Said(("user", "assistant")[at % 2], text) for at, text in enumerate(turns)])]


def test_a_fact_inside_a_question_is_kept_and_the_question_is_not() -> None:
    assert kept_of("since I'm vegan, what can I cook tonight?") == ["since I'm vegan"]
    assert kept_of("My boiler is a Junkers from 2011, how do I bleed it?") == ["My boiler is a Junkers from 2011"]


def test_a_ramble_gives_its_fact_and_not_the_whole_of_it() -> None:
    ramble = (
        "honestly what an afternoon, and then the bus never came, and the rain would not stop, so we all stood there "
        "like wet sheep, but i moved to Bremen in March, and the umbrella flew off, and there was no taxi to be seen "
        "anywhere in town, and the shops had all closed their doors by then"
    )
    (fact,) = kept_of(ramble)
    assert "Bremen" in fact
    assert "umbrella" not in fact


def test_what_the_assistant_promises_or_repeats_is_not_kept() -> None:
    assert kept_of("ok", "I will remind you in June. I'll send the list to Ann tomorrow.") == []
    assert kept_of("ok", "Noted, we've agreed on Friday then, and I'll check the room.") == []
    said = "We decided to use Postgres for the ledger."
    assert kept_of(said, "Great: we decided to use Postgres for the ledger.") == [said]
    assert kept_of("ok", "I've booked table 4 for Friday at 7.") == ["I've booked table 4 for Friday at 7."]


@pytest.mark.parametrize(
    "text",
    [
        "forget my phone number",
        "please forget that I like jazz",
        "don't remember this: I hate my boss",
        "That's wrong.",
        "Off the record, my sister is pregnant.",
        "delete everything you know about my job",
    ],
)
def test_requests_about_the_memory_are_no_facts(text: str) -> None:
    assert kept_of(text) == []


def test_nothing_is_kept_of_a_conversation_that_is_off_the_record() -> None:
    assert kept_of("Don't save any of this conversation.", "Of course.", "I have diabetes.") == []
    assert kept_of("Don't save this.", "Of course.", "I have diabetes.") == ["I have diabetes."]


def test_orders_for_this_moment_are_left_and_lasting_ones_kept() -> None:
    assert kept_of("Use bold for the headings this time.") == []
    assert kept_of("Use tabs for me this time.") == []
    assert kept_of("Always use bold for the headings.") == ["Always use bold for the headings."]
    assert kept_of("can you call me Captain from here on") == ["can you call me Captain from here on"]


def test_a_role_play_leaves_nothing_even_where_it_began_earlier() -> None:
    play = "Let's play: you're the judge and I'm a thief from Naples."
    assert kept_of(play, '"Speak!"', '"I live under the bridge and I have six children."') == []
    earlier = [Said("user", play), Said("assistant", '"Speak!"')]
    assert extract([Said("user", '"I live under the bridge." I have six children.')], earlier) == []


def test_an_introduction_is_kept_in_fragments() -> None:
    texts = kept_of("Hi, I'm Ilse, a welder from Kiel. Divorced. Two sons, Jan and Ole.")
    assert texts == ["Hi, I'm Ilse, a welder from Kiel.", "Divorced.", "Two sons, Jan and Ole."]


def test_a_turn_says_which_of_its_parts_give_no_facts(tmp_path: Path) -> None:
    with Memory(tmp_path / "m", embedder="none") as memory, memory.conversation() as talk:
        pasted = talk.say("user", "help\n\n> I sold my house\n> last week")
        plain = talk.say("user", "I moved to Bonn in May.")
        assert "a quotation" in memory.diagnose(pasted.id).reason
        assert memory.diagnose(plain.id).reason == "can be recalled"
