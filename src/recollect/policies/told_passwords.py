"""PINs and passwords that are told in words: `my pin is twenty-two eleven`, `the wifi password is fluffy99`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

Span = tuple[int, int]

_PASSWORD = (
    r"(?:pass[ -]?words?|pass[ -]?phrases?|pass[ -]?codes?|passwd|pwd|p/w|\bpw\b|passw[oö]rt(?:er|es)?"
    r"|kennw[oö]rt(?:er)?"
    r"|(?:wlan|wifi|wi-fi|netzwerk)[ -]?schl[uü]ssel|mots? de passe|\bmdp\b|code wi-?fi|cl[eé] (?:du )?wi-?fi"
    r"|contrase[nñ]as?|\bclaves?\b|parola d['’]ordine|parola chiave|senhas?|palavras?[ -]passe"
    r"|wachtwoord(?:en)?|(?:wi-?fi|network|login|log-?in|netflix|email|account|laptop|computer|router) (?:key"
    r"|pass|pw)\b)"
)
_NO_OWN = (
    r"(?!\s+(?:managers?|polic\w+|hash\w*|fields?|hints?|vaults?|resets?|generators?|protect\w+|auth\w*|length|rules?"
    r"|app)\b)"
)
_WORD = r"(?<![\w-])(?:wlan-|wifi-|wi-fi-|[a-zäöü]+-)?" + _PASSWORD + r"(?![\w-])" + _NO_OWN
_PIN = (
    r"(?<![\w-])(?:(?:[a-zäöü]+-)?pins?(?:[ -]?(?:code|number|nummer|kode))?|pincode|pinnummer|geheimzahl|geheimnummer"
    r"|code (?:pin|secret|de carte bleue)|c[oó]digo (?:pin|secreto)|codice (?:pin|segreto|del bancomat)|pass[ -]?code"
    r"|(?:unlock|phone|screen|voicemail|sim|puk)(?:[ -]?lock)? code|(?:entsperr|handy)-?code)(?![\w-])"
)
_CODE = (
    r"(?<![\w-])(?:(?:(?:front )?door|gate|alarm|garage|entry|entrance|safe|locker|lock|building|keypad|key ?box"
    r"|lockbox"
    r"|bike lock|access|security)(?:[ -]?lock)? code|digicode"
    r"|(?:t[uü]r|haust[uü]r|alarm|tor|safe|tresor|zugangs|garagen|deur|kluis|toegangs)-?code"
    r"|code (?:d['’]entr[eé]e|de (?:l['’])?(?:alarme?|la porte|l['’]immeuble)|du (?:portail|coffre|digicode))"
    r"|c[oó]digo (?:de (?:la |el )?|del |da |do )"
    r"(?:alarma?|alarme|puerta|portal|porta|port[aã]o|caja fuerte|cofre)"
    r"|codice (?:dell['’]|della |del )(?:allarme|antifurto|porta|portone|cassaforte))(?![\w-])"
)
_LINKS = (
    r"(?:is|was|will be|are|ist|sind|war|lautet|lauten|hei[sß]+t|est|c['’]est|sont|etait|était|es|era|son|[eé]|è"
    r"|sono|são|eh"
    r"|luidt|heet|zijn)"
)
_SOFT = (
    r"(?:now|just|still|simply|actually|currently|always|jetzt|aktuell|immer noch|einfach|maintenant|ahora|ora|agora"
    r"|nu|also|again)"
)
_CHANGED = (
    r"(?:changed|set|reset|updated|ge[aä]ndert|ge[aä]nderd|gewijzigd|chang[eé]e?|cambiad[oa]|cambiat[oa]"
    r"|mudad[oa]|alterad[oa])"
    r"(?: it)?(?: back)? (?:to|auf|in|naar|pour|a|para|in|en)"
)
_LINK = (
    rf"(?:\s*(?:[:=]|->|→|=>)\s*|\s*['’]s\s+|\s+(?:{_LINKS}(?:\s+{_SOFT})?(?:\s*:)?|(?:(?:was|has been|wurde"
    rf"|to)\s+)?{_CHANGED})\s+)"
)
_OWNER = r"(?:\s+(?!(?:is|ist|est|es|lautet|è|é)\s)[^\s.!?;:=,\"]{1,24}){0,7}?"
"""What the password is for: `for the guest network`."""
_QUOTED = r"[\"“”„«‘'`]\s?([^\"“”»’'`\n]{2,64}?)\s?[\"“”»’'`]"
_TOKEN = r"([^\s\"“”„«»,;]{3,64})"
_OPENED_BY = (
    r"(?: \w+){0,3}? (?:unlocks|opens|is unlocked|disarms|lässt sich \w+ öffnen|öffnet(?: sich)?|entsperrt(?: sich)?"
    r"|s['’]ouvre|se déverrouille|se abre|se desbloquea|si apre|si sblocca|abre|desbloqueia|gaat open)"
    r" (?:with|mit|avec|con|com|met|by)"
)
_DEVICES = (
    r"\b(?:phone|tablet|ipad|iphone|laptop|computer|handy|téléphone|móvil|teléfono|telefono|celular|telefoon)"
    + _OPENED_BY
)
_DOORS = r"\b(?:door|safe|gate|locker|tür|porte|puerta|porta|deur|garage|alarm)" + _OPENED_BY
_KEYPADS = r"\b(?:alarm|safe|lockbox|voicemail|tresor|coffre|alarme|alarma|allarme|cassaforte|kluis)"
_SPOKEN = rf"{_WORD}{_OWNER}{_LINK}(?:{_QUOTED}|{_TOKEN})"
_DIRECT = rf"{_WORD}\s+(?:{_QUOTED}|{_TOKEN})"
_REVERSED = (
    rf"(?:{_QUOTED}|(?<![^\s(\"']){_TOKEN})\s+(?:{_LINKS}|as|als|comme|como|come)\s+"
    rf"(?:(?:the|my|our|his|her|their|a|das|mein|unser|dein|ihr|le|mon|notre|la|el|mi|nuestra|nuestro|il|mia"
    rf"|nostra|a|minha"
    rf"|nossa|het|mijn|ons|de)\s+)?(?:[\w-]{{1,16}}\s+){{0,2}}?{_WORD}"
)


@cache
def _any_case(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def passwords(text: str) -> Iterator[Span]:
    for match in _any_case(rf"{_DEVICES} (?:{_QUOTED}|{_TOKEN})").finditer(text):
        if (span := _value(text, match, strict=True)) and not match[match.lastindex or 1].isdigit():
            yield span
    if not _any_case(_WORD).search(text):
        return
    for match in _any_case(_SPOKEN).finditer(text):
        if span := _value(text, match, strict=False):
            yield span
    for pattern in (_DIRECT, _REVERSED):
        for match in _any_case(pattern).finditer(text):
            if span := _value(text, match, strict=True):
                yield span


def _value(text: str, match: re.Match[str], *, strict: bool) -> Span | None:
    """Where the value is, if it is one: `expired` and `12 characters long` are none."""
    group = 1 if match[1] is not None else 2
    start, value = match.start(group), match[group]
    if group == 1:
        is_value = _is_quoted_value(value, strict)
        return (start, match.end(1)) if is_value else None
    value = value.rstrip(".!?)]}>'’…")
    end = start + len(value)
    if len(value) < 3 or _any_case(_PLACEHOLDER).fullmatch(value) or value.lower() in _NO_PASSWORD:
        return None
    if _is_made_up(value):
        after = text[end : end + 24]
        return None if value[0].isdigit() and _any_case(_UNIT).match(after) else (start, end)
    if strict:
        return None
    return _of_words(text, start, end)


def _is_quoted_value(value: str, strict: bool) -> bool:
    words = value.lower().split()
    if _any_case(_PLACEHOLDER).fullmatch(value) or len(words) > 6 or (len(words) == 1 and words[0] in _NO_PASSWORD):
        return False
    return _is_made_up(value) if strict else True


def _is_made_up(value: str) -> bool:
    """Has digits among its letters, signs, or capitals inside, as words have not."""
    if value.isdigit():
        return len(value) >= 4 and not re.fullmatch(r"(?:19|20)\d\d", value)
    if re.fullmatch(r"[\d.,:/+-]+(?:[a-zA-Z%€$]{0,2}|-\w+)", value) or re.fullmatch(r"[^\W\d_]+['’][^\W\d_]+", value):
        return False
    if "://" in value or re.fullmatch(r"[\w.+-]+@[\w-]+\.\w+", value):
        return False
    has_digit, has_letter = bool(re.search(r"\d", value)), bool(re.search(r"[^\W\d_]", value))
    if has_digit and has_letter:
        return True
    if re.search(r"[!@#$%^&*_=+~]", value) and has_letter:
        return True
    pieces = value.split("-")
    if len(pieces) >= 3 and all(len(piece) > 2 for piece in pieces):
        return True
    return bool(re.search(r"[a-z][A-Z]", value))


def _of_words(text: str, start: int, end: int) -> Span | None:
    """One word that ends the clause, or some that make no sentence: `correct horse battery staple`."""
    words = list(re.compile(r"[^\W\d_][\w-]*").finditer(text, start, start + 120))
    clause = re.compile(
        r"[.!?,;:\n)(]|\s[-–—]\s|$|\s(?:but|and|if|so|in case|aber|und|falls|mais|et|pero|y|ma|mas|maar|en)\s"
    )
    stop = clause.search(text, end)
    last = stop.start() if stop else len(text)
    inside = [word for word in words if word.start() < last]
    names = [word[0].lower() for word in inside]
    if not names or any(name in _NO_PASSWORD for name in names) or len(names) in (2, *range(7, 40)):
        return None
    if len(names) == 1 and names[0].endswith(_ENDINGS):
        return None
    return start, inside[-1].end()


_ENDINGS = ("ed", "ing", "able", "ible", "ful", "iert", "iché", "ado", "ada", "ato", "ata", "erd")
_PLACEHOLDER = r"[<{\[(%*•…_$].*|[x*.•_-]{3,}|redacted|placeholder|example|changeme"
_UNIT = (
    r"[ -]?(?:char|zeichen|letters?|digits?|words?|caract|carat|tekens|stellig|ziffern|days?|weeks?|months?"
    r"|years?|minutes?|times"
    r"|hours?|tage|jahre|monate|jours|mois|ans|d[ií]as|meses|giorni|mesi|dagen|maanden|%|bits?|people|of)"
)
_NO_PASSWORD = frozenset(
    """
a an the this that these those it its is was are be been must should can cannot may will would has have had at in on
of for from to by with without and or not never always if when where what which who how why see use using we you i he
she they our your my his her their please ask minimum maximum only same new old stored saved check forgot forgotten
between yes no optional required empty hidden unset set reset missing invalid valid expired wrong incorrect correct
changed unchanged unknown masked encrypted hashed disabled enabled tbd todo field too very quite so pretty really easy
hard weak strong secure insecure safe unsafe long short simple complex different shared secret private public default
temporary somewhere there here written kept somewhere now already also still just about up down out due good bad fine
ok okay broken lost stuck blank null none nothing something anything everything everywhere manager managers reset
protected policy screen field hint account sent case-sensitive sensitive gone like than then but because as into onto
over under after before more less one two own all ein eine einen der die das den dem des ist sind war nicht nie immer
noch nur sehr zu zum zur im in an am auf bei von vom mit ohne und oder aber wie was wo wer ich du er sie es wir ihr
mein dein sein unser abgelaufen falsch richtig vergessen geändert gespeichert geheim sicher unsicher stark schwach
lang kurz neu alt gleich leer weg bekannt unbekannt ungültig gültig erforderlich nötig notiert dasselbe dieselbe
derselbe hier dort le la les un une des du de d est sont pas jamais toujours trop très plus dans sur sous chez par
pour avec sans et ou mais je tu il elle nous vous ils mon ton son notre votre ce cette que qui expiré incorrect oublié
changé enregistré faible fort sûr long court même nouveau ancien vide perdu invalide valide noté faux bon mauvais el
los las una unos de del al en con sin por para y o pero no nunca siempre muy mas más que es son mi tu su nuestro
caducada expirada incorrecta correcta olvidada débil fuerte segura insegura larga corta misma nueva vieja vacía
guardada importante buena mala fundamental il lo gli i uno di da in con su per tra fra e ed o ma non mai sempre molto
troppo che mio tuo suo nostro scaduta sbagliata errata corretta debole forte sicura lunga corta stessa nuova vecchia
vuota salvata dimenticata os as um uma do da dos das no na nos nas em com sem por para e ou mas não nunca sempre muito
que meu seu nosso minha expirou errada incorreta fraca forte segura longa curta mesma nova velha salva esquecida het
een de van in op bij met zonder voor en of maar niet nooit altijd te heel erg dat die wat mijn jouw zijn ons verlopen
fout verkeerd onjuist juist vergeten veranderd gewijzigd opgeslagen zwak sterk veilig lang kort hetzelfde nieuw oud
leeg
""".split()
)


# PINs


def pins(text: str) -> Iterator[Span]:
    yield from _codes(text, _PIN, _DEVICES)


def access_codes(text: str) -> Iterator[Span]:
    """Codes of doors, gates, alarms and safes."""
    yield from _codes(text, _CODE, _DOORS, rf"{_KEYPADS}{_OWNER}\s?: ({_code()})")


def _codes(text: str, word: str, opened: str, *more: str) -> Iterator[Span]:
    if not any(_any_case(pattern).search(text) for pattern in (word, opened, *more)):
        return
    value = _code()
    so = r"(?:,? (?:so|i\.e\.|also|donc|as[ií] que|quindi|dus) | (?=[^\W\d_]+[ -][^\W\d_]+[ -])(?!a |the ))"
    forms = (
        rf"{word}{_OWNER}{_LINK}(?:the number |die |le |el |il )?[\"'“„]?({value})",
        rf"{word}[ ,(]+({value})",
        rf"{word}(?:['’]s)?{_OWNER}{so}({value})",
        rf"{opened} ({value})",
        rf"({value})\s+(?:{_LINKS}|as|als|comme|como|come)\s+(?:[\w'’]+\s+){{0,4}}?{word}",
        *more,
    )
    for form in forms:
        for match in _any_case(form).finditer(text):
            if not _is_no_pin(text, match, match.group(match.lastindex or 1)):
                yield match.span(match.lastindex or 1)


@cache
def _code() -> str:
    """Digits, together, in pairs or one by one; or number words."""
    number = _numbers()
    digits = r"(?:\d{3,8}|\d(?:[ -]\d){2,7}|\d\d(?:[ -]\d\d){1,3}|\d{3,4} \d{3,4})(?![\w/-]|[.,:]\d)"
    words = rf"(?:{number})(?:[ ,-]+(?:(?:and|und|y|e|et|en)[ ])?(?:{number})){{1,9}}(?!\w)"
    return rf"(?<![\w.,/-])(?:{digits}|{words})"


def _is_no_pin(text: str, match: re.Match[str], value: str) -> bool:
    end = match.end(match.lastindex or 1)
    if _any_case(_UNIT + r"|\s?(?:am|pm|uhr|h)\b|[ ]?(?:€|\$|euros?|dollars?|kg|km|mm|cm|volt|pins)").match(
        text[end : end + 16]
    ):
        return True
    # India's postal codes are called PIN codes.
    postal = (
        r"address|postal|postcode|zip|area|city|district|mumbai|delhi|bangalore|bengaluru|chennai|pune|kolkata"
        r"|hyderabad|gpio|solder"
    )
    return _any_case(rf"\b(?:{postal})\b").search(text[max(0, match.start() - 60) : end + 60]) is not None


@cache
def _numbers() -> str:
    """Number words of seven languages, up to a hundred, the longest first."""
    words = set(
        """
zero oh one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred double triple nil nought null eins ein
zwei zwo drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn
neunzehn zwanzig dreißig dreissig vierzig fünfzig sechzig siebzig achtzig neunzig zéro un deux trois quatre cinq sept
huit neuf dix onze douze treize quatorze quinze seize vingt trente quarante cinquante soixante septante nonante
quatre-vingt quatre-vingts cent cero once uno dos tres cuatro cinco seis siete ocho nueve diez doce trece catorce
quince dieciséis diecisiete dieciocho diecinueve veinte veintiuno veintidós veintitrés veinticuatro veinticinco
veintiséis veintisiete veintiocho veintinueve treinta cuarenta cincuenta sesenta setenta ochenta noventa cien due tre
quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici sedici diciassette diciotto
diciannove venti trenta quaranta cinquanta sessanta settanta ottanta novanta cento um dois três quatro sete oito dez
onze doze treze quinze dezesseis dezasseis dezessete dezassete dezoito dezenove dezanove vinte trinta quarenta
cinquenta sessenta oitenta meia nul een één twee drie vijf zes zeven negen tien twaalf dertien veertien vijftien
zestien zeventien achttien negentien twintig dertig veertig vijftig zestig zeventig tachtig negentig
""".split()
    )
    german = "ein zwei drei vier fünf sechs sieben acht neun".split()
    words |= {
        f"{unit}und{ten}"
        for unit in german
        for ten in "zwanzig dreißig dreissig vierzig fünfzig sechzig siebzig achtzig neunzig".split()
    }
    dutch = "een twee drie vier vijf zes zeven acht negen".split()
    tens = "twintig dertig veertig vijftig zestig zeventig tachtig negentig".split()
    words |= {f"{unit}{'ën' if unit.endswith('e') else 'en'}{ten}" for unit in dutch for ten in tens}
    italian = "venti trenta quaranta cinquanta sessanta settanta ottanta novanta".split()
    words |= {
        f"{ten[:-1] if unit[0] in 'uo' else ten}{unit}"
        for ten in italian
        for unit in "uno due tre quattro cinque sei sette otto nove".split()
    }
    return "|".join(sorted(words, key=len, reverse=True))
