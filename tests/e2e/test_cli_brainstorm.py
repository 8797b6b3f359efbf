"""`sessionary brainstorm`: every command, its JSON, its exit codes, its prompts, and what it refuses."""

import json
import re
import shlex
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from sessionary import BrainstormStore
from sessionary.cli import main
from sessionary.cli.groups import brainstorm_command
from sessionary.cli.text import cells
from tests.e2e.driving import Result, Run, Terminal, documented, terminal_for

LONG_AGO = datetime(2026, 1, 9, 10, 30, tzinfo=UTC)
HOSTILE = "R\x1b[2J\x1b]0;t\x07\x9b31m\u202eabc"


@pytest.fixture
def store(tmp_path: Path) -> BrainstormStore:
    return BrainstormStore(tmp_path)


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(command: str, *arguments: str) -> Result:
        code = main(["brainstorm", command, "--root", str(tmp_path), *arguments])
        return Result(code, *capsys.readouterr())

    return run


@pytest.fixture
def talk(store: BrainstormStore) -> BrainstormStore:
    """Three iterations: 25, 52, and 68 in transition."""
    store.create("feature-auth", questions=["Which sign-in?"], now=LONG_AGO)
    store.answer("feature-auth", ["OAuth2"], now=LONG_AGO)
    questions = ["Quel mecanisme de revocation?", "Comment gerer le multi-device?"]
    store.continue_("feature-auth", questions, ems=52, now=LONG_AGO)
    store.answer("feature-auth", ["a list"], now=LONG_AGO)
    store.continue_("feature-auth", ["Rate limits?"], ems=68, phase="transition", now=LONG_AGO)
    return store


def files(folder: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(folder).glob("*.yaml*")}


def on_disk(store: BrainstormStore, slug: str) -> dict[str, Any]:
    """The session as a stranger reads it."""
    session: dict[str, Any] = yaml.safe_load(Path(store.path(slug)).read_bytes())["session"]
    return session


# -- the way of a session


def test_start_begins_a_session_and_says_where_it_is(run: Run, store: BrainstormStore) -> None:
    """Sections "Overview", "Save Session", "Storage Rules"."""
    done = run("start", "feature-auth", "-q", "Who?", "--ems", "30", "--persona", "sparring")
    assert done.code == 0
    assert done.out == f"Session saved: {store.path('feature-auth')}\n"
    found = store.load("feature-auth")
    assert (found.ems, found.persona, found.questions) == (30, "sparring", ["Who?"])


def test_the_path_is_short_where_the_person_is(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = run("start", "a", "--lang", "fr").out
    assert said == "Session sauvegardee: .project-memory/brainstorm-sessions/a.yaml\n"


def test_answers_and_the_next_iteration_are_stored(run: Run, store: BrainstormStore) -> None:
    """Section "History", questions and answers of each iteration."""
    run("start", "a", "-q", "Who?")
    assert run("answer", "a", "devs", "--ems", "38", "--minutes", "4").code == 0
    done = run("continue", "a", "-q", "How long?", "--json")
    assert done.json["iteration"] == {"from": 1, "to": 2}
    assert done.json["restored"] is False
    first, second = store.load("a").history
    assert (first["responses"], first["ems"], first["duration"]) == (["devs"], 38, 4)
    assert second["questions"] == ["How long?"]


def test_persona_mode_and_phase_can_be_set_alone(run: Run, talk: BrainstormStore) -> None:
    """Section "Schema v1.2", persona, mode and phase can be set."""
    assert run("update", "feature-auth", "--persona", "sparring").out.startswith("Session saved: ")
    assert on_disk(talk, "feature-auth")["persona"] == "sparring"
    assert run("update", "feature-auth", "--mode", "party", "--lang", "fr").out.startswith(
        "Session sauvegardee: "
    )
    session = on_disk(talk, "feature-auth")
    assert (session["mode"], session["party_active"], session["iteration"]) == ("party", True, 3)
    reported = run("update", "feature-auth", "--phase", "convergent", "--ems", "71", "--json").json
    assert (reported["phase"], reported["ems"], reported["persona"], reported["mode"]) == (
        "convergent",
        71,
        "sparring",
        "party",
    )
    assert run("update", "feature-auth", "--summary", "kept=OAuth2", "--summary", "open=x=y").code == 0
    assert on_disk(talk, "feature-auth")["progressive_state"]["transition_summary"] == {
        "kept": "OAuth2",
        "open": "x=y",
    }
    assert run("update", "feature-auth").code == 2
    talk.back("feature-auth")
    before = files(talk.folder)
    assert run("update", "feature-auth", "--ems", "60").code == 12
    assert files(talk.folder) == before


def test_an_answer_and_the_next_iteration_can_bring_persona_and_mode(run: Run, talk: BrainstormStore) -> None:
    """Section "Schema v1.2", persona, mode and phase can be set."""
    assert run("answer", "feature-auth", "yes", "--persona", "pragmatique", "--mode", "panel").code == 0
    session = on_disk(talk, "feature-auth")
    assert (session["persona"], session["mode"], session["panel_active"]) == ("pragmatique", "panel", True)
    assert run("back", "feature-auth").code == 0
    assert run("continue", "feature-auth", "--persona", "sparring", "--mode", "standard").code == 0
    session = on_disk(talk, "feature-auth")
    assert (session["persona"], session["mode"], session["iteration"]) == ("sparring", "standard", 3)
    words = ("-q", "And now?", "--persona", "architecte", "--phase", "convergent")
    assert run("continue", "feature-auth", *words).code == 0
    session = on_disk(talk, "feature-auth")
    assert (session["persona"], session["phase"], session["iteration"]) == ("architecte", "convergent", 4)


@pytest.mark.parametrize("option", ["--persona", "--mode", "--phase"])
@pytest.mark.parametrize("command", ["update", "answer", "continue", "start"])
def test_a_word_outside_the_closed_lists_is_refused(
    run: Run, talk: BrainstormStore, command: str, option: str
) -> None:
    """Section "Schema v1.2", enums are closed for calls."""
    before = files(talk.folder)
    result = run(command, "feature-auth", option, "socrates")
    assert (result.code, result.out) == (2, "")
    assert "'socrates' is not one of" in result.err
    assert files(talk.folder) == before


def test_back_prints_the_jump_summary_of_the_format(run: Run, talk: BrainstormStore) -> None:
    """Section "Back Command", 5: the jump summary."""
    assert talk.load("feature-auth").iteration == 3
    done = run("back", "feature-auth", "--lang", "fr")
    assert done.out == (
        "-------------------------------------------------------\n"
        "Retour de 1 iteration\n"
        "   Iteration: 3 → 2\n"
        "   EMS: 68/100 → 52/100 (-16)\n"
        "   Phase: transition → divergent\n"
        "\n"
        "   Questions restaurees (iteration 2):\n"
        "   - Quel mecanisme de revocation?\n"
        "   - Comment gerer le multi-device?\n"
        "-------------------------------------------------------\n"
    )


def test_back_then_continue_is_where_one_was(run: Run, talk: BrainstormStore) -> None:
    """Section "Back Command", history is preserved, continue goes forward."""
    before = talk.load("feature-auth").session
    run("back", "feature-auth", "2")
    for _ in range(2):
        done = run("continue", "feature-auth")
        assert done.out.splitlines()[1] == "Forward 1 iteration"
    after = talk.load("feature-auth").session
    assert {**after, "updated": None} == {**before, "updated": None}


def test_an_answer_after_a_step_back_loses_no_other(run: Run, talk: BrainstormStore) -> None:
    run("back", "feature-auth")
    run("answer", "feature-auth", "another")
    text = Path(talk.path("feature-auth")).read_text()
    assert "a list" in text
    assert "another" in text
    assert "2 entries superseded" in run("show", "feature-auth").out


@pytest.mark.parametrize("steps", ["3", "0", "6"])
def test_back_before_the_first_iteration_is_refused(run: Run, talk: BrainstormStore, steps: str) -> None:
    """Section "Back Command", 1: not further than there are iterations."""
    before = files(talk.folder)
    done = run("back", "feature-auth", steps, "--json")
    assert done.code == 12
    assert json.loads(done.err)["details"] == {"iteration": 3, "most": 2}
    assert files(talk.folder) == before


def test_finish_warns_of_a_low_score_and_is_final(run: Run, store: BrainstormStore) -> None:
    run("start", "a", "--ems", "40")
    done = run("finish", "a")
    assert done.code == 0
    assert "below 60" in done.err
    assert run("answer", "a", "late").code == 12
    assert store.load("a").status == "completed"


def test_a_session_can_be_given_up(run: Run) -> None:
    run("start", "a")
    assert run("finish", "a", "--abandon", "--json").json["status"] == "abandoned"


# -- notes


def test_a_suggested_technique_becomes_an_applied_one(run: Run, store: BrainstormStore) -> None:
    """Section "v5.0: Enhanced Technique Tracking", suggested, then applied or not."""
    run("start", "a")
    reason = ("--reason", "Couverture 38%", "--weak", "Couverture", "--category", "structured")
    assert "suggested" in run("technique", "a", "six-hats", *reason).out
    assert "applied" in run("technique", "a", "six-hats", "--applied").out
    (note,) = store.load("a").session["techniques_history"]
    assert (note["applied"], note["weak_axes"], note["category"]) == (True, ["Couverture"], "structured")


def test_ideas_get_numbers_and_scores(run: Run, store: BrainstormStore) -> None:
    """Section "Ideas", sequential id, content, score 0 to 10."""
    run("start", "a")
    assert run("idea", "a", "Magic links", "--score", "5", "--json").json == {
        "slug": "a",
        "idea": 1,
        "score": 5,
        "undo": None,
    }
    assert run("idea", "a", "--number", "1", "--score", "8").code == 0
    assert store.load("a").ideas == [{"id": 1, "content": "Magic links", "score": 8}]
    assert run("idea", "a", "--number", "7", "--score", "8").code == 10


def test_a_round_of_the_party_is_noted(run: Run, store: BrainstormStore) -> None:
    """Section "v5.0: Party Mode State", a round."""
    run("start", "a")
    points = ("--says", "Architect=a facade", "--says", "Architect=async", "--says", "Security=tokens=only")
    ends = ("--refers", "Security=Architect", "--synthesis", "facade", "--ask", "DB or Redis?")
    assert run("party", "a", "Payment", *points, *ends, "--json").json["round"] == 1
    (found,) = store.load("a").session["party_history"]
    assert found["personas_selected"] == ["Architect", "Security"]
    assert found["contributions"] == [
        {"persona": "Architect", "key_points": ["a facade", "async"], "references": []},
        {"persona": "Security", "key_points": ["tokens=only"], "references": ["Architect"]},
    ]
    assert found["user_question"] == "DB or Redis?"
    assert run("party", "a", "--exit", "--json").json["mode"] == "standard"


def test_a_round_of_the_panel_is_noted(run: Run, store: BrainstormStore) -> None:
    """Section "v5.0: Expert Panel State", a round."""
    run("start", "a")
    said = ("--says", "Martin=a repository", "--framework", "Martin=SOLID", "--phase", "debate")
    assert run("panel", "a", "Data", *said, "--agrees", "tests", "--tension", "speed").code == 0
    session = store.load("a").session
    (found,) = session["panel_history"]
    assert (session["mode"], found["phase"]) == ("panel", "debate")
    assert found["contributions"][0]["framework"] == "SOLID"
    assert found["synthesis"] == {"convergent": ["tests"], "tensions": ["speed"]}
    assert "Martin (SOLID): a repository" in run("show", "a").out


# -- reading


def test_show_and_list_draw_the_score_over_the_iterations(run: Run, talk: BrainstormStore) -> None:
    assert "EMS        68/100  ▂▅▆" in run("show", "feature-auth").out
    assert "▂▅▆" in run("list").out
    assert talk.load("feature-auth").ems_line == [25, 52, 68]


def test_reading_writes_nothing(run: Run, talk: BrainstormStore) -> None:
    path = Path(talk.path("feature-auth"))
    path.write_text(path.read_text().replace('"1.2"', '"1.0"'))
    before = files(talk.folder)
    for command in (("show", "feature-auth"), ("status", "feature-auth"), ("list",), ("validate",)):
        run(*command)
    assert files(talk.folder) == before


def test_json_has_the_state_and_the_document(run: Run, talk: BrainstormStore) -> None:
    found = run("show", "feature-auth", "--json").json
    assert (found["ems"], found["iteration"], found["tip"]) == (68, 3, 3)
    assert found["document"] == talk.load("feature-auth").document
    (row,) = run("list", "--json", "--status", "in_progress").json
    assert (row["slug"], row["ems_line"], row["health"]) == ("feature-auth", [25, 52, 68], "ok")
    assert run("list", "--json", "--status", "completed").json == []


def test_the_json_is_as_documented(run: Run, talk: BrainstormStore) -> None:
    session, listed = documented("sessionary brainstorm")
    assert set(run("show", "feature-auth", "--json").json) == session
    for words, more in (
        (["status"], set()),
        (["update", "--persona", "sparring"], {"undo"}),
        (["answer", "yes"], {"undo"}),
        (["technique", "six-hats"], set()),
        (["save"], {"resume"}),
        (["finish"], {"undo"}),
        (["reopen"], {"undo"}),
    ):
        reported = run(words[0], "feature-auth", *words[1:], "--json").json
        assert set(reported) == session - {"document"} | more, words
    started = session - {"document"} | {"action", "found"}
    assert set(run("start", "feature-auth", "--resume", "--json").json) == started
    assert set(run("start", "b", "--json").json) == started | {"archived", "undo"}
    [_, row] = run("list", "--json").json
    known = (
        "slug path id status phase mode persona ems iteration ems_line last_question created updated problems"
    )
    assert set(row) == listed | set(known.split())
    assert (row["messages"], row["turns"]) == (6, 3)


def test_status_reports_axes_and_those_that_are_weak(run: Run) -> None:
    axes = ("Clarte=85", "profondeur=52", "Couverture=55", "Decisions=58", "Actionnabilite=32")
    run("start", "a", *(word for axis in axes for word in ("--axis", axis)))
    said = run("status", "a")
    assert "EMS        59/100" in said.out
    assert "weak       Actionnabilite" in said.out
    assert run("status", "a", "--json").json["weak_axes"] == ["Actionnabilite"]


def test_a_broken_file_is_listed_with_its_reason(run: Run, talk: BrainstormStore) -> None:
    Path(talk.path("broken")).write_text("session: [")
    said = run("list")
    assert said.code == 0
    assert "✗ broken:" in said.out
    assert run("validate").code == 13
    assert run("show", "broken").code == 13


def test_a_tab_that_indents_is_named_and_its_remedy_leads_out(run: Run, talk: BrainstormStore) -> None:
    path = Path(talk.path("feature-auth"))
    typed = path.read_bytes().replace(b'  mode: "standard"\n', b'  mode: "standard"\t# why\n')
    path.write_bytes(typed.replace(b"  persona:", b"\tpersona:"))
    line = typed.split(b"  persona:")[0].count(b"\n") + 1
    for words in (["validate"], ["status", "feature-auth"], ["update", "feature-auth", "--ems", "70"]):
        result = run(*words)
        said = " ".join((result.out + result.err).split())
        assert result.code == 13
        assert f"line {line}, column 1: a tab where YAML accepts blanks only" in said
        assert "replace the tab by blanks: as many as the neighbouring lines begin with" in said
    path.write_bytes(path.read_bytes().replace(b"\tpersona:", b"  persona:"))
    assert run("update", "feature-auth", "--ems", "70").code == 0
    assert b'  mode: "standard" # why\n' in path.read_bytes()
    assert on_disk(talk, "feature-auth")["ems"] == 70


@pytest.mark.parametrize("place", [".project-memory", ".project-memory/brainstorm-sessions"])
def test_a_file_where_a_folder_is_wanted_is_named(run: Run, tmp_path: Path, place: str) -> None:
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_bytes(b"")
    said = run("start", "a")
    assert said.code == 16
    assert "Not a directory" in said.err
    assert "a file is in the place of a folder" in said.err


def test_a_file_in_the_place_of_the_archive_is_named(run: Run, talk: BrainstormStore) -> None:
    Path(talk.folder, "archive").write_bytes(b"")
    before = files(talk.folder)
    said = run("start", "feature-auth", "--new")
    assert (said.code, "a file is in the place of a folder" in said.err) == (16, True)
    assert files(talk.folder) == before


def test_nothing_that_a_terminal_obeys_is_printed(run: Run, store: BrainstormStore) -> None:
    store.create("a", questions=[HOSTILE])
    store.answer("a", [HOSTILE])
    store.idea("a", HOSTILE)
    store.party("a", HOSTILE, [{"persona": HOSTILE, "key_points": [HOSTILE]}], synthesis=HOSTILE)
    store.continue_("a", [HOSTILE])
    for command in ("show", "status", "back"):
        said = run(command, "a")
        assert said.code == 0
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(said.out + said.err)
        assert "\\x1b" in said.out


def test_no_line_is_wider_than_eighty_cells(run: Run, store: BrainstormStore) -> None:
    store.create("a" * 90, questions=["日本 " * 60])
    store.answer("a" * 90, ["word " * 60])
    for command in (("list",), ("show", "a" * 90), ("status", "a" * 90), ("validate",)):
        assert max(cells(line) for line in run(*command).out.splitlines()) <= 80


# -- launching


def test_a_session_in_progress_is_neither_resumed_nor_archived_by_guess(
    run: Run, talk: BrainstormStore
) -> None:
    """Section "Load Session (Auto-detect)", without a terminal no guess is made."""
    before = files(talk.folder)
    said = run("start", "feature-auth")
    assert said.code == 11
    assert "--resume" in said.err
    assert "--new" in said.err
    assert files(talk.folder) == before


def test_resume_continues_with_it(run: Run, talk: BrainstormStore) -> None:
    """Sections "Overview", an interrupted session is resumed; "Load Session (Auto-detect)", 1 resumes."""
    assert run("start", "feature-auth", "--resume", "--json").json["action"] == "resumed"
    assert run("start", "--resume", "--json").json["slug"] == "feature-auth"
    assert talk.load("feature-auth").iteration == 3


def test_new_archives_the_present_one(run: Run, talk: BrainstormStore) -> None:
    """Section "Load Session (Auto-detect)", 2 begins anew."""
    done = run("start", "feature-auth", "--new", "--json").json
    assert (done["action"], done["archived"]) == ("created", "feature-auth-2026-01-09")
    assert done["undo"].startswith("sessionary brainstorm restore feature-auth --archived --replace")
    (kept,) = Path(talk.folder, "archive").iterdir()
    assert "OAuth2" in kept.read_text()
    assert 'status: "abandoned"' in kept.read_text()


def test_an_ended_session_makes_room_and_is_kept(run: Run, store: BrainstormStore) -> None:
    store.create("a")
    store.finish("a")
    assert run("start", "a", "--resume").code == 12
    assert run("start", "a").code == 0
    assert len(list(Path(store.folder, "archive").iterdir())) == 1
    assert store.load("a").status == "in_progress"


def test_a_launch_cleans_up(run: Run, store: BrainstormStore) -> None:
    store.create("old", now=LONG_AGO)
    store.finish("old", now=LONG_AGO)
    assert "old is old and was moved to .trash/" in run("start", "a").err
    assert not Path(store.path("old")).exists()


# -- upkeep


def test_cleanup_reports_first_then_moves_and_brings_back(run: Run, store: BrainstormStore) -> None:
    """Section "Storage Rules", 2: after 30 days, completed or abandoned."""
    store.create("old", now=LONG_AGO)
    store.finish("old", now=LONG_AGO)
    assert [one["slug"] for one in run("cleanup", "--dry-run", "--json").json["sessions"]] == ["old"]
    assert Path(store.path("old")).exists()
    done = run("cleanup")
    assert "undo: sessionary brainstorm restore old" in done.err
    assert not Path(store.path("old")).exists()
    assert run("restore", "old").code == 0
    assert store.load("old").status == "completed"
    assert run("restore", "old").code == 10


def test_migrate_keeps_the_old_bytes(run: Run, talk: BrainstormStore) -> None:
    path = Path(talk.path("feature-auth"))
    old = path.read_text().replace('"1.2"', '"1.0"')
    path.write_text(old)
    assert [one["was"] for one in run("migrate", "--dry-run", "--json").json["sessions"]] == ["1.0"]
    assert path.read_text() == old
    assert "migrated from version 1.0" in run("migrate").out
    assert path.with_suffix(".yaml.bak").read_text() == old
    assert talk.load("feature-auth").document["format_version"] == "1.2"


def test_a_newer_version_is_refused_and_left_untouched(run: Run, talk: BrainstormStore) -> None:
    path = Path(talk.path("feature-auth"))
    path.write_text(path.read_text().replace('"1.2"', '"9.0"'))
    before = files(talk.folder)
    assert run("status", "feature-auth").code == 18
    assert run("answer", "feature-auth", "x").code == 18
    assert run("start", "feature-auth", "--new").code == 18
    assert run("migrate").code == 3
    assert files(talk.folder) == before


def test_strict_validation_wants_the_whole_table(run: Run, store: BrainstormStore) -> None:
    """Section "Session Metadata", required fields."""
    store.create("a")
    path = Path(store.path("a"))
    path.write_text("".join(line for line in path.read_text().splitlines(True) if "persona" not in line))
    assert run("validate", "a").code == 0
    found = run("validate", "a", "--strict", "--json")
    assert found.code == 13
    assert any("persona" in problem["message"] for problem in found.json["problems"])


# -- misuse


@pytest.mark.parametrize(
    "words",
    [
        ("status", "../x"),
        ("show", "a/b"),
        ("answer", "..", "x"),
        ("back", "A"),
        ("validate", "../x"),
        ("migrate", "../x"),
        ("restore", "../x"),
        ("start", "../x"),
        ("start", "UPPER"),
    ],
)
def test_what_cannot_name_a_session_is_refused(
    run: Run, store: BrainstormStore, words: tuple[str, ...]
) -> None:
    Path(store.folder).mkdir(parents=True)
    assert run(*words).code == 12
    assert not any(Path(store.folder).iterdir())


@pytest.mark.parametrize(
    "words",
    [
        ("status", "none"),
        ("show", "none"),
        ("answer", "none", "x"),
        ("continue", "none"),
        ("back", "none"),
        ("finish", "none"),
        ("idea", "none", "x"),
        ("technique", "none", "six-hats"),
        ("party", "none", "x"),
        ("panel", "none", "--exit"),
        ("validate", "none"),
        ("migrate", "none"),
    ],
)
def test_an_unknown_session_is_not_found(run: Run, words: tuple[str, ...]) -> None:
    said = run(*words, "--json")
    assert said.code == 10
    assert json.loads(said.err)["error"] == "NotFound"
    assert said.out == ""


@pytest.mark.parametrize(
    "words",
    [
        ("start",),
        ("start", "a", "--new", "--resume"),
        ("answer", "feature-auth"),
        ("party", "feature-auth"),
        ("party", "feature-auth", "T", "--exit"),
        ("party", "feature-auth", "T", "--says", "nothing"),
        ("party", "feature-auth", "T", "--refers", "A=B"),
        ("idea", "feature-auth"),
        ("idea", "feature-auth", "text", "--number", "1"),
        ("start", "a", "--axis", "Clarte"),
        ("back", "feature-auth", "x"),
    ],
)
def test_a_command_line_that_makes_no_sense_is_misuse(
    run: Run, talk: BrainstormStore, words: tuple[str, ...]
) -> None:
    if words == ("start",):
        talk.finish("feature-auth")
    before = files(talk.folder)
    assert run(*words).code == 2
    assert files(talk.folder) == before


def test_every_command_has_an_example() -> None:
    context = click.Context(brainstorm_command, help_option_names=["-h", "--help"])
    for name in brainstorm_command.list_commands(context):
        command = brainstorm_command.get_command(context, name)
        assert command is not None
        assert f"sessionary brainstorm {name}" in (command.epilog or ""), name


# -- save, the end, the archive, and the way back


def test_save_prints_the_state_and_how_to_resume(run: Run, talk: BrainstormStore, tmp_path: Path) -> None:
    """Section "Save Session": the explicit `save`."""
    said = run("save", "feature-auth")
    assert said.code == 0
    assert said.out.splitlines() == [
        f"Session saved: {talk.path('feature-auth')}",
        "   EMS: 68/100 | Phase: Transition | Iteration: 3",
        f"   Resume: sessionary brainstorm start feature-auth --resume --root {tmp_path}",
    ]
    resume = run("save", "feature-auth", "--phase", "convergent", "--json").json["resume"]
    assert talk.load("feature-auth").phase == "convergent"
    assert run(*shlex.split(resume)[2:-2]).code == 0
    assert run("save", "none").code == 10


def test_save_stores_a_migration(run: Run, talk: BrainstormStore) -> None:
    """Section "Migration", 4: save migrated session."""
    path = Path(talk.path("feature-auth"))
    path.write_text(path.read_text().replace('"1.2"', '"1.0"'))
    assert run("save", "feature-auth").code == 0
    assert 'format_version: "1.2"' in path.read_text()
    assert Path(f"{path}.bak").exists()


BLOCK = [
    "-------------------------------------------------------",
    'Existing session found: "feature-auth" (EMS: 68)',
    "   Phase: Transition | Iteration: 3",
]


@pytest.mark.parametrize("words", [[], ["feature-auth"]])
def test_a_launch_without_a_terminal_shows_what_it_has_found(
    run: Run, talk: BrainstormStore, words: list[str]
) -> None:
    """Section "Load Session (Auto-detect)": score, last activity, phase, iteration."""
    said = run("start", *words)
    assert said.code == 11
    assert [line for line in said.err.splitlines() if line in BLOCK] == [*BLOCK, BLOCK[0]]
    assert "   Last activity: " in said.err
    assert "[1]" not in said.err
    found = run("start", *words, "--json").error["details"]["found"]
    known = {name: found[name] for name in ("slug", "status", "phase", "ems", "iteration", "updated")}
    assert known == {
        "slug": "feature-auth",
        "status": "in_progress",
        "phase": "transition",
        "ems": 68,
        "iteration": 3,
        "updated": "2026-01-09T10:30:00Z",
    }
    assert found["age"].endswith("ago") or found["age"] == "in the future"


ENGLISH = (
    "saved session found activity resume new back forward restored changed worked next suggests led by of is in"
    " progress completed abandoned axes weak answer undo ago just now score below archive anew begins remarks"
).split()
FRENCH = {"session", "axes", "archive", "score"}  # words that both languages have


@pytest.mark.parametrize(
    "words",
    [
        ["start", "feature-auth"],
        ["start", "feature-auth", "--resume"],
        ["start", "feature-auth", "--new"],
        ["answer", "feature-auth", "non"],
        ["continue", "feature-auth", "-q", "Pourquoi?"],
        ["back", "feature-auth"],
        ["update", "feature-auth", "--persona", "sparring"],
        ["status", "feature-auth"],
        ["save", "feature-auth"],
        ["finish", "feature-auth"],
        ["finish", "feature-auth", "--abandon"],
        ["reopen", "feature-auth"],
    ],
    ids=" ".join,
)
def test_no_screen_is_in_two_languages(run: Run, talk: BrainstormStore, words: list[str]) -> None:
    path = Path(talk.path("feature-auth"))
    text = path.read_text().replace('  persona: "architecte"\n', "")  # of which there is a note
    path.write_text(text.replace("Which sign-in?", "Quoi?").replace("Rate limits?", "Combien?"))
    said = run(*words, "--lang", "fr")
    shown = re.sub(r": sessionary brainstorm .*|--\w+", "", (said.out + said.err).replace(str(path), ""))
    found = set(re.findall(r"[a-z]+", shown.lower())) & set(ENGLISH) - FRENCH
    assert not found, shown


def test_a_session_can_be_opened_again(run: Run, talk: BrainstormStore) -> None:
    assert run("finish", "feature-auth").code == 0
    refused = run("answer", "feature-auth", "x")
    assert refused.code == 12
    assert "sessionary brainstorm reopen feature-auth" in refused.err
    assert run("reopen", "feature-auth", "--json").json["status"] == "in_progress"
    assert run("answer", "feature-auth", "x").code == 0


def test_the_archive_is_listed_and_restored(run: Run, talk: BrainstormStore) -> None:
    """Section "Load Session (Auto-detect)", 2: the old session is kept."""
    assert "No archived brainstorm sessions" in run("list", "--archived").err
    run("start", "feature-auth", "--new", "--ems", "11")
    (row,) = run("list", "--archived", "--json").json
    assert (row["name"], row["slug"], row["archived"], row["ems"]) == (
        "feature-auth-2026-01-09",
        "feature-auth",
        True,
        68,
    )
    assert "feature-auth-2026-01-09" in run("list", "--archived").out
    refused = run("restore", row["name"], "--archived")
    assert (refused.code, "--replace" in refused.err) == (11, True)
    said = run("restore", row["name"], "--archived", "--replace", "--json").json
    assert said.keys() == {"slug", "path", "undo"}
    assert said["path"] == talk.path("feature-auth")
    assert talk.load("feature-auth").ems == 68
    assert run("restore", "feature-auth", "--replace").code == 2


def undo_of(said: Result) -> list[str]:
    """The words of the undo line behind `sessionary brainstorm`, without the folder."""
    (line,) = [line for line in said.err.splitlines() if line.startswith("undo: ")]
    words = shlex.split(line.removeprefix("undo: "))
    assert words[:2] == ["sessionary", "brainstorm"]
    place = words.index("--root")
    return words[2:place] + words[place + 2 :]


AXES = [f"{name}=40" for name in ("Clarte", "Profondeur", "Couverture", "Decisions", "Actionnabilite")]


@pytest.mark.parametrize(
    ("before", "command"),
    [
        ([], ["update", "feature-auth", "--phase", "convergent", "--ems", "70", "--mode", "party"]),
        ([], ["update", "feature-auth", *(word for axis in AXES for word in ("--axis", axis))]),
        (
            [["update", "feature-auth", *(word for axis in AXES for word in ("--axis", axis))]],
            ["update", "feature-auth", "--ems", "70"],
        ),
        ([["back", "feature-auth"]], ["continue", "feature-auth"]),
        ([], ["finish", "feature-auth"]),
        ([], ["finish", "feature-auth", "--abandon"]),
        ([["finish", "feature-auth", "--abandon"]], ["reopen", "feature-auth"]),
        ([["finish", "feature-auth"]], ["reopen", "feature-auth"]),
        (
            [["idea", "feature-auth", "Links", "--score", "3"]],
            ["idea", "feature-auth", "--number", "1", "--score", "9"],
        ),
    ],
)
def test_the_undo_line_leads_back(
    run: Run, talk: BrainstormStore, before: list[list[str]], command: list[str]
) -> None:
    def seen() -> dict[str, Any]:
        session = talk.load("feature-auth").session
        names = ("status", "phase", "ems", "ems_axes", "persona", "mode", "iteration", "ideas")
        return {name: session.get(name) for name in names}

    for words in before:
        assert run(*words).code == 0
    was = seen()
    said = run(*command)
    assert said.code == 0
    assert seen() != was
    assert run(*undo_of(said)).code == 0
    assert seen() == was


def test_a_new_session_is_undone_by_bringing_the_old_one_back(run: Run, talk: BrainstormStore) -> None:
    said = run("start", "feature-auth", "--new")
    assert talk.load("feature-auth").iteration == 1
    back = run(*undo_of(said))
    assert back.code == 0
    assert talk.load("feature-auth").iteration == 3
    (go_on,) = [line for line in back.err.splitlines() if line.startswith("resume: ")]
    assert main(shlex.split(go_on)[2:]) == 0
    assert talk.load("feature-auth").status == "in_progress"


def test_a_restore_that_replaced_a_session_is_undone(run: Run, talk: BrainstormStore) -> None:
    run("start", "feature-auth", "--new", "--ems", "11")
    said = run("restore", "feature-auth", "--archived", "--replace")
    assert talk.load("feature-auth").ems == 68
    again = run(*undo_of(said))
    assert talk.load("feature-auth").ems == 11
    assert run(*undo_of(again)).code == 0
    assert talk.load("feature-auth").ems == 68


@pytest.mark.parametrize("words", [["finish"], ["finish", "--abandon"], ["reopen"]])
def test_what_changed_nothing_offers_no_undo(run: Run, talk: BrainstormStore, words: list[str]) -> None:
    name, *options = words
    run(name, "feature-auth", *options)
    again = run(name, "feature-auth", *options)
    assert again.code == 0
    assert "undo:" not in again.err
    assert run(name, "feature-auth", *options, "--json").json["undo"] is None


def test_what_is_not_in_the_trash_may_be_elsewhere(run: Run, talk: BrainstormStore) -> None:
    said = run("restore", "feature-auth")
    assert said.code == 10
    assert "`sessionary brainstorm list` and `list --archived`" in said.err


def test_what_has_no_undo_says_so_in_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("start", "answer", "save", "technique", "party", "panel", "idea", "restore", "migrate"):
        with pytest.raises(SystemExit):
            brainstorm_command.main([name, "--help"], prog_name="brainstorm")
        assert "undo" in capsys.readouterr().out, name


# -- on a terminal


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    with terminal_for("brainstorm") as start:
        yield lambda command, *words, **surroundings: start(
            command, "--root", str(tmp_path), *words, **surroundings
        )


def test_start_asks_which_of_two_sessions(talk: BrainstormStore, terminal: Callable[..., Terminal]) -> None:
    """Section "Load Session (Auto-detect)", 1 resumes."""
    talk.update("feature-auth", persona="sparring")
    one = terminal("start", "feature-auth", "--lang", "fr")
    one.expect("> ")
    assert 'Session existante detectee: "feature-auth" (EMS: 68)' in one.shown
    assert "Derniere activite: a l'instant" in one.shown
    assert "[1] Reprendre cette session\n[2] Nouvelle session\n" in one.shown
    one.type("3")
    one.expect("'1', '2'")
    one.type("1")
    assert one.end() == 0
    assert "68/100" in one.shown
    assert talk.load("feature-auth").iteration == 3


def test_the_second_choice_begins_anew(talk: BrainstormStore, terminal: Callable[..., Terminal]) -> None:
    """Section "Load Session (Auto-detect)", 2 begins anew."""
    one = terminal("start")
    one.expect("> ")
    one.type("2")
    one.expect("SLUG")
    one.type("feature-auth")
    assert one.end() == 0
    assert talk.load("feature-auth").iteration == 1
    assert (Path(talk.folder) / "archive" / "feature-auth-2026-01-09.yaml").exists()


@pytest.mark.parametrize("begun", ["before", "meanwhile"])
def test_another_session_in_progress_is_not_archived_unasked(
    begun: str, talk: BrainstormStore, terminal: Callable[..., Terminal]
) -> None:
    if begun == "before":
        talk.create("other", now=LONG_AGO - timedelta(days=1))
    one = terminal("start")
    one.expect('"feature-auth" (EMS: 68)')
    one.expect("> ")
    if begun == "meanwhile":
        talk.create("other")
    before = Path(talk.path("other")).read_bytes()
    one.type("2")
    one.expect("SLUG")
    one.type("other")
    assert one.end() == 11
    assert Path(talk.path("other")).read_bytes() == before
    assert not (Path(talk.folder) / "archive").exists()


def test_answers_are_asked_one_by_one(store: BrainstormStore, terminal: Callable[..., Terminal]) -> None:
    store.create("a", questions=["Who\x1b[2J?", "Where?"])
    one = terminal("answer", "a")
    one.expect("Who\\x1b[2J?: ")
    one.type("devs")
    one.expect("Where?: ")
    one.type("everywhere")
    assert one.end() == 0
    assert store.load("a").history[0]["responses"] == ["devs", "everywhere"]


def test_colours_can_be_turned_off(talk: BrainstormStore, terminal: Callable[..., Terminal]) -> None:
    assert talk.load("feature-auth").tip == 3
    with_colours, without = terminal("list"), terminal("list", NO_COLOR="1")
    assert (with_colours.end(), without.end()) == (0, 0)
    assert "\x1b[" in with_colours.shown
    assert "\x1b[" not in without.shown
