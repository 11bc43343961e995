"""Secrets in the forms that people paste them, all made up, and texts that only look like secrets.

Bodies are made from a seed, so that no scanner of repositories takes them for real ones. They were written before the
rules were read: what the rules miss here they miss in the world.
"""

from __future__ import annotations

import base64
import hashlib
import random
import string

_random = random.Random(20260217)
HEX = "0123456789abcdef"
LETTERS = string.ascii_letters + string.digits
UPPER = string.ascii_uppercase + string.digits


def body(length: int, letters: str = LETTERS) -> str:
    """Random letters; of both cases and digits where the alphabet has them."""
    while True:
        text = "".join(_random.choice(letters) for _ in range(length))
        kinds = [any(letter in group for letter in letters) for group in _GROUPS]
        if all(not has or any(letter in group for letter in text) for has, group in zip(kinds, _GROUPS, strict=True)):
            return text


_GROUPS = (string.ascii_lowercase, string.ascii_uppercase, string.digits)


def _jwt() -> str:
    parts = [b'{"alg":"HS256","typ":"JWT"}', b'{"sub":"1234567890","name":"Ada","iat":1516239022}']
    return ".".join([*(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts), body(43)])


def _b64(length: int) -> str:
    return base64.b64encode(_random.randbytes(length)).decode()


def _b64url(length: int) -> str:
    return base64.urlsafe_b64encode(_random.randbytes(length)).decode().rstrip("=")


def _luhn(prefix: str, length: int) -> str:
    digits = prefix + "".join(_random.choice(string.digits) for _ in range(length - len(prefix) - 1))
    total = sum(sum(divmod(int(digit) * (2 if at % 2 == 0 else 1), 10)) for at, digit in enumerate(reversed(digits)))
    return digits + str(-total % 10)


def _grouped(digits: str, by: str = " ") -> str:
    return by.join(digits[at : at + 4] for at in range(0, len(digits), 4))


def _iban(country: str, bban: str) -> str:
    number = int("".join(str(int(letter, 36)) for letter in f"{bban}{country}00"))
    return f"{country}{98 - number % 97:02d}{bban}"


_KEY = "-----BEGIN {0}-----\n{1}\n-----END {0}-----"
_AWS = "AKIA" + body(16, UPPER)

SECRETS: tuple[str, ...] = (
    # Keys of cloud and model providers
    f"aws_access_key_id = {_AWS}",
    f"the key is {_AWS}, keep it safe",
    f"ASIA{body(16, UPPER)}",
    f"aws_secret_access_key = {_b64(30)}",
    f"AWS_SECRET_ACCESS_KEY={_b64(30)}",
    f"AIza{body(35)}",
    f"GOCSPX-{body(28)}",
    f"ya29.{body(60)}",
    f"sk-{body(48)}",
    f"sk-proj-{body(64)}",
    f"sk-ant-api03-{body(90)}",
    f"OPENAI_API_KEY=sk-{body(32)}",
    f"hf_{body(34)}",
    f"r8_{body(37)}",
    f"gsk_{body(52)}",
    f"xai-{body(80)}",
    f"pplx-{body(48)}",
    f"AccountKey={_b64(64)};EndpointSuffix=core.windows.net",
    f"DefaultEndpointsProtocol=https;AccountName=shop;AccountKey={_b64(64)}",
    f"SharedAccessKey={_b64(32)}",
    f"?sv=2022-11-02&ss=b&srt=co&sig={_b64url(32)}%3D",
    f"dop_v1_{body(64, HEX)}",
    f"doo_v1_{body(64, HEX)}",
    f"LTAI{body(20)}",
    # Keys of developers' services
    f"ghp_{body(36)}",
    f"gho_{body(36)}",
    f"ghs_{body(36)}",
    f"github_pat_{body(22)}_{body(59)}",
    f"glpat-{body(20)}",
    f"glrt-{body(20)}",
    f"npm_{body(36)}",
    f"pypi-AgEIcHlwaS5vcmc{body(80)}",
    f"rubygems_{body(48, HEX)}",
    f"dckr_pat_{body(27)}",
    f"hvs.{body(90)}",
    f"s.{body(24)} is the old vault token",
    f"AGE-SECRET-KEY-1{body(58, UPPER)}",
    f"NRAK-{body(27, UPPER)}",
    f"sntrys_{body(60)}",
    f"lin_api_{body(40)}",
    f"secret_{body(43)}",
    f"ntn_{body(46)}",
    f"figd_{body(40)}",
    f"PMAK-{body(24, HEX)}-{body(34, HEX)}",
    f"dapi{body(32, HEX)}",
    f"ATATT3xFfGF0{body(180)}",
    f"CCIPAT_{body(22)}_{body(40, HEX)}",
    f"tfp_{body(44)}",
    f"{body(14)}.atlasv1.{body(67)}",
    f"pul-{body(40, HEX)}",
    f"sgp_{body(40, HEX)}",
    f"phc_{body(43)}",
    f"glsa_{body(32)}_{body(8, HEX)}",
    f"ops_eyJ{body(120)}",
    f"vercel_{body(24)}" + body(8),
    f"sbp_{body(40, HEX)}",
    f"nfp_{body(36)}",
    # Payments, shops, messages
    f"sk_live_{body(24)}",
    f"rk_live_{body(24)}",
    f"whsec_{body(32)}",
    f"sq0atp-{body(22)}",
    f"sq0csp-{body(43)}",
    f"EAAA{body(60)}",
    f"shpat_{body(32, HEX)}",
    f"shpss_{body(32, HEX)}",
    f"access_token$production${body(16, HEX)}${body(32, HEX)}",
    f"xoxb-{body(12, string.digits)}-{body(12, string.digits)}-{body(24)}",
    f"xoxp-{body(11, string.digits)}-{body(11, string.digits)}-{body(32, HEX)}",
    f"xapp-1-A{body(10, UPPER)}-{body(13, string.digits)}-{body(64, HEX)}",
    f"https://hooks.slack.com/services/T{body(8, UPPER)}/B{body(8, UPPER)}/{body(24)}",
    f"https://discord.com/api/webhooks/{body(18, string.digits)}/{body(68)}",
    f"{body(10, string.digits)}:AA{body(33)}",
    f"MTA{body(21)}.{body(6)}.{body(27)}",
    f"SG.{body(22)}.{body(43)}",
    f"key-{body(32, HEX)}",
    f"{body(32, HEX)}-us14 is our mailchimp key",
    f"SK{body(32, HEX)}",
    f"xkeysib-{body(64, HEX)}-{body(16)}",
    f"https://outlook.office.com/webhook/{body(8, HEX)}-{body(4, HEX)}/IncomingWebhook/{body(32, HEX)}/{body(8, HEX)}",
    # Keys, tokens and headers
    _KEY.format("RSA PRIVATE KEY", _b64(120)),
    _KEY.format("OPENSSH PRIVATE KEY", _b64(120)),
    _KEY.format("PRIVATE KEY", _b64(120)),
    _KEY.format("EC PRIVATE KEY", _b64(60)),
    _KEY.format("PGP PRIVATE KEY BLOCK", _b64(120)),
    f"Authorization: Bearer {body(40)}",
    f"curl -H 'Authorization: Bearer {_jwt()}' https://api.example.com",
    f"Authorization: Basic {_b64(18)}",
    f"X-API-Key: {body(32)}",
    _jwt(),
    f"Cookie: session={body(48)}",
    f"api_key={body(32, HEX)}",
    f'"apiKey": "{body(28)}"',
    f"client_secret: {body(40)}",
    f"ENCRYPTION_KEY={_b64(32)}",
    f"SECRET_KEY_BASE={body(128, HEX)}",
    f"my token is {body(40)}",
    f"JWT_SECRET={body(32)}",
    f"//registry.npmjs.org/:_authToken={body(36)}",
    # Passwords
    "password: hunter2!",
    "The password is Tr0ub4dor&3",
    "my wifi password is correcthorse42",
    "DB_PASS=s3cr3t-Pass!",
    "MYSQL_PWD=kV9#pLq2",
    "pw: gR8!xx72q",
    "pwd=Zk29xQp1",
    "passwd = 'x9Lq-22p'",
    "mysql -u root -pS3cretPw9 shop",
    "PGPASSWORD=gL7pqR2x psql -h db",
    "postgres://app:n7Hq2kLx@db.internal:5432/shop",
    "mongodb+srv://admin:Qx72LpZ9@cluster0.mongodb.net",
    "redis://:p9Lx2qTz7@cache:6379/0",
    "https://deploy:w8Kp2xQz@git.example.com/app.git",
    "curl -u admin:Kx82pLq9 https://example.com",
    "Das Passwort ist Xk29-lampe",
    "Kennwort: Birne72xq",
    "contraseña: Gato8842x",
    "mot de passe : Lune9931k",
    "the PIN is 4821",
    "sshpass -p 'Wq92kLpx' ssh root@10.0.0.3",
    # Money
    f"card {_grouped(_luhn('4', 16))} exp 09/27",
    f"{_luhn('51', 16)}",
    f"amex {_luhn('37', 15)}",
    f"IBAN {_grouped(_iban('DE', '370400440532013000'))}",
    _iban("GB", "WEST12345698765432"),
    # Blobs
    _b64(33),
    _b64(48),
    _b64url(36),
    _b64url(64),
    f"use {_b64(40)} for it",
    body(44),
)

NO_SECRETS: tuple[str, ...] = (
    # Hashes and ids
    hashlib.sha1(b"a").hexdigest(),
    f"fixed in commit {hashlib.sha1(b'b').hexdigest()}",
    hashlib.sha256(b"c").hexdigest(),
    f"sha256:{hashlib.sha256(b'd').hexdigest()}",
    hashlib.md5(b"e").hexdigest(),
    f"the image is registry.example.com/app@sha256:{hashlib.sha256(b'f').hexdigest()}",
    f'<script src="app.js" integrity="sha384-{base64.b64encode(hashlib.sha384(b"g").digest()).decode()}"></script>',
    f'integrity: "sha512-{base64.b64encode(hashlib.sha512(b"h").digest()).decode()}"',
    f'"integrity": "sha512-{base64.b64encode(hashlib.sha512(b"i").digest()).decode()}",',
    f"h1:{base64.b64encode(hashlib.sha256(b'j').digest()).decode()}",
    f"SHA256:{base64.b64encode(hashlib.sha256(b'k').digest()).decode().rstrip('=')} ada@laptop (ED25519)",
    "550e8400-e29b-41d4-a716-446655440000",
    "request 7f3d2c1a-9b8e-4f5a-8c7d-1e2f3a4b5c6d failed",
    "01a1ec27c7d3700e9bf2218195894bdc",
    "git show 5c3859d",
    'ETag: W/"33a64df551425fcc55e4d42a148795d9f25f89d4"',
    f"blake2b {hashlib.blake2b(b'l').hexdigest()}",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + body(43) + " ada@laptop",
    "arn:aws:iam::123456789012:role/DeployFromContinuousIntegration",
    "i-0abcd1234efgh5678 in us-east-1",
    # Addresses and paths
    "https://example.com/docs/getting-started/installation-and-configuration-guide-2026",
    "https://github.com/example/project/blob/5c3859d0a1b2c3d4e5f60718293a4b5c6d7e8f90/src/main.py#L120-L140",
    "https://www.youtube.com/watch?v=dQw4w9WgXcQ",
    "https://docs.google.com/document/d/" + body(44) + "/edit",
    "https://example.com/search?q=MemoryForAgents2026&page=2&sort=newest&lang=en-GB",
    "/usr/local/lib/python3.11/site-packages/recollect/policies/Secrets2.py",
    "C:\\Users\\Ada\\AppData\\Local\\Programs\\Python\\Python311\\python.exe",
    "src/components/UserProfile/UserProfileCardHeaderWithAvatar2.tsx",
    "~/Library/Application Support/Code/User/globalStorage/State2026.vscdb",
    "s3://company-backups-2026/Database/Nightly/Shop-2026-02-17T03-00-00Z.tar.gz",
    "images/IMG_20260217_142233_HDR_Enhanced_Copy2.jpeg",
    "data:image/png;base64 is how the picture begins",
    "banner-base64-encoded-Image2x-retina.png",
    "postgres:postgres@localhost",
    "postgresql://postgres:postgres@localhost:5432/postgres",
    "mysql://root:root@127.0.0.1/test",
    "redis://localhost:6379/0",
    "https://user:password@example.com",
    "postgres://user:<password>@host/db",
    "postgresql://app:${DB_PASSWORD}@db/shop",
    "git@github.com:example/project.git",
    "mailto:ada.lovelace+newsletter@example.com",
    "smb://fileserver01/Shared/Finance2026/Budget-Final-Version3.xlsx",
    "com.example.application.service.UserAuthenticationServiceImpl2",
    "TheQuickBrownFoxJumpsOverTheLazyDogTwice",
    "a_very_long_snake_case_function_name_that_tests_secrets_2",
    "--enable-experimental-feature-with-a-long-name-v2",
    # Placeholders
    "sk-...",
    "sk-…",
    "Bearer rk_…",
    "Authorization: Bearer <token>",
    "Authorization: Bearer YOUR_API_KEY",
    "AKIAIOSFODNN7EXAMPLE",
    "AKIA…EXAMPLE",
    "aws_access_key_id = AKIAIOSFODNN7EXAMPLE",
    'api_key = "YOUR_API_KEY_HERE"',
    "password: ********",
    "password=<your password>",
    "PASSWORD=changeme",
    "DB_PASSWORD=${DB_PASSWORD}",
    "password = os.environ['DB_PASSWORD']",
    "token = get_token(user)",
    "api_key: {{ secrets.API_KEY }}",
    "export OPENAI_API_KEY=…",
    "OPENAI_API_KEY=sk-xxxxxxxxxxxxxxxxxxxxxxxx",
    "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "password: str",
    "def login(password: str, token: str | None = None) -> Session:",
    "secret: false",
    "PGPASSWORD=$PASSWORD psql",
    "curl -u user:pass https://example.com",
    "-----BEGIN PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----",
    # Prose
    "The password rotates every ninety days.",
    "I forgot my password and had to reset it.",
    "The password must be at least twelve characters long.",
    "Ask Ben for the password of the router.",
    "Her password manager is 1Password.",
    "The secret to good bread is time.",
    "Tokens are counted by the tokenizer.",
    "The API key is stored in the vault under deploy.",
    "The password is in the safe.",
    "password: see the vault",
    "My token of appreciation is a box of chocolates.",
    "Das Passwort steht im Tresor.",
    "The key is under the mat.",
    "He passed the test; pass rate: 98%",
    "Pass: 12, Fail: 3",
    "mysql -p asks for the password",
    "The PIN is four digits long.",
    "We use JWT for authentication and bcrypt for hashes.",
    "Use a bearer token in the Authorization header.",
    "the session id is in the cookie",
    # Numbers
    "Order 4711-2026-0001 costs 199.99 EUR",
    "+49 170 1234567",
    "1234 5678 9012 3456 is not a valid card",
    "ISBN 978-3-16-148410-0",
    "The invoice is 2026021712345678",
    "timestamp 1771329600000",
    "52.520008, 13.404954",
    "version 2026.02.17.1234567890",
    "VAT DE123456789",
    "tracking number 1Z999AA10123456784",
    "0x7fffffffffffffff",
    "DE89 is where the number begins",
    "latency p50=12ms p95=120ms p99=900ms",
    "192.168.10.12:8080",
    "MAC 00:1B:44:11:3A:B7",
)
