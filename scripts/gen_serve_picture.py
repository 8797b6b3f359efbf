"""Write docs/serve.png, the picture of the page in the README: a session of the home of docs/screens.md, in Chromium.

Pixels differ from machine to machine, so nothing compares them; run this when the page has changed, and look at it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from scripts import gen_screens
from scripts.generated import REPO

PICTURE = REPO / "docs" / "serve.png"


def draw(home: Path) -> None:
    """Take the picture of the sessions below a folder.

    Raises:
        RuntimeError: Chromium is missing.
    """
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium")
    if program is None:
        raise RuntimeError("there is no chromium in PATH")
    script = str(Path(sys.executable).with_name("sessionary"))
    command = [script, "serve", "--no-open", "--read-only", "--home", str(home)]
    variables = {**os.environ, "XDG_CACHE_HOME": f"{home}/../cache", "XDG_DATA_HOME": f"{home}/../data"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=variables) as process:
        try:
            assert process.stdout is not None
            link = process.stdout.readline().strip()
            with sync_playwright() as started:
                browser = started.chromium.launch(
                    executable_path=program, args=["--no-sandbox", "--disable-gpu"]
                )
                page = browser.new_context(
                    viewport={"width": 960, "height": 540}, color_scheme="light"
                ).new_page()
                page.clock.install(time=gen_screens.NOW)
                page.goto(link)
                page.locator("a.session", has_text="login").first.click()
                page.locator("article.agent .text").first.wait_for()
                page.clock.run_for(1000)
                page.wait_for_timeout(500)
                page.screenshot(path=PICTURE)
                browser.close()
        finally:
            process.terminate()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place, gen_screens._surroundings(place):
        gen_screens._make_home(Path(place, ".amplifier"))
        draw(Path(place, ".amplifier"))
