"""What the page of `sessionary serve` takes in Chromium: a long list, long sessions, search while the user types.

Times of the page are those of its own clock, from the start of its navigation or from the input event of the last key,
to the frame that shows the result. agentsview is installed into the folder of the benchmark and reads the same store.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.agent_stores import FREQUENT, write_stores
from benchmarks.harness import Measurement, settle

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SESSIONS, SIZE = 10_000, 8_000
SEARCHED, SEARCHED_SIZE = 3_000, 100_000
"""Sessions of 25 kB and of 115 kB, since each ends with a whole turn: 260 MB and 350 MB."""
RARE = "xylographer"
"""A word of the last answer of the oldest session, which is searched last."""
LONG, LARGE = 3_000, 100_000_000
ROUNDS = 7
AGENTSVIEW = "agentsview==0.46.1"
_PATIENCE = 60_000
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
  if (document.querySelector("a.hit mark")) painted("hit");
}).observe(document, { childList: true, subtree: true, attributes: true, attributeFilter: ["class"] });
addEventListener("input", () => { seen = {}; seen.key = performance.now(); }, true);
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
    """A long list: usable, complete, scrolled."""
    home = place / "home"
    write_stores(home, SESSIONS, SIZE)
    settle()
    with _chromium() as browser:
        with _serving(home, place / "cache") as server, _page(browser) as page:
            page.goto(server.link)  # the first catalogue
            _seen(page, "complete")
            first = time.monotonic()
        with _serving(home, place / "cache") as server:
            usable, complete, longest = [], [], []
            for _ in range(ROUNDS):
                idle = _empty(browser, server)
                with _page(browser) as page:
                    page.goto(server.link)
                    usable.append(_seen(page, "list") - idle)
                    complete.append(_seen(page, "complete") - idle)
                    longest.append(_scrolled(page))
            memory = server.memory()
            busy = server.busy()
            with _page(browser) as page:
                page.goto(server.link)
                _seen(page, "complete")
                time.sleep(2)
                busy = server.busy()
                time.sleep(_IDLE)
                busy = server.busy() - busy
    del first
    return [
        Measurement(
            median(usable),
            f"{min(usable):.0f} to {max(usable):.0f} ms; all of them {median(complete):.0f} ms",
        ),
        Measurement(median(longest), f"longest task, {min(longest):.0f} to {max(longest):.0f} ms"),
        Measurement(100 * busy / _IDLE, f"{busy:.2f} s of processor time in {_IDLE} s; {memory:.0f} MiB"),
    ]


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
    common, rare, after = [], [], []
    with _chromium() as browser, _serving(home, place / "cache") as server, _page(browser) as page:
        page.goto(server.link)
        _seen(page, "complete")
        time.sleep(3)
        for _ in range(ROUNDS):
            common.append(_typed(page, FREQUENT))
            rare.append(_typed(page, RARE))
            page.fill("#search", f"no{RARE}")
            page.wait_for_timeout(100)
            after.append(_typed(page, FREQUENT, clear=False))
    more = [late - alone for late, alone in zip(after, common, strict=True)]
    total = sum(path.stat().st_size for path in paths)
    what = f"{len(paths):,} files, {total / 1e6:.0f} MB"
    return [
        Measurement(median(common), f"{min(common):.0f} to {max(common):.0f} ms; {what}"),
        Measurement(median(rare), f"{min(rare):.0f} to {max(rare):.0f} ms"),
        Measurement(median(more), f"{min(more):.0f} to {max(more):.0f} ms"),
    ]


def _typed(page: Page, word: str, *, clear: bool = True) -> float:
    """Milliseconds from the last key of a word to its first hit."""
    if clear:
        page.fill("#search", "")
        page.wait_for_timeout(300)
    page.fill("#search", word)
    return _seen(page, "hit") - float(page.evaluate("seen.key"))


def _end_with(path: Path, word: str) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    at = max(number for number, line in enumerate(lines) if FREQUENT.encode() in line)
    lines[at] = lines[at].replace(FREQUENT.encode(), word.encode())
    path.write_bytes(b"".join(lines))
    os.utime(path, (0, 0))
