"""Values that stand where a secret would be: placeholders, code, addresses, words, numbers."""

import re

# From the start of the value in lower case: faster than to ignore case. `\Z`: the whole value.
_LOWER_CASE = (
    # what documentation writes
    rb"\[redacted",
    rb"-{2}redacted",
    rb"[<$%{*]",
    rb"your",
    rb"my[_\-]",
    rb"my(?:token|key|secret)\d*\Z",
    rb"example",
    rb"change",
    rb"placeholder",
    rb"dummy",
    rb"replace",
    rb"passw\w*\Z",
    rb"'?\[[^\]]{1,20}\]",  # [TOKEN]
    rb"\([a-z ]{1,20}\)\Z",  # (none)
    rb"[a-z\d]++_value\Z",
    # masks and what was left out
    rb"x{3}",
    rb"[^\s*]{0,8}+\*{3}",
    rb"\.{2}",
    rb"[\w.\-+/=]{4,27}+(?<=\.{3})\Z",
    # templates
    rb"\[%",
    rb"\[parameters\(",
    rb"![a-z][a-z\-]*\Z",  # a tag of YAML, such as !vault
    rb"[\w.\-]*\{\w*\}\Z",  # flow_{0}
    # code
    rb"process\.",
    rb"os\.",
    rb"env[./(]",
    rb"import",
    rb"self\.",
    rb"this\.",
    rb"lambda:",
    rb"n?(?:var)?char2?\(",  # a type of SQL
    rb"[?!]{1,2}[a-z]++(?:\.[a-z_$][\w$]*+)*+\Z",  # ?string, !!result, !options.isOff
    rb"\(\?",  # regular expressions
    rb"\.\*",
    rb":",
    rb"=",
    rb"-{1,2}[a-z][a-z\d\-]*+=?\Z",  # an option
    rb"\+[a-z_$][\w$]*+[.;(){}\[\]]",
    rb"[a-z_]++\+[a-z_]++\Z",
    rb"[a-z_\-]++\.[a-z_.\-]++\Z",
    rb"\.[a-z_]\w*+(?:\(|\Z)",  # a method of the string before it: .format(, or a module
    rb"[a-z_][\w.]*+\([\w\"'., ]*\)\Z",  # a call
    rb"[a-z_$][\w$]*+\.[a-z_$][\w$]*+[+\-*/][a-z_$][\w$]*+\.[a-z_$][\w$.]*+\Z",  # e.screenX-f.screenX
    rb"[a-z.]++(?<=\.)(?:\$\d|\d+\?)",
    rb"[a-z]++=none\Z",
    rb"[a-z_$][\w$]*+\.[\w$.]++=(?!=)",  # minified: t.ERR_A=t.ERR_B=...
    rb"[a-z_$][\w$]*+(?:\??\.[a-z_$][\w$]*+)++!\Z",  # TypeScript: options.token!
    rb"[a-z][\w$]*[_$]\d\.[a-z_$]\w*\Z",  # compiled JavaScript: zod_1.z
    # addresses and paths
    rb"[a-z][a-z\d+.\-]{1,14}+:(?:\\*/){2}",
    rb"file:",
    rb"urn:",
    rb"opaquelocktoken:",  # WebDAV
    rb"arn:",
    rb"[./~]+/",
    rb"/\w+/",
    rb"@(?:[a-z\-]++/?\Z|www\.)",
    rb"[a-z\d\-]{1,60}+(?:\.[a-z\d\-]{1,60}+){1,5}?\.(?:io|com|org|net|dev)/",
    rb"[\w\-.]+\.(?:p12|pfx|pem|key|crt|jks|json|ya?ml|toml|txt|env|py|js|ts)\Z",
    rb"[a-z_]++(?:\.[a-z_]++)++/\d+\Z",
    # words of any language, alone or joined by signs
    rb"(?:[a-z_\-]|\\++u(?!00[0-7])[0-9a-f]{4}|[\xc2-\xf4][\x80-\xbf]{1,3})++\Z",
    rb"[a-z][a-z_\-]*+(?:(?:[.:/|#]|%2f)[a-z][a-z_\-]*+)*+[.,]?\Z",
    rb"(?:[\xe3-\xe9][\x80-\xbf]{2}|\\++u[3-9][0-9a-f]{3}){4}",  # a sentence in Chinese or Japanese
    rb"\d{1,4}(?:-[a-z]+|(?:/[a-z]+)+)\Z",
    # numbers, dates, colours, digests, ciphers
    rb"[\d.,:\-]++(?:e[+\-]?\d++)?\Z",
    rb"(?:0x)?0+\Z",
    rb"0x[0-9a-f]{1,8}\Z",
    rb"\d{4}-\d\d-\d\d(?:[t:.,\d+z\-]*+)\Z",
    rb"#[0-9a-f]{3,8}\Z",
    rb"sha\d+[:\-]",
    rb"(?:aes|des|rsa|ecdsa|ed)[_\-]?\d+(?:-[a-z\d]+)*\Z",
    rb"(?:[a-z\d]++_)*+(?:argon2|pbkdf2|bcrypt|scrypt)\w{0,3}\Z",
    rb"(?:[a-z\d]++-)++(?:sha|hmac)[\-_]?\d+\Z",
    rb"(?:[a-z\d]++-)*+hmac-sha\d+\Z",
    rb"(?:cp|utf|iso|latin|windows)[\-_]?\d++(?:-\d+)?\Z",
    # the algorithm and the scope of a signature, see also below
    rb"aws4-",
    rb"\w{5,128}+(?:/|%2f)\d{8}(?:/|%2f)",
)
_AS_WRITTEN = (
    rb"[a-z][a-z_\-]+(?:\\*/[a-z][\w.\-]*+)+\Z",  # a path such as refs/heads/main2
    rb"@?_*+[A-Z][A-Z\d]*+(?:_[A-Z\d]++)++\Z",  # a constant or variable such as DB_PASSWORD
    rb"[@_][A-Z\d]++\Z",
    rb"__[\w\-]++(?<=__)\Z",
    rb"[A-Z][A-Z\d_]{2,}+=[^=]",  # the value is empty, and this is the next variable
    rb"[A-Z][a-z]+\?\Z",  # a type: String?
)
_PLACEHOLDER = re.compile(rb"|".join(_LOWER_CASE))
_NAME = re.compile(rb"|".join(_AS_WRITTEN))
_MASKED = re.compile(rb"(?i)[x*.]{4}|(\w)\1{5,}+\Z")
# What says what it stands for: auth0-client-secret, OS-OAUTH1:access_token, variable-2.
_DESCRIPTION = re.compile(
    rb"[A-Za-z\d]+(?:[_\-:.][A-Za-z\d]+)*[_\-:.](?i:secret|token|key|password|creds?|credentials?|pass|pw|pwd)\Z"
    rb"|[a-z]+(?:[_\-][a-z]+)*(?:[_\-]\d|:\d+)\Z"
    rb"|[\w\-]+:\Z"
    rb"|(?:[A-Z][a-z]+){2,}\d{1,2}\Z|[A-Z][a-z]+\d*(?:[A-Z][a-z]+){2,}\Z"  # PermSetLicense1, Ed25519SignatureField
)


_SCOPE = b"4_request"  # ends the scope of a signature for AWS or Google, which has the id of a key at most


def is_placeholder(value: bytes) -> bool:
    lower = value.lower()
    return _PLACEHOLDER.match(lower) is not None or _NAME.match(value) is not None or _SCOPE in lower


def is_masked(value: bytes) -> bool:
    return _MASKED.match(value) is not None


def is_description(value: bytes) -> bool:
    """A token or key is random: words, with the kind of secret or one digit at the end, are none. Passwords may be."""
    return _DESCRIPTION.match(value) is not None
