"""The orchestrator layout passes the shared suite."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sessionary.layouts.base import Capability
from sessionary.layouts.orchestrator.layout import FeatureLayout
from sessionary.layouts.summary import summary_of
from sessionary.testing.cursors import Reader
from sessionary.testing.layout_suite import LayoutTests
from sessionary.transcript.typed import numbered
from tests.support.agent_files import require_tolerance

STATE = """version: "1.0"
feature_id: "{}"
current_state:
  active_task: null
  model_in_use: "opus"
  started_at: "2025-01-09T10:00:00Z"
  last_updated: "2025-01-09T15:30:45Z"
"""
PLAN = """feature:
  id: "{}"
  name: "A feature"
  description: ""
  created_at: "2025-01-09T10:00:00Z"
phases: []
"""


class TestFeatures(LayoutTests):
    def layout(self, home: Any, fs: Any) -> Any:
        return FeatureLayout(home, fs)

    def put_session(self, home: Any, session_id: Any, records: Any, parent: Any = None) -> None:
        folder = home / ".ai-session" / session_id
        folder.mkdir(parents=True)
        (folder / "history.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
        (folder / "state.yaml").write_text(STATE.format(session_id))
        (folder / "implementation-plan.yaml").write_text(PLAN.format(session_id))

    def conversation(self, home: Any, session_id: Any) -> Any:
        return home / ".ai-session" / session_id / "history.jsonl"

    def test_damage_hides_no_other_entry(self, tmp_path: Path) -> None:
        said = [{"role": "user", "content": f"message {n}"} for n in range(1, 9)]
        self.put_session(tmp_path, "one", said)
        ref, file = self.refs(tmp_path)["one"], self.conversation(tmp_path, "one")
        kept = {n - 1: f"message {n}" for n in range(1, 9)}
        require_tolerance(self.layout(tmp_path, _os()), ref, kept, file=file)

    def test_artifacts_are_parts(self, tmp_path: Any) -> None:
        """Section "Directory Layout", artifacts."""
        self.put_session(tmp_path, "one", [])
        made = tmp_path / ".ai-session" / "one" / "artifacts" / "src" / "a.py"
        made.parent.mkdir(parents=True)
        made.write_text("x")
        ref = self.refs(tmp_path)["one"]
        parts = {part.name: part.size for part in self.layout(tmp_path, _os()).parts(ref)}
        assert parts["artifacts/src/a.py"] == 1

    def test_a_summary_says_what_the_contract_says(self, tmp_path: Any) -> None:
        self.put_session(tmp_path, "one", [])
        summary = summary_of(self.layout(tmp_path, _os()), self.refs(tmp_path)["one"])
        assert (summary.title, summary.agent, summary.ref.project) == (
            "A feature",
            "orchestrator",
            tmp_path.name,
        )
        assert summary.created is not None
        assert summary.updated is not None
        assert summary.updated.isoformat() == "2025-01-09T15:30:45+00:00"


def _os() -> Any:
    from sessionary.disk.fs import OS_FS

    return OS_FS


def test_what_it_can_do() -> None:
    assert FeatureLayout.capabilities == {Capability.APPENDS, Capability.RENAME}


LINES = [
    b'{"timestamp":"2025-01-09T10:00:00Z","command":"plan","status":"success","duration_ms":5}\n',
    b'{"timestamp":"2025-01-09T10:00:00Z","command":"implement","phase":"red","task_id":"T1"}\n',
    b'{"timestamp":"2025-01-09T10:00:00Z","event":"session_start"}\n',
    b'{"timestamp":"2025-01-09T10:00:01Z","command":"test","status":"failure","error":"two\nlines"}\n',
    b'{"timestamp":"2025-01-09T10:00:02Z","command":"verify","duration_ms":900000000}\n',
    b'{"role":"user","content":"a word"}\n',
    b"{torn\n",
    b'{"command":"cut"',
]


@given(st.lists(st.lists(st.sampled_from(LINES), max_size=4), max_size=5))
def test_reading_in_pieces_is_reading_as_a_whole(pieces: list[list[bytes]]) -> None:
    with TemporaryDirectory() as home:
        suite = TestFeatures()
        suite.put_session(Path(home), "one", [])
        [ref] = FeatureLayout(Path(home)).discover()
        reader = Reader(FeatureLayout(Path(home)), ref)
        for piece in pieces:
            with open(suite.conversation(Path(home), "one"), "ab") as file:
                file.write(b"".join(piece))
            reader.go_on()


def test_phases_of_a_command_begin_no_turn(tmp_path: Path) -> None:
    suite = TestFeatures()
    suite.put_session(tmp_path, "one", [])
    suite.conversation(tmp_path, "one").write_bytes(b"".join(LINES[:6]))
    layout = FeatureLayout(tmp_path)
    [ref] = layout.discover()
    read = list(layout.read(ref))
    roles = [one.message.role for one in numbered(read)]
    assert roles == ["command", "phase", None, "command", "command", "user"]
    summary = summary_of(layout, ref)
    assert (summary.messages, summary.turns) == (6, 4)
    assert [problem.code for problem in summary.problems] == ["raw_newline", "nanoseconds"]
    assert "the first is entry 5" in summary.problems[1].message
