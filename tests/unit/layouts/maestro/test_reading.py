"""Work sessions as conversations: messages with their places, the usage that breadcrumbs state."""

from pathlib import Path

from sessionary.layouts.maestro.breadcrumbs import create_breadcrumb
from sessionary.layouts.maestro.layout import MaestroLayout
from sessionary.layouts.maestro.store import WorkStore
from sessionary.layouts.summary import summary_of
from sessionary.model import AGENT, PERSON, TOOL, Cursor, Message, Place, Reset, Usage


def post(root: Path, *, cost: float | None = 0.5, tokens: int = 100) -> tuple[MaestroLayout, Path]:
    store = WorkStore(root)
    session = store.create("fix").session_id
    calls = [{"tool": "bash", "args": {"command": "ls"}, "result": ["a"], "error": None}]
    count = {"input": tokens, "output": tokens // 5}
    crumb = create_breadcrumb("ask", "answer", calls, [], None, 0, "sonnet", count, cost=cost)
    return MaestroLayout(root), Path(store.write_breadcrumb(crumb, session))


def test_a_breadcrumb_is_a_question_its_calls_their_results_and_the_answer(tmp_path: Path) -> None:
    layout, path = post(tmp_path)
    (ref,) = layout.discover()
    messages = [item for item in layout.read(ref) if isinstance(item, Message)]
    assert [(one.role, one.origin, one.text) for one in messages] == [
        ("user", PERSON, "ask"),
        ("assistant", AGENT, ""),
        ("user", TOOL, ""),
        ("assistant", AGENT, "answer"),
    ]
    assert messages[1].calls[0].call_id == messages[2].results[0].call_id
    assert messages[2].results[0].text == '["a"]'
    assert {one.place for one in messages} == {Place(str(path), 1, 0)}


def test_the_usage_of_breadcrumbs_is_counted_by_model(tmp_path: Path) -> None:
    layout, _ = post(tmp_path)
    (ref,) = layout.discover()
    assert summary_of(layout, ref).usage_by_model() == {"sonnet": Usage(100, 20, cost=0.5)}


def test_a_breadcrumb_without_tokens_and_cost_states_no_usage(tmp_path: Path) -> None:
    layout, _ = post(tmp_path, cost=None, tokens=0)
    (ref,) = layout.discover()
    assert summary_of(layout, ref).usage == []


def test_a_session_is_read_from_its_start_whatever_the_cursor(tmp_path: Path) -> None:
    layout, _ = post(tmp_path)
    (ref,) = layout.discover()
    first, *rest = layout.read(ref, Cursor(b"x"))
    assert isinstance(first, Reset)
    assert rest == list(layout.read(ref))


def test_a_session_says_where_in_which_branch_it_was_started(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/topic\n")
    layout, _ = post(tmp_path / "docs" / "sessions")
    (ref,) = layout.discover()
    summary = summary_of(layout, ref)
    assert (summary.cwd, summary.branch) == (str(tmp_path), "topic")
