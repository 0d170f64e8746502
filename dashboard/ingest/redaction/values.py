"""What a value given to a telling name looks like: a strong secret, a number, or a name in source code."""

import math
import re
from collections import Counter

LONG = 64  # bytes of a value that are looked at: enough to tell
_IDENTIFIER = re.compile(rb"[A-Za-z_$][\w$]*+(?:(?:\.|\?\.|::?|->)[A-Za-z_$][\w$]*+)*+(?:::|->)?\Z")
_WORD = re.compile(rb"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_DIGITS = re.compile(rb"\d+")
_LETTER = re.compile(rb"[A-Za-z\x80-\xff]")
_TIMES_LOG = [n * math.log2(n) if n else 0.0 for n in range(LONG + 1)]  # for the entropy of up to LONG bytes
_JOINED = re.compile(rb"\.|::?|->|_|\$|\d(?=[A-Z][a-z])")  # two words, or a version inside a type's name
_CAMEL = re.compile(rb"[a-z][A-Z]")
_TELLING = re.compile(rb"(?i)pass|token|secret|key|auth|cred|config|option|pwd")
_ENDS_TELLING = re.compile(rb"[A-Za-z_]\w*_(?i:pw|pwd|pass|passw\w*|secret|token|key)\Z")
_CODE_AFTER = b",)([{<"
_NAMED_FORMATS = re.compile(
    rb"(?i)(?:base|sha|utf|md|oauth|argon|pbkdf|x|iso|ipv|v|rc|aes|des|ntlmv|python|py|http|tls|k)[-_]?\d{1,5}[a-z]{0,3}(?:-[a-z]+)*\Z"
)
_PUNCTUATION = re.compile(rb"[!@#$%^&*+=?~]")
_ALL_DIGITS = re.compile(rb"\d{6,64}\Z")
_ONE_DIGIT = re.compile(rb"(\d)\1*\Z")


def is_number(value: bytes) -> bool:
    """A password of digits alone, such as a date; not one digit over and over."""
    return _ALL_DIGITS.match(value) is not None and not _ONE_DIGIT.match(value)


def is_name_in_code(value: bytes, after: bytes, sep: bytes, *, is_spaced: bool) -> bool:
    """An unquoted value that refers to a variable, an attribute or a type: config.password2, rsa_key_2048, OAuth2Token.

    `after` is the text behind it, and `is_spaced` whether a blank is before the separator, as before `=` in most code.
    """
    sample = value[: 2 * LONG].rstrip(b".:")
    next_sign = after[:1]
    share = 0.6
    if next_sign and (next_sign in _CODE_AFTER or (next_sign in b";}|" and (sep == b":" or is_spaced))):
        if _ENDS_TELLING.match(sample):
            return True
        joined = _JOINED.search(sample)
        if not joined:
            joined, share = _CAMEL.search(sample), 0.8
    elif sep == b"=" and not is_spaced and next_sign != b";" and b"." not in sample:
        return False  # as in a shell
    elif (sep == b"=" and is_spaced and b"." in sample) or _TELLING.search(sample):
        joined = _JOINED.search(sample)
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
