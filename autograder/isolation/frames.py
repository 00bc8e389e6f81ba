"""One message on the wire: two lengths, a small JSON header, raw bytes.

    | header length, uint32 | body length, uint64 | header, JSON | body |

Nothing is ever unpickled. Numbers are little-endian.
"""

import json
import struct
from typing import Any

LENGTHS = struct.Struct("<IQ")
HEADER_LIMIT = 4 << 20  # bytes
BODY_LIMIT = 256 << 20


class BadFrame(ValueError):
    """The bytes are not a frame, or one larger than allowed."""


def to_bytes(header: dict[str, Any], body: bytes = b"") -> bytes:
    """One frame. Raises BadFrame if it is larger than the other end accepts."""
    text = json.dumps(header).encode()
    check_sizes(len(text), len(body))
    return LENGTHS.pack(len(text), len(body)) + text + body


def check_sizes(header: int, body: int) -> None:
    """Raise BadFrame for a frame that nobody has to send."""
    if header > HEADER_LIMIT or body > BODY_LIMIT:
        raise BadFrame(f"a message of {header + body:,} bytes; at most {BODY_LIMIT:,} are read")


def header_of(text: bytes) -> dict[str, Any]:
    """The header in `text`. Raises BadFrame unless it is a JSON object."""
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        raise BadFrame("bytes that are no message") from None
    if not isinstance(header, dict):
        raise BadFrame("a message without a header")
    return header
