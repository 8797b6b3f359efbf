"""What the page of `sessionary serve` takes in Chromium: a long list, long sessions, search while the user types.

Times of the page are those of its own clock, from the start of its navigation or from the input event of the last key,
to the frame that shows the result.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.agent_stores import FREQUENT, write_stores
from benchmarks.agents import LARGE
from benchmarks.harness import Benchmark, Limit, Measurement, Row, settle
from benchmarks.samples import messages, write_session

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SESSIONS, SIZE = 10_000, 8_000
SEARCHED, SEARCHED_SIZE = 3_000, 100_000
"""Sessions of 25 kB and of 115 kB, since each ends with a whole turn: 260 MB and 350 MB."""
RARE = "xylographer"
"""A word of the last answer of the oldest session, which is searched last."""
LONG = 3_000
ROUNDS = 7
_PATIENCE = 300_000
_IDLE = 5

# Notes when the first row, the whole list, a message and a hit are on the screen. A task behind a frame runs when that
# frame is painted.
_CLOCK = """
window.seen = {};
window.tasks = [];
const noted = (list) => tasks.push(...list.getEntries().map((one) => one.duration));
new PerformanceObserver(noted).observe({ type: "longtask" });
const painted = (name) => {
  if (name in seen) return;
  seen[name] = null;
  requestAnimationFrame(() => setTimeout(() => (seen[name] = performance.now())));
};
new MutationObserver(() => {
  if (document.querySelector("body.ready a.session")) painted("list");
  if (document.querySelector("body.complete a.session")) painted("complete");
  if (document.querySelector("article.message")) painted("message");
  if (document.querySelector(".live")?.textContent === "following") painted("whole");
  const last = document.querySelector(".transcript .room > :last-child");
  if (last && last.ariaPosInSet === last.ariaSetSize) painted("last");
  if (document.querySelector("a.hit mark")) painted("hit");
}).observe(document, { childList: true, subtree: true, attributes: true, attributeFilter: ["class"] });
const begun = () => { seen = {}; seen.key = performance.now(); };
addEventListener("input", begun, true);
addEventListener("keydown", (event) => { if (event.key === "G") begun(); }, true);
"""

# Playwright's own waiting evaluates text in the page, which the policy of the page forbids.
_WAIT = """([name, most]) => new Promise((done, failed) => {
  const look = () => {
    if (seen[name] > 0) done(seen[name]);
    else if (performance.now() > most) failed(new Error(`${name} was not seen`));
    else setTimeout(look, 20);
  };
  look();
})"""


class _Server(NamedTuple):
    """A server that was started.

    Attributes:
        link: its address, with the token.
        process: its process.
    """

    link: str
    process: subprocess.Popen[str]

    @property
    def root(self) -> str:
        return self.link.partition("#")[0]

    def memory(self, field: str = "VmHWM") -> float:
        """MiB of memory, at most so far."""
        status = Path(f"/proc/{self.process.pid}/status").read_text("ascii")
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(field)) / 1024

    def busy(self) -> float:
        """Seconds of processor time so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text("ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _serving(home: Path, cache: Path) -> Iterator[_Server]:
    script = str(Path(sys.executable).with_name("sessionary"))
    command = [script, "serve", "--no-open", "--home", str(home)]
    with _started(command, {"XDG_CACHE_HOME": str(cache), "XDG_DATA_HOME": str(cache / "data")}) as process:
        assert process.stdout is not None
        yield _Server(process.stdout.readline().strip(), process)


@contextmanager
def _started(command: Sequence[str], variables: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**environment, **variables})
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=30)


@contextmanager
def _chromium() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    found = shutil.which("chromium")
    if found is None:
        raise RuntimeError("there is no chromium")
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@contextmanager
def _page(browser: Browser) -> Iterator[Page]:
    """A page of a new profile: nothing is cached."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.add_init_script(_CLOCK)
    page = context.new_page()
    page.set_default_timeout(_PATIENCE)
    yield page
    context.close()


def _seen(page: Page, name: str) -> float:
    """Milliseconds at which something was on the screen."""
    return float(page.evaluate(_WAIT, [name, _PATIENCE]))


def _empty(browser: Browser, server: _Server) -> float:
    """Milliseconds to a page of the server that has nothing."""
    with _page(browser) as page:
        page.goto(f"{server.root}static/none")
        script = (
            "new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(performance.now()))))"
        )
        return float(page.evaluate(script))


def _list(place: Path) -> list[Measurement]:
    """A long list: usable, scrolled, idle."""
    home = place / "home"
    write_stores(home, SESSIONS, SIZE)
    settle()
    _catalogued(home, place / "cache")
    usable, complete, longest = [], [], []
    with _chromium() as browser, _serving(home, place / "cache") as server:
        _rows(server)
        for _ in range(ROUNDS):
            empty = _empty(browser, server)
            with _page(browser) as page:
                page.goto(server.link)
                usable.append(_seen(page, "list") - empty)
                complete.append(_seen(page, "complete") - empty)
                longest.append(_scrolled(page))
        with _page(browser) as page:
            page.goto(server.link)
            _seen(page, "complete")
            time.sleep(_IDLE)  # a second after it was loaded, the page has the list refreshed
            before = server.busy()
            time.sleep(_IDLE)
            busy = server.busy() - before
    return [
        Measurement(median(usable), f"{_range(usable)}; with all rows {median(complete):.0f} ms"),
        Measurement(median(longest), _range(longest)),
        Measurement(100 * busy / _IDLE, f"{busy:.2f} s of processor time in {_IDLE} s"),
    ]


def _catalogued(home: Path, cache: Path) -> float:
    """Seconds from the start of the server, with nothing catalogued, until its list has all sessions."""
    start = time.perf_counter()
    with _serving(home, cache) as server:
        _rows(server)
        return time.perf_counter() - start


def _rows(server: _Server) -> list[dict[str, Any]]:
    """The rows of the list, once the server has it."""
    token = server.link.partition("#token=")[2]
    asked = urllib.request.Request(f"{server.root}api/sessions", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(asked) as answer:
        _, *groups = map(json.loads, answer)
    return [row for group in groups for row in group]


def _range(milliseconds: Sequence[float]) -> str:
    return f"{min(milliseconds):.0f} to {max(milliseconds):.0f} ms"


def _scrolled(page: Page) -> float:
    """Milliseconds of the longest task while the list is scrolled from its start to its end."""
    page.evaluate("tasks.length = 0")
    script = """async () => {
      const list = document.getElementById("list");
      for (let step = 0; step <= 100; step++) {
        list.scrollTop = (list.scrollHeight - list.clientHeight) * step / 100;
        await new Promise((done) => requestAnimationFrame(done));
      }
      return Math.max(0, ...tasks);
    }"""
    return float(page.evaluate(script))


def _search(place: Path) -> list[Measurement]:
    """Search while the user types: from the key to the first row."""
    home = place / "home"
    paths = write_stores(home, SEARCHED, SEARCHED_SIZE).paths
    _end_with(next(path for path in paths if "projects" in path.parts), RARE)
    settle()
    _catalogued(home, place / "cache")
    common, rare, after = [], [], []
    with (
        _chromium() as browser,
        _serving(home, place / "cache") as server,
        _page(browser) as page,
    ):
        page.goto(server.link)
        _seen(page, "complete")
        time.sleep(_IDLE)
        for _ in range(ROUNDS):
            common.append(_typed(page, FREQUENT))
            rare.append(_typed(page, RARE))
            page.fill("#search", "")
            page.wait_for_timeout(300)
            page.fill("#search", f"no{RARE}")
            page.wait_for_timeout(100)
            after.append(_typed(page, FREQUENT, clear=False))
    more = [late - alone for late, alone in zip(after, common, strict=True)]
    total = sum(path.stat().st_size for path in paths)
    return [
        Measurement(
            median(common),
            f"{_range(common)}; {len(paths):,} files, {total / 1e6:.0f} MB",
        ),
        Measurement(median(rare), f"{_range(rare)}, only in the session that is searched last"),
        Measurement(median(more), _range(more)),
    ]


def _typed(page: Page, word: str, *, clear: bool = True) -> float:
    """Milliseconds from the last key of a word to its first hit."""
    if clear:
        page.fill("#search", "")
        page.wait_for_timeout(300)
    page.fill("#search", word)
    return _seen(page, "hit") - float(page.evaluate("seen.key"))


def _end_with(path: Path, word: str) -> None:
    """Write a word into the last answer of a session."""
    before, _, after = path.read_bytes().rpartition(FREQUENT.encode())
    path.write_bytes(before + word.encode() + after)


def _long(place: Path) -> list[Measurement]:
    """A session of many messages, and one of many bytes."""
    home = place / "home"
    write_session(home / "projects" / "-home-u-app" / "sessions" / "long", messages(LONG))
    truth = write_stores(home, 2, LARGE)
    large = max(truth.paths, key=lambda path: path.stat().st_size)
    settle()
    _catalogued(home, place / "cache")
    usable, jump, opened = [], [], []
    with _chromium() as browser, _serving(home, place / "cache") as server:
        for _ in range(ROUNDS):
            empty = _empty(browser, server)
            with _page(browser) as page:
                _open(page, server, "long")
                usable.append(_seen(page, "message") - empty)
                _seen(page, "whole")
                page.locator(".transcript").focus()
                page.keyboard.press("G")
                jump.append(_seen(page, "last") - float(page.evaluate("seen.key")))
            with _page(browser) as page:
                _open(page, server, large.stem[-36:])
                opened.append(_seen(page, "message"))
        with _page(browser) as page:
            _open(page, server, large.stem[-36:])
            _seen(page, "whole")
            memory = server.memory()
    return [
        Measurement(median(usable), _range(usable)),
        Measurement(median(jump), _range(jump)),
        Measurement(
            median(opened),
            f"{_range(opened)}; {large.stat().st_size / 1e6:.0f} MB of {large.parts[-2][:8]}",
        ),
        Measurement(memory, "at most, after all of it was read"),
    ]


def _open(page: Page, server: _Server, session: str) -> None:
    """Load the page at the address of a session."""
    key = next(row["key"] for row in _rows(server) if row["id"] == session)
    page.goto(server.link)  # from now on this tab has the token
    _seen(page, "complete")
    page.evaluate(f"location.hash = '#/s/{key}'")
    page.reload()


_EMPTY = "an empty page of the same server"
BENCHMARKS = (
    Benchmark(
        "viewer-list",
        (
            Row(
                f"`sessionary serve`, {SESSIONS:,} sessions: the list is usable",
                _EMPTY,
                Limit(150, unit=" ms more"),
            ),
            Row("the longest task while it is scrolled", "-", Limit(50, unit=" ms")),
            Row(
                "processor time of the server while nothing happens",
                "-",
                Limit(0.0, unit=" %"),
            ),
        ),
        _list,
    ),
    Benchmark(
        "viewer-search",
        (
            Row(
                "`sessionary serve`, search as you type: key to first row, a word of every answer",
                "-",
                Limit(150, unit=" ms"),
            ),
            Row("the same, a word of one session", "-", Limit(300, unit=" ms")),
            Row(
                "what a search that is superseded adds to the next one",
                "-",
                Limit(20, unit=" ms"),
            ),
        ),
        _search,
    ),
    Benchmark(
        "viewer-session",
        (
            Row(
                f"`sessionary serve`, a session of {LONG:,} messages is usable",
                _EMPTY,
                Limit(200, unit=" ms more"),
            ),
            Row("jump to its last message", "-", Limit(100, unit=" ms")),
            Row(
                "a session of 100 MB is open, the page included",
                "-",
                Limit(1000, unit=" ms"),
            ),
            Row("the memory of the server after that", "-", Limit(150, unit=" MiB")),
        ),
        _long,
    ),
)
