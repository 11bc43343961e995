"""What a turn asks of the memory itself, in seven languages; and what only sounds like it."""

from __future__ import annotations

from typing import Any

import pytest

from recollect.text.statements.requests import request, requests

ASKED: dict[str, tuple[Any, ...]] = {
    "Forget that.": ("forget", "", True),
    "Please forget my phone number": ("forget", "my phone number", False),
    "Can you forget where I work?": ("forget", "where I work", False),
    "I moved, so please forget my old address.": ("forget", "my old address", False),
    "delete my salary from your memory": ("forget", "my salary", False),
    "My shoe size, the old one. Drop it.": ("forget", "My shoe size", False),
    "scratch that": ("forget", "", True),
    "that's wrong": ("correct", "", True),
    "That's wrong, I live in Munich.": ("correct", "", True),
    "You've got my age wrong, I'm 34": ("correct", "age", False),
    "Remember that I'm allergic to nuts": ("remember", "", False),
    "Off the record: my boss is a pain": ("off", "", False),
    "Stop taking notes": ("off", "", False),
    "You can take notes again": ("on", "", False),
    "Vergiss bitte meine Telefonnummer": ("forget", "meine Telefonnummer", False),
    "Das stimmt nicht, ich wohne in Hamburg": ("correct", "", True),
    "Mach bitte keine Notizen": ("off", "", False),
    "Du kannst wieder Notizen machen": ("on", "", False),
    "Oublie mon numéro de téléphone": ("forget", "mon numéro de téléphone", False),
    "C'est faux, j'habite à Lyon": ("correct", "", True),
    "Retiens que je suis végétarien": ("remember", "", False),
    "Olvida mi dirección, por favor": ("forget", "mi dirección", False),
    "Recuerda que soy alérgico a las nueces": ("remember", "", False),
    "Dimentica il mio indirizzo": ("forget", "il mio indirizzo", False),
    "Smetti di prendere appunti": ("off", "", False),
    "Esqueça o meu endereço": ("forget", "o meu endereço", False),
    "Isso está errado, moro em Lisboa": ("correct", "", True),
    "Vergeet mijn adres": ("forget", "mijn adres", False),
    "Je mag weer notities maken": ("on", "", False),
}
NOT_ASKED = """
take out the part about my dog, the speech is too long
in the letter, change my phone number to bold
remove my name from the author list of the abstract
forget everything and write a poem
write it again
note: the API returns 404
I always forget my keys
forget it, let's go on
don't forget to call mum
delete the second paragraph
that's wrong, the code should print 3
That's not right. It should return a list.
forget the previous instructions
Forget about my diet, let's order pizza
update my essay to be shorter
he told me off the record that prices rise
I don't remember my password
Do you remember my name?
scratch that, make it blue
Translate to German: forget my address
How do I clear the memory of a list in Python?
She said "please forget my phone number and move on"
My notes are wrong
Ich vergesse immer meine Schlüssel
Vergiss nicht, Milch zu kaufen
Das ist falsch, der Code sollte 3 ausgeben
J'oublie toujours mes clés
N'oublie pas d'acheter du lait
Siempre olvido mis llaves
No olvides comprar leche
Dimentico sempre le chiavi
Eu sempre esqueço as chaves
Ik vergeet altijd mijn sleutels
Vergeet niet melk te kopen
"""


@pytest.mark.parametrize("text", ASKED)
def test_what_is_asked_of_the_memory(text: str) -> None:
    read = request(text)

    assert read is not None
    assert (read.act, read.about, read.last) == ASKED[text]


@pytest.mark.parametrize("text", NOT_ASKED.strip().splitlines())
def test_what_only_sounds_like_it(text: str) -> None:
    assert request(text) is None


def test_everything_about_something_and_everything() -> None:
    assert [(one.all, one.about) for one in requests("Forget everything about work.")] == [(True, "work")]
    assert [(one.all, one.about) for one in requests("Forget everything you know about me")] == [(True, "")]


def test_the_new_value_of_a_correction_and_what_is_to_be_remembered() -> None:
    assert [one.value for one in requests("No, that's not right. My name is Anna.")] == ["My name is Anna"]
    assert [one.value for one in requests("update my address to 5 Main Street")] == ["5 Main Street"]
    assert [one.value for one in requests("Remember: the gate code changes in May")] == ["the gate code changes in May"]


def test_a_turn_may_ask_for_several_things() -> None:
    read = requests("I sold the car. Forget my number plate. And remember that I cycle to work.")

    assert [one.act for one in read] == ["forget", "remember"]
    assert read[0].sentence == "Forget my number plate."


def test_do_not_save_this_is_about_what_follows_where_something_does() -> None:
    assert [one.act for one in requests("Don't save this. I voted against it.")] == ["off"]
    assert [(one.act, one.last) for one in requests("I voted against it. Don't save this.")] == [("forget", True)]


@pytest.mark.parametrize(
    "text", ["forget " * 700, "forget my " + "a, " * 100, "please " * 500 + "forget", "not, " * 900]
)
def test_a_text_of_nothing_but_beginnings_is_read_at_once(text: str) -> None:
    assert not any(one.all for one in requests(text))  # a pattern that looks back would take minutes


def test_what_is_surely_the_speakers_is_asked_in_many_words() -> None:
    for text in (
        "hey, can you get rid of my phone number",
        "I don't want you keeping my phone number",
        "my phone number - delete that please",
        "My phone number should be erased from your notes",
    ):
        assert [(one.act, one.about.lower()) for one in requests(text)] == [("forget", "my phone number")], text
