"""Compilations kept on disk: one JSON file each, named by a hash of all that decides the result.

Safe with parallel processes: a file appears whole or not at all (written beside, then renamed),
and two writers of one name write the same content. A folder that cannot be written costs time,
never a failure.
"""

import contextlib
import hashlib
import json
import os
import sys
import tempfile
from pathlib import Path


def cache_dir() -> Path:
    """Folder of the cache: $COURSE_CACHE_DIR, else the user's cache folder of this system."""
    if named := os.environ.get("COURSE_CACHE_DIR"):
        return Path(named)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "flashattention-byte-by-byte"


def digest(*parts: str) -> str:
    """Hash of the parts in order; where one part ends matters."""
    total = hashlib.sha256()
    for part in parts:
        encoded = part.encode()
        total.update(len(encoded).to_bytes(8, "little") + encoded)
    return total.hexdigest()


def load(key: str) -> dict | None:
    """Entry stored under `key`, or None if there is none (or an unreadable one)."""
    try:
        return json.loads(_path(key).read_text())
    except (OSError, ValueError):
        return None


def store(key: str, entry: dict) -> None:
    """Keep `entry` (plain JSON data) under `key`."""
    with contextlib.suppress(OSError):
        write_whole(_path(key), json.dumps(entry).encode())


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that no reader ever sees a part of it: beside it first, then renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _path(key):
    return cache_dir() / "compiled" / f"{key}.json"
