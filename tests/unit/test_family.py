"""Sessions below those that they come from, whatever their files say."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from sessionary.model import SessionRef, Summary
from sessionary.workspace.family import Kin, below_parents, descent, families

START = datetime(2026, 3, 1, tzinfo=UTC)


def summary(name: str, parent: str | None = None, *, age: int = 0, project: str = "-p") -> Summary:
    ref = SessionRef("amplifier", name, f"/{project}/{name}", project)
    updated = START - timedelta(hours=age)
    return Summary(ref, "amplifier", None, parent, 0, 0, None, None, updated, 0, "ok", nested="_" in name)


def drawn(tops: list[Kin]) -> list[str]:
    return ["  " * len(levels) + one.ref.session_id for top in tops for one, levels in descent(top)]


def test_children_stand_below_their_parents_the_oldest_first() -> None:
    tops = families(
        [
            summary("a", age=9),
            summary("b", age=8),
            summary("a_x", "a", age=1),
            summary("f", "a", age=5),
            summary("y_y", "a_x"),
        ],
    )
    assert drawn(tops) == ["a", "  f", "  a_x", "    y_y", "b"]
    assert [(one.ref.session_id, one.relation) for one, _ in descent(tops[0])] == [
        ("a", "root"),
        ("f", "fork"),
        ("a_x", "sub"),
        ("y_y", "sub"),
    ]


def test_levels_tell_where_more_follows() -> None:
    tops = families([summary("a"), summary("b", "a", age=2), summary("c", "b"), summary("d", "a", age=1)])
    assert [levels for _, levels in descent(tops[0])] == [[], [True], [True, False], [False]]


def test_a_parent_that_is_gone() -> None:
    (top,) = families([summary("a", "gone")])
    assert (top.orphan, top.loop) == (True, False)


def test_sessions_that_come_from_each_other() -> None:
    (top,) = families([summary("a", "b", age=1), summary("b", "a"), summary("c", "a")])
    assert drawn([top]) == ["a", "  b", "  c"]
    assert [one.loop for one, _ in descent(top)] == [True, False, False]


def test_a_session_that_comes_from_itself() -> None:
    (top,) = families([summary("a", "a")])
    assert (top.loop, top.children) == (True, [])


def test_of_two_parents_of_one_id_the_one_in_the_same_project() -> None:
    tops = families([summary("a", project="-p"), summary("a", project="-q"), summary("f", "a", project="-q")])
    assert {top.ref.project: len(top.children) for top in tops} == {"-p": 0, "-q": 1}


def test_only_sub_agents_stand_below_their_parents_in_a_list_and_in_its_order() -> None:
    some = [
        summary("f", "a"),
        summary("x_gone", "gone"),
        summary("a_new", "a"),
        summary("a", project="-q"),
        summary("a"),
        summary("a_old", "a"),
        summary("new_in", "a_new"),
    ]
    shown = [f"{'  ' * depth}{one.ref.project}/{one.ref.session_id}" for one, depth in below_parents(some)]
    assert shown == [
        "-p/f",
        "-q/a",
        "-p/a",
        "  -p/a_new",
        "    -p/new_in",
        "  -p/a_old",
        "-p/x_gone",
    ]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "c", "d_", "e_", "f_"]),
            st.none() | st.sampled_from(["a", "b", "d_", "e_", "g"]),
        ),
        max_size=9,
    )
)
def test_every_session_is_shown_once(pairs: list[tuple[str, str | None]]) -> None:
    summaries = [summary(name, parent, project=f"-{at}") for at, (name, parent) in enumerate(pairs)]
    shown = [one.ref.locator for top in families(summaries) for one, _ in descent(top)]
    assert sorted(shown) == sorted(one.ref.locator for one in summaries)
    assert sorted(one.ref.locator for one, _ in below_parents(summaries)) == sorted(shown)
