"""Messages as steps of ATIF, and back. Pure: both sides are JSON.

A message is an object as `documents.of_content` returns it. Results of tools belong into the step of their call, so
they are mapped one by one; what is ours in each names the place of its message among the messages of the session.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import Any

from sessionary.export.exact import OWN, header_beyond, kept, own, plain, whole_message, with_header
from sessionary.layouts.agents.fields import count_of, list_of, object_of, text_or_none
from sessionary.model import AGENT, HARNESS, PERSON, TOOL, ToolResult, Usage

VERSION = "ATIF-v1.8"
OF_TOOL = {"role": "tool", "origin": TOOL}
"""The fields of every message with results."""
_AUTHORS = {"agent": ("assistant", AGENT), "user": ("user", PERSON), "system": ("system", HARNESS)}
_SOURCES = {AGENT: "agent", PERSON: "user"}
_KNOWN = frozenset(
    "step_id timestamp source model_name message reasoning_content tool_calls observation metrics extra".split()
)
_METRICS = frozenset(("prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd"))

Step = dict[str, Any]
Document = dict[str, Any]
At = tuple[int | None, Document]
"""A message with its place among the messages of the session; None where the file does not say."""


def step_of(document: Document, at: int, *, outside: bool) -> tuple[Step, bool]:
    """A message as a step without its number and the results of its calls, and whether nothing is missing in it."""
    source = _SOURCES.get(document["origin"], "system")
    step: Step = {"source": source, "message": _message_of(document["parts"])}
    if document["timestamp"] is not None:
        step["timestamp"] = document["timestamp"]
    if source == "agent":
        step |= _of_agent(document)
    place = {"at": at, **({"outside": True} if outside else {})}
    beyond = header_beyond(document, _header_of(step))
    return _exact(step, document, place, {"header": beyond} if beyond else {})


def _exact(step: Step, document: Document, place: Document, more: Document) -> tuple[Step, bool]:
    """The step with our extension: the whole message if an import could not restore it from the step."""
    stored, whole = kept({**place, **more})
    step = {**plain(step), "extra": {OWN: stored}}
    if _main(step) == document:
        return step, whole
    stored, whole = kept({**place, "message": document})
    return {**step, "extra": {OWN: stored}}, whole


def result_of(part: Document, written_id: str | None, ours: Document) -> tuple[Document, bool]:
    """A result as an entry of an observation, and whether nothing is missing in it.

    Args:
        part: the result, as a part of a message.
        written_id: the id of its call in the step; None if the step has no such call.
        ours: what else is ours.
    """
    content = part["content"]
    result: Document = {} if written_id is None else {"source_call_id": written_id}
    result["content"] = (
        content if content is None or isinstance(content, str) else ToolResult(None, content).text
    )
    if part["id"] != written_id:
        ours = {**ours, "id": part["id"]}
    if part["is_error"]:
        ours = {**ours, "is_error": True}
    if content != plain(result["content"]):
        ours = {**ours, "content": content}
    stored, whole = kept(ours)
    return {**plain(result), "extra": {OWN: stored}}, whole


def messages_of(step: Step) -> Iterator[At]:
    """The messages of a step: its own, then those of the results of its calls."""
    ours = own(step.get("extra"))
    if not ours.get("empty") and not _holds_only_results(step, ours):
        yield _place(ours), _main(step)
    groups: dict[int, list[Document]] = {}
    for result in _results(step):
        mine = own(result.get("extra"))
        if mine.get("copy"):
            continue
        at = _place(mine)
        if at is None:
            yield None, results_message([result], step)
        else:
            groups.setdefault(at, []).append(result)
    for at, results in groups.items():
        yield at, results_message(results, step)


def results_message(results: list[Document], step: Step) -> Document:
    """The message of a tool with these results."""
    ours = own(results[0].get("extra"))
    if (whole := whole_message(ours)) is not None:
        return whole
    known = OF_TOOL if "at" in ours else {**OF_TOOL, "timestamp": step.get("timestamp")}
    return with_header(known, ours.get("header"), [_result_part(one) for one in results])


def beyond_of(step: Step) -> Document:
    """The fields of a step of another program that no message has."""
    left = {name: value for name, value in step.items() if name not in _KNOWN and value is not None}
    extra = {name: value for name, value in object_of(step.get("extra")).items() if name != OWN}
    metrics = {name: value for name, value in object_of(step.get("metrics")).items() if name not in _METRICS}
    calls = [object_of(call).get("extra") for call in list_of(step.get("tool_calls"))]
    results = [
        {name: one[name] for name in ("subagent_trajectory_ref", "extra") if one.get(name)}
        for one in _results(step)
        if OWN not in object_of(one.get("extra"))
    ]
    lists: dict[str, list[Any]] = {"tool_calls": calls, "results": results}
    left |= {name: value for name, value in {"extra": extra, "metrics": metrics}.items() if value}
    return left | {name: values for name, values in lists.items() if any(values)}


def metrics_of(usage: Document) -> Document:
    """Usage as metrics."""
    given = usage["input"] + usage["cache_read"] + usage["cache_write"]
    metrics = {"prompt_tokens": given, "completion_tokens": usage["output"]}
    if usage["cache_read"]:
        metrics["cached_tokens"] = usage["cache_read"]
    if usage["cost"] is not None and isfinite(usage["cost"]):
        metrics["cost_usd"] = usage["cost"]
    return metrics


def usage_of(metrics: Any, prefix: str = "") -> Document | None:
    """Metrics as usage; None if they count nothing."""
    names = ("prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd")
    stated = [object_of(metrics).get(prefix + name) for name in names]
    if all(one is None for one in stated):
        return None
    given, made, cached = map(count_of, stated[:3])
    cost = stated[3] if isinstance(stated[3], int | float) else None
    usage = Usage(max(given - cached, 0), made, cached, cost=cost)
    return {name: getattr(usage, name) for name in usage.__struct_fields__}


def _message_of(parts: list[Document]) -> Any:
    texts = [part["text"] for part in parts if part["type"] == "text"]
    if len(texts) > 1:
        return [{"type": "text", "text": one} for one in texts]
    return texts[0] if texts else ""


def _of_agent(document: Document) -> Step:
    """The fields that only a step of the agent may have."""
    step: Step = {}
    if document["model"] is not None:
        step["model_name"] = document["model"]
    thoughts = [part["text"] for part in document["parts"] if part["type"] == "thinking"]
    if thoughts:
        step["reasoning_content"] = "\n\n".join(thoughts)
    calls = [part for part in document["parts"] if part["type"] == "tool_call"]
    if calls:
        step["tool_calls"] = _calls(calls)
    if document["usage"] is not None:
        step["metrics"] = metrics_of(document["usage"])
    return step


def _calls(parts: list[Document]) -> list[Document]:
    calls, used = list[Document](), set[str]()
    for number, part in enumerate(parts, 1):
        call_id = unused(plain(part["id"]) or f"call-{number}", used)
        call: Document = {"tool_call_id": call_id, "function_name": part["name"]}
        arguments = part["arguments"]
        if isinstance(arguments, dict):
            calls.append({**call, "arguments": arguments})
        else:
            calls.append({**call, "arguments": {"input": arguments}, "extra": {OWN: {"input": True}}})
    return calls


def unused(name: str, used: set[str]) -> str:
    """The name, with a number behind it if it is used; used from now on."""
    free, number = name, 2
    while free in used:
        free, number = f"{name}#{number}", number + 1
    used.add(free)
    return free


def _place(ours: Document) -> int | None:
    at = ours.get("at")
    return at if type(at) is int else None


def _header_of(step: Step) -> Document:
    """The header of a message by the fields of its step."""
    role, origin = _AUTHORS.get(str(step.get("source")), _AUTHORS["system"])
    return {
        "role": role,
        "origin": origin,
        "timestamp": text_or_none(step.get("timestamp")),
        "model": text_or_none(step.get("model_name")),
        "usage": usage_of(step.get("metrics")),
    }


def _main(step: Step) -> Document:
    """The message of a step, without the results of its calls."""
    ours = own(step.get("extra"))
    if (whole := whole_message(ours)) is not None:
        return whole
    thought = step.get("reasoning_content")
    parts = [{"type": "thinking", "text": thought}] if isinstance(thought, str) else []
    stated = step.get("message")
    if isinstance(stated, str):
        parts += [{"type": "text", "text": stated}] if stated else []
    parts += [content_part(block) for block in list_of(stated)]
    parts += [_call_part(object_of(call)) for call in list_of(step.get("tool_calls"))]
    return with_header(_header_of(step), ours.get("header"), parts)


def content_part(block: Any) -> Document:
    """A block of stated content as a part of a message."""
    if isinstance(block, dict) and isinstance(block.get("text"), str):
        return {"type": "text", "text": block["text"]}
    return {"type": "other", "kind": str(object_of(block).get("type")), "value": block}


def _call_part(call: Document) -> Document:
    arguments = call.get("arguments")
    if own(call.get("extra")).get("input"):
        arguments = object_of(arguments).get("input")
    return {
        "type": "tool_call",
        "id": call.get("tool_call_id"),
        "name": text_or_none(call.get("function_name")) or "?",
        "arguments": arguments,
    }


def _results(step: Step) -> list[Document]:
    return [object_of(one) for one in list_of(object_of(step.get("observation")).get("results"))]


def _result_part(result: Document) -> Document:
    ours = own(result.get("extra"))
    return {
        "type": "tool_result",
        "id": ours.get("id", result.get("source_call_id")),
        "content": ours.get("content", result.get("content")),
        "is_error": ours.get("is_error", False),
    }


def _holds_only_results(step: Step, ours: Document) -> bool:
    """True for a step of another program that says nothing beside an observation."""
    if ours or not _results(step) or step.get("source") == "agent":
        return False
    return not step.get("message")
