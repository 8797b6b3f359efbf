"""What the files in a session's folder are called."""

import re

TRANSCRIPT = "transcript.jsonl"
METADATA = "metadata.json"
CONFIG = "config.md"
EVENTS = "events.jsonl"
LOCK = ".lock"
IN_USE = ".in-use"
NO_ACTIVITY = frozenset({LOCK, IN_USE})
"""Files whose times say nothing about the session: they change when somebody merely looks at it."""

COPIED = frozenset({TRANSCRIPT, METADATA, EVENTS})
"""The files of which a synchroniser's copies and placeholders are looked for."""

BACKUP = ".backup"
"""Put behind the name of a document: the version before."""

TEMP = re.compile(r"\..+\.tmp|metadata\.json\.tmp")
"""The names of files that a killed writer leaves behind, or a writer at work has made."""
