"""The amplifier layout: metadata.json, transcript.jsonl and events.jsonl in a folder per session."""
