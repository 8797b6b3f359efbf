"""Bundles: many small immutable files as the lines of one journal.

A session may have thousands of messages, each a file of its own. A head that listed each file would exceed the limits
of remotes, and every push would send it again. So all of them are one part: a journal with one line per file, sorted
by name. It is a pure function of the set of files, so devices with the same files produce the same bytes; and because
names are times, new files are at the end.

Two devices may have made different files of the same name. Both lines are then in the bundle, and on every disk both
files get unique names derived from their content: a name never changes its content.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import NamedTuple

from sessionary.errors import Corrupt
from sessionary.layouts.own_names import original_name, own_name

NAME = "bundle.jsonl"


class Item(NamedTuple):
    """A file of a bundle.

    Attributes:
        name: its path relative to the session's folder.
        data: its bytes.
    """

    name: str
    data: bytes


def item(name: str, data: bytes) -> Item:
    """Return the bundle entry of the file `name`; a file with a unique name is stored under its original one."""
    return Item(original_name(name, data), data)


def pack_items(items: Iterable[Item]) -> Iterator[bytes]:
    """Yield the lines of a bundle, sorted, each file once."""
    for one in sorted(set(items), key=_order):
        yield _line(one)


def unpack_items(lines: Iterable[bytes]) -> Iterator[Item]:
    """Yield the files of a bundle.

    Args:
        lines: its bytes, split anywhere.

    Raises:
        Corrupt: a line is not an entry.
    """
    begun: list[bytes] = []  # joined once: copying a long line with each small block would be quadratic
    for chunk in lines:
        first, *others = chunk.split(b"\n")
        begun.append(first)
        for line in others:
            yield _item(b"".join(begun))
            begun = [line]
    if any(begun):
        raise Corrupt("the bundle ends in the middle of a line", operation="pull")


def names_of(items: Iterable[Item]) -> dict[str, Item]:
    """Return the files by their names on disk: unique names where two files have the same name."""
    every = set(items)
    taken: dict[str, int] = {}
    for one in every:
        taken[one.name] = taken.get(one.name, 0) + 1
    return {own_name(one.name, one.data) if taken[one.name] > 1 else one.name: one for one in every}


def _order(one: Item) -> tuple[bytes, bytes, bytes]:
    """Sort key: the file name first, because times sort across folders."""
    name = one.name.encode("utf-8", "surrogatepass")
    return name.rpartition(b"/")[2], name, sha256(one.data).digest()


def _line(one: Item) -> bytes:
    try:
        content = {"text": one.data.decode()}
    except UnicodeDecodeError:
        content = {"base64": base64.b64encode(one.data).decode()}
    text = json.dumps({"name": one.name, **content}, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass") + b"\n"


def _item(line: bytes) -> Item:
    try:
        entry = json.loads(line.decode("utf-8", "surrogatepass"))
        name, text = entry["name"], entry.get("text")
        data = text.encode() if isinstance(text, str) else base64.b64decode(entry["base64"], validate=True)
        if not isinstance(name, str):
            raise ValueError("its name is not text")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, binascii.Error) as error:
        raise Corrupt(f"a line of the bundle cannot be read: {error}", operation="pull") from None
    return Item(name, data)
