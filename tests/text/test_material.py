"""Whose words a turn is made of, how sure they are, and what a list says."""

from __future__ import annotations

import pytest

from recollect.text.statements.certainty import certainty, stated
from recollect.text.statements.lists import parts
from recollect.text.statements.material import own
from recollect.text.statements.roleplay import Scene, spoken_by_user

PASTED = [
    (
        "a traceback",
        'it broke\n\nTraceback (most recent call last):\n  File "a.py", line 3\n    f()\nKeyError: my name',
    ),
    ("a log", "2026-01-04 09:12:01 ERROR disk of our server is full\n2026-01-04 09:12:02 INFO retry"),
    ("a diff", "diff --git a/x b/x\n@@ -1 +1 @@\n-# I live in Oslo\n+# I live in Bergen"),
    ("a query", "SELECT name FROM users WHERE city = 'Nantes';"),
    ("code", "```\nowner = 'I am Zed'\n```"),
    ("code", "def hello(name):\n    # I always greet twice\n    return name * 2;"),
    ("a shell session", "$ ls -la\ntotal 3\nmy_dog.txt"),
    ("a dump of data", '{\n  "name": "Ines",\n  "home": "Braga"\n}'),
    ("a dump of data", "image: nginx\nreplicas: 3\ntimeout: 30"),
    ("a table", "NAME  AGE  CITY\nBert  40   Gent"),
    ("a chat of others", "[09:30] Pia: I'm allergic to bees\n[09:31] Tom: oh no"),
    ("a recipe", "2 cups flour\n1 tsp salt\nI always add raisins"),
    ("a mail", "what does she want?\n\nFrom: Olga\nSubject: move\n\nI moved to Kyiv.\nBest,\nOlga"),
    ("a letter", "is this fine?\n\nDear Mr Pohl,\nI am a nurse from Trier.\nKind regards,\nEva"),
    ("a quotation", "> I sold my house\n> last week"),
    ("a quotation", 'My uncle wrote "I have never been to Spain in my life" on it.'),
    ("a text to work on", "Translate into Dutch: I live in Ghent and I have two sons."),
    ("a text to work on", "pls fix the grammar in this: me have three cat at home."),
    ("a text to work on", "make this shorter please\n\nOur founder lives in Malmö. She has two dogs and a boat."),
    ("a story", "Once upon a time a smith named Otto lived in Ulm with nine geese."),
    ("an article", "Abstract. We gave 40 adults green tea for a month."),
    ("fiction", "Write a short story about a diver. Her name is Nora and she lives in Split."),
]


@pytest.mark.parametrize(("reason", "text"), PASTED, ids=lambda one: one[:24])
def test_what_was_pasted_is_left_and_told_with_its_reason(reason: str, text: str) -> None:
    read = own(text)
    assert reason in [block.reason for block in read.left]
    for word in ("KeyError", "Oslo", "Nantes", "Zed", "Braga", "raisins", "Kyiv", "Trier", "Ghent", "Malmö", "Nora"):
        assert word not in read.text


OWN = [
    "I live in Oslo, and our rule is: no calls on Friday.",
    "Hi! My wife is called Dear to everybody.",
    'Never call me "boss" please.',
    "How I'd like you to answer: short.",
    "To do: paint the fence",
    "My conventions:\n- two spaces\n- no globals",
]


@pytest.mark.parametrize("text", OWN)
def test_what_the_user_says_stays_as_it_is(text: str) -> None:
    assert own(text) == (text, ())


def test_what_stands_around_a_pasted_block_stays() -> None:
    read = own("I moved to Bonn.\n\n```\nx = 1\n```\n\nMy cat is called Momo.")
    assert "I moved to Bonn." in read.text
    assert "My cat is called Momo." in read.text
    assert [(block.reason, block.text) for block in read.left] == [("code", "```\nx = 1\n```")]


def test_a_part_is_played_until_it_is_ended() -> None:
    scene = Scene()
    said: list[str] = []
    for text, before in [
        ("You are a grumpy innkeeper and I'm a knight. I come from Camelot.", ""),
        ('"I have slain nine dragons."', "*He wipes a mug.*"),
        ("*sits down* I have two squires.", '"Ale?"'),
        ("Thanks, that was fun. I have an exam on 4 May.", '"Come back soon."'),
        ("I work in Turin.", "Noted."),
    ]:
        text_of_user, _, scene = spoken_by_user(text, before, scene)
        said.append(text_of_user)
    assert said == ["", "", "", "Thanks, that was fun. I have an exam on 4 May.", "I work in Turin."]


def test_what_is_meant_inside_a_play_is_the_users() -> None:
    text, left, _ = spoken_by_user('"I hate the sea!" ((I have a physio date on Monday))', "*thunder*", Scene(True))
    assert text == "I have a physio date on Monday"
    assert [block.reason for block in left] == ["a part that is played"]


SURE = [
    ("stated", "I keep bees on the roof."),
    ("asked", "is my lease still valid in May?"),
    ("asked", "which trains go to Bern"),
    ("supposed", "If I lived in Porto I'd surf every day."),
    ("supposed", "Let's say I own a castle."),
    ("stated", "If I ever ask about wine, remind me of my pills."),
    ("hearsay", "The poster says we are all doomed."),
    ("stated", "My doctor says I am anaemic."),
    ("about the memory", "please forget that I like jazz"),
    ("about the memory", "forget my phone number"),
    ("about the memory", "don't remember this"),
    ("about the memory", "That's wrong."),
    ("about the memory", "off the record, I can't stand him"),
    ("secret", "my pin is 4471"),
    ("stated", "I forgot my umbrella in Leeds."),
]


@pytest.mark.parametrize(("sure", "text"), SURE)
def test_how_sure_a_sentence_is(sure: str, text: str) -> None:
    assert certainty(text) == sure


TOLD = [
    ("since I'm vegan, what can I cook?", ["since I'm vegan"]),
    ("I have a bad knee, can I row?", ["I have a bad knee"]),
    ("my son turns six on Friday, any ideas for a cake?", ["my son turns six on Friday"]),
    ("The safe code is 82-14-55; my new assistant is Noor", ["my new assistant is Noor"]),
    ("how far is the moon, and is it round?", ["how far is the moon, and is it round?"]),
]


@pytest.mark.parametrize(("text", "told"), TOLD)
def test_what_a_question_tells_is_taken_out_of_it(text: str, told: list[str]) -> None:
    assert stated(text) == told


LISTS: list[tuple[str, list[str]]] = [
    (
        "Quick facts about me: 34, two kids, work at Bosch, allergic to cats.",
        ["About me: 34", "About me: two kids", "About me: work at Bosch", "About me: allergic to cats"],
    ),
    ("- name: Ada\n- city: Turin", ["About me: name: Ada", "About me: city: Turin"]),
    ("Our rules:\n1) squash commits\n2) no force push", ["Our rules: squash commits", "Our rules: no force push"]),
    ("Project: Wren\nDB: Postgres", ["Project: Wren", "Project Wren: DB: Postgres"]),
    ("Dad: Piet, 80, in Delft\nMom: Anna, 77", ["Dad: Piet, 80, in Delft", "Mom: Anna, 77"]),
    ("Ingredients to compare:\n- butter fat\n- olive oil", []),
]


@pytest.mark.parametrize(("text", "items"), LISTS)
def test_items_of_a_list_about_somebody_stand_alone(text: str, items: list[str]) -> None:
    assert [part.text for part in parts(text) if part.item] == items
