"""The kinds of secrets that are redacted: what each is, the literal that gives it away, and its pattern.

A pattern never takes half of a JSON escape or half of a character, so a JSON line stays a JSON line.
"""

from dataclasses import dataclass

# A word may begin after a letter when that letter ends an escape: \nghp_... is a newline, then a token. For the same
# reason \npm_... is no npm token, and to take its n would break the line. An m may end a colour code (ESC[31m), and a K
# the code that clears the line behind it.
_LEFT = rb"(?:(?<![A-Za-z0-9_\-])(?!(?<=\\)[bfnrtu])|(?<=\\[bfnrt])|(?<=\\u[0-9A-Fa-f]{4})|(?<=[0-9;\[]m)|(?<=\[K))"
_RIGHT = rb"(?![A-Za-z0-9_\-])"
# Some starts are unmistakable: those tokens are found in the middle of a word too, but not inside an escape.
ANYWHERE = rb"(?!(?<=\\)[bfnrtu])(?<!\\u)(?<!\\u[0-9A-Fa-f])(?<!\\u[0-9A-Fa-f]{2})(?<!\\u[0-9A-Fa-f]{3})"


@dataclass(frozen=True)
class Form:
    """One kind of secret: any of the literals must be there, then the pattern decides.

    The pattern is tried where the literal starts, or `back` bytes before it; its group `secret` is what is replaced.
    `after` must follow the literal where the literal alone is too common.
    """

    name: str
    what: str
    literals: tuple[bytes, ...]
    pattern: bytes
    back: tuple[int, ...] = (0,)
    after: bytes = b""


@dataclass(frozen=True)
class Assigned:
    """A value given to a telling name (`name=value`, `"name": "value"`, `--name value`); the first fit names it."""

    name: str
    what: str
    names: bytes
    shortest: int = 8
    bits: float = 3.0  # Shannon entropy per character


def _word(name: str, what: str, literals: tuple[bytes, ...], body: bytes) -> Form:
    """A token that is a word of its own."""
    return Form(name, what, literals, _LEFT + b"(?P<secret>" + body + b")" + _RIGHT)


def _glued(name: str, what: str, literals: tuple[bytes, ...], body: bytes) -> Form:
    """A token that no other text looks like, in the middle of a word too."""
    return Form(name, what, literals, ANYWHERE + b"(?P<secret>" + body + b")")


_URL = rb":(?:\\*+/){2}"
URL_STARTS = (b"://", b":/\\", b":\\/", b":\\\\")  # in JSON a slash may be escaped, and in JSON in JSON twice
# What the forms below that start with "://" have in common: a user, or one of the hosts.
URL_GUARD = (
    _URL
    + rb"(?:[^\s@/\"'<>`]{1,400}+@|[A-Za-z0-9_.\-]{9,100}+(?<=slack\.com|scord\.com|rdapp\.com|ffice\.com|ndows\.net))"
)
_KEY_BLOCK = rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_KEY_BLOCK_END = rb"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
NEW_LINE = rb"(?:\\+[nrt]|\\+u000[aAdD9]|\\+u2192|[\r\n\t ]|\xe2\x86\x92)"  # the arrow: numbered lines of a read file

_BASE64 = rb"(?:[A-Za-z0-9+/]|\\+/)"

COOKIE = Form(
    "cookie",
    "Cookie header",
    (b"kie",),
    rb"(?i:kie)(?:\\*[\"'])?+:[ \t]*+(?:\\*[\"'])?+"
    rb"(?P<secret>(?!\[redacted)(?=[\w.\-]{1,64}=)[^\"'\\\r\n]{16,}+)",
)
FORMS = (
    COOKIE,
    _glued(
        "github-token",
        "GitHub token (personal, OAuth, app, refresh)",
        (b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_"),
        rb"gh[pousr]_[A-Za-z0-9]{30,}+",
    ),
    _glued("github-fine-grained-token", "GitHub fine-grained token", (b"github_pat_",), rb"github_pat_\w{40,}+"),
    _glued("npm-token", "npm access token", (b"npm_",), rb"npm_[A-Za-z0-9]{36}"),
    _word("huggingface-token", "Hugging Face token", (b"hf_", b"api_org_"), rb"(?:hf|api_org)_[A-Za-z0-9]{30,64}"),
    _glued(
        "stripe-key",
        "Stripe secret or restricted key",
        (b"sk_live_", b"rk_live_", b"sk_test_", b"rk_test_"),
        rb"(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}+",
    ),
    _glued(
        "stripe-webhook-secret",
        "Stripe webhook signing secret",
        (b"whsec_",),
        rb"whsec_(?:[A-Za-z0-9+]|\\*/){24,64}+={0,2}",
    ),
    _glued(
        "plimsoll-key",
        "Plimsoll key, sign-in link, invitation or webhook secret",
        (b"plk_", b"pls_", b"pli_", b"plw_"),
        rb"pl[ksiw]_[\w\-]{43}",
    ),
    _glued(
        "digitalocean-token", "DigitalOcean token", (b"dop_v1_", b"doo_v1_", b"dor_v1_"), rb"do[opr]_v1_[a-f0-9]{64}"
    ),
    _glued(
        "shopify-token",
        "Shopify token or shared secret",
        (b"shpat_", b"shpca_", b"shppa_", b"shpss_"),
        rb"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}",
    ),
    _glued("linear-key", "Linear API key", (b"lin_api_", b"lin_oauth_"), rb"lin_(?:api|oauth)_[A-Za-z0-9]{32,64}"),
    _word(
        "notion-token",
        "Notion token",
        (b"ntn_", b"secret_"),
        rb"(?:ntn_[A-Za-z0-9]{40,50}|secret_[A-Za-z0-9]{43})",
    ),
    _glued("figma-token", "Figma token", (b"figd_",), rb"figd_[\w\-]{36,64}"),
    _glued("docker-token", "Docker Hub token", (b"dckr_pat_", b"dckr_oat_"), rb"dckr_[po]at_[\w\-]{20,40}"),
    _word("groq-key", "Groq API key", (b"gsk_",), rb"gsk_[A-Za-z0-9]{40,64}"),
    _word("replicate-token", "Replicate token", (b"r8_",), rb"r8_[A-Za-z0-9]{37,40}"),
    _glued(
        "grafana-token",
        "Grafana token",
        (b"glsa_", b"glc_"),
        rb"gl(?:sa|c)_(?:[A-Za-z0-9+]|\\*/){32,}+={0,3}(?:_[A-Fa-f0-9]{8})?",
    ),
    _glued(
        "sentry-token",
        "Sentry token",
        (b"sntrys_", b"sntryu_"),
        rb"sntry[su]_(?:[A-Za-z0-9+=]|\\*/){32,}+(?:_(?:[A-Za-z0-9+]|\\*/){43})?",
    ),
    _glued("rubygems-key", "RubyGems key", (b"rubygems_",), rb"rubygems_[a-f0-9]{48}"),
    _word(
        "supabase-token", "Supabase token", (b"sbp_", b"sb_secret_"), rb"(?:sbp_[a-f0-9]{40}|sb_secret_[\w\-]{20,64})"
    ),
    _glued(
        "planetscale-token",
        "PlanetScale token or password",
        (b"pscale_tkn_", b"pscale_pw_"),
        rb"pscale_(?:tkn|pw)_[\w\-]{32,64}",
    ),
    _word("netlify-token", "Netlify token", (b"nfp_",), rb"nfp_[A-Za-z0-9]{36,40}"),
    _word("posthog-key", "PostHog personal key", (b"phx_",), rb"phx_[A-Za-z0-9]{40,50}"),
    _word("sourcegraph-token", "Sourcegraph token", (b"sgp_",), rb"sgp_(?:[a-f0-9]{16}_)?[a-f0-9]{40}"),
    _glued("langsmith-key", "LangSmith key", (b"lsv2_pt_", b"lsv2_sk_"), rb"lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}"),
    _glued("anthropic-key", "Anthropic API key", (b"sk-",), rb"sk-ant-[\w\-]{20,}+"),
    Form(
        "openai-key",
        "OpenAI API key and keys of the same shape (DeepSeek, OpenRouter)",
        (b"sk-",),
        b"(?:" + ANYWHERE + b"(?=sk-(?:proj|svcacct|admin|or-v1)-)|" + _LEFT + rb")"
        rb"(?P<secret>sk-(?!ant-)(?:(?:proj|svcacct|admin|or-v1)-[\w\-]{20,}+|[A-Za-z0-9]{20,}+" + _RIGHT + rb"))",
    ),
    _glued(
        "gitlab-token",
        "GitLab token (personal, deploy, runner, trigger, feed ...)",
        (b"glpat-", b"gldt-", b"glrt-", b"glptt-", b"glcbt-", b"glft-", b"glsoat-", b"glimt-", b"glagent-", b"gloas-"),
        rb"gl(?:pat|dt|rt|ptt|cbt|ft|soat|imt|agent|oas)-[\w\-]{20,}+(?:\.[0-9a-z]{2}\.?[0-9a-z]{7})?",
    ),
    _glued("slack-app-token", "Slack app token", (b"xapp-",), rb"xapp-\d-[A-Z0-9]{8,20}-\d{8,20}-[A-Za-z0-9]{20,}+"),
    _glued("pypi-token", "PyPI upload token", (b"pypi-",), rb"pypi-[\w\-]{50,}+"),
    _glued("newrelic-key", "New Relic key", (b"NRAK-", b"NRII-", b"NRJS-"), rb"NR(?:AK|II|JS)-[A-Za-z0-9\-]{19,40}"),
    _word("mailgun-key", "Mailgun key", (b"key-",), rb"key-[a-f0-9]{32}"),
    _glued("google-oauth-secret", "Google OAuth client secret", (b"GOCSPX-",), rb"GOCSPX-[\w\-]{28}"),
    _glued("age-secret-key", "age identity", (b"AGE-SECRET-KEY-",), rb"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    _glued("perplexity-key", "Perplexity key", (b"pplx-",), rb"pplx-[A-Za-z0-9]{40,56}"),
    _word("xai-key", "xAI key", (b"xai-",), rb"xai-[A-Za-z0-9]{60,100}"),
    _glued("nvidia-key", "NVIDIA API key", (b"nvapi-",), rb"nvapi-[\w\-]{50,80}"),
    _glued("tailscale-key", "Tailscale key", (b"tskey-",), rb"tskey-[a-z]{3,12}-[A-Za-z0-9\-]{16,80}"),
    _glued("postman-key", "Postman key", (b"PMAK-",), rb"PMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    _word("pulumi-token", "Pulumi token", (b"pul-",), rb"pul-[a-f0-9]{40}"),
    _glued("heroku-key", "Heroku key", (b"HRKU-",), rb"HRKU-[\w\-]{36,64}"),
    Form(
        "private-key",
        "private key (RSA, EC, OpenSSH, PGP, service account), whole, cut off or without its first line",
        (b"-----BEGIN",),
        b"(?P<secret>"
        + _KEY_BLOCK
        + rb"(?=(?:[^\-]|-(?!----)){0,400}?"  # a header alone, as in a program's source, is no key
        + _BASE64
        + rb"{20})(?:(?:"
        + NEW_LINE
        + rb"|\\+/|[A-Za-z0-9+/=,:.()]|-(?!----))*+"
        + _KEY_BLOCK_END
        + rb"|(?:"
        + NEW_LINE
        + rb"++[A-Za-z\-]{4,20}: [\w,\-./()# ]{1,80}){0,4}+"
        + NEW_LINE
        + rb"++(?:\d{1,6}"
        + NEW_LINE
        + rb"+)?"
        + _BASE64
        + rb"{16,}+={0,2}(?:"
        + NEW_LINE
        + rb"++(?:\d{1,6}"
        + NEW_LINE
        + rb"+)?"
        + _BASE64
        + rb"{8,}+={0,2})*+))",
    ),
    _glued("slack-token", "Slack token", (b"xox",), rb"xox[a-z]-(?=[A-Za-z%\-]{0,60}[0-9])[A-Za-z0-9%\-]{10,}+"),
    _glued("brevo-key", "Brevo (Sendinblue) key", (b"xkeysib-",), rb"xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}"),
    _word("sendgrid-key", "SendGrid key", (b"SG.",), rb"SG\.[\w\-]{16,32}\.[\w\-]{32,64}"),
    _glued("vault-token", "HashiCorp Vault token", (b"hvs.", b"hvb.", b"hvr."), rb"hv[sbr]\.[\w\-]{20,}+"),
    _word("google-access-token", "Google OAuth access token", (b"ya29.",), rb"ya29\.[\w\-]{20,}+"),
    _word(
        "doppler-token",
        "Doppler token",
        (b"dp.",),
        rb"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[\w\-]{2,35}\.)?[A-Za-z0-9]{40,44}",
    ),
    Form(
        "terraform-token",
        "Terraform Cloud token",
        (b".atlasv1.",),
        _LEFT + rb"(?P<secret>[A-Za-z0-9]{14}\.atlasv1\.[\w\-=]{60,70})" + _RIGHT,
        (14,),
    ),
    Form(
        "discord-token",
        "Discord bot token",
        (b".",),
        _LEFT + rb"(?P<secret>[MNO][\w\-]{23,25}\.[\w\-]{6}\.[\w\-]{27,38})" + _RIGHT,
        (26, 25, 24),
        rb"[\w\-]{6}\.[\w\-]{27}",
    ),
    Form(
        "jwt",
        "JSON Web Token",
        (b"eyJ",),
        b"(?:" + ANYWHERE + rb"(?=eyJ(?:hbGciO|0eXAiO|raWQiO)[\w\-]{1,400}+\.eyJ)|" + _LEFT + b")"
        rb"(?P<secret>eyJ[\w\-]{8,}+\.eyJ[\w\-]{8,}+(?:\.[\w\-]++)?+)",
    ),
    Form(
        "aws-access-key",
        "AWS access key id",
        (b"AKIA", b"ASIA", b"ABIA", b"ACCA"),
        # In a long run of capitals and digits the letters are a coincidence.
        b"(?:" + ANYWHERE + b"(?=AKIA)(?<![A-Z0-9]{4})|" + _LEFT + rb")"
        rb"(?P<secret>A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16})(?![A-Z0-9])",
    ),
    _word("bedrock-key", "Amazon Bedrock key", (b"ABSK",), rb"ABSK(?:[A-Za-z0-9+]|\\*/){100,}+={0,2}"),
    _word("gcp-api-key", "Google API key", (b"AIza",), rb"AIza[\w\-]{35}"),
    _word(
        "atlassian-token",
        "Atlassian or Bitbucket token",
        (b"ATATT", b"ATBB", b"ATCTT"),
        rb"AT(?:ATT3|CTT3|BB)[\w\-=]{20,}+",
    ),
    Form("telegram-token", "Telegram bot token", (b":AA",), rb"(?<=[0-9]{6}):(?P<secret>AA[\w\-]{33})" + _RIGHT),
    _glued("databricks-token", "Databricks token", (b"dapi",), rb"dapi[a-f0-9]{32}(?:-\d)?"),
    Form(
        "authorization",
        "Bearer or Basic credentials",
        (b"Bearer ", b"Basic "),
        _LEFT
        + rb"(?:Bearer|Basic) (?P<secret>(?!_*+[A-Z]+_[A-Z\d_]+\b|[Yy]our|base64_)"
        + rb"(?=[A-Za-z+/_\-.]{0,80}[0-9])[\w+/.~\-]{16,}+={0,2})",
    ),
    Form(
        "password-hash",
        "password hash (htpasswd, shadow)",
        (b"$apr1$", b"$2a$", b"$2b$", b"$2y$", b"$5$", b"$6$"),
        rb"(?P<secret>\$(?:2[aby]\$\d\d\$[./A-Za-z0-9]{53}|apr1\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{22}"
        rb"|[56]\$(?:rounds=\d{1,9}\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{43,86})(?![./]))" + _RIGHT,
    ),
    Form(
        "url-password",
        "password in a URL (database, git, registry)",
        URL_STARTS,
        _URL + rb"[^\s:@/\"'\\<>`\[]{0,128}+:"
        rb"(?P<secret>(?![$<{*%\[(]|\.\*|[^@]{1,40}\$\{|(?:none|your\w*|pass(?:word|wd)?|pwd?|secret|token|key|[xX.*_\-]{3,8}|[A-Z_]+"
        rb"|[a-z]+(?:[_\-][a-z]+){0,4}[_\-](?:key|password|pass|token|secret)"
        rb"|[a-z]+(?:Key|Password|Pass|Token|Secret))@)"
        rb"(?:[^\s@/\"'\\<>`]|\\+u(?!002[27])[0-9A-Fa-f]{4}){3,256}+)@",
    ),
    Form(
        "url-token",
        "token in place of a user in a URL (Sentry DSN, git remote)",
        URL_STARTS,
        _URL + rb"(?P<secret>(?!x{8})[A-Za-z0-9]{32,}+)@",
    ),
    Form(
        "slack-webhook",
        "Slack webhook",
        URL_STARTS,
        _URL + rb"hooks\.slack\.com\\*/(?:services|workflows|triggers)\\*/"
        rb"(?P<secret>(?!T0{6})[A-Za-z0-9](?:[A-Za-z0-9]|\\*/(?=\w)){20,}+)",
    ),
    Form(
        "discord-webhook",
        "Discord webhook",
        URL_STARTS,
        _URL + rb"(?:\w+\.)?discord(?:app)?\.com\\*/api\\*/webhooks\\*/(?P<secret>\d{10,22}\\*/[\w\-]{30,}+)",
    ),
    Form(
        "teams-webhook",
        "Microsoft Teams webhook",
        URL_STARTS,
        _URL + rb"[\w.\-]{1,80}\.webhook\.office\.com\\*/webhookb2\\*/(?P<secret>[\w@\-](?:[\w@\-]|\\*/(?=\w)){20,}+)",
    ),
    Form(
        "azure-sas",
        "Azure shared access signature",
        URL_STARTS,
        _URL + rb"[\w.\-]{1,80}\.windows\.net(?:[^\s\"'<>`\\:]|:(?![/\\])|\\+u0026|\\+/)*?(?:[?&]|\\+u0026)sig="
        rb"(?P<secret>[A-Za-z0-9%+/=]{20,}+)",
    ),
)
# What ends the name of something about a secret: password_file, secretName, --password-stdin.
_ABOUT = (
    rb"stdin|prompt|file|path|callback|fields?|colou?r|expir\w*|policy|length|type|ur[il]|ttl|names?|label|hint|class"
    rb"|regex|pattern|validator|algorithm|scheme|mode|age|date|time|at|count|status|state|protocol|level|manager|store"
    rb"|helper|cmd|command|uuid|ref|accessor|arn|version|env|format|method|reset\w*|changed\w*|auth|provider|location"
)
_NOT_ABOUT = rb"(?!s?[\w\-.]*?(?:(?<=[_\-.t])|(?<=ts))(?:" + _ABOUT + rb")\Z)"
_PASSWORD_NAME = (
    rb"(?:.*(?:passw(?:or)?d|passphrase|pwd|(?<!by)(?<!by[_\-])(?<!com)(?<!sur)pass)|(?:.*(?<![a-z]))?(?:root|user|admin|db|bind)?pw)"
    rb"(?:[_\-.](?!(?:" + _ABOUT + rb")\Z)\w{1,12}|\d+)?"
)
ASSIGNED = (
    Assigned(
        "aws-secret-key",
        "AWS secret access key or session token",
        rb"(?:.*aws.*(?:secret|session.?token).*|secret.?access.?key)",
        16,
    ),
    Assigned("azure-key", "Azure storage, service bus or account key", rb"(?:account|sharedaccess|azure\w*?)_?key", 16),
    Assigned("docker-auth", "registry credentials (.docker/config.json, .npmrc)", rb"_?auth", 12),
    Assigned("kubeconfig-key", "client key in a kubeconfig", rb"client[_\-]key[_\-]data", 16),
    Assigned("datadog-key", "Datadog key", rb"(?:dd|datadog).*key"),
    Assigned("cloudflare-key", "Cloudflare key or token", rb"(?:cf|cloudflare).*(?:key|token)"),
    Assigned("twilio-token", "Twilio auth token", rb"twilio.*(?:token|secret|key)"),
    Assigned("authorization", "Authorization header", rb"(?:proxy[_\-])?authorization", 16),
    Assigned("password", "password", _PASSWORD_NAME, 6, 2.2),
    Assigned(
        "token",
        "token",
        rb"(?!.*(?:(?<![a-z_\-])client(?=token)|next|next_?forward|next_?backward|page|version|stop|continuation|starting"
        rb"|start|pagination|cancel(?:lation)?|sync|public[_\-]?key|client[_\-]?request|lifecycle[_\-]?action)[_\-.]?token)"
        rb".*token(?:[_\-.]?(?:value|prod|dev|live|id|key|secret|\d+))?",
    ),
    Assigned(
        "secret",
        "secret",
        # a word such as secretary, a hash, and the id of an entry in a store are none
        rb"(?!.*hash).*secret(?!less|ary|ari|ion|[_\-]?\w{2,}[_\-]?id\Z)" + _NOT_ABOUT + rb"[\w\-.]*",
    ),
    Assigned(
        "api-key",
        "API key, signing or encryption key",
        rb".*(?:api|access|auth|private|signing|sign|encryption|encrypt|master|service|license|app"
        rb"|application|admin|root|webhook"
        rb"|deploy|server|jwt|hmac|session|storage|client|x|subscription|functions)[_\-. ]?keys?"
        rb"(?:[_\-.]?(?:base|prod|dev|live|\d+))?",
    ),
    Assigned("credential", "credential", rb".*credentials?"),
)
