"""Patterns of credentials: tokens of services, card numbers, bank accounts, and the names that values are given to."""

from __future__ import annotations

import re

_START = r"(?<![A-Za-z0-9])"
_HEX = "[0-9a-f]"
_WORD = r"[\w-]"
_SERVICES = (
    rf"do[opr]_v1_{_HEX}{{32}}",  # DigitalOcean
    r"AGE-SECRET-KEY-1[A-Z0-9]{40}",  # age
    rf"hv[sbr]\.{_WORD}{{20}}",  # HashiCorp Vault
    r"s\.(?=[A-Za-z0-9]{0,23}[0-9])(?=[A-Za-z0-9]{0,23}[A-Z])[A-Za-z0-9]{24}(?![A-Za-z0-9.])",
    r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{40}",  # Terraform Cloud
    rf"dckr_(?:pat|oat)_{_WORD}{{20}}",  # Docker Hub
    rf"rubygems_{_HEX}{{32}}",
    rf"gl(?:rt|dt|cbt|ptt|ft|soat|agent|imt)-{_WORD}{{16}}",  # GitLab's other tokens
    r"xapp-\d-[A-Z0-9]{6,}-",  # Slack apps
    rf"sq0[a-z]{{3}}-{_WORD}{{20}}",  # Square
    r"EAAA[A-Za-z0-9_-]{50}",  # Square, Meta
    r"r8_[A-Za-z0-9]{30}",  # Replicate
    r"NR(?:AK|RA|II|BR|JS)-[A-Za-z0-9-]{20}",  # New Relic
    r"shp(?:at|ss|ca|pa|tka)_[0-9a-fA-F]{32}",  # Shopify
    rf"key-{_HEX}{{32}}(?![A-Za-z0-9])",  # Mailgun
    rf"{_HEX}{{32}}-us\d{{1,2}}(?!\d)",  # Mailchimp
    rf"x(?:keysib|smtpsib)-{_HEX}{{40}}",  # Brevo
    r"\d{8,10}:[A-Za-z0-9_-]{35}(?![\w-])",  # Telegram bots
    r"[MNO][A-Za-z0-9_-]{22,27}\.[\w-]{6}\.[\w-]{27}",  # Discord bots
    r"discord(?:app)?\.com/api/webhooks/\d{8,}/[\w-]{20}",
    rf"office\.com/webhook/\S{{1,120}}/IncomingWebhook/{_HEX}{{32}}",  # Teams
    r"hooks\.zapier\.com/hooks/catch/\d+/\w{5}",
    rf"access_token\$(?:production|sandbox)\${_HEX}{{8}}",  # Braintree
    r"LTAI[A-Za-z0-9]{16}",  # Alibaba Cloud
    rf"PMAK-{_HEX}{{20}}",  # Postman
    rf"dapi{_HEX}{{32}}",  # Databricks
    r"CCIP(?:AT|RJ)_[A-Za-z0-9_]{30}",  # CircleCI
    rf"pul-{_HEX}{{32}}",  # Pulumi
    rf"sgp_{_HEX}{{32}}",  # Sourcegraph
    r"gl(?:sa|c)_[A-Za-z0-9+/_]{30}",  # Grafana
    r"(?:vercel|vc[pirak])_[A-Za-z0-9]{20}",
    r"sb(?:p|_secret)_[A-Za-z0-9]{30}",  # Supabase
    r"nf[pcoub]_[A-Za-z0-9]{30}",  # Netlify
    r"sntry[su]_[A-Za-z0-9+/=_]{30}",  # Sentry
    r"lin_(?:api|oauth)_[A-Za-z0-9]{30}",  # Linear
    r"(?:secret|ntn)_(?=\w{0,40}\d)[A-Za-z0-9]{40}",  # Notion
    rf"figd_{_WORD}{{30}}",  # Figma
    rf"AT[AC]TT3x{_WORD}{{30}}",  # Atlassian
    rf"tfp_{_WORD}{{30}}",  # Typeform
    r"ph[cx]_[A-Za-z0-9]{30}",  # PostHog
    r"ops_eyJ[A-Za-z0-9]{40}",  # 1Password
    r"(?:xai|pplx)-[A-Za-z0-9]{40}",
    rf"tskey-[a-z]+-{_WORD}{{16}}",  # Tailscale
    r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.-]{30}",  # Doppler
    rf"pat[A-Za-z0-9]{{14}}\.{_HEX}{{32}}",  # Airtable
    rf"pscale_(?:tkn|oauth|pw)_{_WORD}{{20}}",  # PlanetScale
    r"dt0c01\.[A-Z0-9]{20}",  # Dynatrace
    r"(?:CFPAT|HRKU|sm|ico|fio-u)-[A-Za-z0-9_-]{36}",  # Contentful, Heroku, Infracost, Frame.io
    r"(?:bkua|fo1|aio|pnu|rdme|glb|shippo_live|duffel_live|CLOJARS|fm2)_[A-Za-z0-9]{28}",
    rf"sk\.eyJ{_WORD}{{20}}",  # Mapbox
    r"ya29\.[\w-]{30}",  # Google OAuth
    r"[?&;]sig=[A-Za-z0-9%+/_-]{40}",  # signatures of Azure's shared access
)
SERVICE_TOKEN = f"(?:{_START}|(?<=[a-z]\\.)|(?<=//)|(?=[?&;]sig=))(?:{'|'.join(_SERVICES)})"
SERVICE_QUICK = (
    r"do[opr]_v1_|AGE-SECRET|hv[sbr]\.|(?<![A-Za-z0-9])s\.|atlasv1|dckr_|rubygems_|gl[a-z]{1,5}[-_]|xapp-|sq0|EAAA|r8_"
    r"|NR[A-Z]{2}-|shp[a-z]{2,3}_|key-|-us\d|sib-|\d:[A-Za-z0-9_-]{35}|[MNO][\w-]{22,27}\.|webhook|hooks\.zapier"
    r"|access_token\$|LTAI|PMAK|dapi|CCIP|pul-|sgp_|vercel_|vc[pirak]_|sb(?:p|_secret)_|nf[a-z]_|sntry|lin_|secret_|ntn_"
    r"|figd_|TT3x|tfp_|ph[cx]_|ops_eyJ|xai-|pplx-|tskey-|dp\.|pat[A-Za-z0-9]{14}\.|pscale_|dt0c|CFPAT|HRKU|sm-|ico-|fio-"
    r"|bkua_|fo1_|aio_|pnu_|rdme_|glb_|_live_|CLOJARS|fm2_|sk\.eyJ|ya29|sig="
)
"""One of these is in every match of SERVICE_TOKEN."""

CARD = r"(?<![\w.,:/+-])(?:[3-6]\d{3}|2[2-7]\d\d)([ -]?)\d{4,6}\1\d{4,5}(?:\1\d{1,4}){0,2}(?![\w-]|[.,]\d)"
IBAN = r"(?<![A-Za-z0-9])[A-Z]{2}\d\d(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?"
IBAN_LENGTHS = {
    country: int(length)
    for length, countries in {
        "15": "NO", "16": "BE", "18": "DK FI NL FO GL", "19": "MK SI", "20": "AT BA EE KZ LT LU XK",
        "21": "CH HR LI LV",
        "22": "BG BH CR DE GB GE IE ME RS", "23": "AE GI IL TL", "24": "AD CZ ES MD PK RO SA SE SK TN VG",
        "25": "LY PT", "26": "IS TR", "27": "FR GR IT MC MR SM", "28": "AL AZ CY DO GT HU LB PL SV BY",
        "29": "BR EG QA UA PS", "30": "JO KW MU",
    }.items()
    for country in countries.split()
}  # fmt: skip


ASSIGNED = {
    "secret_access_key": "aws-secret-key",
    "secretaccesskey": "aws-secret-key",
    "secret access key": "aws-secret-key",
    "accountkey": "azure-key",
    "sharedaccesskey": "azure-key",
    "password": "password",
    "passwords": "password",
    "passwd": "password",
    "passphrase": "password",
    "pwd": "password",
    "_pass": "password",
    "_pw": "password",
    " pw": "password",
    "passwort": "password",
    "kennwort": "password",
    "contraseña": "password",
    "mot de passe": "password",
    "wachtwoord": "password",
    "senha": "password",
    "hasło": "password",
    "lösenord": "password",
    "пароль": "password",
    "密码": "password",
    "パスワード": "password",
    "token": "token",
    "api_key": "api-key",
    "apikey": "api-key",
    "api-key": "api-key",
    "api key": "api-key",
    "api_keys": "api-key",
    "apikeys": "api-key",
    "secret": "secret",
    "secret_key": "secret",
    "secret key": "secret",
    "private_key": "secret",
    "encryption_key": "secret",
    "encryptionkey": "secret",
    "signing_key": "secret",
    "master_key": "secret",
    "secret_key_base": "secret",
    "auth_key": "secret",
}
"""`name = value`: what a value is given to, as the name ends in lower case → the rule."""


def is_no_card(match: re.Match[str]) -> bool:
    """Whether its length and first digits are no card's, or its checksum (Luhn) is wrong."""
    digits = re.sub(r"\D", "", match[0])
    if not re.fullmatch(
        r"4(?:\d{12}|\d{15}|\d{18})|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}"
        r"|3(?:0[0-5]|[68]\d)\d{11}|35\d{14}|6(?:011|5\d\d|4[4-9]\d|2\d\d)\d{12}",
        digits,
    ):
        return True
    doubled = [sum(divmod(int(digit) * (1 + at % 2), 10)) for at, digit in enumerate(reversed(digits))]
    return sum(doubled) % 10 != 0 or len(set(digits)) == 1


def is_no_iban(match: re.Match[str]) -> bool:
    """Whether its country has no such numbers, or its checksum is wrong."""
    compact = match[0].replace(" ", "")
    return not is_iban(compact[: IBAN_LENGTHS.get(compact[:2], 0)])


def is_iban(number: str) -> bool:
    """Whether it is as long as numbers of its country are, and its checksum is right. Without spaces."""
    if len(number) < 15 or len(number) != IBAN_LENGTHS.get(number[:2]):
        return False
    return int("".join(str(int(letter, 36)) for letter in number[4:] + number[:4])) % 97 == 1
