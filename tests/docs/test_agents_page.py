"""docs/agents.md lists every agent, with the command that continues a session."""

import re
from pathlib import Path

from sessionary.layouts.abilities import Resumes
from sessionary.layouts.amplifier.layout import AmplifierLayout
from sessionary.layouts.base import Capability, Layout
from sessionary.layouts.registry import AGENTS
from sessionary.model import SessionRef

REPO = Path(__file__).resolve().parents[2]
PAGE = (REPO / "docs" / "agents.md").read_text("utf-8")
ROWS = dict(re.findall(r"^\| `(\w+)` \|.*\| `([^`]+)` \|$", PAGE, re.MULTILINE))


def test_every_agent_has_its_row_and_its_command() -> None:
    layouts: list[Layout] = [AmplifierLayout(REPO), *(agent(REPO) for agent in AGENTS)]
    assert sorted(ROWS) == sorted(layout.name for layout in layouts)
    for layout in layouts:
        kind = layout.name
        assert Capability.RESUME in layout.capabilities
        assert isinstance(layout, Resumes)
        assert " ".join(layout.resume_command(SessionRef(kind, "ID", "FILE"))) == ROWS[kind]


def test_every_agent_has_a_page() -> None:
    for agent in AGENTS:
        page = f"formats/{agent.name.replace('_', '-')}.md"
        assert f"({page})" in PAGE
        assert (REPO / "docs" / page).exists()
