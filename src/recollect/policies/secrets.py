"""What looks like a credential and must not be stored.

A rule's name is all that ever leaves this module: a match, or a piece of one, is repeated nowhere.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from unicodedata import normalize

import msgspec

from recollect.policies.credentials import ASSIGNED, CARD, IBAN, SERVICE_QUICK, SERVICE_TOKEN, is_no_card, is_no_iban
from recollect.values.errors import PresetError, SecretError, screen_with


class SecretRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Refuses a text in which `pattern`, a regular expression, occurs."""

    name: str
    pattern: str


class Screen(msgspec.Struct, frozen=True, forbid_unknown_fields=True, cache_hash=True):
    enabled: bool = True
    literal: bool = False
    """Also refuse the bare prefixes and words of the Aegis document, whatever follows them."""
    allow: tuple[str, ...] = ()
    """Names of rules that are switched off."""
    rules: tuple[SecretRule, ...] = ()


def find(text: str, screen: Screen) -> str | None:
    """The name of the first rule that the text breaks."""
    if not screen.enabled:
        return None
    plan, plain = _plan(screen), _plain(text)
    if name := _behind(plan.gates, plain):
        return name
    if _two_digits()(plain) and (name := _behind(plan.number_gates, plain)):
        return name
    if ":" in plain and (name := _assigned(plain, ":", plan.off)):
        return name
    if "=" in plain and (name := _assigned(plain, "=", plan.off)):
        return name
    if name := _find_spoken_password(plain, plan.off):
        return name
    if _has_run(plain) and (name := _behind(plan.long_gates, plain) or _blob(plain, plan)):
        return name
    for name, search in plan.extra:
        if search(text) or (plain is not text and search(plain)):
            return name
    return None


_UNSEEN = re.compile("[\u00ad\u034f\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]")


def _plain(text: str) -> str:
    """As it reads: full-width letters are letters, and nothing invisible parts a word."""
    return text if text.isascii() else _UNSEEN.sub("", normalize("NFKC", text))


def _behind(gates: tuple[_OpenGate, ...], text: str) -> str | None:
    for gate, quick, rules in gates:
        if gate in text and (quick is None or quick(text)):
            for name, pattern, passes in rules:
                if _occurs(text, pattern, passes):
                    return name
    return None


def check(screen: Screen) -> None:
    """Raises PresetError if a pattern is not a regular expression or `allow` names no rule."""
    _plan(screen)


# A text is looked at only through a rule's gate, a piece that every match contains; the search for a missing piece is
# the cheapest thing there is. Where many gates share a character, the second column looks around each such character.

Passes = Callable[[re.Match[str]], bool]
_Rule = tuple[str, str, Passes | None]
_Gate = tuple[str, str | None, tuple[_Rule, ...]]
_OpenGate = tuple[str, Callable[[str], object] | None, tuple[_Rule, ...]]
_START = r"(?<![A-Za-z0-9])"


def _is_words(match: re.Match[str]) -> bool:
    """`Bearer of news` and `Bearer <token>` are no credentials."""
    token = match[1].rstrip(".,:;!?)\"'`")
    words = r"[A-Za-z]?[a-z]*(?:[-/'’][A-Za-z]?[a-z]+)*|[A-Z]+(?:_[A-Z]+)+"
    return _full(words, token) or _is_placeholder(token) or _compile(_FILLER).search(match[1]) is not None


def _is_filler(match: re.Match[str]) -> bool:
    """`sk-xxxxxxxx`, `AKIA…EXAMPLE`: what stands in documents where a key would be."""
    token = _compile(r"\S{0,120}").match(match.string, match.start())
    return token is not None and _compile(_FILLER).search(token[0]) is not None


_FILLER = r"[xX]{5}|\*{3}|\.{3}|EXAMPLE|(?i:[-_]example|your[-_]|placeholder|changeme|redacted)|<"


def _is_sample_login(match: re.Match[str]) -> bool:
    """`postgres:postgres@localhost` and `user:password@host`."""
    user, password = match[1].lower(), match[2].lower()
    return _is_placeholder(match[2]) or password in _SAMPLE_PASSWORDS or (password == user and user.isalpha())


_SAMPLE_PASSWORDS = frozenset("password pass passwd pw postgres root secret changeme example test guest".split())


def _is_sample(match: re.Match[str]) -> bool:
    """`curl -u user:password`."""
    return _is_placeholder(match[1]) or match[1].lower().endswith((*_NAMES, "pass"))


def _is_no_pair(match: re.Match[str]) -> bool:
    """`Basic Training`: only what is `name:password` in base64 is a credential."""
    try:
        pair = b64decode(match[1] + "=" * (-len(match[1]) % 4), validate=True).decode()
    except ValueError:
        return True
    return not pair.isprintable() or ":" not in pair


def _is_no_password(match: re.Match[str]) -> bool:
    return _is_placeholder(match[1]) or not _is_made_up(match[1])


_SHELL = r"(?:(?:mysql\w*|mariadb[\w-]*)\b[^\n]{0,100}? -p|sshpass -p ?)[\"']?([^\s\"']{4,64})"
_CURL = r"curl [^\n]{0,200}?(?<= )(?:-u|--user)[ =]?[\"']?[^\s:\"']{1,64}:([^\s\"']{1,256})"
_DEFAULT: tuple[_Gate, ...] = (
    (
        "-",
        r"-(?:(?<=sk-)|(?<=glpat-)|(?<=xox[abeoprs]-)|(?<=pypi-)|(?<=GOCSPX-)|----BEGIN )",
        (
            ("sk-key", _START + r"sk-(?!learn|image)(?=[\w-]{0,100}\d|[A-Za-z0-9]{16})[\w-]{6}", _is_filler),
            ("gitlab-token", _START + r"glpat-[\w-]{6}", _is_filler),
            ("slack-token", _START + r"xox[abeoprs]-[\w-]{6}", _is_filler),
            ("pypi-token", _START + r"pypi-AgE[\w-]{10}", None),
            ("google-secret", _START + r"GOCSPX-[\w-]{10}", None),
            ("pgp-private-key", r"-----BEGIN PGP PRIVATE KEY BLOCK-----", None),
            ("private-key", r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----", None),
        ),
    ),
    (
        "_",
        r"_(?:(?<=gh[pousr]_)|(?<=[sr]k_)(?:live|test)_|(?<=npm_)|(?<=hf_)|(?<=github_)pat_|(?<=whsec_)|(?<=gsk_))",
        (
            ("github-token", _START + r"(?:gh[pousr]_[A-Za-z0-9]{6}|github_pat_[A-Za-z0-9_]{6})", _is_filler),
            ("stripe-key", _START + r"(?:[sr]k_(?:live|test)|whsec)_[A-Za-z0-9]{8}", _is_filler),
            ("npm-token", _START + r"npm_[A-Za-z0-9]{30}", _is_filler),
            ("hugging-face-token", _START + r"hf_[A-Za-z0-9]{20}", _is_filler),
            ("groq-key", _START + r"gsk_[A-Za-z0-9]{20}", _is_filler),
        ),
    ),
    (
        "://",
        r"://(?:[^\s/]{1,400}@|hooks\.)",
        (
            ("connection-string", r"://([^\s:/@]{0,100}):([^\s/@]{1,256})@[\w\[]", _is_sample_login),
            ("slack-webhook", r"://hooks\.slack\.com/(?:services|workflows)/[A-Z]\w+/", None),
        ),
    ),
    ("earer ", None, (("bearer-token", r"(?<![A-Za-z])[Bb]earer +(\S{1,4096})", _is_words),)),
    ("asic ", None, (("basic-auth", r"(?<![A-Za-z])[Bb]asic +([A-Za-z0-9+/]{6,4096})", _is_no_pair),)),
    ("curl ", r" (?:-u|--user)", (("basic-auth", _CURL, _is_sample),)),
    ("orization", None, (("basic-auth", r"(?i:authorization)[\"']?: ?[\"']?Basic +[A-Za-z0-9+/]{16}", None),)),
    (" -p", r"(?:mysql|mariadb|sshpass)", (("password", _SHELL, _is_no_password),)),
)

# Numbers with a checksum, in groups or in one.
_NUMBERS: tuple[_Gate, ...] = (
    ("", r"\d{4}[ -]?\d{4}", (("card-number", CARD, is_no_card),)),
    ("", r"[A-Z]{2}\d\d ?[A-Z0-9]{4}", (("iban", IBAN, is_no_iban),)),
)

_RUN = 20
# Keys that are at least that long, without a space.
_LONG: tuple[_Gate, ...] = (
    ("AKIA", None, (("aws-key-id", _START + r"AKIA[A-Z0-9]{16}(?![A-Za-z0-9])", _is_filler),)),
    ("ASIA", None, (("aws-key-id", _START + r"ASIA[A-Z0-9]{16}(?![A-Za-z0-9])", _is_filler),)),
    ("AIza", None, (("google-key", _START + r"AIza[\w-]{30}", _is_filler),)),
    ("SG.", None, (("sendgrid-key", _START + r"SG\.[\w-]{16,80}\.[\w-]{16}", None),)),
    ("SK", None, (("twilio-key", _START + r"SK[0-9a-f]{32}(?![A-Za-z0-9])", None),)),
    ("", SERVICE_QUICK, (("service-token", SERVICE_TOKEN, _is_filler),)),
    ("eyJ", None, (("jwt", r"(?<![\w-])eyJ[\w-]{8,}+\.eyJ[\w-]{8,}+\.", None),)),
)

_LITERAL: tuple[_Gate, ...] = (
    (
        "-",
        r"-(?:(?<=sk-)|(?<=glpat-)|(?<=xox[bp]-))",
        (
            ("sk-key", _START + "sk-", None),
            ("gitlab-token", _START + "glpat-", None),
            ("slack-token", _START + "xox[bp]-", None),
        ),
    ),
    ("_", r"_(?<=gh[po]_)", (("github-token", _START + "gh[po]_", None),)),
    ("earer ", None, (("bearer-token", _START + "Bearer ", None),)),
    (":", None, (("token", "(?i:token):", None), ("password", "(?i:password):", None))),
)

_NAMES = tuple(ASSIGNED)
_BLOBS = ("mixed-blob", "base64-blob")

RULES = tuple(
    dict.fromkeys([*(rule[0] for gate in _DEFAULT + _NUMBERS + _LONG for rule in gate[2]), *ASSIGNED.values(), *_BLOBS])
)
"""The names of the rules that come with recollect."""


class _DetectorPlan(msgspec.Struct, frozen=True):
    gates: tuple[_OpenGate, ...]
    number_gates: tuple[_OpenGate, ...]
    """For texts with two digits in a row."""
    long_gates: tuple[_OpenGate, ...]
    extra: tuple[tuple[str, Callable[[str], object]], ...]
    off: frozenset[str]
    literal: bool


@lru_cache(maxsize=64)
def _plan(screen: Screen) -> _DetectorPlan:
    names = {*RULES, *(rule.name for rule in screen.rules)}
    for name in screen.allow:
        if name not in names:
            raise PresetError("secrets.allow", f"there is no rule `{name}`; the rules are {', '.join(sorted(names))}")
    off = frozenset(screen.allow)
    extra = tuple([(rule.name, _searcher(rule)) for rule in screen.rules if rule.name not in off])
    gates = (*_LITERAL, *_DEFAULT) if screen.literal else _DEFAULT
    return _DetectorPlan(_opened(gates, off), _opened(_NUMBERS, off), _opened(_LONG, off), extra, off, screen.literal)


def _opened(gates: tuple[_Gate, ...], off: frozenset[str]) -> tuple[_OpenGate, ...]:
    return tuple(
        [
            (gate, None if quick is None else _compile(quick).search, tuple([r for r in rules if r[0] not in off]))
            for gate, quick, rules in gates
        ]
    )


def _searcher(rule: SecretRule) -> Callable[[str], object]:
    try:
        return re.compile(rule.pattern).search
    except re.error as error:
        raise PresetError(f"secrets.rules.{rule.name}.pattern", f"not a regular expression ({error})") from None


@cache
def _two_digits() -> Callable[[str], object]:
    return _compile(r"\d\d").search


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


def _full(pattern: str, text: str) -> bool:
    return _compile(pattern).fullmatch(text) is not None


def _occurs(text: str, pattern: str, passes: Passes | None) -> bool:
    if passes is None:
        return _compile(pattern).search(text) is not None
    return any(not passes(match) for match in _compile(pattern).finditer(text))


_NEAR = 200
_KEYED = r"(?:name|key|variable|field|label|id|\bk)[\"'`]?[ \t]{0,4}[:=][ \t]{0,4}[\"'`]?([\w .-]{1,64})"
_KEYED_VALUE = r"[:=][ \t]{0,4}([\"'`]?)([^\s\"'`,;]{1,256})"
_HINTS = ("pass", "pwd", "token", "key", "secret")
"""One of them is in each name."""
_OWN_VALUE = frozenset("value plain plaintext raw text current old new default".split())
_WORDS = r"(?i:password|passphrase|passwd|pwd)"
_SENTENCE = _WORDS + r"(?: (?:for|of|to|on|at) [\w. '-]{1,40}?)? is:? [\"'`]?([^\s\"'`,;]{5,256})"
_ASCII_VERBS = (" ist ", " lautet ", " es ", " est ")
_FOREIGN_VERBS = (*_ASCII_VERBS, " é ", " è ", " är ", " это ")
_FOREIGN = (
    r"(?i:passwort|kennwort|contraseña|mot de passe|wachtwoord|senha|hasło|lösenord|пароль)"
    r"(?: \S{1,20}){0,3}? (?:ist|lautet|es|est|é|è|is|är|это):? [\"'`]?([^\s\"'`,;]{5,256})"
)
_PIN = (
    r"(?<![A-Za-z])(?i:pin)(?:[- ](?:code|number))?(?: (?:for|of|to) [\w' -]{1,30}?)?"
    r"(?: is|:|=) ?(\d{4,8})(?![\w.-])"
)
_BELOW = r"(?m:^)[\w.-]{0,40}?" + _WORDS + r"\n([^\s:=]{5,256})(?m:$)"
_VALUE = r"[:=]{1,2}>?\*{0,2}(\s{0,4})([\"'`]?)([^\s\"'`,;]{1,256})"


def _assigned(text: str, sign: str, off: frozenset[str]) -> str | None:
    """A password, token or key that is given a value. Starts from the signs, because there are few."""
    at = text.find(sign)
    while at >= 0:
        name = " " + text[max(0, at - 24) : at].rstrip(" \t\"'`*_)]").lower()
        if "." in name:
            name = _owner(name)
        if name.endswith(_NAMES):
            rule = next(rule for ending, rule in ASSIGNED.items() if name.endswith(ending))
            match = _compile(_VALUE).match(text, at)
            if match and rule not in off and _is_value(rule, match[3], bool(match[2]), not match[1] and sign == "="):
                return rule
        elif name.endswith(("value", "v", "val")) and (rule := _keyed(text, at, name, off)):
            return rule
        at = text.find(sign, at + 1)
    return None


def _owner(name: str) -> str:
    """Whose the value is: `password.value` and `passwords.prod` are what JSON is shown as."""
    path, _, last = name.rpartition(".")
    return path if path.endswith("passwords") or (path.endswith(_NAMES) and last in _OWN_VALUE) else name


def _find_spoken_password(text: str, off: frozenset[str]) -> str | None:
    """The rule that a sentence breaks, such as `my password is …`, or a password on the line below its name."""
    if "password" in off:
        return None
    for gate, pattern in ((" is", _SENTENCE), ("\n", _BELOW)):
        if gate in text:
            for match in _compile(pattern).finditer(text):
                if _is_value("password", match[1], False, False) and _is_made_up(match[1].rstrip(".!?)]}>")):
                    return "password"
    for verb in _ASCII_VERBS if text.isascii() else _FOREIGN_VERBS:
        if verb in text:
            for match in _compile(_FOREIGN).finditer(text):
                if _is_made_up(match[1].rstrip(".!?)]}>")):
                    return "password"
            break
    if ("PIN" in text or "pin" in text or "Pin" in text) and _compile(_PIN).search(text):
        return "password"
    return None


def _is_made_up(value: str) -> bool:
    """No word and no measure, such as `wrong` or `12-character`."""
    if _full(r"\d+-?[a-z]+", value) or _full(_FIGURE, value):
        return value.isdigit() and len(value) >= 6
    return bool(_compile(r"[0-9!@#$%^&*]").search(value))


def _keyed(text: str, at: int, said_before: str, off: frozenset[str]) -> str | None:
    """`{"name": "DB_PASSWORD", "value": …}`: the value is given to what is named beside it, before it or else after."""
    near = text[max(at - _NEAR, 0) : at + _NEAR].lower()
    if not any(hint in near for hint in _HINTS):
        return None
    match, called = _compile(_KEYED_VALUE).match(text, at), _compile(r"(?:value|\bv(?:al)?)$").search(said_before)
    if not match or not called:
        return None
    # Only as far as the object goes, or to another value, which has a name of its own.
    preceding, label = text[max(at - _NEAR, 0) : at].lower(), called[0]
    other = r"[{}]|value" if label == "value" else rf"[{{}}]|\b{label}\b"
    before = re.split(other, preceding[: preceding.rindex(label)])[-1]
    after = re.split(other, text[at : at + _NEAR].lower())[0]
    names = _compile(_KEYED).findall(before)[-1:] or _compile(_KEYED).findall(after)[:1]
    name = names[0].rstrip() if names else ""
    rule = next((rule for ending, rule in ASSIGNED.items() if name.endswith(ending)), None)
    return rule if rule and rule not in off and _is_value(rule, match[2], bool(match[1]), False) else None


_TYPES = """
str string text bytes bool boolean int integer number any none null nil undefined true false varchar redacted
md5 sha1 sha256 sha512 argon2 argon2id bcrypt scrypt pbkdf2"""
_SENTENCE_WORDS = """
a an the this that these it its is was are be must should can cannot may will would has have had at in on of for from to
by with without and or not never always if when where what which who how why see use using we you i he she they our your
my their please ask minimum maximum only same new old stored check forgot between yes no optional required empty hidden
unset set missing invalid valid expired wrong incorrect correct changed unchanged unknown masked encrypted hashed
disabled enabled n/a tbd todo field reset
"""
_NO_VALUE = frozenset(_TYPES.split())
_PROSE = frozenset(_SENTENCE_WORDS.split())
_PLACEHOLDER = (
    r"[<{\[(%*•…].*|\$[A-Za-z_{(].*|\.{2,}.*|[xX]{3,}|-+|_+|\?+|(?i:your|my|example|placeholder|redacted|dummy|fake)[-_].*"
    r"|(?i:redacted|placeholder|example|changeme|change[-_]me)|#\{.*|@\{.*"
)
_REFERENCE = (
    r"[A-Za-z_][\w.]*[(\[].*|(?:self|this|os|process|env|settings|config|cfg|conf|args|request|req|ctx|context|params"
    r"|props|options|opts|secrets|credentials|creds|user|data|var|local|input|form|body|session|event)[.:].+|https?://.*"
    r"|Optional\b.*|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|[~./].*"
)
_FIGURE = r"[vV]?\d[\d.,:/TZ+%-]*[kKmM%]?"


def _is_placeholder(value: str) -> bool:
    """Stands where a secret would be: `<password>`, `***`, `${PASSWORD}`."""
    return _full(_PLACEHOLDER, value)


def _is_value(rule: str, value: str, quoted: bool, joined: bool) -> bool:
    value = value.rstrip(".!?)]}>\\")
    low = value.lower()
    if not value or low in _NO_VALUE or low.endswith(_NAMES) or _is_placeholder(value):
        return False
    if rule != "password" and _compile(_FILLER).search(value):
        return False
    if not quoted and (low in _PROSE or _full(_REFERENCE, value)):
        return False
    if rule == "password":
        return len(value) >= (4 if value.isdigit() else 3)
    if rule in {"aws-secret-key", "azure-key"}:
        return len(value) >= 16
    if value.isdigit() or _full(_FIGURE, value):
        return value.isdigit() and len(value) >= 6
    if any("0" <= letter <= "9" for letter in value):
        return len(value) >= 6
    return len(value) >= (8 if quoted or joined else 16)


def _has_run(text: str) -> bool:
    """Whether so many characters follow each other without a space, which ordinary text hardly has."""
    at, last = 0, len(text) - _RUN
    while at <= last:
        space = text.rfind(" ", at, at + _RUN)
        if space < 0:
            return True
        at = space + 1
    return False


def _blob(text: str, plan: _DetectorPlan) -> str | None:
    if "mixed-blob" not in plan.off:
        for match in _mixed(text):
            if not _is_address_or_hash(text, match) and (plan.literal or not _is_words_together(match[0])):
                return "mixed-blob"
    if "base64-blob" not in plan.off:
        for match in _compile(_BASE64).finditer(text):
            run = match[0].rstrip("=")
            symbols = sum(run.count(symbol) for symbol in "+/-_")
            # Of 64 signs two are symbols: a run with many of them is a path, a date or a name.
            padded = match[0].endswith("=")
            if not _is_mixed(run) or (symbols > 0.15 * len(run) and not padded) or _is_address_or_hash(text, match):
                continue
            if padded or (symbols and not _is_words_together(run)):
                return "base64-blob"
    return None


_BASE64 = r"(?<![A-Za-z0-9+/_=.-])(?=[A-Za-z0-9+/_=-]{40})[A-Za-z0-9+/_-]{38,}+={0,2}"


def _mixed(text: str) -> Iterator[re.Match[str]]:
    for match in _compile(_START + r"[A-Za-z0-9]{40,}+").finditer(text):
        if _is_mixed(match[0]):
            yield match


def _is_mixed(run: str) -> bool:
    return bool(_compile("[a-z]").search(run) and _compile("[A-Z]").search(run) and _compile("[0-9]").search(run))


_PUBLIC = ("AAAAB3Nza", "AAAAC3Nza", "AAAAE2Vj", "data:")
_PATH = r"(?:~|\.{1,2})?/[A-Z]?[a-z][a-z0-9._-]*/"
"""How a path begins. Base64 may begin with a slash, too, but hardly with a word between two."""
_HASH = r"(?i:sha\d{1,3}|md5|h1|blake\d?[bs]?)[-:=]"


def _is_address_or_hash(text: str, match: re.Match[str]) -> bool:
    """Part of a URL or path, a public key, an embedded file, a hexadecimal number or the hash of a file."""
    run = match[0][:400]
    before = re.split(r"\s", text[max(0, match.start() - 400) : match.start()])[-1].lstrip("\"'`(<[")
    token = before + run
    if before.endswith(("/", ".", "_", "-", "+")) and "/" in before:
        return True
    if "://" in before or ":\\" in before or token.startswith("www.") or _compile(_PATH).match(token):
        return True
    if token.startswith(_PUBLIC) or _full(r"0x[0-9A-Fa-f]+", run):
        return True
    return _compile(rf"(?:^|[\"'=(,:]){_HASH}[A-Za-z0-9+/_=-]*$").search(token) is not None


def _is_words_together(run: str) -> bool:
    pieces = _compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+").findall(run[:400])
    # A piece of a random run is about two characters long; one in 6,000 of 40 characters averages three and a half.
    return len(run[:400]) >= 3.5 * len(pieces) and max(map(len, pieces)) <= 20


def screen_name(rules: Screen, field: str, text: str) -> None:
    """As `screen`, for a name: it may be an id that some program made, a blob and no credential, and is no sentence."""
    screen(_for_names(rules), field, text)


@lru_cache(maxsize=64)
def _for_names(rules: Screen) -> Screen:
    return msgspec.structs.replace(rules, literal=False, allow=(*rules.allow, *_BLOBS))


def screen(rules: Screen, field: str, text: str) -> None:
    """Refuse what looks like a credential, naming the field and the rule, never the text."""
    if len(text) > _NAME_CHARS:
        if rule := find(text, rules):
            raise SecretError(field, rule)
        return
    try:
        _pass_name(rules, text)
    except _BrokenRuleError as broken:
        raise SecretError(field, broken.rule) from None


_NAME_CHARS = 48


class _BrokenRuleError(Exception):
    def __init__(self, rule: str) -> None:
        super().__init__(rule)
        self.rule = rule


@lru_cache(maxsize=1024)
def _pass_name(rules: Screen, text: str) -> None:
    """Kinds and tags come again with most memories. An exception is not cached, and so no credential is."""
    if rule := find(text, rules):
        raise _BrokenRuleError(rule)


# Many ids and hashes that stand in messages are blobs.
screen_with(lambda text: find(text, _for_names(Screen())))
