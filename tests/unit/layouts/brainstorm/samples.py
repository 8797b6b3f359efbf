"""Sessions to test with, built beside the store."""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sessionary import BrainstormStore
from sessionary.codec.yaml_read import load_yaml
from sessionary.codec.yaml_write import dump_yaml

GOLDEN = Path(__file__).parents[3] / "golden" / "brainstorm"
FOLDER = ".project-memory/brainstorm-sessions"
START = datetime(2026, 1, 9, 10, 30, tzinfo=UTC)


def after(minutes: float = 0, **more: float) -> datetime:
    return START + timedelta(minutes=minutes, **more)


def put(root: Path, slug: str, document: Any) -> Path:
    """Lay a file where the store looks for it, going around the store."""
    path = root / FOLDER / f"{slug}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(document if isinstance(document, bytes) else dump_yaml(document))
    return path


def golden(name: str) -> bytes:
    return (GOLDEN / f"{name}.yaml").read_bytes()


def golden_document(name: str) -> dict[str, Any]:
    document: dict[str, Any] = load_yaml(golden(name))
    return document


def entry(iteration: int, ems: int, delta: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "iteration": iteration,
        "phase": "divergent" if ems < 60 else "transition",
        "ems": ems,
        "ems_delta": delta,
        "questions": [f"Question {iteration}?"],
        "responses": [f"Answer {iteration}"],
        "timestamp": f"2026-01-09T10:{30 + iteration:02}:00Z",
        **more,
    }


def document(slug: str = "sign-in", iterations: int = 3, **changes: Any) -> dict[str, Any]:
    """A whole session of some iterations; the score grows by ten in each."""
    history = [entry(n, 20 + 10 * n, 0 if n == 1 else 10) for n in range(1, iterations + 1)]
    session = {
        "id": f"{slug}-2026-01-09",
        "slug": slug,
        "status": "in_progress",
        "phase": history[-1]["phase"] if history else "divergent",
        "mode": "standard",
        "ems": history[-1]["ems"] if history else 25,
        "persona": "architecte",
        "iteration": max(iterations, 1),
        "techniques_used": [],
        "started_at": "2026-01-09T10:30:00Z",
        "duration_minutes": 30,
        "techniques_history": [],
        "party_active": False,
        "party_history": [],
        "panel_active": False,
        "panel_history": [],
        "ideas": [],
        "history": history,
        "last_question": "What else?",
        "created": "2026-01-09T10:30:00Z",
        "updated": "2026-01-09T11:00:00Z",
        **changes,
    }
    return {"format_version": "1.2", "session": session}


def old_document(slug: str = "sign-in", **changes: Any) -> dict[str, Any]:
    """The same as version 1.0 had it."""
    new = document(slug)
    session = new["session"]
    dropped = (
        "techniques_history party_active party_history panel_active panel_history started_at duration_minutes"
    )
    for name in dropped.split():
        del session[name]
    session |= {"mode": None, "techniques_used": ["moscow", "5whys"], **changes}
    return {"format_version": "1.0", "session": session}


def without_time(value: dict[str, Any]) -> dict[str, Any]:
    """A document without the time of its last change."""
    value = copy.deepcopy(value)
    value["session"].pop("updated", None)
    return value


def stored(store: BrainstormStore, slug: str) -> dict[str, Any]:
    """What the file of a session holds, read around the store."""
    value: dict[str, Any] = load_yaml(Path(store.path(slug)).read_bytes())
    return value
