"""Every code that a problem of a brainstorm session may have is in its page, and every word of a closed list too."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from sessionary.codec.yaml_read import _REMEDIES
from sessionary.layouts.brainstorm import constants, texts
from sessionary.layouts.brainstorm.fields import ENTRY, IDEA, PANEL, PARTY, SESSION, TECHNIQUE
from sessionary.layouts.clock import FUTURE_TIME
from sessionary.layouts.conflict_copies import CONFLICT_COPY, NOT_DOWNLOADED
from sessionary.model import Severity

MAKERS = ("Problem", "Problem.of_file")
REPO = Path(__file__).resolve().parents[2]
PAGE = (REPO / "docs" / "formats" / "brainstorm.md").read_text("utf-8")
SOURCE = REPO / "src" / "sessionary" / "layouts" / "brainstorm"
CODE = re.compile(r"[a-z]+(?:_[a-z0-9]+)*")


def section(heading: str) -> str:
    return PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def codes() -> Iterator[str]:
    """The codes that the source gives to faults and problems, and those of files that are not YAML."""
    yield from _REMEDIES
    yield from (CONFLICT_COPY, FUTURE_TIME, NOT_DOWNLOADED)
    yield from ("unknown_version", "unreadable_file")  # those of a refusal stand in the details of its error
    for path in sorted(SOURCE.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            is_fault = isinstance(node.func, ast.Attribute) and node.func.attr == "add" and len(node.args) > 2
            is_problem = ast.unparse(node.func) in MAKERS
            if (is_fault or is_problem) and isinstance(node.args[0], ast.Constant | ast.IfExp):
                for part in ast.walk(node.args[0]):
                    if isinstance(part, ast.Constant) and CODE.fullmatch(str(part.value)):
                        yield str(part.value)


def test_every_code_has_a_row_and_every_row_a_code() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \|", section("Problem codes"), re.MULTILINE)
    assert {"defaulted_field", "bad_yaml", "low_score", "odd_value"} <= set(codes())
    assert sorted(code for code, _ in rows) == sorted(set(codes()))
    assert {severity for _, severity in rows} <= {severity.name for severity in Severity}


def test_every_word_of_a_closed_list_is_reported() -> None:
    reported = re.findall(r"`(\w+)`", section("Closed lists"))
    lists = "STATUSES PHASES MODES PERSONAS SOURCES PANEL_PHASES".split()
    assert reported == [word for name in lists for word in getattr(constants, name)]


def test_every_field_is_reported() -> None:
    reported = set(re.findall(r"`(\w+)`", section("The file")))
    tables = [SESSION, TECHNIQUE, PARTY, PANEL, IDEA, ENTRY]
    inner = [rule.table for table in tables for rule in table.values() if rule.table]
    assert {name for table in [*tables, *inner] for name in table} <= reported


def test_the_summary_of_a_jump_is_what_is_shown() -> None:
    asked = ["Quel mecanisme de revocation?", "Comment gerer le multi-device?"]
    from sessionary.layouts.brainstorm.navigation import Jump

    jump = Jump(2, (5, 3), (68, 52), ("transition", "divergent"), asked)
    assert f"```text\n{texts.jump_summary(jump, 'fr')}\n```" in PAGE
