"""The types of events that GitHub Copilot CLI writes."""

from __future__ import annotations

NOTICES = {
    "abort": "reason",
    "session.error": "message",
    "session.handoff": "summary",
    "session.info": "message",
    "session.task_complete": "summary",
    "session.warning": "message",
    "skill.invoked": "content",
    "subagent.failed": "error",
    "system.message": "content",
    "system.notification": "content",
}
"""The events that are a notice of the program, and the field with its text."""

NO_MESSAGES = frozenset(
    "assistant.intent assistant.turn_end assistant.turn_start assistant.usage hook.end hook.start"
    " pending_messages.modified permission.completed permission.requested session.auto_mode_resolved"
    " session.compaction_start session.context_changed session.idle session.mode_changed session.model_change"
    " session.plan_changed session.remote_steerable_changed session.resume session.shutdown session.snapshot_rewind"
    " session.start session.title_changed session.truncation session.usage_checkpoint session.usage_info"
    " session.workspace_file_changed subagent.completed subagent.configured subagent.deselected subagent.selected"
    " subagent.started tool.execution_partial_result tool.execution_progress tool.execution_start".split()
)
"""The events that are no message."""

KNOWN = NO_MESSAGES.union(
    NOTICES,
    "assistant.message assistant.reasoning session.compaction_complete session.usage_record"
    " tool.execution_complete tool.user_requested user.message".split(),
)
"""The types of events that Copilot CLI is known to write; it accepts any event of a type that it does not know."""
