"""A google.rpc.Status with nothing but its message, as HTTP has the code: how an OTLP client is told of a refusal."""

import json

_LENGTH_DELIMITED_2 = 0x12  # field 2: the message


def write_status(sentence: str, *, in_protobuf: bool) -> bytes:
    """By hand: whoever refuses before anything is decoded need not load what decodes."""
    if not in_protobuf:
        return json.dumps({"message": sentence}).encode()
    text = sentence.encode()
    return bytes((_LENGTH_DELIMITED_2, *_write_varint(len(text)))) + text


def _write_varint(number: int) -> list[int]:
    written = []
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return [*written, number]
