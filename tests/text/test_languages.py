"""The languages as data: which one a text is in, where its sentences end, and that each file can be read."""

from __future__ import annotations

import re

import pytest

from recollect.text.languages import codes, language, parse
from recollect.text.languages.detection import UNKNOWN, language_of
from recollect.text.languages.patterns import compiled
from recollect.text.sentences import sentences

SPOKEN = ["de", "es", "fr", "it", "nl", "pt"]

TEXTS = [
    ("de", "Ich wohne seit Mai in Graz und fahre mit dem Rad."),
    ("de", "wuerde gern wissen ob das geht"),
    ("fr", "J'habite à Lyon depuis deux ans."),
    ("fr", "je prefere des reponses courtes"),
    ("es", "Vivo en Lisboa desde mayo."),
    ("es", "¿Me ayudas?"),
    ("it", "Abito a Modena con mia sorella."),
    ("it", "non mi piacciono i funghi"),
    ("pt", "Moro em Curitiba com a minha irmã."),
    ("pt", "nao gosto de coentros"),
    ("nl", "Ik woon in Zwolle met mijn zus."),
    ("nl", "we hebben een hond en twee katten"),
    ("en", "I live in Rome with my sister."),
    ("en", "don't call me after nine"),
    (UNKNOWN, "Mieszkam w Krakowie od trzech lat."),
    (UNKNOWN, "私はポルトに住んでいます。"),
    (UNKNOWN, "Zwickau 4711"),
    (UNKNOWN, "si"),
    (UNKNOWN, "no"),
    (UNKNOWN, ""),
    (UNKNOWN, "😀"),
]


@pytest.mark.parametrize(("code", "text"), TEXTS)
def test_a_text_tells_its_language_by_common_words(code: str, text: str) -> None:
    assert language_of(text) == code


def test_every_language_has_a_file_and_every_file_a_language() -> None:
    assert set(codes()) >= {"en", *SPOKEN}
    for code in codes():
        assert language(code).words.common


@pytest.mark.parametrize("code", SPOKEN)
@pytest.mark.parametrize("table", ["talk", "statements"])
def test_every_pattern_of_a_file_is_a_regular_expression_that_needs_words(code: str, table: str) -> None:
    spec = getattr(language(code), table)
    for key in spec.__struct_fields__:
        patterns = getattr(spec, key)
        assert patterns, f"{code}.toml: {table}.{key} is empty"
        for pattern in patterns if isinstance(patterns, tuple) else ():
            assert not compiled([pattern]).search(""), f"{code}.toml: {table}.{key}: {pattern} matches nothing at all"


PLAIN = re.compile(r"[^\W\d_]+(?: [^\W\d_]+)*")


@pytest.mark.parametrize("code", SPOKEN)
def test_the_plain_phrases_of_a_file_are_found_in_a_sentence_with_and_without_accents(code: str) -> None:
    spec, found = language(code), 0
    for table in (spec.talk, spec.statements):
        for key in table.__struct_fields__:
            patterns = getattr(table, key)
            for phrase in patterns if isinstance(patterns, tuple) else ():
                if PLAIN.fullmatch(phrase):
                    found += 1
                    assert compiled(patterns).search(f"xx {phrase.upper()} xx"), (key, phrase)
    assert found > 100


@pytest.mark.parametrize(
    ("pattern", "text"),
    [("grün", "GRÜN"), ("grün", "gruen"), ("grün", "grun"), ("weiß", "weiss"), ("né", "ne"), ("mañana", "manana")],
)
def test_an_accent_in_a_pattern_may_be_left_out_in_a_text(pattern: str, text: str) -> None:
    assert compiled([pattern]).search(text)


@pytest.mark.parametrize(("pattern", "text"), [("ou", "où"), ("grün", "grünlich"), ("ne", "né")])
def test_an_accent_in_a_text_is_another_letter(pattern: str, text: str) -> None:
    assert not compiled([pattern]).search(text)


WRONG = [
    ("[talk]\nquestions = ['wer']", "questions"),
    ("[tlak]\nquestion = ['wer']", "tlak"),
    ("[slots.home]\nverbs = ['wohne']", "verbs"),
    ("[words]\ncommon = 3", "common"),
    ("[words", "xx.toml"),
]


@pytest.mark.parametrize(("text", "named"), WRONG)
def test_what_is_wrong_in_a_file_is_an_error_that_names_file_and_key(text: str, named: str) -> None:
    with pytest.raises(ValueError, match=named) as error:
        parse("xx.toml", text)
    assert str(error.value).startswith("xx.toml: ")


WHOLE = [
    "Ich habe am 12. Juni Geburtstag.",
    "Wir ziehen im 3. Quartal um.",
    "Der Termin ist am 12.06. um neun.",
    "Ich esse viel Obst, z. B. Äpfel und Birnen.",
    "Mein Arzt ist Dr. Meier in der Lindenstr. 14 in Kiel.",
    "Ich zahle bzw. zahlte 1.200 € Miete.",
    "Mon voisin M. Dupont garde nos clés.",
    "J'ai rdv le 3 janv. à neuf heures.",
    "Chez nous, p. ex. le lundi, on mange tard.",
    "La Sra. García es mi vecina desde hace años.",
    "Llevo aprox. ocho años en Madrid.",
    "Mi calle es la Avda. América y vivo aquí.",
    "Il mio compleanno è il 3 mag. e faccio festa.",
    "La sig.ra Conti è la mia vicina di casa.",
    "Vivo in C.so Torino con mia sorella, ca. 80 metri.",
    "Faço anos a 3 de out. com a minha irmã.",
    "Moro na Av. Brasil com os meus pais.",
    "De afspraak met dhr. de Vries is in mei.",
    "Ik heb om 9.30 u. een afspraak bij de tandarts.",
    "Ik moet bijv. mijn paspoort nog ophalen.",
]


@pytest.mark.parametrize("text", WHOLE)
def test_a_full_stop_inside_a_sentence_does_not_end_it(text: str) -> None:
    assert [sentence.text for sentence in sentences(text)] == [text]


TWO = [
    ("Ich wohne in Bonn.", "Meine Schwester wohnt in Kiel."),
    ("Wir haben 12.", "Das reicht."),
    ("Ich esse Äpfel usw.", "Meine Frau isst Birnen."),
    ("J'habite à Lyon.", "Ma sœur habite à Lille."),
    ("Vivo en Quito.", "Mi hermana vive en Lima."),
    ("Vivo a Roma.", "Mia sorella vive a Bari."),
    ("Moro em Braga.", "A minha irmã mora em Faro."),
    ("Ik woon in Delft.", "Mijn zus woont in Gouda."),
    ("I met her in mag.", "It was fun."),
    ("私はポルトに住んでいます。", "猫が好きです。"),
]


@pytest.mark.parametrize(("first", "second"), TWO)
def test_sentences_still_end_at_their_full_stops(first: str, second: str) -> None:
    whole = f"{first} {second}" if first[-1] == "." else first + second
    assert [sentence.text for sentence in sentences(whole)] == [first, second]
