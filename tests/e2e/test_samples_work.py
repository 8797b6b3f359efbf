"""Work sessions that the original wrote: our commands print what it printed, where that was right."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sessionary.cli.maestro import main
from tests.lanes import shared_folder

pytestmark = pytest.mark.lane("samples")

SAMPLES = shared_folder() / "samples" / "maestro"
PRINTED = SAMPLES / "original_output"
SIGNS = {"🔄": "▶", "⏸️": "·", "✅": "✓", "⏹️": "×", "❌": "✗"}
# What the original says of things it does not do, or does not know. Its rules are as wide as its author made them.
NOT_SAID = re.compile(r"[─═│-]*|📊.*|.*\(To be implemented.*|.*\(Details available with.*")

Ask = Callable[..., str]


def expected() -> dict[str, dict[str, Any]]:
    file = SAMPLES / "EXPECTED.json"
    return json.loads(file.read_text("utf-8"))["sessions"] if file.exists() else {}


# Where the original sees every breadcrumb, it counts them right; it drops those with a key that it does not know.
SEEN_WHOLE = [
    key
    for key, facts in expected().items()
    if not facts["crumbs_with_unknown_keys"] and not facts["bad_crumb_files"]
]
ANY = list(expected())


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ask:
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("COLUMNS", raising=False)

    def ask(*words: str) -> str:
        code = main(["wsession", *words, "--root", str(SAMPLES / "docs" / "sessions")])
        assert code in (0, 13)  # where one of its breadcrumbs is damaged; the original does not say so
        return capsys.readouterr().out

    return ask


def lines_of(text: str) -> list[str]:
    """The lines without what is decoration: rules, signs, how far things are set in, the dots behind a text."""
    for theirs, ours in SIGNS.items():
        text = text.replace(theirs, ours)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return [
        re.sub(r"(\.\.\.|…)$", "", line) if line.startswith(("Prompt: ", "Response: ")) else line
        for line in lines
        if not NOT_SAID.fullmatch(line)
    ]


def printed(name: str) -> list[str]:
    return lines_of((PRINTED / f"{name}.txt").read_text("utf-8"))


def missing(theirs: list[str], ours: list[str]) -> list[str]:
    """The lines of theirs that ours does not have, in their order. A line of ours may say more at its end."""
    rest = iter(ours)
    return [line for line in theirs if not any(each.startswith(line) for each in rest)]


def id_of(key: str) -> str:
    return str(expected()[key]["id"])


def entries(lines: list[str]) -> Iterator[tuple[str, ...]]:
    """What a list or a timeline says of each breadcrumb, without the number."""
    entry: list[str] = []
    for line in lines:
        if re.match(r"\d+\. \[", line):
            if entry:
                yield tuple(entry)
            entry = [re.sub(r"^\d+\. | \+.*$", "", line)]
        elif entry and not line.startswith("Kind: "):
            entry.append(line)
    if entry:
        yield tuple(entry)


def test_there_is_something_to_compare() -> None:
    assert len(ANY) == 8
    assert len(SEEN_WHOLE) == 6


@pytest.mark.parametrize("key", SEEN_WHOLE)
@pytest.mark.parametrize("command", ["timeline", "stats", "show"])
def test_a_session_is_reported_as_the_original_does(ask: Ask, command: str, key: str) -> None:
    theirs = printed(f"{command}_{key}")
    assert theirs
    assert missing(theirs, lines_of(ask(command, id_of(key)))) == []


@pytest.mark.parametrize("key", ANY)
def test_the_timeline_has_every_event_of_the_original(ask: Ask, key: str) -> None:
    theirs = list(entries(printed(f"timeline_{key}")))
    ours = list(entries(lines_of(ask("timeline", id_of(key)))))
    assert [entry for entry in theirs if entry not in ours] == []
    assert len(ours) == expected()[key]["crumbs_readable"]


def test_breadcrumbs_are_listed_as_by_the_original(ask: Ask) -> None:
    for flags, name in (
        (["--limit", "5"], "breadcrumbs_R"),  # the sixth is one that the original drops
        (["--limit", "2"], "breadcrumbs_R_limit_2"),
        (["--depth", "1"], "breadcrumbs_R_depth_1"),
    ):
        ours = lines_of(ask("breadcrumbs", id_of("R"), *flags))
        assert [line for line in ours if not line.startswith("Kind: ")] == printed(name)


@pytest.mark.parametrize("name", ["tree", "tree_depth_0", "tree_show_breadcrumbs"])
def test_the_tree_of_the_original_is_within_ours(ask: Ask, name: str) -> None:
    flags = {"tree_depth_0": ["--depth", "0"], "tree_show_breadcrumbs": ["--show-breadcrumbs"]}.get(name, [])
    seen = {id_of(key) for key in SEEN_WHOLE}
    theirs = [
        line for line in printed(name) if "breadcrumbs" not in line or line.partition(":")[0].strip() in seen
    ]
    ours = lines_of(ask("tree", *flags))
    assert len(theirs) >= 3
    assert missing(theirs, ours) == []
    assert any(id_of("O") in line and "is missing" in line for line in ours)  # the original loses the orphan


OLDEST_FIRST = ["--sort-by", "created", "--reverse"]


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("list", OLDEST_FIRST),
        ("list_status_paused", [*OLDEST_FIRST, "--status", "paused"]),
        ("list_sort_modified_reverse", ["--sort-by", "modified"]),
        ("list_since", [*OLDEST_FIRST, "--since", "2026-01-12T09:10:00"]),
    ],
)
def test_a_list_has_the_rows_of_the_original(ask: Ask, name: str, flags: list[str]) -> None:
    """The original lists the oldest session first, unless `--reverse` is given; all our lists the newest."""
    text = (PRINTED / f"{name}.txt").read_text("utf-8")
    theirs = re.findall(r"^│ (\S{12}) +│ (\w+)", text, re.MULTILINE)
    ours = [tuple(line.split()[:2]) for line in ask("list", *flags).splitlines()[1:]]
    assert theirs
    assert ours == theirs


def test_figures_are_those_of_all_readable_breadcrumbs(ask: Ask) -> None:
    for key, facts in expected().items():
        stats = json.loads(ask("stats", id_of(key), "--json"))
        assert stats["total_breadcrumbs"] == facts["crumbs_readable"], key
        assert stats["total_tokens_input"] == facts["tokens_input"], key
        assert stats["total_tokens_output"] == facts["tokens_output"], key
        assert stats["estimated_cost"] == pytest.approx(facts["cost_sum"]), key
        assert stats["breadcrumbs_without_cost"] == facts["crumbs_without_cost"], key
        assert stats["tools_called"] == facts["tools_called"], key
        assert stats["files_modified"] == facts["files_modified"], key
    assert json.loads(ask("stats", "--json"))["total_breadcrumbs"] == 17


def test_an_export_holds_what_that_of_the_original_holds(ask: Ask, tmp_path: Path) -> None:
    ask("show", id_of("R"), "--export-json", str(tmp_path / "r.json"), "--export-md", str(tmp_path / "r.md"))
    theirs = json.loads((PRINTED / "export_R.json").read_text("utf-8"))
    ours = json.loads((tmp_path / "r.json").read_text("utf-8"))
    crumbs, children, statistics = (
        theirs.pop(key) for key in ("breadcrumbs", "child_sessions", "statistics")
    )
    assert {key: ours[key] for key in theirs} == theirs
    assert ours["breadcrumbs"][: len(crumbs)] == crumbs
    assert [child["session_id"] for child in ours["child_sessions"]] == [
        child["session_id"] for child in children
    ]
    assert set(statistics) <= set(ours["statistics"])
    report = lines_of((tmp_path / "r.md").read_text("utf-8"))
    wanted = lines_of((PRINTED / "export_R.md").read_text("utf-8"))
    of_all = ("- **Total", "- **Estimated", "- **Duration (seconds)")
    plain = [line.removesuffix("...") for line in wanted if not line.startswith(of_all)]
    assert missing(plain, report) == []


def test_the_latest_session_and_one_by_its_beginning(ask: Ask) -> None:
    assert missing(printed("show_latest"), lines_of(ask("show", "latest"))) == []
    assert json.loads(ask("show", id_of("R")[:8], "--json"))["session_id"] == id_of("R")
