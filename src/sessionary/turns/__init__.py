"""Rules over messages: who speaks, what a turn is, which result answers which tool call, and what to do if none does.

A turn begins where a person speaks. The role alone does not tell: hooks put their reminders, and Anthropic-shaped
agents their tool results, into messages of the role ``user`` too, and an agent that counts those tells its user
about turns that nobody took.

Tool calls come in three shapes: Amplifier's `tool_calls` list with ``tool`` and ``arguments``, OpenAI's with
``function`` and its arguments as JSON text, and content blocks (``tool_call`` or ``tool_use``) with ``name`` and
``input``. Amplifier stores the same call in a block and in the list. Results are messages of their own, or
``tool_result`` blocks. What is read here was written by many hands, so no rule trusts a type, and none raises.

Everything here is pure: no file is touched, and no message that was handed in is ever changed. What comes back
holds the very same objects wherever nothing had to be altered, so a caller can tell what was by ``is``.
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

# A list or a reader needs none of these, and should not wait for them.
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
