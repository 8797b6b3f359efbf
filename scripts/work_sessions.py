"""A few work sessions with their breadcrumbs, for the pages that show what commands print."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from sessionary.disk.fs import OS_FS
from sessionary.layouts.maestro.breadcrumbs import create_breadcrumb
from sessionary.layouts.maestro.store import WorkStore

_BEGIN = datetime(2026, 3, 4, 9, tzinfo=UTC)
_IDS = (
    "5d1c7a40-3b5e-4f0a-9c61-27a1f0b8e201",
    "a80f3e6b-91d2-4c77-8e15-6b0c4d9f7a02",
    "e2b94c15-60a8-4d3e-b7f4-18c5a3d60f03",
    "0f6d2b7c-4a19-4e58-9d3b-7c81e5a2f604",  # of the result that the last one hands over
)
_PRICED = {"opus": (0.015, 0.075), "sonnet": (0.003, 0.015)}


def make_work_sessions(root: Path) -> None:
    """A piece of work with two others below it, one of which is done."""
    moments = iter(_BEGIN + timedelta(minutes=number) for number in range(99))
    store = WorkStore.with_fs(OS_FS, root, now=lambda: next(moments), new_id=iter(_IDS).__next__)
    top = store.create("work_track", purpose="Rewrite the checkout", related_entity={"name": "Checkout"})
    store.create("work_phase", top.session_id, purpose="The payment page")
    child = store.start_subwork(
        top.session_id, "Check the licence of the fonts", {"kind": "file", "ref": "fonts.txt"}
    )
    _leave(
        store,
        _IDS[0],
        65,
        "Plan the checkout. What are the phases?",
        "Totals, payment, receipts.",
        "opus",
        2100,
        260,
    )
    _leave(
        store,
        _IDS[0],
        92,
        "Count money in whole cents.",
        "Done; `total()` is an int now.",
        "sonnet",
        2300,
        270,
    )
    _leave(store, _IDS[1], 300, "Move the card form out.", "It has a file of its own.", "sonnet", 1500, 330)
    _leave(store, _IDS[1], 372, "Does it still refuse old cards?", "It does, with a test.", "local", 900, 120)
    store.close_subwork(child.session_id, "The licence allows it")


def _leave(
    store: WorkStore,
    session_id: str,
    second: int,
    prompt: str,
    response: str,
    model: str,
    given: int,
    taken: int,
) -> None:
    price = _PRICED.get(model)
    crumb = create_breadcrumb(
        prompt=prompt,
        response=response,
        tools_called=[],
        files_modified=[],
        parent_session_id=None,
        depth_level=0,
        model_used=model,
        token_count={"input": given, "output": taken},
        cost=None if price is None else round((given * price[0] + taken * price[1]) / 1000, 6),
    )
    crumb.timestamp = f"{_BEGIN + timedelta(seconds=second):%Y%m%d_%H%M%S_%f}"
    store.write_breadcrumb(crumb, session_id)
