"""The names of the files in a session's folder."""

import re

TRANSCRIPT = "transcript.jsonl"
METADATA = "metadata.json"
CONFIG = "config.md"
EVENTS = "events.jsonl"
LOCK = ".lock"
IN_USE = ".in-use"
NO_ACTIVITY = frozenset({LOCK, IN_USE})
"""Files whose times do not count as changes of the session: they change when it is merely read."""

COPIED = frozenset({TRANSCRIPT, METADATA, EVENTS})
"""The files whose conflict copies and placeholders are searched for."""

BACKUP = ".backup"
"""The suffix of the previous version of a document."""

TEMP = re.compile(r"\..+\.tmp|metadata\.json\.tmp")
"""The names of temporary files, of a killed or a running writer."""
