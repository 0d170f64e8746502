"""Everyday forms of secrets vanish: plain, in JSON, in JSON in JSON, in numbered lines. Public material stays."""

import json
import re
from collections.abc import Callable

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from dashboard.ingest.redaction import Redactor
from tests.dashboard.ingest.everyday_secrets import EVERYDAY, Everyday

REDACTOR = Redactor.default()
COLOUR = re.compile(r"(?:\x1b|\\+u001b)\[[\d;]*[mK]")


def _line(content: object) -> str:
    return json.dumps({"type": "user", "message": {"content": content}})


def _number(text: str) -> str:
    return "\n".join(f"{number:6}→{line}" for number, line in enumerate(text.split("\n"), 1))


PLACES: dict[str, Callable[[str], str]] = {
    "plain": str,
    "in a log": lambda text: f"2026-05-01T10:00:00Z INFO worker-3 {text}\nnext line",
    "JSON": _line,
    "JSON, slashes escaped": lambda text: _line(text).replace("/", "\\/"),
    "JSON in JSON": lambda text: _line(json.dumps({"stdout": text, "stderr": ""})),
    "JSON in JSON in JSON": lambda text: _line(json.dumps({"out": json.dumps({"in": f"x\n{text}\ny"})})),
    "numbered lines": lambda text: _line(_number(text)),
    "numbered lines, as they are": _number,
}


def _seen(text: str) -> str:
    return re.sub(r"\\+n", "\n", COLOUR.sub("", text)).replace("\\", "")


def _leaks(place: str, everyday: Everyday) -> bool:
    text = PLACES[place](everyday.text)
    redacted = REDACTOR.redact(text.encode())
    if text.startswith("{"):
        json.loads(redacted.data)
    seen = _seen(redacted.data.decode())
    return everyday.form not in redacted.counts or any(secret in seen for secret in everyday.secrets)


@pytest.mark.parametrize("place", PLACES)
def test_everyday_secrets_vanish(place: str) -> None:
    assert [(everyday.name, everyday.text) for everyday in EVERYDAY if _leaks(place, everyday)] == []


def test_there_are_many_and_they_differ() -> None:
    assert len({everyday.text for everyday in EVERYDAY}) > 300
    assert len({everyday.name for everyday in EVERYDAY}) > 60


def _make_keys() -> list[ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey]:
    return [
        rsa.generate_private_key(public_exponent=65537, key_size=2048),
        ec.generate_private_key(ec.SECP256R1()),
        ec.generate_private_key(ec.SECP384R1()),
        ec.generate_private_key(ec.SECP521R1()),
        ed25519.Ed25519PrivateKey.generate(),
    ]


def test_real_keys_without_their_first_line_vanish_and_public_keys_stay() -> None:
    formats = serialization.PrivateFormat
    for key in _make_keys():
        kinds = [formats.PKCS8, formats.OpenSSH]
        if not isinstance(key, ed25519.Ed25519PrivateKey):
            kinds.append(formats.TraditionalOpenSSL)
        for kind in kinds:
            pem = key.private_bytes(serialization.Encoding.PEM, kind, serialization.NoEncryption()).decode()
            lines = pem.strip().split("\n")
            for text in ("\n".join(lines[1:]), "\n".join(lines[1:-1])):
                for form in (text, _line(text), _line(_number(text))):
                    seen = _seen(REDACTOR.redact(form.encode()).data.decode())
                    assert not [line for line in lines[1:-1] if line in seen], (kind, text)
        public = key.public_key()
        texts = [
            public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo),
            public.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH),
        ]
        for data in texts:
            body = data.replace(b"-----BEGIN PUBLIC KEY-----\n", b"")
            assert REDACTOR.redact(data).data == data
            assert REDACTOR.redact(body).data == body


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens: 20000, token_count: 123456, passed: 1234567, auth_timeout=300000",
        '{"password": 20240131, "passed": 12345678}',
        "MISSING_PASSWORD = 404005",
        "PASS: tests/token_2.sh, PASS: test_secret_3",
        "--list-public-keys 3AA5C34371567BD2 --delete-secret-and-public-key 3AA5C34371567BD2",
        "branch.fix/token-2.merge=refs/heads/fix/token-2 secrets/api_2.yaml:12 acme/secret-store:v2.1.0",
        "the password is required, the password is base64-encoded, the password is stored with argon2id",
        "password: String!, secretKey: Uint8Array, private_key = rsa_key_2048, token = config.token2,",
        "auth = ldap3.SIMPLE; this.password2 = options.password2; apiKey: process.env.API_KEY2",
        '"PWD="+cmd.Dir, "password=" + p4ss.w0rd(), "-----BEGIN PRIVATE KEY-----"',
        "Set-Cookie: theme=dark; Path=/; Max-Age=31536000",
        '{"nextPageToken": "AAAAKgAAAAEAAAAAAAAAA1Gp1BelJq", "secretName": "default-token-dpyh0"}',
        "opts.password = zod_1.z, encrypt(password: Uint8Array | string), password: ?string, role(password=md5_pw,)",
        "token='batch-token-1' secret: 'auth0-client-secret' private_key='RSA1024:' + key",
        "pass: !!result, password: !vault |",
        "my key: hunter2xY9zAB12, sort key: abc123DEF456, public key: 9f86d081884c7d65, the api key is generated",
        "token=`prefix-1-${id}`, key: `user-${n}-2024a`, **Password:** required",
        "<token>AbstractTokenType</token> <Password>String</Password>",
        "X-Amz-Credential=a/20130524/us-east-1/s3/aws4_request x-goog-credential: a@b.io/20200201/auto/s/goog4_request",
        "secret_store_id: ss_7689012, SecretsManagerSecretId: arn:aws:secretsmanager:us-east-1:012:secret:x1",
        "MYSQL_PASSWORD= FILTER=integration npm test; redis-cli -n 15 -p 637901; vault_secret=database%2Fprod",
        "version_token: 56pRkL3slrzet2iQrTp9n0bd; ClientToken: XqJIt1342112125076; http://user:apiKey@acme.io",
        "TmV1dHJhbCwgUHVibGljS2V5VG9rZW49MzFiZjM4NTZhZDM2NGUzNQ== UHVibGljS2V5VG9rZW49MzFiZjM4NTZhZDM2NGUzNQ==",
        "curl -u user:password -b cookies.txt https://acme.io && mysql -u root -p < dump2.sql",
        '{"password": "\\u041f\\u0430\\u0440\\u043e\\u043b\\u044c"}',
    ],
)
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    assert REDACTOR.redact(text.encode()).data == text.encode()
    assert REDACTOR.redact(_line(text).encode()).data == _line(text).encode()
