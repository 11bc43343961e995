"""Numbers that identify a person: bank cards, bank accounts, social security, tax and passport numbers.

A checksum tells most of them from an order number. Where a form has none, a word beside it must say what it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache

from recollect.policies.credentials import IBAN_LENGTHS, is_iban, is_no_card

Span = tuple[int, int]

_START, _END = r"(?<![\w.,/+-])", r"(?![\w-]|[.,/]\d)"
_CARD = _START + r"\d(?:[ .-]?\d){12,18}" + _END
_IBAN = r"(?<![A-Za-z0-9])[A-Za-z]{2}\d\d(?:[ -]?[A-Za-z0-9]){11,30}"
_BEFORE, _AFTER = 70, 40
"""Characters before and after a number in which a word may say what it is."""


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


@cache
def _any_case(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def cards(text: str) -> Iterator[Span]:
    for match in _compiled(_CARD).finditer(text):
        if not is_no_card(match):
            yield match.span()


def ibans(text: str) -> Iterator[Span]:
    """As long as the country's numbers are: words may follow without anything between."""
    for match in _compiled(_IBAN).finditer(text):
        end = _after_signs(text, match.start(), IBAN_LENGTHS.get(match[0][:2].upper(), 0))
        is_over = end == len(text) or not text[end : end + 1].isalnum()
        if end <= match.end() and is_over and is_iban(re.sub(r"[ -]", "", text[match.start() : end]).upper()):
            yield match.start(), end


def _after_signs(text: str, start: int, count: int) -> int:
    """Where so many letters and digits from here on end, whatever spaces part them."""
    at = start
    while count and at < len(text):
        count -= text[at].isalnum()
        at += 1
    return at if not count else len(text) + 1


def social_numbers(text: str) -> Iterator[Span]:
    """Social security, national and tax numbers of people."""
    for pattern, words, is_valid in _FORMS:
        if words is not None and not _any_case(words).search(text):
            continue
        for match in _any_case(pattern).finditer(text):
            if is_valid(match[0]) and (words is None or _is_named(text, match.span(), words)):
                yield match.span()


def _is_named(text: str, span: Span, words: str) -> bool:
    around = text[max(0, span[0] - _BEFORE) : span[0]], text[span[1] : span[1] + _AFTER]
    return any(_any_case(words).search(part) for part in around)


def passports(text: str) -> Iterator[Span]:
    """After a word for a passport or an identity card, in the same sentence; `X is my passport number` too."""
    for word in _any_case(_PASSPORT_WORD).finditer(text):
        after = text[word.end() : word.end() + 90]
        for match in _any_case(_PASSPORT).finditer(after):
            between = after[: match.start()]
            if re.search(r"[.!?](?:\s|$)|\n\n", between) and not _any_case(_CALLED_NUMBER).search(between):
                break
            if _is_passport(match[0]) and not _any_case(_OTHER_NUMBER).search(between):
                yield word.end() + match.start(), word.end() + match.end()
                break
        before = text[max(0, word.start() - 40) : word.start()]
        if (match := _any_case(_PASSPORT + _NAMED_AFTER).search(before)) and _is_passport(match[1]):
            start = max(0, word.start() - 40) + match.start(1)
            yield start, start + len(match[1])


_PASSPORT_WORD = (
    r"(?<!\w)(?:passports?|reisep[aä]ss(?:es|nummer|nr)?|pass-?(?:nummer|nr|no)|passeports?|pasaportes?"
    r"|passaport[oei]s?"
    r"|paspoort(?:nummer)?|(?:personal)?ausweis(?:nummer|nr|es)?|identity card|id card|travel document"
    r"|reisedokument|document de voyage|documento (?:de viaje|di viaggio|de viagem)|carta d['’]identità"
    r"|carte d['’]identité|identiteitskaart)(?!\w)"
)
_PASSPORT = r"(?<![\w/.-])([A-Z]{0,3} ?(?:\d[ -]?){6,9}(?<!\D)[A-Z]?|(?=[A-Z]*\d)[A-Z0-9]{8,10})(?![\w/-]|\.\d)"
_NAMED_AFTER = r" (?:is|was|ist|est|es|è|é)(?: \w+){0,3} $"
_CALLED_NUMBER = r"\b(?:no|nr|number|nummer|num[eé]ro|n[uú]mero)\b"
_OTHER_NUMBER = (
    r"\b(?:call|phone|tel|reference|ref|booking|appointment|case|ticket|order|invoice|flight|room|expir\w*|until"
    r"|issued"
    r"|fee|termin|vorgang|telefon|rufnummer|bis|rendez-vous|cita|hasta|scad\w*)\b"
)


def _is_passport(token: str) -> bool:
    compact = re.sub(r"[ -]", "", token)
    digits = sum(letter.isdigit() for letter in compact)
    if compact.isdigit():  # eight digits may be a day
        return 8 <= len(compact) <= 9 and not re.fullmatch(
            r"(?:19|20)\d\d[01]\d[0-3]\d|[0-3]\d[01]\d(?:19|20)\d\d", compact
        )
    return 6 <= len(compact) <= 10 and digits >= 4


# Checksums


def _digits(value: str) -> list[int]:
    return [int(letter) for letter in value if letter.isdigit()]


def _is_us(value: str) -> bool:
    digits = re.sub(r"\D", "", value)
    area, group, serial = digits[:3], digits[3:5], digits[5:]
    return area not in ("000", "666") and area[0] != "9" and group != "00" and serial != "0000"


def _always(value: str) -> bool:
    return True


def _has_luhn(value: str) -> bool:
    doubled = [sum(divmod(digit * (1 + at % 2), 10)) for at, digit in enumerate(reversed(_digits(value)))]
    return sum(doubled) % 10 == 0


def _is_german_tax(value: str) -> bool:
    """ISO 7064, Mod 11,10."""
    *digits, check = _digits(value)
    product = 10
    for digit in digits:
        product = (((digit + product) % 10) or 10) * 2 % 11
    return (11 - product) % 10 == check and digits[0] != 0


def _is_dni(value: str) -> bool:
    compact = re.sub(r"\W", "", value).upper()
    number = {"X": "0", "Y": "1", "Z": "2"}.get(compact[0], compact[0]) + compact[1:-1]
    return "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23] == compact[-1]


_ODD_DIGITS = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21)
_ODD = dict(
    zip(
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        (*_ODD_DIGITS, *_ODD_DIGITS, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23),
        strict=True,
    )
)


def _is_codice_fiscale(value: str) -> bool:
    compact = value.replace(" ", "").upper()
    even = sum(int(sign) if sign.isdigit() else ord(sign) - 65 for sign in compact[1:15:2])
    return chr((sum(_ODD[sign] for sign in compact[0:15:2]) + even) % 26 + 65) == compact[15]


def _is_nir(value: str) -> bool:
    compact = re.sub(r"\W", "", value).upper().replace("2A", "19").replace("2B", "18")
    return compact.isdigit() and 97 - int(compact[:13]) % 97 == int(compact[13:])


def _is_cpf(value: str) -> bool:
    digits = _digits(value)
    if len(set(digits)) == 1:
        return False
    return all(
        sum(digit * (length + 1 - at) for at, digit in enumerate(digits[:length])) * 10 % 11 % 10 == digits[length]
        for length in (9, 10)
    )


def _is_bsn(value: str) -> bool:
    digits = _digits(value)
    weighted = sum(digit * weight for digit, weight in zip(digits, (9, 8, 7, 6, 5, 4, 3, 2, -1), strict=True))
    return weighted % 11 == 0 and any(digits)


def _is_nif(value: str) -> bool:
    digits = _digits(value)
    rest = sum(digit * (9 - at) for at, digit in enumerate(digits[:8])) % 11
    return (0 if rest < 2 else 11 - rest) == digits[8]


def _is_ahv(value: str) -> bool:
    digits = _digits(value)
    return sum(digit * (1 + 2 * (at % 2)) for at, digit in enumerate(digits)) % 10 == 0


def _is_mod_97(value: str) -> bool:
    """Belgian register numbers; of people born from 2000 on with a 2 before."""
    compact = re.sub(r"\D", "", value)
    return any(97 - int(before + compact[:9]) % 97 == int(compact[9:]) for before in ("", "2"))


def _is_nuss(value: str) -> bool:
    compact = re.sub(r"\D", "", value)
    number = int(compact[:2]) * (10_000_000 if int(compact[2:10]) < 10_000_000 else 100_000_000) + int(compact[2:10])
    return number % 97 == int(compact[10:])


_SSN = (
    r"\bssn\b|\bs\.s\.n|social[ -]security|\bmy social\b|\bsocial (?:is|number)|\b(?:his|her) social\b|\bitin\b"
    r"|tax ?id"
)
_NINE = _START + r"\d{3}[ .-]?\d{3}[ .-]?\d{3}" + _END
_ELEVEN = _START + r"\d{2}[ ]?\d{3}[ ]?\d{3}[ ]?\d{3}" + _END
_FORMS: tuple[tuple[str, str | None, Callable[[str], bool]], ...] = (
    (_START + r"\d{3}-\d{2}-\d{4}" + _END, None, _is_us),
    (_START + r"\d{3}[ .-]?\d{2}[ .-]?\d{4}" + _END, _SSN, _is_us),
    (r"\b(?-i:[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d\d ?\d\d ?\d\d ?[A-D])\b", None, _always),  # United Kingdom
    (r"\b[a-z]{2} ?\d\d ?\d\d ?\d\d ?[a-d]\b", r"national insurance|\bnino\b|\bni (?:number|no)", _always),
    (_NINE, r"social insurance|\bsin\b|assurance sociale|\bnas\b", _has_luhn),  # Canada
    (_ELEVEN, r"steuer|\bidnr|identifikationsnummer|tax ?id|\btin\b", _is_german_tax),
    (r"\b\d{2} ?\d{6} ?[a-z] ?\d{3}\b", r"sozialversicherung|rentenversicherung|\bsv-?n|\brvnr", _always),
    (r"\b(?-i:\d{8}-?[A-Z]|[XYZ]-?\d{7}-?[A-Z])\b", None, _is_dni),
    (r"\b(?:\d{8}|\d\d\.\d{3}\.\d{3}|[xyz][ -]?\d{7})[ -]?[a-z]\b", r"\bdni\b|\bnie\b|\bnif\b", _is_dni),
    (r"\b\d\d[ /-]?\d{8}[ /-]?\d\d\b", r"seguridad social|\bnuss\b|\bnaf\b", _is_nuss),
    (r"\b[a-z]{3} ?[a-z]{3} ?\d\d[abcdehlmprst]\d\d ?[a-z]\d{3}[a-z]\b", None, _is_codice_fiscale),
    (r"\b[12] ?\d\d ?(?:0[1-9]|[1-9]\d) ?(?:\d\d|2[ab]) ?\d{3} ?\d{3} ?\d\d\b", None, _is_nir),
    (_START + r"\d{3}\.\d{3}\.\d{3}-\d\d" + _END, None, _is_cpf),
    (_START + r"\d{3}[ .]?\d{3}[ .]?\d{3}[ -]?\d\d" + _END, r"\bcpf\b", _is_cpf),
    (_NINE, r"\bbsn\b|burgerservice|sofi-?nummer", _is_bsn),
    (_START + r"\d{4}[ .]?\d{2}[ .]?\d{3}" + _END, r"\bbsn\b|burgerservice|sofi-?nummer", _is_bsn),
    (_NINE, r"\bnif\b|contribuinte", _is_nif),
    (_START + r"756\.?\d{4}\.?\d{4}\.?\d\d" + _END, None, _is_ahv),
    (
        _START + r"\d\d[. ]?\d\d[. ]?\d\d[- ]?\d{3}[. ]?\d\d" + _END,
        r"rijksregister|registre national|numéro national|national register|\binsz\b|\bniss\b",
        _is_mod_97,
    ),
    (_START + r"\d{4} ?\d{4} ?\d{4}" + _END, r"aadh?aar", _always),
)
