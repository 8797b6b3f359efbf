"""Messages for the tests of the mailbox, and what has become of them."""

import json
from pathlib import Path
from typing import Any

from sessionary.layouts.maestro.breadcrumbs import create_breadcrumb, write_crumb
from sessionary.layouts.maestro.records import Breadcrumb

STAMP = "20260301_090000_{:06d}"


def message(
    prompt: str, *, depth: int = 0, number: int | None = None, known: str | None = None
) -> Breadcrumb:
    """A message; `number` makes its time, else it is of now."""
    crumb = create_breadcrumb(
        prompt=prompt,
        response="",
        tools_called=[],
        files_modified=[],
        parent_session_id=None,
        depth_level=depth,
        model_used="sonnet",
        token_count={"input": 1, "output": 1},
    )
    if number is not None:
        crumb.timestamp = STAMP.format(number)
    if known is not None:
        crumb.breadcrumb_id = known
    return crumb


def put(session: Path, prompt: str, **more: Any) -> Breadcrumb:
    """Leave a message in a session, as a producer does; flushing is not waited for."""
    crumb = message(prompt, **more)
    write_crumb(str(session), crumb, durable=False)
    return crumb


def lines(path: Path) -> list[dict[str, Any]]:
    """The records of a line file; each line must be one."""
    if not path.exists():
        return []
    data = path.read_bytes()
    assert data.endswith(b"\n") or not data, f"{path.name} ends in half a line"
    return [json.loads(line) for line in data.splitlines()]


def log(session: Path, consumer: str = "work") -> list[dict[str, Any]]:
    """What a consumer has applied."""
    return lines(session / ("log.jsonl" if consumer == "work" else f"log.{consumer}.jsonl"))


def prompts(session: Path, consumer: str = "work") -> list[str]:
    """The prompts of what was applied, for handlers that return them."""
    return [line["result"]["prompt"] for line in log(session, consumer)]


def echo(crumb: Breadcrumb) -> dict[str, Any]:
    """A handler that returns what it was given."""
    return {"prompt": crumb.prompt}
