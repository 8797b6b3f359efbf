"""Every layout passes the shared suite; the matrix of what each can do is pinned here."""

import json
from pathlib import Path
from typing import Any

from sessionary.disk.fs import OS_FS
from sessionary.layouts.amplifier.layout import AmplifierLayout
from sessionary.layouts.base import Capability
from sessionary.layouts.maestro.layout import MaestroLayout
from sessionary.testing.layout_suite import LayoutTests, record
from tests.support.agent_files import require_tolerance


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

    def test_damage_hides_no_other_message(self, tmp_path: Path) -> None:
        self.put_session(tmp_path, "one", [record(n, "user" if n % 2 else "assistant") for n in range(1, 9)])
        ref, file = self.refs(tmp_path)["one"], self.conversation(tmp_path, "one")
        kept = {n - 1: f"message {n}" for n in range(1, 9)}
        require_tolerance(self.layout(tmp_path, OS_FS), ref, kept, file=file)


class TestMaestro(LayoutTests):
    """Each record is put there as a breadcrumb that says one thing, with the record as an unknown key."""

    def layout(self, home: Any, fs: Any) -> Any:
        return MaestroLayout(home, fs)

    def put_session(self, home: Any, session_id: Any, records: Any, parent: Any = None) -> None:
        folder = home / session_id if parent is None else home / parent / session_id
        (folder / "breadcrumbs" / "0").mkdir(parents=True)
        document = {
            "session_id": session_id,
            "session_type": "fix",
            "created": "2025-01-31T12:00:00",
            "modified": "2025-01-31T12:00:00",
            "parent_session_id": parent,
        }
        (folder / "session.json").write_text(json.dumps(document))
        for one in records:
            self._put(folder, one)

    def _put(self, folder: Any, record: Any) -> None:
        path = folder / "breadcrumbs" / "0" / f"20250131_1200{record['x-odd']:02}_000000.json"
        person = record["role"] == "user"
        crumb = {
            "timestamp": path.stem,
            "breadcrumb_id": f"id {record['x-odd']}",
            "prompt": record["content"] if person else "",
            "response": "" if person else record["content"],
            "tools_called": [],
            "files_modified": [],
            "parent_session_id": None,
            "depth_level": 0,
            "model_used": "opus",
            "token_count": {"input": 1, "output": 2},
            "cost": None,
            "error": None,
            "record": record,
        }
        path.write_text(json.dumps(crumb))

    def folder(self, home: Any, session_id: Any) -> Any:
        return next(home.rglob(session_id))

    def conversation(self, home: Any, session_id: Any) -> Any:
        return min(self.folder(home, session_id).glob("breadcrumbs/0/*.json"))

    def add(self, home: Any, session_id: Any, more: Any) -> None:
        self._put(self.folder(home, session_id), more)

    def part_names(self, home: Any, session_id: Any) -> Any:
        folder = self.folder(home, session_id)
        return {str(path.relative_to(folder)) for path in folder.rglob("*.json")}


def test_no_capability_vanishes_by_accident() -> None:
    matrix = {layout.name: layout.capabilities for layout in (AmplifierLayout, MaestroLayout)}
    assert matrix == {
        "amplifier": set(Capability),
        "work": {Capability.NESTS, Capability.RENAME},
    }
