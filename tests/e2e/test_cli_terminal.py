"""What only a terminal sees: long results are paged, long work shows how far it has come, shells complete words."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from sessionary import BrainstormStore, FeatureStore, WorkStore
from sessionary.cli.app import COMMANDS
from tests.e2e.driving import COMMAND, SPAWNED, on_terminal, put

pytestmark = pytest.mark.skipif(os.name != "posix", reason="no pseudo terminals")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for number in range(60):
        folder = tmp_path / "home" / "projects" / "-u-app" / "sessions" / f"s{number:02}"
        folder.mkdir(parents=True)
        (folder / "transcript.jsonl").write_text('{"role": "user", "content": "Hi there"}\n' * 30)
        (folder / "metadata.json").write_text(json.dumps({"session_id": f"s{number:02}"}))
    return tmp_path / "home"


LONG = {
    "list": ("list",),
    "tree": ("tree",),
    "show": ("show", "s00"),
    "search": ("search", "hi", "--limit", "0"),
    "stats": ("stats",),
    "check": ("check", "--notes"),
}


@pytest.mark.parametrize("name", ["list", "tree", "show", "search", "check"])
def test_a_long_result_goes_through_the_pager(home: Path, name: str) -> None:
    screen = on_terminal(*COMMAND, *LONG[name], "--home", str(home), PAGER="sed s/^/P/", NO_COLOR="1")
    assert screen.code == 0
    assert screen.out.startswith("P")
    assert sum(line.startswith("P") for line in screen.out.splitlines()) > 30


@pytest.mark.parametrize("name", ["list", "tree", "show", "search"])
def test_json_and_files_are_not_paged(home: Path, name: str) -> None:
    words = (*COMMAND, *LONG[name], "--home", str(home))
    assert not on_terminal(*words, "--json", PAGER="sed s/^/P/").out.startswith("P")
    done = subprocess.run(words, capture_output=True, env={**os.environ, "PAGER": "false"}, check=True)
    assert done.stdout.count(b"\n") > 30


def test_a_terminal_that_does_not_say_what_it_is_is_not_paged(home: Path) -> None:
    screen = on_terminal(*COMMAND, "list", "--home", str(home), TERM="", PAGER="sed s/^/P/")
    assert "\nP" not in screen.out
    assert screen.code == 0


@pytest.mark.parametrize("name", LONG)
def test_no_line_is_wider_than_the_terminal(home: Path, name: str) -> None:
    screen = on_terminal(*COMMAND, *LONG[name], "--home", str(home), PAGER="", NO_COLOR="1")
    assert screen.out
    assert max(len(line) for line in screen.out.splitlines() if str(home) not in line) <= 80


SLOW = """
import sys, time
from sessionary.layouts.amplifier.layout import AmplifierLayout
for name in ("header", "check"):
    def slow(self, *arguments, begun=getattr(AmplifierLayout, name)):
        time.sleep(0.03)
        return begun(self, *arguments)
    setattr(AmplifierLayout, name, slow)
from sessionary.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_first_list_that_takes_more_than_a_second_begins_with_the_newest_rows(home: Path) -> None:
    for number in range(60):
        for path in (home / "projects" / "-u-app" / "sessions" / f"s{number:02}").rglob("*"):
            os.utime(path, (1_700_000_000 + number,) * 2)
    words = (sys.executable, "-c", SLOW, "list", "--home", str(home))
    shown = {"PAGER": "", "LINES": "24", "NO_COLOR": "1", "XDG_CACHE_HOME": str(home.parent / "cache")}
    first, progress, complete = on_terminal(*words, **shown).out.partition("reading sessions")
    rows = first.splitlines()[1:21]
    assert [row.split()[0] for row in rows] == [f"s{number:02}" for number in range(59, 39, -1)]
    assert all(row.count(" … ") for row in rows), "nothing is counted yet"
    assert progress, "then the progress"
    listed = re.findall(r"^.*?\b(s\d\d) .*\b30\b", complete, re.MULTILINE)
    assert listed == [f"s{number:02}" for number in range(59, -1, -1)], "then the complete list"
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=os.environ | shown)
    assert done.stdout.count("s59") == 1, "a pipe gets one table"


@pytest.mark.parametrize("name", ["list", "tree", "check"])
def test_a_first_look_that_takes_more_than_a_second_shows_how_far_it_is(home: Path, name: str) -> None:
    words = (sys.executable, "-c", SLOW, name, "--home", str(home))
    cache = {"XDG_CACHE_HOME": str(home.parent / "cache")}
    slow = on_terminal(*words, PAGER="", **cache)
    what, last = ("checking", "60 sessions checked") if name == "check" else ("reading sessions", "s59")
    assert slow.out.index(what) < slow.out.rindex(last)
    done = subprocess.run(words, capture_output=True, check=True, env={**os.environ, **cache})
    assert what.encode() + b" " not in done.stdout + done.stderr


WAITING = """
import threading
from sessionary.cli.progress import waiting
with waiting("forking", patience=0.05):
    for timer in threading.enumerate():
        if isinstance(timer, threading.Timer):
            timer.join()  # then it has drawn
with waiting("rewinding", patience=60):
    pass
print("done")
"""


def test_work_in_one_piece_shows_that_it_continues_and_leaves_nothing_behind() -> None:
    screen = on_terminal(sys.executable, "-c", WAITING)
    assert screen.out.index("forking") < screen.out.index("done")
    assert "rewinding" not in screen.out
    assert screen.out.endswith("done\n")
    done = subprocess.run([sys.executable, "-c", WAITING], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"done\n", b"")


def completed(words: str) -> list[str]:
    """What bash would be offered for the last of the words."""
    surroundings = {
        "_SESSIONARY_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
    }
    done = subprocess.run(
        COMMAND, capture_output=True, text=True, env={**os.environ, **surroundings}, check=True
    )
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


def test_a_shell_completes_commands_and_options() -> None:
    assert completed("sessionary ") == list(COMMANDS)
    assert completed("sessionary sh") == ["show"]
    assert completed("sessionary list --s") == ["--since", "--starred", "--sort"]
    assert "--dry-run" in completed("sessionary mv --")


def test_a_shell_completes_the_ids_of_every_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest first, as lists show them; whole where more was typed than they show."""
    ids = [f"3f0c81d{digit}-0000-4000-8000-000000000001" for digit in "012"]
    for age, session_id in enumerate(ids):
        files = {"transcript.jsonl": b'{"role": "user", "content": "Hi"}\n'}
        put(tmp_path / ".amplifier", session_id, "-p", files, timedelta(hours=age))
    put(tmp_path / ".amplifier", SPAWNED, "-p", {"transcript.jsonl": b"\n"})
    BrainstormStore(tmp_path).create("sign-in", questions=["Who?"])
    FeatureStore(tmp_path).create("login-2026-01-02", name="Login")
    work = WorkStore(tmp_path / "docs" / "sessions").create("pm").session_id
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    short = [session_id[:8] for session_id in ids]
    for command in (
        "show",
        "fork",
        "rewind",
        "trash",
        "undo",
        "rename",
        "events",
        "check",
        "tree",
        "search --session",
    ):
        assert completed(f"sessionary {command} 3F0") == short
    assert completed("sessionary show 3f0c81d1-") == [ids[1]]
    assert completed("sessionary fork la") == ["latest"]
    assert completed("sessionary show sign") == ["sign-in"]
    assert completed("sessionary fork sign") == [""]
    assert completed(f"sessionary --debug show --home {tmp_path}/nowhere 3f0") == [
        "3f0"
    ]  # the shell offers files
    assert completed("sessionary feature status log") == ["login-2026-01-02"]
    assert completed("sessionary brainstorm status ") == ["sign-in", "latest"]
    assert completed(f"sessionary work show {work[:6]}") == [work]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(shell: str) -> None:
    surroundings = {**os.environ, "_SESSIONARY_COMPLETE": f"{shell}_source"}
    done = subprocess.run(COMMAND, capture_output=True, text=True, env=surroundings, check=True)
    assert "_SESSIONARY_COMPLETE" in done.stdout


REFUSED = [
    ["list"],
    ["list", "-h"],
    ["list", "--json"],
    ["show", "s00"],
    ["events", "s00", "--raw"],
    ["search", "hi"],
]


def redirected(home: Path, words: list[str], how: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a shell with a redirection; its streams are buffered, as by default."""
    (home / "projects/-u-app/sessions/s00/events.jsonl").write_text('{"event": "x"}\n')
    line = f"{shlex.join([*COMMAND, *words, '--home', str(home)])} {how}"
    usual = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False, env=usual)


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
@pytest.mark.parametrize("how", [">/dev/full", ">&-"])
def test_a_result_that_cannot_be_printed_is_a_refusal_of_the_disk_and_no_bug(
    home: Path, words: list[str], how: str
) -> None:
    if how == ">/dev/full" and not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    done = redirected(home, words, how)
    assert done.returncode == 16
    assert "The result cannot be printed: " in done.stderr
    assert "bug" not in done.stderr.lower()
    assert "Exception ignored" not in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="limits and pipes are POSIX's")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_result_that_was_taken_in_part_is_not_a_success(tmp_path: Path, unbuffered: str) -> None:
    """Without a buffer (PYTHONUNBUFFERED, as in most containers) Python forgets what was not taken."""
    file = tmp_path / "long.jsonl"
    file.write_text(
        "".join(json.dumps({"role": "user", "content": "word " * 4000}) + "\n" for _ in range(20))
    )
    command = [*COMMAND, "show", str(file), "--json"]
    surroundings = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    cut = ["sh", "-c", f"ulimit -f 16; {shlex.join(command)} > {shlex.quote(str(tmp_path / 'out'))}"]
    full = subprocess.run(cut, capture_output=True, text=True, check=False, env=surroundings)
    assert full.returncode == 16
    assert "The result cannot be printed: " in full.stderr
    assert 0 < (tmp_path / "out").stat().st_size < 400_000

    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=surroundings) as left:
        assert left.stdout is not None
        assert left.stderr is not None
        left.stdout.read(1)
        left.stdout.close()
        assert left.stderr.read() == b""
    assert left.returncode == -signal.SIGPIPE

    whole = subprocess.run(command, capture_output=True, check=False, env=surroundings)
    assert [len(one["text"]) for one in json.loads(whole.stdout)["messages"]] == [20_000] * 20


@pytest.mark.parametrize("how", ["2>/dev/full", "2>&-"])
@pytest.mark.parametrize(
    ("words", "code"), [(["show", "nobody"], 10), (["show"], 2), (["list", "--json", "--jsonl"], 2)]
)
def test_an_error_that_cannot_be_printed_keeps_its_exit_code(
    home: Path, words: list[str], code: int, how: str
) -> None:
    if how == "2>/dev/full" and not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    done = redirected(home, words, how)
    assert (done.returncode, done.stdout) == (code, "")


@pytest.mark.parametrize("how", [">/dev/full", ">&-"])
def test_an_error_before_any_result_keeps_its_exit_code_where_no_result_could_go(
    home: Path, how: str
) -> None:
    done = redirected(home, ["show", "nobody"], how)
    assert done.returncode == 10
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_a_closed_standard_error_spoils_no_result(home: Path, words: list[str]) -> None:
    done = redirected(home, words, "2>&-")
    assert done.returncode == 0
    assert done.stdout


def test_json_on_a_terminal_holds_a_name_that_is_not_utf_8(home: Path) -> None:
    folder = os.fsencode(home / "projects/-u-app/sessions") + b"/bad\xff"
    try:
        os.mkdir(folder)
    except OSError:
        pytest.skip("this file system takes only names in UTF-8")
    with open(folder + b"/transcript.jsonl", "w") as file:
        file.write('{"role": "user", "content": "Hi"}\n')
    screen = on_terminal(*COMMAND, "list", "--json", "--home", str(home), PAGER="cat")
    assert screen.code == 0
    assert "bad\udcff" in {session["id"] for session in json.loads(screen.out)}


@pytest.mark.parametrize(
    "words", [["list", "--all"], ["tree"], ["show", "s00"], ["search", "hi", "--limit", "3"], ["stats"]]
)
def test_in_the_c_locale_a_terminal_gets_ascii_and_a_file_what_is_stored(
    home: Path, words: list[str]
) -> None:
    command = [*COMMAND, *words, "--home", str(home)]
    shown = on_terminal(*command, LC_ALL="C", NO_COLOR="1", PAGER="")
    assert shown.out.isascii(), [char for char in shown.out if not char.isascii()]
    assert not re.search(r"\\[ux]", shown.out)  # every sign of ours has one that stands for it
    plain = on_terminal(*command, LC_ALL="C.UTF-8", NO_COLOR="1", PAGER="")
    assert [len(line) for line in shown.out.splitlines()] == [len(line) for line in plain.out.splitlines()]
    environment = {**os.environ, "LC_ALL": "C"}
    piped = subprocess.run(command, capture_output=True, env=environment, check=False).stdout.decode()
    assert "✓" in piped or "─" in piped or "»" in piped


def test_rows_have_numbers_only_if_the_list_can_be_kept(home: Path, tmp_path: Path) -> None:
    words = (*COMMAND, "list", "-n", "2", "--home", str(home))
    kept, shown = tmp_path / "state", {"PAGER": "", "NO_COLOR": "1"}
    assert on_terminal(*words, XDG_STATE_HOME=str(kept), **shown).out.startswith("#  ID")
    (tmp_path / "file").touch()
    assert on_terminal(*words, XDG_STATE_HOME=str(tmp_path / "file"), **shown).out.startswith("ID")
