"""One message on the wire: two lengths, a small JSON header, raw bytes.

    | header length, uint32 | body length, uint64 | header, JSON | body |

Nothing is ever unpickled. Numbers are little-endian.
"""

import json
import struct
from typing import Any

LENGTHS = struct.Struct("<IQ")
HEADER_LIMIT = 16 << 20  # bytes: a notebook's source, escaped
REPLY_HEADER_LIMIT = 4 << 20
BODY_LIMIT = 256 << 20


class BadFrame(ValueError):
    """The bytes are not a frame, or one larger than allowed."""


def to_bytes(header: dict[str, Any], body: bytes = b"") -> bytes:
    """One frame. Raises BadFrame if it is larger than anybody accepts."""
    text = json.dumps(header).encode()
    check_sizes(len(text), len(body), HEADER_LIMIT, BODY_LIMIT)
    return LENGTHS.pack(len(text), len(body)) + text + body


def check_sizes(header: int, body: int, most_header: int, most_body: int) -> None:
    """Raise BadFrame for a frame that nobody has to send."""
    if header > most_header or body > most_body:
        most = most_header + most_body
        raise BadFrame(f"a message of {header + body:,} bytes; at most {most:,} are read")


def header_of(text: bytes) -> dict[str, Any]:
    """The header in `text`. Raises BadFrame unless it is a JSON object."""
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        raise BadFrame("bytes that are no message") from None
    if not isinstance(header, dict):
        raise BadFrame("a message without a header")
    return header
