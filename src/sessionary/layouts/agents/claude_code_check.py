"""Check of stored records for what Claude Code or its provider refuses."""

from __future__ import annotations

from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from sessionary.disk.fs import Fs
from sessionary.errors import SessionaryError
from sessionary.layouts.agents.fields import list_of, object_of, text_or_none
from sessionary.layouts.agents.id_check import id_problems
from sessionary.layouts.agents.logs import first_records
from sessionary.layouts.agents.tree_check import TreeCheck
from sessionary.model import Message, Other, Problem, Record, SessionRef, Severity, UsageEvent
from sessionary.transcript.branches import Node

_BLOCKS = frozenset(
    "document image redacted_thinking search_result server_tool_use tool_reference".split()
) | {f"{name}_tool_result" for name in ("web_search", "web_fetch", "code_execution", "advisor")}
LARGEST_IMAGE = 5 << 20
"""Characters of an image, encoded in Base64, that the provider accepts."""
WIDEST_IMAGE = 8000
"""Pixels of a side of an image that the provider accepts."""
_PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
_REFUSED = ": the provider refuses it"
_OLD = "; it is before the last compaction, so it is not sent again"

Names = Callable[[str], list[str]]


class ClaudeCodeCheck(TreeCheck):
    """Findings of a check in the records of one session.

    Args:
        ref: the session.
        fs: the file system.
        is_agent: it is the session of a sub-agent, whose records state the id of its parent.
    """

    def __init__(self, ref: SessionRef, fs: Fs, *, is_agent: bool) -> None:
        super().__init__(ref, _node_of_parent)
        self._fs, self._is_agent = fs, is_agent
        self._unknown: Counter[str] = Counter()
        self._stated: str | None = None
        self._signatures: dict[str, int] = {}
        self._calls: dict[str, Record] = {}

    def kept(self, found: Record, messages: Sequence[Message | UsageEvent]) -> None:
        if found.value.get("isCompactSummary"):
            self._compact()
        if found.value.get("type") in ("user", "assistant"):
            self._message(found, object_of(found.value.get("message")))
        self._unknown.update(_unknown(found.value, messages))
        self._stated = text_or_none(found.value.get("sessionId")) or self._stated

    def problems(self) -> Iterator[Problem]:
        self._end_server_calls()
        yield from super().problems()
        yield from unknown_records(self.ref, self._unknown)
        if not self._is_agent:
            yield from id_problems(self.ref, self._stated, self._fs)

    def _message(self, found: Record, message: dict[str, Any]) -> None:
        content = message.get("content")
        if isinstance(content, str) and not content.strip():
            self.refuse("empty_text", Severity.stops_resume, found, f"an empty message{_REFUSED}")
        elif message and (content is None or content == []):
            self.refuse("empty_message", Severity.stops_resume, found, f"a message without content{_REFUSED}")
        for block in map(object_of, list_of(content)):
            self._block(found, block)

    def _block(self, found: Record, block: dict[str, Any]) -> None:
        kind, signature = text_or_none(block.get("type")), text_or_none(block.get("signature"))
        if kind == "text" and not str(block.get("text") or "").strip():
            self.refuse("empty_text", Severity.stops_resume, found, f"an empty text block{_REFUSED}")
        elif kind == "thinking":
            self._thinking(found, str(block.get("thinking") or ""), signature)
        elif kind == "image":
            self._image(found, object_of(block.get("source")))
        elif kind == "tool_result":
            for inner in map(object_of, list_of(block.get("content"))):
                if inner.get("type") == "image":
                    self._image(found, object_of(inner.get("source")))
        elif kind == "server_tool_use" and (call_id := text_or_none(block.get("id"))):
            self._calls[call_id] = found
        elif kind and kind.endswith("_tool_result"):
            call_id = str(block.get("tool_use_id"))
            if self._calls.pop(call_id, None) is None:
                words = f"a result of {call_id}, a tool of the provider, without its call{_REFUSED}"
                self.refuse("orphaned_server_call", Severity.stops_resume, found, words)

    def _thinking(self, found: Record, text: str, signature: str | None) -> None:
        if signature is None:
            words = f"thinking without a signature{_REFUSED}"
            self.refuse("missing_signature", Severity.stops_resume, found, words)
            return
        if not text:
            words = "an empty thinking block with a signature; some versions of the API refuse it"
            self.refuse("empty_thinking", Severity.note, found, words)
        if (first := self._signatures.setdefault(signature, found.line)) != found.line:
            words = f"the same signed thinking as in line {first}{_REFUSED}"
            self.refuse("repeated_thinking", Severity.stops_resume, found, words)

    def _image(self, found: Record, source: dict[str, Any]) -> None:
        if (what := large_image(source)) is not None:
            self.refuse("large_image", Severity.stops_resume, found, f"{what}{_REFUSED}")

    def _end_server_calls(self) -> None:
        for call_id, found in self._calls.items():
            words = f"the call {call_id} of a tool of the provider has no result{_REFUSED}"
            self.refuse("orphaned_server_call", Severity.stops_resume, found, words)
        self._calls = {}

    def _compact(self) -> None:
        """Lower the earlier findings to notes: a compaction follows, so their messages are not sent again."""
        self._end_server_calls()
        self._refused = [
            one._replace(severity=Severity.note, message=one.message.removesuffix(_OLD) + _OLD)
            for one in self._refused
        ]
        self._signatures = {}


def _node_of_parent(record: dict[str, Any]) -> Node | None:
    """A record as a node below the parent from which Claude Code continues it."""
    uuid = text_or_none(record.get("uuid"))
    return None if uuid is None else Node(uuid, text_or_none(record.get("parentUuid")))


def _unknown(record: dict[str, Any], messages: Sequence[Message | UsageEvent]) -> Iterator[str]:
    """The types of unknown content in a record with these messages."""
    for part in (part for one in messages if isinstance(one, Message) for part in one.parts):
        if isinstance(part, Other) and part.kind == "record":
            yield "/".join(str(record[key]) for key in ("type", "subtype") if key in record) or "no type"
        elif isinstance(part, Other) and part.kind not in _BLOCKS:
            yield part.kind


def unknown_records(ref: SessionRef, types: Counter[str]) -> Iterator[Problem]:
    """A note on records of types that are not known."""
    if types:
        names = ", ".join(sorted(types)[:5]) + (", …" if len(types) > 5 else "")
        count = types.total()
        words = f"{count:,} record{'' if count == 1 else 's'} of unknown types or shapes: {names}"
        remedy = "none needed; `sessionary show` prints them as they are"
        yield Problem.of_file("unknown_shape", Severity.note, ref.locator, words, remedy)


def large_image(source: dict[str, Any]) -> str | None:
    """Describe an image that is too large for the provider; None for any other."""
    data = text_or_none(source.get("data")) or ""
    width, height = _png_size(data)
    if len(data) > LARGEST_IMAGE:
        return f"an image of {len(data):,} bytes in Base64; the provider accepts {LARGEST_IMAGE:,}"
    if max(width, height) > WIDEST_IMAGE:
        return f"an image of {width:,} by {height:,} pixels; the provider accepts {WIDEST_IMAGE:,} at a side"
    return None


def _png_size(data: str) -> tuple[int, int]:
    """Width and height of a PNG in Base64; zeros for anything else."""
    try:
        head = b64decode(data[:32])
    except ValueError:
        return 0, 0
    if len(head) < 24 or not head.startswith(_PNG):
        return 0, 0
    return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")


def leftovers(names_in: Names, root: str, agents: Callable[[str], Iterable[str]]) -> Iterator[Problem]:
    """Files beside the sessions that belong to none of them.

    Args:
        names_in: the names in a folder, sorted.
        root: the folder of the projects.
        agents: the sessions of the sub-agents of one whose folder is given.
    """
    for project in names_in(root):
        names = names_in(f"{root}/{project}")
        for name in names:
            path = f"{root}/{project}/{name}"
            inside = names_in(path) if "." not in name else []
            if f"{name}.jsonl" not in names and not {"subagents", "tool-results"}.isdisjoint(inside):
                words = f"what is left of the session {name}: its own file is missing"
                remedy = "none needed; the sessions of its sub-agents are read"
                yield Problem.of_file("orphan_folder", Severity.note, path, words, remedy)
            below = f"{path}/subagents"
            sessions = set(agents(path)) if "subagents" in inside else set()
            for meta in names_in(below) if "subagents" in inside else ():
                own = f"{below}/{meta.removesuffix('.meta.json')}.jsonl"
                if meta.endswith(".meta.json") and own not in sessions:
                    words = f"the description of a sub-agent whose session {own} is missing"
                    place = f"{below}/{meta}"
                    yield Problem.of_file("orphan_meta", Severity.note, place, words, "none needed")


def shared_folders(names_in: Names, fs: Fs, root: str) -> Iterator[Problem]:
    """A note on each folder in which sessions of several projects lie."""
    for project in names_in(root):
        folder = f"{root}/{project}"
        paths = [f"{folder}/{name}" for name in names_in(folder) if name.endswith(".jsonl")]
        places = {place for path in paths if (place := _first_folder(fs, path))} if len(paths) > 1 else set()
        if len(places) > 1:
            names = ", ".join(sorted(places)[:5]) + (", …" if len(places) > 5 else "")
            words = f"sessions of {len(places)} projects are in one folder: {names}; Claude Code lists them together"
            remedy = "none needed; Sessionary distinguishes them by the folder in their records"
            yield Problem.of_file("shared_folder", Severity.note, folder, words, remedy)


def _first_folder(fs: Fs, path: str) -> str | None:
    """The folder that the first records of a session name."""
    with suppress(SessionaryError):
        folders = (text_or_none(record.get("cwd")) for record in first_records(fs, path))
        return next(filter(None, folders), None)
    return None
