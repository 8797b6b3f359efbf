"""YAML reader for files written by users and agents: dict, list, str, int, float, bool, None.

libyaml parses and composes; the meaning of nodes is decided here, because three features of YAML lose data in session
files:

* YAML 1.1 and 1.2 interpret some words differently. An answer `no` becomes False, a country code vanishes, `12:30:45`
  becomes 45045, a date becomes an object that no other reader writes back. **A word that the two versions read
  differently stays text**; so do times of every format.
* Of two equal keys the last one silently wins. Here they are an error.
* A file of a few hundred bytes can expand through nested aliases until memory is full. Aliases are read as copies,
  and their total size is counted before it is built.

PyYAML is imported when the first file is read, to keep start-up fast.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from sessionary.codec.conflicts import REMEDY, first_marker
from sessionary.errors import Corrupt, Unsupported


class Limits(NamedTuple):
    """Limits for a file.

    Attributes:
        size: bytes.
        aliased: number of values that exist only through aliases.
    """

    size: int = 32 << 20
    depth: int = 100
    aliased: int = 10_000


LIMITS: Final = Limits()

_PREFIX = "tag:yaml.org,2002:"
_STR, _NULL, _BOOL, _INT, _FLOAT = (_PREFIX + name for name in ("str", "null", "bool", "int", "float"))
_TEXT = frozenset({_STR, _PREFIX + "timestamp"})

# Only words that YAML 1.1 and the core schema of 1.2 read alike. `yes`, `012`, `1_000`, `1e3` and `10:30` are text.
_WORDS: Final[dict[str, tuple[str, Any]]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), (_NULL, None)),
    **dict.fromkeys(("true", "True", "TRUE"), (_BOOL, True)),
    **dict.fromkeys(("false", "False", "FALSE"), (_BOOL, False)),
}
_NUMBER: Final = re.compile(
    r"(?P<int>[-+]?(?:0|[1-9][0-9]*)|0x[0-9a-fA-F]+)\Z"
    r"|(?P<float>[-+]?(?:0|[1-9][0-9]*)?\.[0-9]+(?:[eE][-+][0-9]+)?|[-+]?(?:0|[1-9][0-9]*)\.(?:[eE][-+][0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z"
)
_BOM: Final = "\ufeff"

_REMEDIES: Final = {
    "bad_yaml": "correct the line by hand; quote texts that contain a colon, a hash or a quote",
    "bad_utf8": "save the file as UTF-8",
    "conflict_marker": REMEDY,
    "too_large": "split the file, or raise the limit",
    "too_deep": "flatten the nesting there",
    "too_many_aliases": "replace the aliases (*name) by the values that they repeat",
    "duplicate_key": "keep one of the two lines, or rename one",
    "odd_key": "use a word, a number or a quoted text as key",
    "unknown_tag": "remove the tag (!...) and write the value as text",
    "several_documents": "keep one document in the file; remove the line ---",
}
_NO_TAB: Final = (
    "replace the tab by blanks: as many as the neighbouring lines begin with, or one behind a dash"
)


def load_yaml(data: bytes, *, path: str = "") -> Any:
    """Load the value of a YAML file; None for an empty file.

    Keys are text; numbers and booleans as keys become text as typed. The order of keys is kept.

    Raises:
        Corrupt: it is not a single YAML document, breaks a limit, repeats a key or uses an unknown tag. ``details``
            holds ``code``, ``line`` and ``column`` (both from 1).
    """
    node = compose(data, path=path)
    return None if node is None else _Builder(path).build(node, 0)


def compose(data: bytes, *, path: str = "") -> Any:
    """Return the tree of PyYAML nodes of a file, with positions; None for an empty file. Raises as `load_yaml`."""
    import yaml

    text = as_text(data, path)
    loader = _loader()(text)
    loader.depth_left = LIMITS.depth + 1
    try:
        return loader.get_single_node()
    except _TooDeep as error:
        raise bad_yaml("too_deep", f"nested more than {LIMITS.depth} deep", path, error.line) from None
    except yaml.reader.ReaderError as error:
        before = text[: error.position] if isinstance(error.position, int) else ""
        raise bad_yaml("bad_yaml", str(error.reason), path, before.count("\n") + 1) from None
    except yaml.MarkedYAMLError as error:
        raise _conflict(data, path) or _from_marked(error, text, path) from None
    finally:
        loader.dispose()


def as_text(data: bytes, path: str = "") -> str:
    """Decode the text of a file within the size limit. Raises as `load_yaml`."""
    if len(data) > LIMITS.size:
        raise bad_yaml("too_large", f"{len(data):,} bytes, more than {LIMITS.size:,}", path)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise bad_yaml("bad_utf8", f"invalid UTF-8 at byte {error.start}", path, line) from None
    return text.removeprefix(_BOM)


def _conflict(data: bytes, path: str) -> Corrupt | None:
    """Return the error about a merge conflict marker, if that is why a file is not YAML."""
    found = first_marker(data)
    return None if found is None else bad_yaml("conflict_marker", found.words, path, found.line)


def bad_yaml(
    code: str, why: str, path: str, line: int | None = None, column: int | None = None, remedy: str = ""
) -> Corrupt:
    """Return the error about a position in a file, with the remedy of its code by default."""
    place = [path] if path else []
    place += [f"{name} {number}" for name, number in (("line", line), ("column", column)) if number]
    message = f"{', '.join(place)}: {why}" if place else why
    details = {"code": code, "line": line, "column": column}
    hint = remedy or _REMEDIES[code]
    return Corrupt(message, operation="read", path=path or None, details=details, hint=hint)


def line_of(root: Any, keys: Sequence[str | int]) -> int | None:
    """Return the line (from 1) of a value, or of its nearest existing parent.

    Args:
        root: a result of `compose`.
        keys: the path from the root: keys of maps and indexes of lists.
    """
    if root is None:
        return None
    node = root
    line: int = root.start_mark.line + 1
    for key in keys:
        found = _child(node, key)
        if found is None:
            return line
        node, line = found
    return line


def scalars(root: Any) -> Iterator[Any]:
    """Yield every scalar node of a tree once, keys included."""
    seen: set[int] = set()
    left = [] if root is None else [root]
    while left:
        node = left.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node.id == "scalar":
            yield node
        elif node.id == "sequence":
            left += node.value
        else:
            left += [part for pair in node.value for part in pair]


def plain_tag(text: str) -> str:
    """Return the tag of an unquoted word."""
    word = _WORDS.get(text)
    if word is not None:
        return word[0]
    found = _NUMBER.match(text)
    return _STR if found is None else _INT if found.lastgroup == "int" else _FLOAT


class _TooDeep(Exception):
    def __init__(self, line: int | None) -> None:
        super().__init__(line)
        self.line = line


@cache
def _loader() -> Any:
    """Return the loader class for libyaml's parser, created at the first file."""
    import yaml

    if not yaml.__with_libyaml__:  # pragma: no cover - every wheel has it
        raise Unsupported("PyYAML was built without libyaml", hint="pip install --force-reinstall PyYAML")

    class Loader(yaml.cyaml.CParser):  # type: ignore[misc, name-defined, unused-ignore]
        """Composes nodes. libyaml composes recursively on the C stack, so depth is checked on the way down."""

        depth_left = 0

        def descend_resolver(self, parent: Any, index: Any) -> None:
            self.depth_left -= 1
            if self.depth_left < 0:
                raise _TooDeep(parent.start_mark.line + 1 if parent is not None else None)

        def ascend_resolver(self) -> None:
            self.depth_left += 1

        def resolve(self, kind: Any, value: Any, implicit: Any) -> str:
            if kind is scalar:
                return plain_tag(value) if implicit[0] else _STR
            return "seq" if kind is sequence else "map"

    scalar, sequence = yaml.ScalarNode, yaml.SequenceNode
    return Loader


class _Builder:
    """Converts nodes to values. An alias is built anew each time: a shared list would change in two places."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._left = LIMITS.aliased
        self._seen: set[int] = set()
        self._aliased = False

    def build(self, node: Any, depth: int) -> Any:
        """Return the value of a node at a depth."""
        kind = node.id
        if kind == "scalar":
            if self._aliased:
                self._count(node)
            tag = node.tag
            return node.value if tag == _STR else self._scalar(node, tag)
        if depth >= LIMITS.depth:
            raise self._bad("too_deep", f"nested more than {LIMITS.depth} deep through an alias", node)
        if self._aliased:
            self._count(node)
        elif id(node) in self._seen:
            self._aliased = True  # everything below is a copy
            try:
                return self._collection(node, kind, depth)
            finally:
                self._aliased = False
        self._seen.add(id(node))
        return self._collection(node, kind, depth)

    def _collection(self, node: Any, kind: str, depth: int) -> Any:
        if node.tag not in ("seq", "map", _PREFIX + "seq", _PREFIX + "map"):
            raise self._bad("unknown_tag", f"unknown tag {_short(node.tag)}", node)
        if kind == "sequence":
            build = self.build
            return [build(child, depth + 1) for child in node.value]
        return self._map(node, depth)

    def _map(self, node: Any, depth: int) -> dict[str, Any]:
        value: dict[str, Any] = {}
        for key_node, child in node.value:
            if key_node.id != "scalar":
                raise self._bad("odd_key", "a list or a map is used as a key", key_node)
            key = key_node.value
            if key == "<<" and not key_node.style:
                raise self._bad("odd_key", "a merge key (<<) is not part of the format", key_node)
            if key in value:
                raise self._bad("duplicate_key", f"the key {key} is repeated here", key_node)
            value[key] = self.build(child, depth + 1)
        return value

    def _scalar(self, node: Any, tag: str) -> Any:
        text = node.value
        word = _WORDS.get(text)
        if word is not None and word[0] == tag:
            return word[1]
        if tag in _TEXT:
            return text
        try:
            if tag == _INT:
                return int(text, 16) if text.startswith("0x") else int(text)
            if tag == _FLOAT:
                return _float(text)
        except ValueError:
            raise self._bad("bad_yaml", f"{text[:40]} is not a valid number", node) from None
        raise self._bad("unknown_tag", f"the tag {_short(tag)} does not fit {text[:40]!r}", node)

    def _count(self, node: Any) -> None:
        self._left -= 1
        if self._left < 0:
            raise self._bad("too_many_aliases", "aliases repeat more values than the limit", node)

    def _bad(self, code: str, why: str, node: Any) -> Corrupt:
        mark = node.start_mark
        return bad_yaml(code, why, self._path, mark.line + 1, mark.column + 1)


def _float(text: str) -> float:
    special = text.lower().lstrip("+-")
    if special in (".inf", ".nan"):
        return float(("-" if text[0] == "-" else "") + special[1:])
    return float(text)


def _from_marked(error: Any, text: str, path: str) -> Corrupt:
    mark = error.problem_mark or error.context_mark
    why = error.problem or error.context or "not YAML"
    code, remedy = "bad_yaml", ""
    if "single document" in str(error.context):
        code, why = "several_documents", "a second document begins"
    elif "nesting depth" in str(why):  # libyaml's own limit on brackets
        code = "too_deep"
    elif mark is not None and text[mark.index : mark.index + 1] == "\t":
        remedy, why = _NO_TAB, "a tab where YAML accepts blanks only"
    line, column = (mark.line + 1, mark.column + 1) if mark is not None else (None, None)
    return bad_yaml(code, why, path, line, column, remedy)


def _child(node: Any, key: str | int) -> tuple[Any, int] | None:
    if node.id == "mapping":
        for key_node, child in node.value:
            if key_node.value == key:
                return child, key_node.start_mark.line + 1
    elif node.id == "sequence" and isinstance(key, int) and 0 <= key < len(node.value):
        child = node.value[key]
        return child, child.start_mark.line + 1
    return None


def _short(tag: str) -> str:
    return tag.replace(_PREFIX, "!!")
