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
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import NamedTuple

from sessionary.errors import Corrupt
from sessionary.layouts.own_names import original_name, own_name

NAME = "bundle.jsonl"


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
    return Item(original_name(name, data), data)


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
    return {own_name(one.name, one.data) if taken[one.name] > 1 else one.name: one for one in every}


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
