"""Editing of YAML files that users also edit: unchanged parts, comments above all, are kept as typed.

ruamel.yaml reads a file with its comments and blank lines, and only differing values are put into it. It is pure
Python and about thirty times slower than the rest, so it is used only if there is a comment or blank line to keep.

Its output is verified: it is read back with our reader and must equal the value to be stored, else the file is
rewritten without it; a comment that was lost is put at the head of the file. So no value and no comment is lost.
"""

from __future__ import annotations

import copy
import io
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from sessionary.codec.snapshot import same
from sessionary.codec.yaml_read import as_text, compose, load_yaml, scalars
from sessionary.codec.yaml_write import dump_yaml, in_brackets, is_plain_key
from sessionary.errors import Corrupt

_MAY_BE_COMMENT = re.compile(rb"(?:^|[ \t]|\xef\xbb\xbf)#", re.MULTILINE)
_BLANK_LINE = re.compile(rb"^[ \t]*\r?\n", re.MULTILINE)
_BLANK_HEAD = re.compile(rb"(?:[ \t]*\r?\n)+")
_HASH = re.compile(r"(?:(?<=[ \t])|^)#", re.MULTILINE)
_TO_LINE_END = re.compile(r"[^\r\n]*")
_LIST_BELOW_KEY = re.compile(
    r"^( *)[^\s#-][^\n]*:[ \t]*(?:#[^\n]*)?\n(?:[ \t]*(?:#[^\n]*)?\n)*( *)- ", re.MULTILINE
)
_ENDLESS: Final = 1 << 30


def comments_of(data: bytes) -> list[str]:
    """Return the comments of a file in order, each from its hash to the end of its line."""
    text = as_text(data)
    if _HASH.search(text) is None:
        return []
    return [text[start:end] for start, end in _comments(text, sorted(_spans(compose(data), text)))]


def _comments(text: str, spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the spans of comments, given the spans of texts."""
    starts = [start for start, _ in spans]
    end = 0
    for match in _HASH.finditer(text):
        at = match.start()
        place = bisect_right(starts, at) - 1
        within_text = place >= 0 and at < spans[place][1]
        if at >= end and not within_text:
            comment = _TO_LINE_END.match(text, at)
            assert comment is not None
            end = comment.end()
            yield at, end


def _tabs_as_blanks(text: str) -> str:
    """Replace tabs between values, which ruamel.yaml refuses, by blanks."""
    if "\t" not in text:
        return text
    spans = sorted(_spans(compose(text.encode()), text))
    parts = []
    end = 0
    for start, stop in sorted([*spans, *_comments(text, spans)]):
        parts += [text[end:start].replace("\t", " "), text[max(start, end) : stop]]
        end = max(end, stop)
    return "".join([*parts, text[end:].replace("\t", " ")])


def _spans(root: Any, text: str) -> list[tuple[int, int]]:
    """Return the spans of texts: a hash inside them begins no comment."""
    spans = []
    for node in scalars(root):
        start, end = node.start_mark.index, node.end_mark.index
        if node.style in ("|", ">"):  # the line of the indicator may end in a comment
            start = text.find("\n", start) + 1 or end
        spans.append((start, end))
    return [(start, end) for start, end in spans if start < end]


def edit_yaml(data: bytes, value: Any, *, path: str = "") -> bytes:
    """Return the bytes that hold `value`, based on those of the current file.

    A file whose value is `value` already is returned byte for byte. One without comments and blank lines is
    rewritten, with the keys in the order of `value`. Otherwise only the differences are changed, and tabs between
    values become blanks.

    Raises:
        Corrupt: the current file cannot be read.
        Invalid: the value cannot be stored, as for `dump_yaml`.
    """
    old = load_yaml(data, path=path)
    if same(old, value):
        return data
    fresh = dump_yaml(value)
    comments = comments_of(data) if _MAY_BE_COMMENT.search(data) else []
    if not comments and not _BLANK_LINE.search(data):
        return fresh
    edited = _edited(data, old, value)
    if edited is None:
        edited = fresh
    missing = list((Counter(comments) - Counter(comments_of(edited))).elements())
    return "".join(f"{comment}\n" for comment in missing).encode() + edited


def _edited(data: bytes, old: Any, new: Any) -> bytes | None:
    """Return the file as ruamel.yaml writes it with the new values; None if it does not read back as them."""
    from ruamel.yaml.error import YAMLError

    if not isinstance(old, dict) or not isinstance(new, dict):
        return None
    text = as_text(data).replace("\r\n", "\n")
    try:
        text = _tabs_as_blanks(text)
        editor = _editor(text)
        document = editor.load(text)
        _merge_map(document, old, new)
        out = io.BytesIO()
        editor.dump(document, out)
        edited = out.getvalue()
        if b"\r\n" in data:
            edited = edited.replace(b"\n", b"\r\n")
        head = _BLANK_HEAD.match(data)
        if head is not None:  # ruamel.yaml drops some of it
            left = _BLANK_HEAD.match(edited)
            edited = head[0] + edited[left.end() if left else 0 :]
        return edited if same(load_yaml(edited), new) else None
    except (YAMLError, Corrupt, ValueError, TypeError, LookupError, AttributeError, NotImplementedError):
        return None  # ruamel.yaml failed; the caller rewrites the file with all values


def _editor(text: str) -> Any:
    from ruamel.yaml import YAML

    editor = YAML(typ="rt", pure=True)
    editor.preserve_quotes = True
    editor.width = _ENDLESS
    found = _LIST_BELOW_KEY.search(text)
    offset = len(found[2]) - len(found[1]) if found else 2
    editor.indent(mapping=2, sequence=offset + 2, offset=offset)
    return editor


def _merge_map(node: Any, old: dict[str, Any], new: dict[str, Any]) -> None:
    """Apply the differences between `old` (the value of `node`) and `new` to the loaded `node`."""
    typed = dict(zip(old, list(node), strict=True))  # a key that we read as text may be a number in ruamel
    for key, at in typed.items():
        if key not in new:
            del node[at]
        else:
            _merge_child(node, at, old[key], new[key])
    for key, child in new.items():
        if key not in old:
            node[_key(key)] = _made(child)


def _merge_list(node: Any, old: list[Any], new: list[Any]) -> None:
    """As `_merge_map`. Items are matched from both ends, so an insertion or removal moves no comment."""
    head = 0
    while head < min(len(old), len(new)) and same(old[head], new[head]):
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and same(old[-1 - tail], new[-1 - tail]):
        tail += 1
    shared = min(len(old), len(new)) - head - tail
    for place in range(head, head + shared):
        _merge_child(node, place, old[place], new[place])
    for _ in range(len(old) - head - shared - tail):
        del node[head + shared]
    added = range(head + shared, len(new) - tail)
    below = _take_below(node) if added and not tail else None
    for place in added:
        node.insert(place, _made(new[place]))
    if below is not None:
        _put_below(node, below)


def _take_below(node: Any) -> Any:
    """Detach a comment below a list that ruamel.yaml stores with the last value of the list.

    A comment between two keys belongs to the second one; ruamel attaches it to the end of the first.
    """
    holder, key, slot = _last_leaf(node)
    tokens = holder.ca.items.get(key)
    token = tokens[slot] if tokens else None
    if token is None:
        return None
    own, _, rest = token.value.partition("\n")
    if not rest:
        return None
    below = copy.copy(token)
    below.value = f"\n{rest}"
    token.value = f"{own}\n"
    if not own:
        tokens[slot] = None
    return below


def _put_below(node: Any, token: Any) -> None:
    holder, key, slot = _last_leaf(node)
    holder.ca.items.setdefault(key, [None, None, None, None] if slot else [None, None])[slot] = token


def _last_leaf(node: Any) -> tuple[Any, Any, int]:
    """Return the container of the last value in a collection's text, its key, and the index of its comment."""
    is_map = isinstance(node, dict)
    key = next(reversed(node)) if is_map else len(node) - 1
    child: Any = node[key]
    if child and hasattr(child, "fa") and not child.fa.flow_style():
        return _last_leaf(child)
    return node, key, 2 if is_map else 0


def _merge_child(node: Any, at: Any, old: Any, new: Any) -> None:
    if same(old, new):
        return
    if isinstance(old, dict) and isinstance(new, dict) and old:
        _merge_map(node[at], old, new)
    elif isinstance(old, list) and isinstance(new, list) and old and new:
        _merge_list(node[at], old, new)
    else:
        node[at] = _made(new)


def _made(value: Any) -> Any:
    """Convert a new value to the style of `dump_yaml`."""
    from ruamel.yaml.comments import CommentedMap, CommentedSeq
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString

    if isinstance(value, dict):
        return CommentedMap((_key(key), _made(child)) for key, child in value.items())
    if isinstance(value, list | tuple):
        made = CommentedSeq(map(_made, value))
        if in_brackets(value):
            made.fa.set_flow_style()
        return made
    return DoubleQuotedScalarString(value) if isinstance(value, str) else value


def _key(key: str) -> Any:
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString

    return key if is_plain_key(key) else DoubleQuotedScalarString(key)
