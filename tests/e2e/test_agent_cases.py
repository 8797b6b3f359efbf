"""The public reports of broken and awkward sessions: each comes out of the commands as its CASE.json says."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sessionary.cli import main
from sessionary.codec import read_lines
from sessionary.codec.problems import CODES
from sessionary.model import Severity
from tests.lanes import shared_folder

CASES = shared_folder() / "cases"
KEPT_IN_WORDS = {
    "A09": [*range(8), *range(17, 60)],  # records 8 to 16 touch the page of zeros
    "A18": [],
    "A28": [],
    "A31": [],
}
BAD_IN_WORDS = {"A09": 3, "A14": 1, "A15": 1, "A18": 1, "A24": 5, "A25": 1, "A28": 1, "A31": 1}


def cases() -> list[str]:
    if not CASES.is_dir():
        return []
    folders = sorted(path.name for path in CASES.iterdir() if (path / "CASE.json").is_file())
    return [name for name in folders if not name.endswith("-plain") or name.startswith("C")]


class Told(NamedTuple):
    """What the commands say of the sessions of a case."""

    expect: dict[str, Any]
    rows: list[dict[str, Any]]
    nested: list[dict[str, Any]]
    shown: dict[str, list[dict[str, Any]]]
    outside: dict[str, list[dict[str, Any]]]
    problems: list[dict[str, Any]]
    stats: dict[str, Any]
    run: Callable[..., tuple[int, str, str]]

    def codes(self) -> list[str]:
        return [one["code"] for one in self.problems]

    def usage(self) -> list[dict[str, int]]:
        """The tokens by model."""
        return list(self.stats["usage"]["models"])

    def texts(self) -> list[str]:
        return [one["text"] for messages in self.shown.values() for one in messages]


@pytest.fixture
def reported(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Told:
    """List, show, check and stats over the files of a case, which lie as they would in a home directory."""
    folder, home = CASES / request.param, tmp_path / "home"
    shutil.copytree(folder, home)
    for path in (home, *home.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    if (home / "session.jsonl").is_file():
        place = home / ".claude" / "projects" / "-home-u-proj"
        place.mkdir(parents=True)
        (home / "session.jsonl").rename(place / "session.jsonl")
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(home))
    monkeypatch.chdir(home / "repo" if (home / "repo").is_dir() else home)

    def run(*words: str) -> tuple[int, str, str]:
        code = main(list(words))
        said = capsys.readouterr()
        return code, said.out, said.err

    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    rows = json.loads(run("list", "--all", "--json")[1])
    top = json.loads(run("stats", "--json")[1])
    shown: dict[str, list[dict[str, Any]]] = {}
    outside: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        code, out, err = run("show", row["id"], "--branches", "--json")
        assert code in (0, 13), err
        messages = json.loads(out)["messages"] if code == 0 else []
        outside[row["id"]] = [one for one in messages if one.get("outside")]
        shown[row["id"]] = [one for one in messages if not one.get("outside")]
    problems = json.loads(run("check", "--json")[1])["problems"]
    assert {path: path.read_bytes() for path in before} == before
    nested = [row for row in rows if row["parent"] and row["id"].startswith("agent-")]
    assert top["relations"]["sub"] == len(nested)
    expect = json.loads((folder / "CASE.json").read_text("utf-8"))["expect"]
    return Told(
        expect, [one for one in rows if one not in nested], nested, shown, outside, problems, top, run
    )


def numbers(texts: Iterator[str]) -> list[int]:
    found = (re.match(r"R(\d+)\b", text) for text in texts)
    return sorted({int(match[1]) for match in found if match})


@pytest.mark.lane("cases")
@pytest.mark.parametrize("reported", [one for one in cases() if one.startswith(("A", "T"))], indirect=True)
def test_damaged_files(reported: Told, request: pytest.FixtureRequest) -> None:
    name = request.node.callspec.id[:3]
    keep = KEPT_IN_WORDS.get(name, reported.expect["keep"])
    wanted = range(keep) if isinstance(keep, int) else sorted({*keep, *reported.expect.get("salvage", ())})
    assert numbers(iter(reported.texts())) == list(wanted)
    damaged = [
        one
        for one in reported.problems
        if one["code"] in CODES and CODES[one["code"]].severity > Severity.note
    ]
    bad = BAD_IN_WORDS.get(name, reported.expect.get("bad"))
    if bad is not None:
        assert len(damaged) == bad
    assert all(one["line"] is not None or one["code"] == "not_text" for one in damaged), "each has its place"
    assert reported.codes().count("duplicate_record") == reported.expect.get("dup_exact", 0)
    assert reported.codes().count("changed_duplicate") == reported.expect.get("dup_changed", 0)
    assert len(reported.rows) == 1, "it is in the list, whatever is wrong with it"


@pytest.mark.lane("cases")
@pytest.mark.parametrize("reported", [one for one in cases() if one.startswith("A27")], indirect=True)
def test_nothing_reaches_a_terminal_raw(reported: Told) -> None:
    for words in (("show", "session"), ("list", "--all"), ("search", "R5"), ("check", "session")):
        code, out, err = reported.run(*words)
        assert code in (0, 13)
        assert not set(out + err) & {"\x1b", "\x07", "\u202e"}


def records_in(reported: Told, row: dict[str, Any]) -> int:
    """The number of whole records in the file of a session."""
    return len(read_lines(Path(row["path"]).read_bytes()).values)


def ids_on_the_line(reported: Told) -> list[str]:
    """The ids of the records that hold the messages."""
    (row,) = reported.rows
    lines = Path(row["path"]).read_text("utf-8").splitlines()
    found = [json.loads(lines[one["line"] - 1]) for one in reported.shown[row["id"]]]
    return [one.get("id") or one["$set"]["messages"][0]["id"] for one in found]


def said(reported: Told, *, outside: bool = False) -> list[str]:
    """The texts of the user."""
    found = reported.outside if outside else reported.shown
    return [
        one["text"]
        for messages in found.values()
        for one in messages
        if one["role"] == "user" and one["text"]
    ]


def is_reported(reported: Told, code: str) -> None:
    """The fault is reported with its place and a remedy, and `open` says that the session may be refused."""
    (problem,) = [one for one in reported.problems if one["code"] == code]
    assert problem["line"] is not None
    assert "--out DIR" in problem["repair"]
    exit_code, out, _ = reported.run("open", problem["session"], "--json")
    assert code in [one["code"] for one in json.loads(out)["problems"]]
    assert exit_code == (0 if problem["severity"] == "note" else 13)


def of_c01(reported: Told) -> None:
    assert [one["messages"] for one in reported.rows] == [reported.expect["messages"]]
    assert sum(one["output"] for one in reported.usage()) == reported.expect["tokens_out"]


def of_c03(reported: Told) -> None:
    assert len(reported.rows) == reported.expect["sessions"]


def of_c04(reported: Told) -> None:
    assert (said(reported), said(reported, outside=True)) == (
        reported.expect["live"],
        reported.expect["removed"],
    )


def of_c05(reported: Told) -> None:
    assert len(reported.rows) == reported.expect["sessions"]
    assert {"bad_zstd", "second_copy"} <= set(reported.codes())


def of_d01(reported: Told) -> None:
    rows = sorted(reported.rows, key=lambda one: str(one["created"]))
    assert (len(rows), [one["turns"] for one in rows]) == (
        reported.expect["sessions"],
        reported.expect["user_turns"],
    )


def of_g01(reported: Told) -> None:
    assert ids_on_the_line(reported) == reported.expect["live"]


def of_g02(reported: Told) -> None:
    assert [one["text"] for messages in reported.outside.values() for one in messages] == ["a", "b"]
    assert reported.texts() == ["c"]


def of_p01(reported: Told) -> None:
    (row,) = reported.rows
    assert (row["title"], row["cwd"], row["health"]) == ("hi", "/home/u/proj", "lost_data")
    assert {"nul_run", "stale_lock", "bad_document"} <= set(reported.codes())
    assert records_in(reported, row) == reported.expect["keep"]


def of_s01(reported: Told) -> None:
    is_reported(reported, "orphaned_call")


def of_s02(reported: Told) -> None:
    is_reported(reported, "orphaned_result")


def of_s03(reported: Told) -> None:
    is_reported(reported, "orphaned_call")
    (problem,) = reported.problems
    assert all(call in problem["message"] for call in reported.expect["unanswered"])


def of_s04(reported: Told) -> None:
    is_reported(reported, "repeated_call")


def of_s06(reported: Told) -> None:
    is_reported(reported, "empty_thinking")


def of_s08(reported: Told) -> None:
    assert len(reported.texts()) == reported.expect["keep"]
    assert "self_parent" in reported.codes()


def of_s10(reported: Told) -> None:
    assert len(reported.texts()) == reported.expect["keep"], "history before each boundary is on the line"
    assert reported.texts()[0] == "go"


def of_s13(reported: Told) -> None:
    assert (len(reported.rows), len(reported.nested)) == (
        reported.expect["sessions"],
        reported.expect["subagents"],
    )
    assert {one["parent"] for one in reported.nested} == {reported.rows[0]["id"]}
    assert reported.stats["relations"] == {"root": 1, "fork": 0, "sub": 13}
    tokens = sum(
        one["input"] + one["output"] + one["cache_read"] + one["cache_write"] for one in reported.usage()
    )
    assert tokens == sum(one["tokens"] for one in (*reported.rows, *reported.nested)) == 14 * 115
    assert "orphan_meta" in reported.codes()


def of_title(reported: Told) -> None:
    assert [one["title"] for one in reported.rows] == [reported.expect["title"]]


def of_s17(reported: Told) -> None:
    assert len(reported.rows) == reported.expect["sessions"]
    assert reported.codes() == ["id_clash"]


def of_s19(reported: Told) -> None:
    assert len({one["cwd"] for one in reported.rows}) == reported.expect["projects"]
    assert len(reported.stats["usage"]["projects"]) in (0, reported.expect["projects"])
    assert reported.codes().count("shared_folder") == 2


def of_s20(reported: Told) -> None:
    (row,) = reported.rows
    assert row["cwd"] == "C:\\Users\\Ann\\proj"
    (note,) = [one for one in reported.problems if one["code"] == "other_folders"]
    assert "/mnt/c/Users/Ann/proj" in note["message"]
    assert "/home/ann/new/.worktrees/x" in note["message"]


def of_s22(reported: Told) -> None:
    assert len(reported.rows) == reported.expect["sessions"]
    agents = json.loads(reported.run("doctor", "--json")[1])["agents"]
    (found,) = [one for one in agents if one["kind"] == "claude_code"]
    assert (found["sessions"], len(found["leftovers"])) == (1, 2)


def of_s23(reported: Told) -> None:
    (row,) = reported.rows
    assert any("[image]" in one["text"] for m in reported.shown[row["id"]] for one in m["results"])
    image = re.search(r'"data": ?"([^"]{200})', Path(row["path"]).read_text("utf-8"))
    assert image is not None
    found = [
        json.loads(reported.run("search", "--json", words)[1])["hits"]
        for words in (image[1][100:150], "I see")
    ]
    assert list(map(len, found)) == [0, 1]


def of_s25(reported: Told) -> None:
    (row,) = reported.rows
    assert (row["messages"], "unknown_shape" in reported.codes()) == (reported.expect["keep"], True)


def of_s26(reported: Told) -> None:
    (note,) = [one for one in reported.problems if one["code"] == "unknown_shape"]
    assert note["message"].startswith(f"{reported.expect['unknown']} records")
    (row,) = reported.rows
    assert row["messages"] == reported.expect["unknown"] + reported.expect["keep"]


EXPECTED: dict[str, Callable[[Told], None]] = {
    "C01": of_c01, "C03": of_c03, "C04": of_c04, "C05": of_c05, "D01": of_d01, "G01": of_g01, "G02": of_g02,
    "G04": of_g01, "P01": of_p01, "S01": of_s01, "S02": of_s02, "S03": of_s03, "S04": of_s04, "S06": of_s06,
    "S08": of_s08, "S10": of_s10, "S13": of_s13, "S14": of_title, "S15": of_title, "S16": of_title, "S17": of_s17,
    "S19": of_s19, "S20": of_s20, "S22": of_s22, "S23": of_s23, "S25": of_s25, "S26": of_s26,
}  # fmt: skip


@pytest.mark.lane("cases")
@pytest.mark.parametrize(
    "reported", [one for one in cases() if not one.startswith(("A", "T"))], indirect=True
)
def test_sessions_of_agents(reported: Told, request: pytest.FixtureRequest) -> None:
    EXPECTED[request.node.callspec.id[:3]](reported)


@pytest.mark.lane("cases")
def test_every_case_has_an_expectation() -> None:
    names = {name[:3] for name in cases()}
    assert len(names) >= 50
    assert {one for one in names if not one.startswith(("A", "T"))} == set(EXPECTED)
