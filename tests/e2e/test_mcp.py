"""`sessionary mcp` as a process, asked by the official client over stdio and over streamable HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from sessionary import SessionStore
from tests.e2e.driving import COMMAND, ROOT, wakeups

TALK = [{"role": "user", "content": "Why is it slow?"}, {"role": "assistant", "content": "Its cache."}]
QUESTION = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    home = tmp_path / "home"
    store = SessionStore(home / "projects" / "-w" / "sessions")
    store.save(ROOT, TALK, {"session_id": ROOT, "name": "The build"})
    return home


async def used(client: Client) -> tuple[int, Any, str]:
    """The number of tools, a hit, and an error."""
    tools = (await client.list_tools()).tools
    found = await client.call_tool("search_sessions", {"query": "cache"})
    missing = await client.call_tool("read_session", {"session": "gone"})
    assert missing.is_error
    texts = [content.text for content in (*found.content, *missing.content) if content.type == "text"]
    (hit,) = json.loads(texts[0])["untrusted"]["hits"]
    return len(tools), (hit["session"], hit["index"], hit["text"]), texts[1]


def check(answer: tuple[int, Any, str]) -> None:
    count, hit, error = answer
    assert count == 11
    assert hit == (ROOT, 1, "Its cache.")
    assert "Remedy: call list_sessions" in error


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_over_stdio(home: Path, mode: str, tmp_path: Path) -> None:
    command = StdioServerParameters(
        command=COMMAND[0],
        args=[*COMMAND[1:], "mcp", "--home", str(home)],
        env=dict(os.environ),
        cwd=tmp_path,
    )

    async def ask() -> tuple[int, Any, str]:
        with open(tmp_path / "err", "w") as errors:
            async with Client(stdio_client(command, errlog=errors), mode=mode) as client:
                return await used(client)

    check(asyncio.run(ask()))
    assert (tmp_path / "err").read_text() == "", "the log of an agent stays quiet"


def test_several_homes(home: Path, tmp_path: Path) -> None:
    other = SessionStore(tmp_path / "other" / "projects" / "-w" / "sessions")
    other.save("other-one", TALK, {"session_id": "other-one"})
    words = ["mcp", "--home", str(home), "--home", str(tmp_path / "other")]
    command = StdioServerParameters(
        command=COMMAND[0], args=[*COMMAND[1:], *words], env=dict(os.environ), cwd=tmp_path
    )

    async def ask() -> str:
        with open(tmp_path / "err", "w") as errors:
            async with Client(stdio_client(command, errlog=errors)) as client:
                (content,) = (await client.call_tool("list_sessions", {})).content
                assert content.type == "text"
                return str(content.text)

    found = json.loads(asyncio.run(ask()))["untrusted"]["sessions"]
    assert {one["id"] for one in found} == {ROOT, "other-one"}


@contextmanager
def serving(home: Path) -> Iterator[tuple[str, Path, subprocess.Popen[str]]]:
    """A server over HTTP: its address, the file of its token, and the process."""
    command = [*COMMAND, "mcp", "--home", str(home), "--http", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=home) as process:
        try:
            assert process.stderr is not None
            url, token = process.stderr.readline().strip(), process.stderr.readline().strip()
            yield url, Path(token.removeprefix("token: ")), process
        finally:
            process.terminate()
            process.communicate()


def test_over_http(home: Path) -> None:
    with serving(home) as (url, token, _):
        assert stat.S_IMODE(token.stat().st_mode) == 0o600
        assert stat.S_IMODE(token.parent.stat().st_mode) == 0o700

        async def ask(mode: str) -> tuple[int, Any, str]:
            headers = {"Authorization": f"Bearer {token.read_text().strip()}"}
            async with (
                httpx2.AsyncClient(headers=headers) as http,
                Client(streamable_http_client(url, http_client=http), mode=mode) as client,
            ):
                return await used(client)

        check(asyncio.run(ask("auto")))
        check(asyncio.run(ask("legacy")))


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="no count of wake-ups")
def test_an_idle_server_sleeps(home: Path) -> None:
    with serving(home) as (url, _, process):
        assert httpx2.post(url, json=QUESTION).status_code == 401
        time.sleep(1)
        before = wakeups(process.pid)
        time.sleep(1.5)
        assert wakeups(process.pid) - before <= 1


def test_what_http_refuses(home: Path) -> None:
    with serving(home) as (url, place, process):
        token = place.read_text().strip()
        origin = url.removesuffix("/mcp")
        good = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}

        def status(headers: dict[str, str], path: str = url) -> int:
            return int(httpx2.post(path, json=QUESTION, headers=headers).status_code)

        assert status(good) == 200
        assert status(good | {"Origin": origin, "Sec-Fetch-Site": "same-origin"}) == 200
        assert status({}) == 401
        assert status(good | {"Authorization": "Bearer x"}) == 401
        assert status(good | {"Authorization": token}) == 401
        assert status({"Cookie": f"token={token}"}, f"{url}?token={token}") == 401
        assert status(good | {"Host": "evil.example"}) == 421, "a name that leads to 127.0.0.1"
        assert status(good | {"Origin": "http://evil.example"}) == 403
        assert status(good | {"Origin": "null"}) == 403
        assert status(good | {"Sec-Fetch-Site": "cross-site"}) == 403
        assert status(good | {"Sec-Fetch-Site": "same-site"}) == 403, "another port of this machine"
        large = httpx2.post(
            url, content=b"[" * (2 << 20), headers=good | {"Content-Type": "application/json"}
        )
        assert large.status_code == 413
        shown = Path(f"/proc/{process.pid}/cmdline")
        if shown.exists():
            assert token.encode() not in shown.read_bytes()


def test_http_listens_on_this_machine_only(home: Path) -> None:
    from sessionary.http_server import listen

    with listen(0) as listener:
        assert listener.getsockname()[0] == "127.0.0.1"


def test_the_token_is_new_at_each_start_and_gone_at_the_end(home: Path) -> None:
    tokens = []
    for end in (signal.SIGTERM, signal.SIGINT):
        with serving(home) as (_, place, process):
            tokens.append(place.read_text())
            process.send_signal(end)
            process.wait(60)
            assert not place.exists()
    assert tokens[0] != tokens[1]
    assert min(map(len, tokens)) > 40


def test_a_port_in_use_is_refused(home: Path) -> None:
    with serving(home) as (url, place, _):
        port = url.removesuffix("/mcp").rpartition(":")[2]
        done = run("mcp", "--home", str(home), "--http", port)
        assert done.returncode == 12
        assert f"port {port} cannot be used" in done.stderr
        assert place.exists(), "the token of the server that runs"


def test_a_home_that_is_missing_is_refused(tmp_path: Path) -> None:
    done = run("mcp", "--home", str(tmp_path / "gone"))
    assert done.returncode == 10
    assert "gone" in done.stderr


def test_without_the_extra_the_error_names_it(home: Path) -> None:
    hidden = "import sys; sys.modules['mcp'] = None; from sessionary.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", hidden, "mcp", "--home", str(home)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 18
    assert done.stderr.splitlines() == [
        "sessionary: the MCP server needs the package mcp",
        "  pip install 'sessionary[mcp]'",
    ]


def test_no_other_command_loads_it(home: Path) -> None:
    code = (
        "import sys; from sessionary.cli import main; main(sys.argv[1:]);"
        "sys.exit(any(name in sys.modules for name in ('mcp', 'starlette', 'uvicorn', 'pydantic', 'anyio')))"
    )
    for words in (["list"], ["search", "cache"], ["mcp", "--help"]):
        home_words = [] if "--help" in words else ["--home", str(home)]
        done = subprocess.run(
            [sys.executable, "-c", code, *words, *home_words], capture_output=True, check=False
        )
        assert done.returncode == 0, words


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *words], capture_output=True, text=True, check=False, timeout=60)
