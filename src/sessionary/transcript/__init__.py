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
