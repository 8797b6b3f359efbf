"""The orchestrator layout passes the shared suite."""

import json
from typing import Any

from sessionary.layouts.base import Capability
from sessionary.layouts.orchestrator.layout import FeatureLayout
from sessionary.testing.layout_suite import LayoutTests

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
        summary = self.layout(tmp_path, _os()).summary(self.refs(tmp_path)["one"])
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
    assert FeatureLayout.capabilities == {Capability.APPENDS}
