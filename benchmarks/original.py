"""How the original SessionStore saves, in our words: the peer of the save rows.

Every save cleans and writes the whole conversation. For each of the two files: what is there is copied to the
backup, the new content goes to a temp file beside it, and that is renamed over the old one. Nothing is flushed to the
disk. As in the original, the value of a key is cleaned twice: once to see whether anything is left of it, once to
keep it.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

SECRETS = frozenset(
    "api_key apikey api-key secret password token credential credentials private_key privatekey auth"
    " authorization".split()
)
DEEPEST = 50


def save(base: Path, session_id: str, transcript: Sequence[Any], metadata: dict[str, Any]) -> None:
    """Write both files of a session, each in whole."""
    folder = base / session_id
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for message in transcript:
        if message.get("role") in ("system", "developer"):
            continue
        lines.append(json.dumps(_clean_message(message), ensure_ascii=False))
    _replace(folder / "transcript.jsonl", "\n".join(lines) + "\n" if lines else "")
    _replace(folder / "metadata.json", json.dumps(_redact(metadata), indent=2, ensure_ascii=False))


def _replace(path: Path, text: str) -> None:
    if path.exists():
        with suppress(OSError):
            shutil.copy2(path, path.with_name(path.name + ".backup"))
    handle, temp = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}_", suffix=".tmp")
    with open(handle, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
    os.replace(temp, path)


def _clean_message(message: dict[str, Any]) -> dict[str, Any]:
    cleaned: dict[str, Any] = {}
    for key, value in message.items():
        if key == "thinking_block":
            if isinstance(value, dict) and "text" in value:
                cleaned["thinking_text"] = value["text"]
        elif key != "content_blocks" and _clean(value, 0) is not None:
            cleaned[key] = _clean(value, 0)
    return cleaned


def _clean(value: Any, depth: int) -> Any:
    if depth > DEEPEST:
        return None
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, dict):
        return {
            key: _clean(item, depth + 1) for key, item in value.items() if _clean(item, depth + 1) is not None
        }
    if isinstance(value, (list, tuple)):
        return [kept for item in value if (kept := _clean(item, depth + 1)) is not None]
    return None


def _redact(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: "[REDACTED]" if isinstance(key, str) and key.lower() in SECRETS else _redact(item)
            for key, item in value.items()
        }
    return [_redact(item) for item in value] if isinstance(value, list) else value
