"""Keys that let a client in: a file of their hashes, each with a name and limits of its own.

A key is 32 random bytes, so a plain SHA-256 is enough: nothing can be guessed from it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from transduce.errors import DataError, UsageError
from transduce.files import write_json

_NAME = re.compile(r"[\w.@-]{1,64}")
_AGAIN = "make the file again with `transduce keys`"


@dataclass(frozen=True)
class Key:
    """A client: its name, the hash of its secret, and its limits a minute (None: the server's)."""

    name: str
    sha256: str
    requests_per_minute: int | None = None
    characters_per_minute: int | None = None


def read_keys(path: Path) -> list[Key]:
    """The keys in a file; DataError, naming it, where it is no file of keys."""
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise DataError(
            f"{path}: no such file; make a key with `transduce keys add NAME --file {path}`"
        ) from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not valid JSON ({error}); {_AGAIN}") from None
    entries = value.get("keys") if isinstance(value, dict) else None
    if not isinstance(entries, list):
        raise DataError(f"{path}: holds no list of keys; {_AGAIN}")
    return [_key(entry, path, number) for number, entry in enumerate(entries, 1)]


def _key(entry: Any, path: Path, number: int) -> Key:
    known = {field.name for field in fields(Key)}
    if not isinstance(entry, dict) or not entry.keys() <= known or not {"name", "sha256"} <= entry.keys():
        raise DataError(f"{path}: key {number} does not have the fields {', '.join(sorted(known))}; {_AGAIN}")
    right = (
        isinstance(entry["name"], str)
        and re.fullmatch(r"[0-9a-f]{64}", str(entry["sha256"])) is not None
        and all(
            entry.get(name) is None or (type(entry[name]) is int and entry[name] >= 0)
            for name in ("requests_per_minute", "characters_per_minute")
        )
    )
    if not right:
        raise DataError(f"{path}: key {number} holds a value of the wrong kind; {_AGAIN}")
    return Key(**entry)


def add_key(path: Path, name: str, requests: int | None, characters: int | None) -> str:
    """The secret of a new key, which is told this once; its hash is in the file."""
    if _NAME.fullmatch(name) is None:
        raise UsageError(f"the name {name!r} must be 1 to 64 letters, digits or . _ @ -")
    for limit in (requests, characters):
        if limit is not None and limit < 0:
            raise UsageError(f"a limit is {limit}; it must be 0 (none) or more")
    keys = read_keys(path) if path.exists() else []
    if any(key.name == name for key in keys):
        raise UsageError(f"{path}: has a key {name!r} already; remove it first, or choose another name")
    secret = secrets.token_urlsafe(32)
    _write(path, [*keys, Key(name, _hash(secret), requests, characters)])
    return secret


def remove_key(path: Path, name: str) -> None:
    """Nothing; the file has no key of that name any more. UsageError where it had none."""
    keys = read_keys(path)
    if all(key.name != name for key in keys):
        names = ", ".join(key.name for key in keys) or "none"
        raise UsageError(f"{path}: has no key {name!r}; its keys are: {names}")
    _write(path, [key for key in keys if key.name != name])


def _write(path: Path, keys: Iterable[Key]) -> None:
    # Nobody else may read which names there are, or put a hash of their own in.
    before = os.umask(0o077)
    try:
        write_json(path, {"keys": [asdict(key) for key in keys]})
    finally:
        os.umask(before)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


class Keys:
    """The keys of a server, read again when their file changes."""

    def __init__(self, path: Path | None, tell: Callable[[str], None]) -> None:
        self._path, self._tell = path, tell
        self._keys = read_keys(path) if path is not None else []
        self._mark, self._looked = self._marked(), time.monotonic()

    def find(self, secret: str) -> Key | None:
        """Whose secret it is; every key is compared, in a time that tells nothing."""
        self._look()
        found, hashed = None, _hash(secret)
        for key in self._keys:
            if hmac.compare_digest(key.sha256, hashed):
                found = key
        return found

    def _marked(self) -> tuple[int, int] | None:
        try:
            status = os.stat(self._path) if self._path is not None else None
        except OSError:
            return None
        return None if status is None else (status.st_ino, status.st_mtime_ns)

    def _look(self) -> None:
        """Nothing; what changed in the file a second ago or more counts now."""
        now = time.monotonic()
        if self._path is None or now - self._looked < 1:
            return
        self._looked = now
        mark = self._marked()
        if mark == self._mark:
            return
        self._mark = mark
        try:
            self._keys = read_keys(self._path)
        except DataError as error:
            self._tell(f"{error}; the keys stay those that were read before")
