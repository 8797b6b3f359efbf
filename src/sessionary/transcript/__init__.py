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

if TYPE_CHECKING:
    from sessionary.model import ToolCall as ToolCall
    from sessionary.model import ToolResult as ToolResult
    from sessionary.transcript.diagnosis import Finding as Finding
    from sessionary.transcript.diagnosis import diagnose as diagnose
    from sessionary.transcript.diagnosis import diagnosis_of as diagnosis_of
    from sessionary.transcript.matching import unanswered as unanswered
    from sessionary.transcript.messages import REMINDER as REMINDER
    from sessionary.transcript.messages import Message as Message
    from sessionary.transcript.messages import count_turns as count_turns
    from sessionary.transcript.messages import is_real_user as is_real_user
    from sessionary.transcript.messages import results as results
    from sessionary.transcript.messages import text_of as text_of
    from sessionary.transcript.messages import tool_calls as tool_calls
    from sessionary.transcript.repair import Change as Change
    from sessionary.transcript.repair import Mended as Mended
    from sessionary.transcript.repair import mend as mend
    from sessionary.transcript.slicing import slice_to_turn as slice_to_turn
    from sessionary.transcript.turn_boundaries import boundaries as boundaries
    from sessionary.transcript.turn_boundaries import cut_before as cut_before
    from sessionary.transcript.turn_boundaries import slice_end as slice_end
    from sessionary.transcript.turn_boundaries import turn_range as turn_range
    from sessionary.transcript.turn_boundaries import turn_summary as turn_summary
    from sessionary.transcript.turn_boundaries import user_text as user_text


__getattr__, __dir__, __all__ = on_demand(
    __name__,
    {
        ".messages": "REMINDER Message count_turns is_real_user results text_of tool_calls",
        "sessionary.model": "ToolCall ToolResult",
        ".matching": "unanswered",
        ".turn_boundaries": "boundaries cut_before slice_end turn_range turn_summary user_text",
        ".diagnosis": "Finding diagnose diagnosis_of",
        ".repair": "Change Mended mend",
        ".slicing": "slice_to_turn",
    },
)
