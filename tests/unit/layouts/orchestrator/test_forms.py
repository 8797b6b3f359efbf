"""A state that was changed is what the YAML writer gives, and keeps comments."""

from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sessionary.codec.yaml_read import load_yaml
from sessionary.codec.yaml_write import dump_yaml
from sessionary.layouts.orchestrator import index, statefile
from sessionary.layouts.orchestrator.rules import MODELS

NOON = datetime(2025, 1, 9, 12, tzinfo=UTC)
words = st.text(max_size=12) | st.sampled_from(["", "null", "no", 'a"b', "a\\b", "a\nb", "é", "#", "T1", "'"])
readable = words.filter(lambda word: not any("\ud800" <= char <= "\udfff" for char in word))


@given(task=st.none() | readable, model=st.sampled_from(MODELS), named=readable)
def test_a_state_is_written_as_the_yaml_writer_does(task: Any, model: str, named: str) -> None:
    data = statefile.new_state(named, "sonnet", None, NOON, NOON)
    found = statefile.parse_state(data, "state.yaml", named)
    changed = statefile.changed_state(found, {"active_task": task, "model_in_use": model})
    current = {**found.document["current_state"], "active_task": task, "model_in_use": model}
    document = {**found.document, "current_state": current}
    assert changed == dump_yaml(document)
    again = statefile.parse_state(changed, "state.yaml", named)
    assert again.document == load_yaml(changed) == document
    assert (again.state.active_task, again.state.model_in_use) == (task, model)


@given(task=st.none() | readable, comment=st.sampled_from([" # why", "  # a: b"]))
def test_a_comment_is_kept(task: Any, comment: str) -> None:
    data = statefile.new_state("x", "sonnet", "T1", NOON, NOON).replace(b'"T1"', b"'T1'" + comment.encode())
    found = statefile.parse_state(data, "state.yaml", "x")
    changed = statefile.changed_state(found, {"active_task": task})
    assert load_yaml(changed)["current_state"] == {**found.document["current_state"], "active_task": task}
    assert comment.strip().encode() in changed


@given(
    st.lists(
        st.tuples(readable, readable, readable, st.sampled_from(["active", "paused", "odd"])), max_size=4
    )
)
def test_a_list_as_we_write_it_is_read_as_any_other(rows: Any) -> None:
    keys = ("feature_id", "started_at", "last_active", "status")
    data = dump_yaml({"active_features": [dict(zip(keys, row, strict=True)) for row in rows]})
    found, other = index.parse_index(data, "i"), index.parse_index(data + b"# a comment\n", "i")
    assert (found.rows, found.document) == (other.rows, other.document)
    assert [one._replace(line=None) for one in found.problems] == [
        one._replace(line=None) for one in other.problems
    ]
    assert (found.error is None) == (other.error is None)
