"""Synthetic messages: results of interrupted calls, and the end of an interrupted turn.

Neither a model nor a user may mistake a synthetic message for a real one. So each result is an explicit error, and
the closing text states that the agent did not write it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sessionary.transcript.matching import Call
from sessionary.transcript.messages import RESULT, Message, listed


@dataclass(frozen=True, slots=True)
class Words:
    """Texts of synthetic messages: the result of a call (JSON text, as tools answer), and the end of a turn."""

    result: str
    closing: str


INTERRUPTED = Words(
    json.dumps(
        {
            "error": "unknown_error",
            "message": "The call was interrupted: it may have done its work, but no result was stored.",
        }
    ),
    "[The turn was interrupted after its tool calls; the answer to them was never stored.]",
)
"""Texts for a session that was killed. The keys and the value of ``error`` are those of the original's repair."""

FORKED = Words(
    json.dumps(
        {
            "error": "Tool execution interrupted by session fork",
            "forked": True,
            "message": "The call was still open where this conversation was forked; its result is not part of it.",
        }
    ),
    "[The conversation was forked while tool calls were open; their results are not part of it.]",
)
"""Texts for a fork. The keys and the value of ``error`` are those of the original's fork."""


def result_message(call: Call, words: Words) -> dict[str, Any]:
    """Return a result as a message of role ``tool``."""
    name = {} if call.name is None else {"name": call.name}
    return {"role": "tool", "tool_call_id": call.call_id, **name, "content": words.result}


def result_block(call: Call, words: Words) -> dict[str, Any]:
    """Return a result as a block, for a message of role ``user``."""
    return {"type": RESULT, "tool_use_id": call.call_id, "content": words.result, "is_error": True}


def closing(words: Words) -> dict[str, Any]:
    """Return the message that ends a turn for the agent."""
    return {"role": "assistant", "content": [{"type": "text", "text": words.closing}]}


def expects_blocks(message: Message) -> bool:
    """True if the calls suggest results in blocks: Anthropic's ``tool_use`` without a `tool_calls` list."""
    if listed(message.get("tool_calls")):
        return False
    blocks = listed(message.get("content"))
    return any(isinstance(block, dict) and block.get("type") == "tool_use" for block in blocks)
