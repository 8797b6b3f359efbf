"""Many small files as the lines of one journal: what is made once and never changed.

A session may have thousands of messages, each a file of its own. A head that spoke of every one would outgrow what a
remote takes, and each push would send it anew. So all of them together are one part: a journal with a line for each
file, in the order of their names. It is a pure function of the set of files, so two devices that have the same files
have the same bytes, whoever brought them together; and since names are times, what is new stands at its end.

Two devices may have made different files under one name. Both lines then stand in the bundle, and on every disk both
files get names of their own, made from their bytes: nobody ever finds other bytes under a name that he has read before.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import NamedTuple

from sessionary.errors import Corrupt

NAME = "bundle.jsonl"
_OWN_NAME = re.compile(r"(.*)~([0-9a-f]{8})(\.[^./]*)?", re.DOTALL)


class Item(NamedTuple):
    """One file of a bundle.

    Attributes:
        name: its name, relative to the session's folder.
        data: its bytes.
    """

    name: str
    data: bytes


def item(name: str, data: bytes) -> Item:
    """The file that lies under `name`; one that got a name of its own goes by its old one."""
    found = _OWN_NAME.fullmatch(name)
    if found is not None and found[2] == _mark(data):
        name = found[1] + (found[3] or "")
    return Item(name, data)


def contested_name(name: str) -> str | None:
    """The name that another one was made of, because two files had it; None if that is no such name."""
    if "~" not in name:
        return None
    found = _OWN_NAME.fullmatch(name)
    return found[1] + (found[3] or "") if found is not None else None


def own_name(one: Item) -> str:
    """The name that no file with other bytes can have."""
    folder, slash, name = one.name.rpartition("/")
    stem, dot, suffix = name.rpartition(".")
    named = f"{stem}~{_mark(one.data)}.{suffix}" if dot else f"{name}~{_mark(one.data)}"
    return folder + slash + named


def pack_items(items: Iterable[Item]) -> Iterator[bytes]:
    """The lines of a bundle, in order, each file once."""
    for one in sorted(set(items), key=_order):
        yield _line(one)


def unpack_items(lines: Iterable[bytes]) -> Iterator[Item]:
    """The files of a bundle.

    Args:
        lines: its bytes, cut anywhere.

    Raises:
        Corrupt: a line is none of a bundle.
    """
    begun: list[bytes] = []  # joined once: a long line in many small blocks would be copied with each of them
    for chunk in lines:
        first, *others = chunk.split(b"\n")
        begun.append(first)
        for line in others:
            yield _item(b"".join(begun))
            begun = [line]
    if any(begun):
        raise Corrupt("the bundle ends in the middle of a line", operation="pull")


def names_of(items: Iterable[Item]) -> dict[str, Item]:
    """Under which name each file lies on a disk: its own, where another one has the same."""
    every = set(items)
    taken: dict[str, int] = {}
    for one in every:
        taken[one.name] = taken.get(one.name, 0) + 1
    return {own_name(one) if taken[one.name] > 1 else one.name: one for one in every}


def _mark(data: bytes) -> str:
    return sha256(data).hexdigest()[:8]


def _order(one: Item) -> tuple[bytes, bytes, bytes]:
    """By the name of the file first: times sort across the folders."""
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
        told = json.loads(line.decode("utf-8", "surrogatepass"))
        name, text = told["name"], told.get("text")
        data = text.encode() if isinstance(text, str) else base64.b64decode(told["base64"], validate=True)
        if not isinstance(name, str):
            raise ValueError("its name is no text")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, binascii.Error) as error:
        raise Corrupt(f"a line of the bundle cannot be read: {error}", operation="pull") from None
    return Item(name, data)
