"""The messages of VS Code's chat: a request is what the user asked, and the response with its tool calls and edits.

A response is one list in which texts, thoughts, tool calls and edits alternate. Here it becomes a message of the model
up to the results of its calls, a message of the tools, and so on. The arguments and the results of the calls are in the
metadata of the result, which repeats the calls round by round.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace

from sessionary.codec.decode import decode_if_json
from sessionary.codec.times import parse_time
from sessionary.layouts.agents.fields import count_of, list_of, object_of, text_or_none
from sessionary.model import (
    AGENT,
    HARNESS,
    PERSON,
    TOOL,
    Message,
    Other,
    Part,
    Place,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
)

CALLS = frozenset({"toolInvocation", "toolInvocationSerialized"})
_TEXTS = ("markdownContent", "markdownVuln")
_EDITS = frozenset({"textEditGroup", "notebookEditGroup"})
_MARKS = frozenset(
    "clearToPreviousToolInvocation codeblockUri mcpServersStarting prepareToolInvocation undoStop".split()
)
"""Parts of a response that say nothing: where an edit begins, what is being started."""
_DENIED = 0
"""The type of a confirmation that the user refused."""


class _Round(NamedTuple):
    """A call as the metadata of a result repeats it: its id, and its arguments."""

    id: str | None
    arguments: Any


def messages_of(request: dict[str, Any], place: Place) -> Iterator[Message]:
    """The messages of a request; none for an empty one, which replaces a lost request."""
    time, name = parse_time(request.get("timestamp")), text_or_none(request.get("requestId"))
    asked = tuple(_asked(request))
    if asked:
        by_user = request.get("isSystemInitiated") is not True and not request.get("confirmation")
        yield Message("user", PERSON if by_user else HARNESS, asked, time, name, place=place)
    result = object_of(request.get("result"))
    metadata = object_of(result.get("metadata"))
    parts = list(_parts(request.get("response"), _Calls(request.get("response"), metadata)))
    if error := result.get("errorDetails") or request.get("responseErrorDetails"):
        parts.append((Other("error", error), None))
    model = _model(request, metadata)
    state = object_of(request.get("modelState"))
    ended = parse_time(state.get("completedAt")) or parse_time(request.get("responseTimestamp")) or time
    answer = Message("assistant", AGENT, (), time, None, name, model, place=place)
    first = replace(answer, id=text_or_none(request.get("responseId")), usage=_usage(request, metadata))
    messages = list(_messages(parts, first, answer))
    if not messages and first.usage is not None:
        messages = [first]
    yield from (*messages[:-1], *(replace(one, time=ended) for one in messages[-1:]))


def _asked(request: Mapping[str, Any]) -> Iterator[Part]:
    """The text of the user, and its attachments."""
    stated = request.get("message")
    text = stated if isinstance(stated, str) else object_of(stated).get("text")
    if isinstance(text, str) and text:
        yield Text(text)
    for one in list_of(object_of(request.get("variableData")).get("variables")):
        yield Other(text_or_none(object_of(one).get("kind")) or "attachment", one)


def _messages(
    parts: list[tuple[Part, ToolResult | None]], first: Message, next_one: Message
) -> Iterator[Message]:
    """Messages of the model, each with the results of its calls behind it."""
    message, shown, results = first, list[Part](), list[ToolResult]()
    for part, result in parts:
        if results and not isinstance(part, ToolCall):
            yield from _with_results(message, shown, results)
            message, shown, results = next_one, [], []
        shown.append(part)
        if result is not None:
            results.append(result)
    if shown:
        yield from _with_results(message, shown, results)


def _with_results(message: Message, parts: list[Part], results: list[ToolResult]) -> Iterator[Message]:
    yield replace(message, parts=tuple(parts))
    if results:
        yield Message("tool", TOOL, tuple(results), message.time, place=message.place)


def _parts(response: Any, calls: _Calls) -> Iterator[tuple[Part, ToolResult | None]]:
    """The parts of a response; texts that follow each other are one, since references stand between them."""
    text = ""
    for one in response if isinstance(response, list) else [response]:
        words = _words(one)
        if words is not None:
            text += words
            continue
        part, result = _part(one, calls)
        if part is not None:
            if text:
                yield Text(text), None
            text = ""
            yield part, result
    if text:
        yield Text(text), None


def _words(one: Any) -> str | None:
    """The text of a part of a response; None if it is not text."""
    if one is None or isinstance(one, str):
        return one or ""
    value = object_of(one)
    kind = value.get("kind")
    if kind in (None, *_TEXTS) and (isinstance(value.get("value"), str) or "content" in value):
        return _markdown(value.get("content")) or _markdown(value)
    if kind == "inlineReference":
        inner = object_of(value.get("inlineReference"))
        name = text_or_none(value.get("name")) or text_or_none(inner.get("name"))
        name = name or _path(inner.get("uri") or object_of(inner.get("location")).get("uri") or inner)
        return f"`{name}`" if name else ""
    return None


def _part(one: Any, calls: _Calls) -> tuple[Part | None, ToolResult | None]:
    value = object_of(one)
    kind = value.get("kind")
    if kind == "thinking":
        words = value.get("value")
        text = "\n".join(map(str, words)) if isinstance(words, list) else str(words or "")
        return (Thinking(text) if text else None), None
    if kind in CALLS:
        return calls.next(value)
    if kind in _MARKS:
        return None, None
    if kind in _EDITS:
        rest = {key: inner for key, inner in value.items() if key not in ("kind", "uri")}
        return ToolCall(None, str(kind), {"path": _path(value.get("uri")), **rest}), None
    return Other(text_or_none(kind) or "part", one), None


class _Calls:
    """The calls of a response, with the arguments and results that its metadata has.

    Old versions gave a call another id in the metadata. If none matches, and there are as many calls in both, they are
    the same in their order.
    """

    def __init__(self, response: Any, metadata: Mapping[str, Any]) -> None:
        self._results = object_of(metadata.get("toolCallResults"))
        shown = [
            text_or_none(call.get("toolCallId"))
            for call in map(object_of, list_of(response))
            if call.get("kind") in CALLS and not call.get("subAgentInvocationId")
        ]
        rounds = [
            _Round(text_or_none(call.get("id")), decode_if_json(call.get("arguments")))
            for one in map(object_of, list_of(metadata.get("toolCallRounds")))
            for call in map(object_of, list_of(one.get("toolCalls")))
        ]
        self._rounds: dict[str | None, _Round] = {one.id: one for one in rounds if one.id is not None}
        if len(shown) == len(rounds) and not self._rounds.keys() & set(shown):
            self._rounds = dict(zip(shown, rounds, strict=True))

    def next(self, call: Mapping[str, Any]) -> tuple[ToolCall, ToolResult | None]:
        """A call as it is shown, and its result."""
        name = text_or_none(call.get("toolCallId"))
        found = self._rounds.get(name, _Round(name, None))
        given = _given(call) if found.arguments is None else found.arguments
        tool = text_or_none(call.get("toolId")) or text_or_none(call.get("toolName")) or "?"
        shown = ToolCall(name, tool, given)
        confirmed = call.get("isConfirmed")
        kind = object_of(confirmed).get("type", confirmed)
        if kind is False or (type(kind) is int and kind == _DENIED):
            return shown, ToolResult(name, "refused by the user", True)
        if call.get("isComplete") is False:
            return shown, None
        stored = object_of(self._results.get(found.id or ""))
        return shown, _result(name, call, stored)


def _given(call: Mapping[str, Any]) -> Any:
    """The arguments of a call, as far as they are stored with it: its input, its command, or what was announced."""
    special, details = object_of(call.get("toolSpecificData")), object_of(call.get("resultDetails"))
    if special.get("rawInput") is not None:
        return special["rawInput"]
    line = special.get("commandLine")
    command = object_of(line).get("original") or line or special.get("command")
    if isinstance(command, str) and command:
        return {"command": command}
    if isinstance(details.get("input"), str):
        return decode_if_json(details["input"])
    words = _markdown(call.get("invocationMessage"))
    return {"message": words} if words else None


def _result(name: str | None, call: Mapping[str, Any], stored: Mapping[str, Any]) -> ToolResult:
    """The result of a call: what the model was given, else what was shown of it."""
    details, special = object_of(call.get("resultDetails")), object_of(call.get("toolSpecificData"))
    code = object_of(special.get("terminalCommandState")).get("exitCode")
    failed = details.get("isError") is True or (type(code) is int and code != 0)
    words = "\n".join(filter(None, (_content(one) for one in list_of(stored.get("content")))))
    if not words:
        output = details.get("output")
        words = "\n".join(filter(None, map(_content, list_of(output) or [output])))
    words = words or _content(special.get("terminalCommandOutput")) or _content(special.get("result"))
    return ToolResult(
        name,
        words or _markdown(call.get("pastTenseMessage")) or _markdown(call.get("invocationMessage")),
        failed,
    )


def _content(value: Any) -> str:
    """The words of a piece of a result: a text, or a tree of prompt elements with texts as its leaves."""
    words, waiting = list[str](), [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            words.append(one)
        elif isinstance(one, dict):
            key = next((key for key in ("text", "value", "node", "children") if key in one), None)
            inner = [] if key is None else one[key]
            waiting += reversed(inner) if isinstance(inner, list) else [inner]
    return "".join(words)


def _markdown(value: Any) -> str:
    """The words of a text that is stored as such, or as an object with it."""
    text = value.get("value") if isinstance(value, dict) else value
    return text if isinstance(text, str) else ""


def _path(uri: Any) -> str | None:
    """The path of a URI, which is stored as a text or in pieces."""
    return text_or_none(uri) or text_or_none(object_of(uri).get("path"))


def _model(request: Mapping[str, Any], metadata: Mapping[str, Any]) -> str | None:
    stated = text_or_none(metadata.get("resolvedModel")) or text_or_none(request.get("modelId"))
    return None if stated is None else stated.removeprefix("copilot/")


def _usage(request: Mapping[str, Any], metadata: Mapping[str, Any]) -> Usage | None:
    """The tokens of a request. Newer versions state them in the request, older ones in the metadata of the result."""
    usage = object_of(request.get("usage"))
    given = [request.get("promptTokens"), usage.get("promptTokens"), metadata.get("promptTokens")]
    made = [request.get("completionTokens"), usage.get("completionTokens"), metadata.get("outputTokens")]
    if all(one is None for one in (*given, *made)):
        return None
    return Usage(*(next((count_of(one) for one in counts if one is not None), 0) for counts in (given, made)))
