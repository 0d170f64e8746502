"""What a value given to a telling name looks like: a secret, a placeholder, or a name in source code."""

import math
import re
from collections import Counter

LONG = 64  # bytes of a value that are looked at: enough to tell
_PLACEHOLDER = re.compile(
    rb"(?i:"
    # what documentation writes, and masks
    rb"\[redacted|[<$%{*]|x{3}|\.{2}|your|my[_\-]|my(?:token|key|secret)\d*\Z|example|change|placeholder|dummy|replace"
    rb"|'?\[[^\]]{1,20}\]|\[%|\[parameters\(|\([a-z ]{1,20}\)\Z|-{2}redacted|[\w.\-+/=]{1,24}\.{3}\Z|passw\w*\Z"
    # code, and text that a colon or a quote happens to precede
    rb"|process\.|os\.|env[./(]|import|self\.|this\.|lambda:|n?(?:var)?char2?\(|\(\?|\.\*|[a-z_]+\+[a-z_]+\Z|[a-z_]++\.[a-z_.]++\Z"
    rb"|[a-z.]+\.(?:\$\d|\d+\?)|[a-z]+=none\Z"
    rb"|:|=|-{1,2}[a-z][a-z\d\-]*+=?\Z|\+[a-z_$][\w$]*+[.;(){}\[\]]"
    # addresses, paths, and words joined by signs
    rb"|[a-z][a-z\d+.\-]{1,14}:(?:\\*/){2}|file:|urn:|[./~]+/|/\w+/|@(?:[a-z\-]++/?\Z|www\.)"
    rb"|[a-z\d\-]{1,60}(?:\.[a-z\d\-]{1,60}){1,5}?\.(?:io|com|org|net|dev)/"
    rb"|[a-z][a-z_\-]*+(?:[:/|][a-z][a-z_\-]*+)*+[.,]?\Z|\d{1,4}(?:-[a-z]+|(?:/[a-z]+)+)\Z"
    rb"|(?:[a-z_\-]|\\++u(?!00[0-7])[0-9a-f]{4}|[\xc2-\xf4][\x80-\xbf]{1,3})++\Z"  # a word of any language
    # numbers, dates, colours, digests, ciphers, and scopes of AWS credentials
    rb"|[\d.,:\-]++(?:e[+\-]?\d++)?\Z|(?:0x)?0+\Z|\d{4}-\d\d-\d\d(?:[t:.,\d+z\-]*+)\Z|#[0-9a-f]{3,8}\Z"
    rb"|sha\d+[:\-]|(?:aes|des|rsa|ecdsa|ed)[_\-]?\d+(?:-[a-z\d]+)*\Z|[\w/\-]{0,80}aws4[_\-]"
    rb"|\w{5,128}(?:/|%2f)\d{8}(?:/|%2f)|(?:\w+_)?(?:argon2|pbkdf2|bcrypt|scrypt)\w{0,3}\Z"
    rb")"
    rb"|[a-z][a-z_\-]+(?:\\*/[a-z][\w.\-]*+)+\Z"  # a path such as refs/heads/main2
    rb"|@?_?[A-Z][A-Z\d]*+(?:_[A-Z\d]++)++\Z|[@_][A-Z\d]++\Z"  # a constant or variable such as DB_PASSWORD
)
_MASKED = re.compile(rb"(?i)[x*.]{4}")
_IDENTIFIER = re.compile(rb"[A-Za-z_$][\w$]*+(?:(?:\.|\?\.|::?|->)[A-Za-z_$][\w$]*+)*+(?:::|->)?\Z")
_WORD = re.compile(rb"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_DIGITS = re.compile(rb"\d+")
_LETTER = re.compile(rb"[A-Za-z\x80-\xff]")
_TIMES_LOG = [n * math.log2(n) if n else 0.0 for n in range(LONG + 1)]  # for the entropy of up to LONG bytes
_JOINED = re.compile(rb"\.|::?|->|_|\$|\d(?=[A-Z][a-z])")  # two words, or a version inside a type's name
_CAMEL = re.compile(rb"[a-z][A-Z]")
_TELLING = re.compile(rb"(?i)pass|token|secret|key|auth|cred|config|option|pwd")
_CODE_AFTER = frozenset(b",)([{<")
_NAMED_FORMATS = re.compile(
    rb"(?i)(?:base|sha|utf|md|oauth|argon|pbkdf|x|iso|ipv|v|rc|aes|des|ntlmv|python|py|http|tls|k)[-_]?\d{1,5}[a-z]{0,3}(?:-[a-z]+)*\Z"
)
_PUNCTUATION = re.compile(rb"[!@#$%^&*+=?~]")
_ALL_DIGITS = re.compile(rb"\d{6,64}\Z")
_ONE_DIGIT = re.compile(rb"(\d)\1*\Z")


def is_placeholder(value: bytes) -> bool:
    return _PLACEHOLDER.match(value) is not None


def is_masked(value: bytes) -> bool:
    return _MASKED.match(value) is not None


def is_number(value: bytes) -> bool:
    """A password of digits alone, such as a date; not one digit over and over."""
    return _ALL_DIGITS.match(value) is not None and not _ONE_DIGIT.match(value)


def is_name_in_code(value: bytes, after: bytes, sep: bytes, *, is_spaced: bool) -> bool:
    """An unquoted value that refers to a variable, an attribute or a type: config.password2, rsa_key_2048, OAuth2Token.

    `after` is the text behind it, and `is_spaced` whether a blank is before the separator, as before `=` in most code.
    """
    sample = value[: 2 * LONG]
    share = 0.6
    if after[:1] and (after[0] in _CODE_AFTER or (after[0] in b";}" and (sep == b":" or is_spaced))):
        joined = _JOINED.search(sample)
        if not joined and _CAMEL.search(sample):
            joined, share = _CAMEL.search(sample), 0.8
    elif sep == b"=" and is_spaced and b"." in sample:
        joined = _JOINED.search(sample)
    elif (sep != b"=" or is_spaced or after[:1] == b";" or b"." in sample) and _TELLING.search(sample):
        joined = _JOINED.search(sample.rstrip(b":"))
    else:
        return False
    return joined is not None and _IDENTIFIER.match(sample) is not None and _has_words(sample, share)


def _has_words(sample: bytes, share: float) -> bool:
    """Most letters are in words of three or more, and numbers are few: random text is neither."""
    words = list(map(len, _WORD.findall(sample)))
    in_words = sum(length for length in words if length >= 3)
    return in_words >= share * sum(words) and len(_DIGITS.findall(sample)) <= 1 + len(sample) // 12


def is_strong(value: bytes, *, is_password: bool, bits: float) -> bool:
    """Letters and digits of enough entropy per character; of a password, punctuation does instead of digits."""
    sample = value[:LONG]
    if not _LETTER.search(sample) or (not _DIGITS.search(sample) and not (is_password and not sample.isalpha())):
        return False
    size = len(sample)
    return math.log2(size) - sum([_TIMES_LOG[n] for n in Counter(sample).values()]) / size >= bits


def is_strong_in_prose(value: bytes) -> bool:
    """After "the password is": digits among letters or a sign that sentences do not have, and no name of a format."""
    word = value[:LONG].rstrip(b".,;:!?)")
    if _NAMED_FORMATS.match(word) or (_IDENTIFIER.match(word) and b"." in word):
        return False
    has_sign = _DIGITS.search(word) or _PUNCTUATION.search(word)
    return has_sign is not None and len(word) >= 6 and _LETTER.search(word) is not None
