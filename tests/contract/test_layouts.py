"""Every layout passes the shared suite; the matrix of what each can do is pinned here."""

import json
from typing import Any

from sessionary.layouts.amplifier.layout import AmplifierLayout
from sessionary.layouts.base import Capability
from sessionary.testing.layout_suite import LayoutTests


class TestAmplifier(LayoutTests):
    def layout(self, home: Any, fs: Any) -> Any:
        return AmplifierLayout(home, fs)

    def put_session(self, home: Any, session_id: Any, records: Any, parent: Any = None) -> None:
        folder = home / "projects" / "-p" / "sessions" / session_id
        folder.mkdir(parents=True)
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (folder / "transcript.jsonl").write_text(lines)
        metadata = {"session_id": session_id, "created": "2025-01-31T12:00:00Z", "bundle": "b"}
        if parent:
            metadata["parent_id"] = parent
        (folder / "metadata.json").write_text(json.dumps(metadata))
        (folder / "events.jsonl").write_text('{"ts": "t", "event": "x"}\n')

    def conversation(self, home: Any, session_id: Any) -> Any:
        return home / "projects" / "-p" / "sessions" / session_id / "transcript.jsonl"


def test_no_capability_vanishes_by_accident() -> None:
    matrix = {AmplifierLayout.name: AmplifierLayout.capabilities}
    assert matrix == {"amplifier": {Capability.APPENDS, Capability.NESTS, Capability.BACKS_UP}}
