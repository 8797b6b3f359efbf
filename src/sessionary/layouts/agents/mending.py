"""Mending the records of a session for a copy: one rule for each problem code that `check` reports of records.

A rule changes the fewest records that make the problem go away. What it removes is in the original, which stays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple
from uuid import NAMESPACE_URL, uuid5

from sessionary.codec import encode_line, sanitize
from sessionary.layouts.agents.call_shapes import SHAPES, Called, CallShape, Value, blocks, with_blocks
from sessionary.layouts.agents.fields import object_of, text_or_none
from sessionary.model import Problem
from sessionary.transcript.synthetic import INTERRUPTED

_EPOCH = "1970-01-01T00:00:00.000Z"


class Mend(NamedTuple):
    """A change.

    Attributes:
        line: the line that it concerns, from 1; None for the whole file.
    """

    code: str
    line: int | None
    what: str


class Line(NamedTuple):
    """A record, and its bytes; None if it was changed or made."""

    value: Value
    raw: bytes | None = None

    @property
    def data(self) -> bytes:
        """The line, with its newline."""
        return (encode_line(sanitize(self.value)) if self.raw is None else self.raw).rstrip(b"\n") + b"\n"


class Mender:
    """The records of a session, each on a line of its own."""

    def __init__(self, kind: str, session_id: str, lines: list[Line]) -> None:
        self.lines: list[Line] = lines
        self._kind, self._session_id = kind, session_id
        self._shape: CallShape | None = SHAPES.get(kind)
        self._keys = None if self._shape is None else self._shape.keys
        self._rules: dict[str, Callable[[Problem, int], str | None]] = {
            "lone_surrogate": self._surrogate,
            "duplicate_record": self._duplicate,
            "orphaned_call": self._orphaned_call,
            "orphaned_result": self._orphaned_result,
            "repeated_result": self._repeated_result,
            "repeated_call": self._repeated_call,
            "self_parent": self._parent,
            "parent_cycle": self._parent,
            "missing_parent": self._parent,
            "empty_text": self._blocks(lambda one: one.get("type") == "text" and not _text(one, "text")),
            "empty_message": self._remove,
            "empty_thinking": self._blocks(lambda one: one.get("type") == "thinking" and not _text(one, "thinking")),
            "missing_signature": self._blocks(
                lambda one: one.get("type") == "thinking" and not text_or_none(one.get("signature"))
            ),
            "repeated_thinking": self._blocks(lambda one: one.get("type") == "thinking"),
            "orphaned_server_call": self._server_call,
            "large_image": self._large_image,
            "bad_content": self._bad_content,
            "missing_entry": self._missing_entry,
            "refused_event": self._remove,
            "bad_event": self._events,
            "unknown_rewind": self._remove,
            "no_header": self._no_header,
            "ordinal_gap": self._ordinals,
            "id_clash": self._id,
        }  # fmt: skip

    def mend(self, problem: Problem) -> Mend | None:
        """Apply the rule for a problem of these records; None if there is none, or it finds nothing to change."""
        rule, at = self._rules.get(problem.code), (problem.line or 1) - 1
        if rule is None or at >= max(len(self.lines), 1):
            return None
        what = rule(problem, at)
        return None if what is None else Mend(problem.code, problem.line, what)

    def mend_base(self, problem: Problem, end: int | None) -> Mend | None:
        """Mend where a page continues the one before it.

        Args:
            problem: ``missing_page`` or ``bad_cut``, of the first record.
            end: the byte at which it is to continue; None if the page before is missing.
        """
        first = self.lines[0].value if self.lines else {}
        payload = object_of(first.get("payload"))
        base = object_of(payload.get("history_base"))
        if not base:
            return None
        alone = {key: value for key, value in payload.items() if key != "history_base"}
        what = "the session begins here; the page before is missing"
        if end is not None:
            alone["history_base"] = {**base, "end_byte_offset": end}
            what = f"it continues the page before at byte {end:,}, where a line ends"
        value = {**first, "payload": alone}
        # The line keeps its length: the page behind this one states bytes of it.
        self.lines[0] = Line(value, encode_line(sanitize(value)).ljust(len(self.lines[0].data) - 1))
        return Mend(problem.code, 1, what)

    # -- records

    def _replace(self, at: int, value: Value) -> None:
        self.lines[at] = Line(value)

    def _drop(self, at: int) -> None:
        """Remove a record; those below it in the tree then follow its parent."""
        value = self.lines.pop(at).value
        if self._keys is not None:
            own, parent = self._keys
            if isinstance(name := value.get(own), str):
                self._move_children(name, value.get(parent))

    def _move_children(self, name: str, parent: Any, but: int = -1) -> None:
        assert self._keys is not None
        own, key = self._keys
        for at, line in enumerate(self.lines):
            if at != but and line.value.get(key) == name and line.value.get(own) != name:
                self._replace(at, {**line.value, key: parent})

    def _insert(self, at: int, value: Value, call_id: str) -> None:
        """Add a record behind another one, also in the tree."""
        if self._keys is None:
            self.lines.insert(at + 1, Line(value))
        else:
            own, parent = self._keys
            before = self.lines[at].value.get(own)
            name = str(uuid5(NAMESPACE_URL, f"{self._session_id}/{call_id}/{at}"))
            value = {**value, own: name[:8] if self._kind == "pi" else name, parent: before}
            self.lines.insert(at + 1, Line(value))
            if isinstance(before, str):
                self._move_children(before, value[own], at + 1)
        if any(isinstance(line.value.get("ordinal"), int) for line in self.lines):
            self._number()

    def _number(self) -> None:
        """Number the ordinals from the first one on."""
        number = None
        for at, line in enumerate(self.lines):
            ordinal = line.value.get("ordinal")
            if isinstance(ordinal, int):
                number = ordinal if number is None else number + 1
                if ordinal != number:
                    self._replace(at, {**line.value, "ordinal": number})

    # -- rules

    def _surrogate(self, problem: Problem, at: int) -> str | None:
        value = _each_text(self.lines[at].value, _whole_text)
        if value == self.lines[at].value:
            return None
        self._replace(at, value)
        return "a lone surrogate became U+FFFD"

    def _duplicate(self, problem: Problem, at: int) -> str | None:
        if self.lines[at] in self.lines[:at]:
            del self.lines[at]  # not `_drop`: the first one stays in the tree
            return "a repeated record is left out"
        return None

    def _remove(self, problem: Problem, at: int) -> str | None:
        self._drop(at)
        return "the record is left out"

    def _concerned(self, problem: Problem, ids: list[str]) -> list[str]:
        """The ids that a problem names; all if it names none."""
        return [one for one in dict.fromkeys(ids) if one in problem.message] or list(dict.fromkeys(ids))

    def _message_end(self, at: int) -> int:
        """The last record of the message of a record, of agents that store a message in several."""
        name = object_of(self.lines[at].value.get("message")).get("id")
        while (
            isinstance(name, str)
            and at + 1 < len(self.lines)
            and object_of(self.lines[at + 1].value.get("message")).get("id") == name
        ):
            at += 1
        return at

    def _orphaned_call(self, problem: Problem, at: int) -> str | None:
        if self._shape is None:
            return self._unfinished(at)
        end, count = self._message_end(at), 0
        calls = [one for line in self.lines[at : end + 1] for one in self._shape.calls(line.value)]
        wanted = set(self._concerned(problem, [one.id for one in calls]))
        for call in reversed(calls):
            if call.id in wanted:
                self._answer(self._message_end(at), call)
                count += 1
        return f"{count} of its calls got a result that says that it was interrupted" if count else None

    def _answer(self, at: int, call: Called) -> None:
        """Add a result after a message: a stored one from before its call, else a synthetic one."""
        assert self._shape is not None
        value = self._shape.answer(self.lines[at].value, call)
        for early in range(at):
            if self._shape.answers(stored := self.lines[early].value) == [call.id]:
                value = stored
                self._drop(early)
                at -= 1
                break
        self._insert(at, value, call.id)

    def _unfinished(self, at: int) -> str | None:
        """Gemini CLI stores the result within the call."""
        value = self.lines[at].value
        calls = value.get("toolCalls")
        if self._kind != "gemini" or not isinstance(calls, list):
            return None
        done = [one if object_of(one).get("result") else _interrupted(object_of(one)) for one in calls]
        if done == calls:
            return None
        self._replace(at, {**value, "toolCalls": done})
        return "its calls got a result that says that they were interrupted"

    def _orphaned_result(self, problem: Problem, at: int) -> str | None:
        if self._shape is None:
            return None
        later = {call.id for line in self.lines[at + 1 :] for call in self._shape.calls(line.value)}
        ids = self._concerned(problem, self._shape.answers(self.lines[at].value))
        return self._without(at, [one for one in ids if one not in later], 0)

    def _repeated_result(self, problem: Problem, at: int) -> str | None:
        if self._shape is None:
            return None
        earlier = {one for line in self.lines[:at] for one in self._shape.answers(line.value)}
        ids = self._concerned(problem, self._shape.answers(self.lines[at].value))
        removed = [self._without(at, [one], int(one not in earlier)) for one in ids if at < len(self.lines)]
        return next(filter(None, removed), None)

    def _without(self, at: int, ids: list[str], keep: int) -> str | None:
        """Leave results of these calls out of a record."""
        assert self._shape is not None
        value: Value | None = self.lines[at].value
        for one in ids:
            value = None if value is None else self._shape.without(value, one, keep)
        if value == self.lines[at].value:
            return None
        if value is None:
            self._drop(at)
        else:
            self._replace(at, value)
        return "a result without a call of its own is left out"

    def _repeated_call(self, problem: Problem, at: int) -> str | None:
        if self._shape is None:
            return None
        ids = self._concerned(problem, [one.id for one in self._shape.calls(self.lines[at].value)])
        used = {call.id for line in self.lines for call in self._shape.calls(line.value)}
        for one in ids:
            new = next(name for number in range(2, len(used) + 3) if (name := f"{one}-{number}") not in used)
            rename = _renaming(one, new)
            self._replace(at, _each_text(self.lines[at].value, rename))
            for later in range(at + 1, len(self.lines)):
                if one in self._shape.answers(self.lines[later].value):
                    self._replace(later, _each_text(self.lines[later].value, rename))
                    break
        return "a call with the id of an earlier one got another id, with its result" if ids else None

    def _parent(self, problem: Problem, at: int) -> str | None:
        if self._keys is None:
            return None
        own, parent = self._keys
        names = (self.lines[before].value.get(own) for before in range(at - 1, -1, -1))
        name = next((one for one in names if isinstance(one, str)), None)
        if self.lines[at].value.get(parent) == name:
            return None
        self._replace(at, {**self.lines[at].value, parent: name})
        return "the record follows the one before it in the file"

    def _blocks(self, is_it: Callable[[Value], bool]) -> Callable[[Problem, int], str | None]:
        """A rule that leaves blocks out of a message; a message without any other is removed."""

        def rule(problem: Problem, at: int) -> str | None:
            value, found = self.lines[at].value, blocks(self.lines[at].value)
            left = [one for one in found if not is_it(object_of(one))]
            if not left:
                self._drop(at)
                return "the record is left out: nothing else is in it"
            if left == found:
                return None
            self._replace(at, with_blocks(value, left))
            return "the block is left out"

        return rule

    def _server_call(self, problem: Problem, at: int) -> str | None:
        def is_it(block: Value) -> bool:
            name = text_or_none(block.get("id")) or text_or_none(block.get("tool_use_id"))
            kind = str(block.get("type"))
            is_one = kind == "server_tool_use" or (kind.endswith("_tool_result") and kind != "tool_result")
            return is_one and name is not None and name in problem.message

        return self._blocks(is_it)(problem, at)

    def _large_image(self, problem: Problem, at: int) -> str | None:
        from sessionary.layouts.agents.claude_code_check import large_image

        def smaller(block: Any) -> Any:
            one = object_of(block)
            if one.get("type") == "image" and large_image(object_of(one.get("source"))):
                return {
                    "type": "text",
                    "text": "[An image that the provider refuses was removed by a repair.]",
                }
            if isinstance(one.get("content"), list):
                return {**one, "content": [smaller(inner) for inner in one["content"]]}
            return block

        value = self.lines[at].value
        changed = [smaller(block) for block in blocks(value)]
        if changed == blocks(value):
            return None
        self._replace(at, with_blocks(value, changed))
        return "the image became a sentence that says so"

    def _bad_content(self, problem: Problem, at: int) -> str | None:
        value = self.lines[at].value
        content = object_of(value.get("message")).get("content")
        text = [{"type": "text", "text": content if isinstance(content, str) else str(content)}]
        self._replace(at, with_blocks(value, [] if content is None else text))
        return "the content became a list"

    def _missing_entry(self, problem: Problem, at: int) -> str | None:
        names = (
            text_or_none(line.value.get("id"))
            for line in self.lines[:at]
            if line.value.get("type") != "session"
        )
        first = next(filter(None, names), None)
        if first is None:
            return self._remove(problem, at)
        self._replace(at, {**self.lines[at].value, "firstKeptEntryId": first})
        return "the compaction keeps all entries"

    def _events(self, problem: Problem, at: int) -> str | None:
        """Give all events of Copilot CLI the fields that it requires; references to an event follow its new id."""
        from sessionary.layouts.agents.copilot_cli_check import envelope_fault, is_time, is_uuid

        def uuid_of(stated: Any, place: int) -> str:
            name = stated if isinstance(stated, str) and stated else place
            return stated if is_uuid(stated) else str(uuid5(NAMESPACE_URL, f"{self._session_id}/{name}"))

        before, changed = None, 0
        time = next(
            (one.value["timestamp"] for one in self.lines if is_time(one.value.get("timestamp"))), _EPOCH
        )
        for place, line in enumerate(self.lines):
            value = line.value
            if not isinstance(value.get("type"), str):
                continue
            parent, stated = value.get("parentId", before), value.get("timestamp")
            time = stated if is_time(stated) else time
            data = object_of(value.get("data"))
            if "upToEventId" in data and not is_uuid(data["upToEventId"]):
                value = {**value, "data": {**data, "upToEventId": uuid_of(data["upToEventId"], place)}}
            if envelope_fault(value) is not None:
                parent = parent if parent is None else uuid_of(parent, place - 1)
                value = {
                    **value,
                    "id": uuid_of(value.get("id"), place),
                    "parentId": parent,
                    "timestamp": time,
                }
                for key, kind in (("agentId", str), ("ephemeral", bool)):
                    if not isinstance(value.get(key), kind):
                        value.pop(key, None)
            if value is not line.value:
                self._replace(place, value)
                changed += 1
            before = value["id"]
        return f"{changed} events got the fields that they lacked" if changed else None

    def _no_header(self, problem: Problem, at: int) -> str | None:
        times = (text_or_none(line.value.get("timestamp")) for line in self.lines)
        time = next(filter(None, times), _EPOCH)
        if self._kind == "pi":
            header: Value = {
                "type": "session",
                "version": 3,
                "id": self._session_id,
                "timestamp": time,
                "cwd": "",
            }
        elif self._kind == "gemini":
            header = {
                "sessionId": self._session_id,
                "projectHash": "",
                "startTime": time,
                "lastUpdated": time,
            }
        elif self._kind == "copilot_cli":
            name = str(uuid5(NAMESPACE_URL, f"{self._session_id}/start"))
            about = {"version": 1, "producer": "copilot-agent", "copilotVersion": "", "startTime": time}
            header = {
                "type": "session.start",
                "data": {"sessionId": self._session_id, **about},
                "id": name,
                "timestamp": time,
                "parentId": None,
            }
        else:
            return None
        self.lines.insert(0, Line(header))
        return "a header was added; it names no folder"

    def _ordinals(self, problem: Problem, at: int) -> str | None:
        self._number()
        return "the ordinals are numbered in order"

    def _id(self, problem: Problem, at: int) -> str | None:
        wrong = 0
        for place, line in enumerate(self.lines):
            if line.value.get("sessionId", self._session_id) != self._session_id:
                self._replace(place, {**line.value, "sessionId": self._session_id})
                wrong += 1
        return f"{wrong} records state the id of the file now" if wrong else None


def _text(block: Value, key: str) -> str:
    return str(block.get(key) or "").strip()


def _interrupted(call: Value) -> Value:
    """A call of Gemini CLI with a result."""
    response = {"id": call.get("id"), "name": call.get("name"), "response": {"error": INTERRUPTED.result}}
    return {**call, "status": "error", "result": [{"functionResponse": response}]}


def _renaming(old: str, new: str) -> Callable[[str], str]:
    return lambda text: new if text == old else text


def _whole_text(text: str) -> str:
    """A text with U+FFFD for each half of a surrogate pair."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _each_text(value: Any, changed: Callable[[str], str]) -> Any:
    """A value with each of its texts changed."""
    if isinstance(value, dict):
        return {changed(key): _each_text(one, changed) for key, one in value.items()}
    if isinstance(value, list):
        return [_each_text(one, changed) for one in value]
    return changed(value) if isinstance(value, str) else value
