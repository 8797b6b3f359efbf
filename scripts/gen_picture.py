"""Write docs/terminal.svg, the picture in the README: real output of a few commands, in colour.

The home, the clock and the width are those of docs/screens.md; rich draws the picture from the escape codes that the
commands print, so that it changes only when their output does.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from unittest import mock

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from scripts import gen_screens
from scripts.generated import publish

COMMANDS = ("list --all", "search login --limit 2", "check 9e55", "rewind 7b2e 1 --dry-run")

# That of rich without the fonts that it loads from the network: a picture in a README may load nothing.
SVG = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<!-- Written by `make docs` from real output; change the code, or scripts/gen_picture.py. -->
<title>sessionary list, check, search and rewind in a terminal</title>
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: arial; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def picture() -> str:
    """The whole SVG document."""
    with open(os.devnull, "w") as nowhere:
        console = Console(
            record=True, width=gen_screens.WIDTH, file=nowhere, force_terminal=True, color_system="truecolor"
        )
        for number, (command, shown) in enumerate(_screens()):
            console.print(Text.assemble("\n" if number else "", ("$ ", "green"), f"sessionary {command}"))
            console.print(Text.from_ansi(shown.strip("\n")))
        svg = console.export_svg(title="sessionary", theme=MONOKAI, code_format=SVG, unique_id="sessionary")
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


def _screens() -> list[tuple[str, str]]:
    with tempfile.TemporaryDirectory() as place, gen_screens._surroundings(place):
        gen_screens._make_home(Path(place, ".amplifier"))
        with mock.patch.dict(os.environ):
            del os.environ["NO_COLOR"]
            return [(command, gen_screens._screen(command, place)) for command in COMMANDS]


if __name__ == "__main__":
    sys.exit(publish("terminal.svg", picture(), sys.argv[1:]))
