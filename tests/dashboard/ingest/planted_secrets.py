"""One made-up secret of every form: the form's name, the text it stands in, and the part that must vanish.

They are made while the tests run, so that no scanner of this repository takes them for real ones.
"""

import base64
import json
import random
import string
from collections.abc import Callable
from dataclasses import dataclass

_CHANCE = random.Random(20)
_LOWER_HEX = "0123456789abcdef"
_WORD = string.ascii_letters + string.digits
_URL_SAFE = _WORD + "_-"
_BASE64 = _WORD + "+/"


@dataclass(frozen=True)
class Planted:
    form: str
    text: str
    secret: str


def some(alphabet: str, length: int) -> str:
    """Random, with a digit in the second place: a value without digits may pass for a word."""
    body = [_CHANCE.choice(alphabet) for _ in range(length)]
    body[1] = _CHANCE.choice("23456789")
    body[-1] = _CHANCE.choice([letter for letter in alphabet if letter.isalnum()])
    return "".join(body)


def _token(form: str, *starts: str, body: str = _WORD, length: int = 40, end: str = "") -> list[Planted]:
    made = [start + some(body, length) + end for start in starts]
    return [Planted(form, secret, secret) for secret in made]


def _assigned(form: str, *shapes: str, make: Callable[[], str] = lambda: some(_WORD, 32)) -> list[Planted]:
    return [Planted(form, shape.replace("@@", value), value) for shape in shapes for value in [make()]]


def _block(kind: str, *, head: str = "", whole: bool = True) -> Planted:
    lines = [some(_BASE64, 64) for _ in range(6)] + [some(_BASE64, 37) + "="]
    text = f"-----BEGIN {kind}-----\n{head}" + "\n".join(lines)
    if whole:
        text += f"\n-----END {kind}-----"
    return Planted("private-key", text, "\n".join(lines))


def _tokens() -> list[Planted]:
    return [
        *_token("github-token", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", length=36),
        *_token("github-fine-grained-token", "github_pat_", length=22, end="_" + some(_WORD, 59)),
        *_token("npm-token", "npm_", length=36),
        *_token("huggingface-token", "hf_", "api_org_", length=34),
        *_token("stripe-key", "sk_live_", "rk_live_", "sk_test_", "rk_test_", length=24),
        *_token("stripe-webhook-secret", "whsec_", length=32),
        *_token("plimsoll-key", "plk_", "pls_", "pli_", body=_URL_SAFE, length=43),
        *_token("digitalocean-token", "dop_v1_", "doo_v1_", "dor_v1_", body=_LOWER_HEX, length=64),
        *_token("shopify-token", "shpat_", "shpca_", "shppa_", "shpss_", body=_LOWER_HEX, length=32),
        *_token("linear-key", "lin_api_", "lin_oauth_"),
        *_token("notion-token", "ntn_", length=46),
        *_token("notion-token", "secret_", length=43),
        *_token("figma-token", "figd_", body=_URL_SAFE),
        *_token("docker-token", "dckr_pat_", "dckr_oat_", body=_URL_SAFE, length=27),
        *_token("groq-key", "gsk_", length=52),
        *_token("replicate-token", "r8_", length=37),
        *_token("grafana-token", "glsa_", length=32, end="_" + some(_LOWER_HEX, 8)),
        *_token("sentry-token", "sntrys_", "sntryu_", body=_LOWER_HEX, length=64),
        *_token("rubygems-key", "rubygems_", body=_LOWER_HEX, length=48),
        *_token("supabase-token", "sbp_", body=_LOWER_HEX),
        *_token("supabase-token", "sb_secret_", body=_URL_SAFE, length=31),
        *_token("planetscale-token", "pscale_tkn_", "pscale_pw_", body=_URL_SAFE, length=43),
        *_token("netlify-token", "nfp_", length=36),
        *_token("posthog-key", "phx_", length=43),
        *_token("sourcegraph-token", "sgp_", body=_LOWER_HEX),
        *_token("langsmith-key", "lsv2_pt_", body=_LOWER_HEX, length=32, end="_" + some(_LOWER_HEX, 10)),
        *_token(
            "anthropic-key", "sk-ant-api03-", "sk-ant-admin01-", "sk-ant-oat01-", body=_URL_SAFE, length=93, end="AA"
        ),
        *_token("openai-key", "sk-", length=48),
        *_token("openai-key", "sk-proj-", "sk-svcacct-", "sk-or-v1-", body=_URL_SAFE, length=120),
        *_token("gitlab-token", "glpat-", "gldt-", "glrt-", "glptt-", "glcbt-64_", "glft-", body=_URL_SAFE, length=20),
        *_token("slack-token", "xoxb-123456789012-", "xoxp-", "xoxa-2-", "xoxe-1-", length=24),
        *_token("slack-app-token", "xapp-1-A0123456789-1234567890123-", body=_LOWER_HEX, length=64),
        *_token("pypi-token", "pypi-AgEIcHlwaS5vcmc", body=_URL_SAFE, length=140),
        *_token("newrelic-key", "NRAK-", length=27),
        *_token("brevo-key", "xkeysib-", body=_LOWER_HEX, length=64, end="-" + some(_WORD, 16)),
        *_token("mailgun-key", "key-", body=_LOWER_HEX, length=32),
        *_token("google-oauth-secret", "GOCSPX-", body=_URL_SAFE, length=28),
        *_token("age-secret-key", "AGE-SECRET-KEY-1", body=string.ascii_uppercase + string.digits, length=58),
        *_token("perplexity-key", "pplx-", length=48),
        *_token("xai-key", "xai-", length=80),
        *_token("nvidia-key", "nvapi-", body=_URL_SAFE, length=64),
        *_token("tailscale-key", "tskey-auth-", length=32),
        *_token("postman-key", "PMAK-", body=_LOWER_HEX, length=24, end="-" + some(_LOWER_HEX, 34)),
        *_token("pulumi-token", "pul-", body=_LOWER_HEX),
        *_token("heroku-key", "HRKU-AA", body=_URL_SAFE, length=58),
        *_token("sendgrid-key", "SG.", length=22, end="." + some(_URL_SAFE, 43)),
        *_token("vault-token", "hvs.", "hvb.", body=_URL_SAFE, length=95),
        *_token("google-access-token", "ya29.", body=_URL_SAFE, length=160),
        *_token("doppler-token", "dp.pt.", length=43),
        *_token("terraform-token", "", length=14, end=".atlasv1." + some(_URL_SAFE, 67)),
        *_token("discord-token", "M", "N", "O", length=23, end="." + some(_URL_SAFE, 6) + "." + some(_URL_SAFE, 38)),
        *_token("aws-access-key", "AKIA", "ASIA", body=string.ascii_uppercase + "234567", length=16),
        *_token("bedrock-key", "ABSK", body=_BASE64, length=128),
        *_token("gcp-api-key", "AIza", body=_URL_SAFE, length=35),
        *_token("atlassian-token", "ATATT3xFfGF0", "ATBB", length=64),
        *_token("telegram-token", f"{_CHANCE.randrange(10**9)}:AA", body=_URL_SAFE, length=33),
        *_token("databricks-token", "dapi", body=_LOWER_HEX, length=32),
    ]


def _jwt() -> str:
    def part(value: dict[str, str]) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'HS256'})}.{part({'sub': some(_WORD, 20)})}.{some(_URL_SAFE, 43)}"


def _headers_and_urls() -> list[Planted]:
    ids = f"T{some(_WORD, 8)}/B{some(_WORD, 8)}/{some(_WORD, 24)}"
    return [
        *_assigned("jwt", "@@", make=_jwt),
        *_assigned("authorization", "Authorization: Bearer @@", "authorization: bearer @@", "Bearer @@"),
        *_assigned("authorization", "Authorization: Basic @@==", "Proxy-Authorization: Basic @@"),
        *_assigned("cookie", "Cookie: sessionid=@@; theme=dark", "Set-Cookie: sid=@@; Path=/; HttpOnly"),
        *_assigned("url-password", "postgres://app:@@@db.example.com:5432/app", "redis://:@@@cache:6379/0"),
        *_assigned("url-password", "https://bot:@@@git.example.com/a.git", "mongodb+srv://root:@@@c0.mongodb.net"),
        *_assigned("url-token", "https://@@@o1.ingest.sentry.io/42", make=lambda: some(_LOWER_HEX, 32)),
        *_assigned("slack-webhook", "https://hooks.slack.com/services/@@", make=lambda: ids),
        *_assigned(
            "discord-webhook", "https://discord.com/api/webhooks/123456789012345678/@@", make=lambda: some(_WORD, 68)
        ),
        *_assigned(
            "teams-webhook", "https://acme.webhook.office.com/webhookb2/@@", make=lambda: f"{some(_WORD, 36)}/In/1"
        ),
        *_assigned(
            "azure-sas",
            "https://acme.blob.core.windows.net/c/b?sv=2022-11-02&sp=r&sig=@@",
            make=lambda: some(_WORD, 44),
        ),
        *_assigned("password-hash", "admin:$apr1$abcdefgh$@@", make=lambda: some(_WORD, 22)),
        *_assigned("password-hash", "admin:$2y$05$@@", make=lambda: some(_WORD, 53)),
    ]


def _assignments() -> list[Planted]:
    short = "tr0ub4dor&3"
    return [
        *_assigned(
            "aws-secret-key", "AWS_SECRET_ACCESS_KEY=@@", "aws_secret_access_key = @@", make=lambda: some(_BASE64, 40)
        ),
        *_assigned("azure-key", "AccountName=acme;AccountKey=@@==;EndpointSuffix=x", make=lambda: some(_BASE64, 86)),
        *_assigned("azure-key", "SharedAccessKeyName=all;SharedAccessKey=@@=", make=lambda: some(_BASE64, 43)),
        *_assigned("docker-auth", '{"auths": {"ghcr.io": {"auth": "@@"}}}', "//registry.npmjs.org/:_auth=@@"),
        *_assigned("kubeconfig-key", "client-key-data: @@", make=lambda: some(_WORD, 200)),
        *_assigned("datadog-key", "DD_API_KEY=@@", "DATADOG_APP_KEY: @@", make=lambda: some(_LOWER_HEX, 32)),
        *_assigned("cloudflare-key", "CLOUDFLARE_API_TOKEN=@@", "CF_API_KEY=@@", make=lambda: some(_URL_SAFE, 40)),
        *_assigned("twilio-token", "TWILIO_AUTH_TOKEN=@@", make=lambda: some(_LOWER_HEX, 32)),
        *_assigned(
            "password",
            "password=@@",
            'DB_PASSWORD="@@"',
            "PGPASSWORD='@@'",
            "pwd: @@",
            "--password @@",
            make=lambda: short,
        ),
        *_assigned("password", "<password>@@</password>", "machine a.b login me password @@", "MYSQL_PASS=@@"),
        *_assigned("password", 'password = "p4s\\"@@"', make=lambda: "w0rd/x"),
        *_assigned(
            "token", "token: @@", 'auth_token="@@"', "//npm.example.com/:_authToken=@@", "--token @@", "token => '@@'"
        ),
        *_assigned("secret", 'SECRET_KEY: "@@"', "client_secret=@@", "SECRET_KEY_BASE=@@", "jwtSecret: '@@'"),
        *_assigned(
            "api-key", "API_KEY=@@", 'apiKey: "@@"', "X-Api-Key: @@", '{"api_key": "@@"}', "MAILCHIMP_API_KEY=@@-us1"
        ),
        *_assigned("api-key", "HEROKU_API_KEY=@@", make=lambda: "3f2b8c1e-9d47-4a60-8b5e-7c1d2e3f4a5b"),
        *_assigned("credential", "CREDENTIALS=@@", 'credential: "@@"'),
    ]


def _key_blocks() -> list[Planted]:
    return [
        *(_block(f"{kind}PRIVATE KEY") for kind in ("", "RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED ")),
        _block("RSA PRIVATE KEY", head="Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF\n\n"),
        _block("PGP PRIVATE KEY BLOCK", head="Version: GnuPG v2.0.22 (GNU/Linux)\n\n"),
        _block("RSA PRIVATE KEY", whole=False),
    ]


PLANTED = (*_tokens(), *_headers_and_urls(), *_assignments(), *_key_blocks())
