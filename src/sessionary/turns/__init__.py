"""Rules over messages: roles, turns, pairing of tool calls and results, diagnosis and repair.

A turn begins with a message of the user. The role is not enough: hooks put their reminders, and Anthropic-shaped
agents their tool results, into messages of role ``user`` too; counting those would report turns that never happened.

Tool calls have three shapes: Amplifier's `tool_calls` list with ``tool`` and ``arguments``, OpenAI's with
``function`` and arguments as JSON text, and content blocks (``tool_call`` or ``tool_use``) with ``name`` and
``input``. Amplifier stores the same call in a block and in the list. Results are messages of their own, or
``tool_result`` blocks. The input comes from many programs, so no rule trusts a type, and none raises.

Everything here is pure: no file access, and no argument is modified. Unchanged messages are returned as the same
objects, so callers can compare with ``is``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessionary.lazy_exports import on_demand
from sessionary.turns.messages import (
    REMINDER,
    Message,
    ToolCall,
    ToolResult,
    count_turns,
    is_real_user,
    results,
    text_of,
    tool_calls,
)
from sessionary.turns.pairing import Pairing, unanswered

if TYPE_CHECKING:
    from sessionary.turns.diagnosis import Finding, diagnose, diagnosis_of
    from sessionary.turns.repair import Change, Mended, mend
    from sessionary.turns.slicing import slice_to_turn
    from sessionary.turns.turn_boundaries import (
        boundaries,
        cut_before,
        slice_end,
        turn_range,
        turn_summary,
        user_text,
    )

# Lists and readers need none of these; they are imported on demand.
_LATER = {
    "boundaries": "turn_boundaries",
    "cut_before": "turn_boundaries",
    "slice_end": "turn_boundaries",
    "turn_range": "turn_boundaries",
    "turn_summary": "turn_boundaries",
    "user_text": "turn_boundaries",
    "Finding": "diagnosis",
    "diagnose": "diagnosis",
    "diagnosis_of": "diagnosis",
    "Change": "repair",
    "Mended": "repair",
    "mend": "repair",
    "slice_to_turn": "slicing",
}

__all__ = [
    "REMINDER",
    "Change",
    "Finding",
    "Mended",
    "Message",
    "Pairing",
    "ToolCall",
    "ToolResult",
    "boundaries",
    "count_turns",
    "cut_before",
    "diagnose",
    "diagnosis_of",
    "is_real_user",
    "mend",
    "results",
    "slice_end",
    "slice_to_turn",
    "text_of",
    "tool_calls",
    "turn_range",
    "turn_summary",
    "unanswered",
    "user_text",
]


__getattr__, __dir__ = on_demand(__name__, {name: f"{__name__}.{room}" for name, room in _LATER.items()})
