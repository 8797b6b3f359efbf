"""The error messages in the tables of the pages on sync are those of the code."""

import ast
import re
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
OF_SERVERS = ("cannot execute INSERT", "password authentication failed", "error sending request")
TABLE = re.compile(r"^\| (.+?) \| .+ \|$", re.MULTILINE)


def texts() -> str:
    """Every text in the source, one a line, with an ellipsis for each value."""
    found = []
    for path in (REPO / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
            elif isinstance(node, ast.JoinedStr):
                parts = [str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values]
                found.append("".join(parts))
    return "\n".join(found)


def messages(page: str) -> list[str]:
    text = (REPO / "docs" / "howto" / page).read_text("utf-8")
    section = text.partition("\n## Error messages\n")[2].partition("\n## ")[0]
    cells = [cell for cell in TABLE.findall(section) if cell not in ("message", "---")]
    quoted = [message for cell in cells for message in re.findall(r"`([^`]+)`", cell)]
    return quoted or cells


@pytest.mark.parametrize("page", ["sync.md", "sync-s3.md", "sync-cosmos.md"])
def test_the_messages_of_a_page_are_those_of_the_code(page: str) -> None:
    source, wrong = texts(), []
    found = messages(page)
    assert len(found) > 8
    for message in found:
        if any(words in message for words in OF_SERVERS):
            continue
        fragments = [part.strip() for part in re.split(r"…|: |\b\d+(?:, \d+)*\b|\bbehind\b", message)]
        wrong += [f"{message}: {part}" for part in fragments if part and part not in source]
    assert wrong == []
