"""Write docs/screens.md: the output of commands in a terminal of 80 columns, for a small generated home.

The output is real, so it stays up to date. The clock of the command line is fixed, and the path of the home is
replaced by that of the example user.
"""

from __future__ import annotations

import io
import json
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, chdir, contextmanager, redirect_stderr, redirect_stdout
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, Self
from unittest import mock

from scripts.generated import publish
from scripts.work_sessions import make_work_sessions
from sessionary.cli import app, homes, main
from sessionary.layouts.amplifier.ids import path_slug
from sessionary.layouts.maestro.names import ROOT

WIDTH = 80
NOW = datetime(2026, 3, 4, 16, 30, tzinfo=UTC)
USER = "/home/ana"
APP, SITE = f"{USER}/code/app", f"{USER}/code/site"

INTRO = """\
<!-- Written by `make docs` from real output; change the code, or scripts/gen_screens.py. -->
# Screens

The output of the commands in a terminal of 80 columns, without its colours.
Output longer than the screen is paged, and work of more than a second shows its progress.
[The commands](cli.md) lists all options.
"""

SCREENS = (
    ("List sessions", "list"),
    ("List by project and time, with sub-agents", "list --all --project app --since yesterday"),
    ("Show parents, forks and sub-agents", "tree"),
    ("Read a session", "show 7b2e --turns 1..2"),
    ("Search", "search login"),
    ("Search with operators and a regular expression", "search --regex 'rac[ei]' OR 'upgrade.*base'"),
    ("Read a hit in context", "show 7b2e:3 --around 1"),
    ("Check for damage", "check"),
    ("Count sessions and cost", "stats --events"),
    ("Move sessions after a folder was renamed", "mv ~/code/app ~/code/shop"),
    ("An ambiguous id", "show 9"),
    ("Work sessions", "work list"),
    ("Parents of work sessions", "work tree"),
    ("Timeline of a work session and its children", "work timeline 5d1c --include-children --tail 4"),
    ("Cost of a work session, by model", "work stats 5d1c --tree"),
)

Message = Mapping[str, Any]


class _Still(datetime):
    """A fixed clock."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        return cls.fromtimestamp(NOW.timestamp(), tz)


class _Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def page() -> str:
    """The whole document."""
    parts = [INTRO]
    with tempfile.TemporaryDirectory() as place, _surroundings(place):
        _make_home(Path(place, ".amplifier"))
        Path(place, "work").mkdir()
        make_work_sessions(Path(place, "work", ROOT))
        for title, line in SCREENS:
            shown = _screen(line, place)
            parts.append(f"## {title}\n\n```text\n$ sessionary {line}\n{shown}```\n")
    return "\n".join(parts)


def _screen(line: str, place: str) -> str:
    shown = _Terminal()
    words = [word.replace("~", USER) if word.startswith("~") else word for word in shlex.split(line)]
    with redirect_stdout(shown), redirect_stderr(shown), ExitStack() as stack:
        if words[0] == "work":  # these commands use the project of the current folder
            stack.enter_context(chdir(Path(place, "work")))
        main(words)
    return shown.getvalue().replace(place, USER)


@contextmanager
def _surroundings(place: str) -> Iterator[None]:
    """The home of the user, a terminal of 80 columns, a fixed clock."""
    with ExitStack() as stack:
        settings = {
            "HOME": USER,
            "COLUMNS": str(WIDTH),
            "TZ": "UTC",
            "TERM": "xterm",
            "NO_COLOR": "1",
            "PAGER": "",
        }
        folders = {name: f"{place}/{name}" for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")}
        stack.enter_context(mock.patch.dict(os.environ, settings | folders))
        stack.enter_context(mock.patch.object(homes, "HOME", Path(place, ".amplifier")))
        time.tzset()
        for command in app.COMMANDS:
            app.cli.get_command(None, command)
        for name, module in list(sys.modules.items()):
            if name.startswith("sessionary.cli") and "datetime" in vars(module):
                stack.enter_context(mock.patch.object(module, "datetime", _Still))
        yield
    time.tzset()


# The home


def _make_home(home: Path) -> None:
    _session(
        home,
        APP,
        "7b2e0c81-52aa-4d19-9a40-5d0c3f6a1e01",
        minutes=12,
        name="The login race",
        messages=_login(),
    )
    _session(
        home, APP, "0000000000000000-4c1d2e3f4a5b6c7d_explorer", minutes=14, messages=_explored(),
        parent_id="7b2e0c81-52aa-4d19-9a40-5d0c3f6a1e01",
    )  # fmt: skip
    _session(
        home, APP, "c0d9f1aa-8f10-4c0e-8a44-0b77c2f4d5e2", minutes=200, name="The login race, with a lock",
        messages=_login()[:2], parent_id="7b2e0c81-52aa-4d19-9a40-5d0c3f6a1e01",
        forked_from_turn=1, forked_at="2026-03-04T13:10:00+00:00",
    )  # fmt: skip
    _session(home, APP, "91d0aa34-0f6e-4f35-b1c7-6e0d1a2b3c44", minutes=60 * 27, messages=_interrupted())
    _session(
        home, SITE, "9e55b0c2-77aa-49b1-8d5e-2f9a8b7c6d05", minutes=60 * 24 * 9, messages=_damaged(),
        name="Move the blog to static pages",
    )  # fmt: skip
    damaged = next(home.glob("projects/*/sessions/9e55*/transcript.jsonl"))
    damaged.write_bytes(damaged.read_bytes().replace(b'"Done', b'"\x80Done'))
    _age(damaged.parent, 60 * 24 * 9)


def _session(
    home: Path, path: str, session_id: str, *, minutes: int, messages: Sequence[Message], **metadata: Any
) -> None:
    folder = home / "projects" / path_slug(path) / "sessions" / session_id
    folder.mkdir(parents=True)
    turns = sum(message["role"] == "user" for message in messages)
    kept = {"session_id": session_id, "created": "2026-03-04T09:00:00+00:00", "working_dir": path} | metadata
    (folder / "transcript.jsonl").write_text(
        "".join(json.dumps(message) + "\n" for message in _ending(messages, minutes))
    )
    (folder / "metadata.json").write_text(json.dumps(kept | {"turn_count": turns}, indent=2))
    (folder / "events.jsonl").write_text(
        "".join(json.dumps(event) + "\n" for event in _events(session_id, turns))
    )
    _age(folder, minutes)


def _ending(messages: Sequence[Message], minutes: int) -> Iterator[Message]:
    """The messages, moved so that the last one is this many minutes old."""
    times = [datetime.fromisoformat(message["timestamp"]) for message in messages]
    later = NOW - timedelta(minutes=minutes) - times[-1]
    for message, moment in zip(messages, times, strict=True):
        yield {**message, "timestamp": (moment + later).isoformat()}


def _age(folder: Path, minutes: int) -> None:
    then = (NOW - timedelta(minutes=minutes)).timestamp()
    for path in (*folder.iterdir(), folder):
        os.utime(path, (then, then))


def _events(session_id: str, turns: int) -> Iterator[dict[str, Any]]:
    for turn in range(turns):
        yield {
            "ts": f"2026-03-04T09:{turn:02}:10+00:00", "lvl": "INFO", "event": "llm:response", "session_id": session_id,
            "data": {
                "model": "some-model",
                "usage": {"input_tokens": 1200 + 300 * turn, "output_tokens": 80, "cost_usd": 0.0125},
            },
        }  # fmt: skip


def _said(role: str, text: str, second: int, **more: Any) -> dict[str, Any]:
    at = (NOW - timedelta(minutes=30) + timedelta(seconds=second)).isoformat()
    return {"role": role, "content": text, "timestamp": at, **more}


def _call(number: int, tool: str, second: int, **arguments: Any) -> list[dict[str, Any]]:
    said = _said("assistant", "", second)
    return [said | {"tool_calls": [{"id": f"t{number}", "tool": tool, "arguments": arguments}]}]


def _result(number: int, tool: str, second: int, text: str) -> list[dict[str, Any]]:
    return [_said("tool", text, second, tool_call_id=f"t{number}", name=tool)]


def _login() -> list[dict[str, Any]]:
    return [
        _said("user", "Two people who log in at once get the same session. Why?", 0),
        _said("assistant", "`create_session` looks for a free id and takes it later. Between the two "
              "another **login** may take it.\n\n- look and take in one step, or\n- take a lock", 9),
        _said("user", "Take it in one step, and run the tests.", 60),
        *_call(1, "edit_file", 70, path="src/login/sessions.py", old="if free(id):", new="if claim(id):"),
        *_result(1, "edit_file", 71, "1 replacement in src/login/sessions.py"),
        *_call(2, "bash", 80, command="pytest -q tests/login"),
        *_result(2, "bash", 95, '{"stdout": "14 passed in 2.31s\\n", "returncode": 0}'),
        _said("assistant", "Done: a login claims its id now, and all 14 tests pass.", 99),
        _said("user", "Thanks!", 120),
        _said("assistant", "You are welcome.", 122),
    ]  # fmt: skip


def _explored() -> list[dict[str, Any]]:
    return [
        _said("user", "Find where session ids are made.", 10),
        *_call(1, "grep", 12, pattern="session_id"),
        *_result(1, "grep", 13, "src/login/sessions.py:14"),
        _said("assistant", "In src/login/sessions.py, line 14.", 15),
    ]


def _interrupted() -> list[dict[str, Any]]:
    return [
        _said("user", "Upgrade the database driver.", 0),
        *_call(1, "bash", 5, command="pip install --upgrade driver"),
    ]


def _damaged() -> list[dict[str, Any]]:
    return [
        _said("user", "Move the blog to static pages.", 0),
        _said("assistant", "Done: 31 posts are pages now.", 40),
        _said("user", "And the feed?", 60),
        _said("assistant", "It is made from the pages.", 70),
    ]


if __name__ == "__main__":
    sys.exit(publish("screens.md", page(), sys.argv[1:]))
