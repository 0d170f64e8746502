"""Secrets as people and programs write them: passwords far from their names, arguments, colours, base64, bare keys.

They are made while the tests run. Each is a text and the parts of it that must vanish.
"""

import base64
from collections.abc import Iterator
from dataclasses import dataclass

from tests.dashboard.ingest.planted_secrets import PLANTED, some

_WORD = "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
_BASE64 = _WORD + "01IOl+/"
_COLOURS = (
    ("\x1b[31m", "\x1b[0m"),
    ("\x1b[1;38;5;208m", "\x1b[39m"),
    ("\x1b[01;31m\x1b[K", "\x1b[m\x1b[K"),
    ("\x1b[38;2;255;100;10m", "\x1b[0m"),
)
_KEYS = {
    # what the data of an unencrypted private key starts with, as hexadecimal bytes
    "PKCS#8 RSA": "308204bd020100300d06092a864886f70d0101010500048204a7308204a30201000282010100",
    "PKCS#8 RSA, a slash in its length": "308206ff020100300d06092a864886f70d0101010500048206e9308206e50201000282018100",
    "PKCS#8 RSA 1024": "30820277020100300d06092a864886f70d010101050004820261308202",
    "PKCS#8 EC P-256": "308187020100301306072a8648ce3d020106082a8648ce3d030107046d306b0201010420",
    "PKCS#8 EC P-384": "3081b6020100301006072a8648ce3d020106052b8104002204819e30819b0201010430",
    "PKCS#8 Ed25519": "302e020100300506032b657004220420",
    "PKCS#8 X25519": "302e020100300506032b656e04220420",
    "PKCS#8 DSA": "3082014b0201003082012c06072a8648ce3804013082011f02818100",
    "PKCS#1 RSA": "308204a40201000282010100",
    "PKCS#1 RSA 1024": "3082025d02010002818100",
    "SEC 1 P-256": "30770201010420",
    "SEC 1 P-384": "3081a40201010430",
    "SEC 1 P-521": "3081dc0201010442",
    "OpenSSH": "6f70656e7373682d6b65792d763100000000046e6f6e65000000046e6f6e6500000000",
    "PGP RSA": "9503980465b0c1d2010800",
    "PGP RSA, a slash in its time": "950398046aff6d9f010800",
    "PGP RSA 4096": "95074c0465b0c1d2011000",
    "PGP new format": "c5c2d80465b0c1d2010800",
    "PGP Ed25519": "94580465b0c1d216092b06010401da470f01010740",
    "PGP Ed25519 new format": "c5580465b0c1d216092b06010401da470f01010740",
}


@dataclass(frozen=True)
class Everyday:
    name: str
    text: str
    secrets: tuple[str, ...]
    form: str
    depth: int = 9  # how often it may be JSON within JSON


def _value() -> str:
    return some(_WORD, 12)


def _with(name: str, form: str, *texts: str) -> Iterator[Everyday]:
    for text in texts:
        value = _value()
        yield Everyday(name, text.replace("@@", value), (value,), form)


def _passwords() -> Iterator[Everyday]:
    yield from _with(
        "name and value apart",
        "password",
        '{"name":"DB_PASSWORD","value":"@@"}',
        '{"name": "DB_PASSWORD", "value": "@@"}',
        '{\n  "name": "DB_PASSWORD",\n  "value": "@@"\n}',
        "env:\n  - name: DB_PASSWORD\n    value: @@\n",
        '- name: DB_PASSWORD\n  value: "@@"',
        '{"ParameterKey": "DbPassword", "ParameterValue": "@@"}',
    )
    yield from _with(
        "block of YAML", "password", "password: |\n  @@\n", "db:\n  password: >-\n    @@\n", "password: |-\n\n  @@"
    )
    yield from _with("triple quotes", "password", 'password = """@@"""', "password = '''@@'''", 'password = """\n@@"""')
    yield from _with(
        "prose",
        "password",
        "the password is @@",
        "The password is @@.",
        "Password is: @@",
        'the password is "@@", do not tell',
        "the password is now `@@`",
        "the password is '@@'",
        "the password for the staging server is @@",
        "my password was @@ before",
    )
    yield from _with(
        "Markdown", "password", "Password: `@@`", "**Password:** @@", "- **password**: `@@`.", "pw: **@@**"
    )
    yield from _with("two words", "api-key", "API key: @@", "Access Key = @@", "the api key is @@", "**API key:** `@@`")
    yield from _with("element of XML", "password", "<password>@@</password>", "<db-password>@@</db-password>")
    yield from _with("pw", "password", "pw: @@", "pw=@@", 'pw = "@@"', "db_pw: @@", "rootpw=@@")
    for digits in ("12345678", "20240131", "918273", "4711081500"):
        for text in (
            "password: @@",
            '"password": "@@"',
            "password=@@",
            'DB_PASSWORD="@@"',
            "passwd: '@@'",
            "pwd: @@",
            "the password is @@.",
        ):
            yield Everyday("digits", text.replace("@@", digits), (digits,), "password")


def _arguments() -> Iterator[Everyday]:
    yield from _with(
        "curl -u",
        "password",
        "curl -u admin:@@ https://api.acme.io/v1",
        "curl -s -u 'admin:@@' https://api.acme.io/v1",
        'curl -X POST -d "x=1" -u "admin:@@" https://api.acme.io/v1',
        "curl --user admin:@@ https://api.acme.io",
        "curl -sSfu admin:@@ https://api.acme.io",
        "curl -x proxy:80 --proxy-user=bob:@@ https://api.acme.io",
        "curl \\\n  -u admin:@@ \\\n  https://api.acme.io",
    )
    yield from _with(
        "curl -b",
        "cookie",
        "curl -b sessionid=@@ https://acme.io",
        "curl -v -b 'sid=@@' https://acme.io",
        'curl --cookie "theme=dark; sessionid=@@" https://acme.io',
    )
    yield from _with(
        "mysql -p",
        "password",
        "mysql -u root -p@@ shop",
        "mysqldump -h db -uroot -p'@@' shop > shop.sql",
        'mysqladmin -u root -p"@@" status',
        "mariadb -p@@",
    )
    yield from _with("other commands", "password", "sshpass -p @@ ssh deploy@host", "redis-cli -a @@ ping")


def _tokens() -> Iterator[Everyday]:
    glued = ("github-token", "anthropic-key", "gitlab-token", "npm-token", "stripe-key", "slack-token", "jwt")
    for planted in PLANTED:
        token = planted.text
        if token != planted.secret or planted.form == "private-key":
            continue
        middle = len(token) // 2
        if planted.form in glued:
            yield Everyday("glued to a word", f"mytoken{token}", (token,), planted.form)
        for code, end in _COLOURS:
            yield Everyday("colour around", f"token {code}{token}{end} used", (token,), planted.form)
        halves = token[:middle], token[middle:]
        coloured = f"{halves[0]}\x1b[1m\x1b[31m{halves[1]}\x1b[0m"
        yield Everyday("colour inside", f"token {coloured} used", halves, planted.form)
        found = f"{_COLOURS[2][0]}{token[:4]}{_COLOURS[2][1]}{token[4:]}"  # as grep prints what it found
        yield Everyday("colour inside", f"token {found} used", (token[4:],), planted.form)
    value = _value()
    for code, end in _COLOURS:
        yield Everyday("colour of the name", f".env:DB_{code}PASSWORD{end}={value}", (value,), "password")
        yield Everyday("colour of the value", f"password: {code}{value}{end}", (value,), "password")
    token = next(planted.text for planted in PLANTED if planted.form == "github-token")
    for escaped in (
        "\\u0067hp_" + token[4:],
        "g\\u0068p_" + token[4:],
        token[:20] + f"\\u{ord(token[20]):04x}" + token[21:],
    ):
        yield Everyday("letters as escapes", f'{{"x": "{escaped}"}}', (token[21:],), "github-token")
    yield Everyday("letters as escapes", '{"password": "\\u0061' + "b9x!Kd2" + '"}', ("b9x!Kd2",), "password")


def _encoded() -> Iterator[Everyday]:
    chosen = (
        "github-token",
        "anthropic-key",
        "aws-access-key",
        "gitlab-token",
        "slack-token",
        "npm-token",
        "stripe-key",
    )
    for form in chosen:
        token = next(planted.text for planted in PLANTED if planted.form == form)
        for start in ("", "x", "xy", "TOKEN=", "export T="):
            code = base64.b64encode(f"{start}{token}\n".encode()).decode()
            kept = code[8 + len(start) * 2 : 8 + len(start) * 2 + 12]
            yield Everyday("base64", f"data:\n  config: {code}\n", (kept,), form)
    password = some(_WORD, 14)
    for text in (f"DB_PASSWORD={password}\n", f'{{"password": "{password}"}}', f"user: bob\npassword: {password}\n"):
        code = base64.b64encode(text.encode()).decode()
        inner = base64.b64encode(f"{password}".encode()).decode()[4:12]
        yield Everyday("base64", f"config.env: {code}", (inner,), "password")
    for text, form in (
        (f"postgres://app:{password}@db:5432/app", "url-password"),
        (f"curl -u bob:{password} http://acme.io\n", "password"),
        (f"mysql -u root -p{password}", "password"),
        (f"pw: {password}", "password"),
    ):
        code = base64.b64encode(text.encode()).decode()
        first = -(-text.index(password) // 3) * 4
        yield Everyday("base64", f"data:\n  x: {code}\n", (code[first : first + 12],), form)
    block = next(planted.text for planted in PLANTED if planted.form == "private-key")
    code = base64.b64encode(block.encode()).decode()
    yield Everyday("base64", f"tls.key: {code}", (code[100:160],), "private-key")
    lines = "\n".join(code[at : at + 76] for at in range(0, len(code), 76))
    yield Everyday("base64 in lines", lines, tuple(lines.split("\n")[1:-1]), "private-key")


def _bare_keys() -> Iterator[Everyday]:
    for name, start in _KEYS.items():
        head = bytes.fromhex(start)
        width = 64 if "SSH" not in name else 70
        code = base64.b64encode(head + bytes(ord(letter) for letter in some(_BASE64, 420 - len(head)))).decode()
        lines = [code[at : at + width] for at in range(0, len(code), width)]
        body = "\n".join(lines)
        yield Everyday(f"bare key, {name}", body, tuple(lines), "private-key")
        kind = "PGP PRIVATE KEY BLOCK" if "PGP" in name else "PRIVATE KEY"
        tail = f"\n=Ab3d\n-----END {kind}-----" if "PGP" in name else f"\n-----END {kind}-----"
        yield Everyday(f"key without first line, {name}", f"cat key:\n{body}{tail}\n", tuple(lines), "private-key")
        last = "\n".join(lines[2:])
        yield Everyday(f"last lines of a key, {name}", f"...\n{last}{tail}\n", tuple(lines[2:]), "private-key")
        yield Everyday(f"key in one line, {name}", f'key = "{code}"', (code,), "private-key")


EVERYDAY = (*_passwords(), *_arguments(), *_tokens(), *_encoded(), *_bare_keys())
