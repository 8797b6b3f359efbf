"""What the files in a session's folder are called."""

TRANSCRIPT = "transcript.jsonl"
METADATA = "metadata.json"
CONFIG = "config.md"
EVENTS = "events.jsonl"
LOCK = ".lock"

BACKUP = ".backup"
"""Put behind the name of a document: the version before."""
