"""Every code that a problem may have is in the documents, with the severity that the code gives it."""

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from sessionary.codec import CODES
from sessionary.codec.sanitize import __doc__ as forms
from sessionary.layouts.amplifier.messages import SECRET_KEYS
from sessionary.layouts.clock import FUTURE_TIME
from sessionary.layouts.conflict_copies import CONFLICT_COPY, NOT_DOWNLOADED
from sessionary.model import Severity

REPO = Path(__file__).resolve().parents[2]
PAGE = (REPO / "docs" / "formats" / "amplifier.md").read_text("utf-8")
ROW = re.compile(r"^\| `(\w+)` \| (\w+) \|(?: (yes|no) \|)? (.+) \|$", re.MULTILINE)
MAKERS = {"Problem", "Problem.of_file", "note"}
TABLES = {"_REMEDIES"}  # dicts whose keys are codes


def codes_in(source: str) -> Iterator[str]:
    """The first words of all calls that make a problem, and the keys of the tables of codes."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in MAKERS:
            yield from _texts(node.args[:1])
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            names = {target.id for target in node.targets if isinstance(target, ast.Name)}
            if names & TABLES:
                yield from _texts(node.value.keys)


def _texts(nodes: Sequence[ast.expr | None]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def codes_of_the_layout() -> set[str]:
    source = REPO / "src" / "sessionary"
    files = [
        *(source / "layouts" / "amplifier").glob("*.py"),
        source / "disk" / "mounts.py",
        source / "workspace" / "__init__.py",
    ]
    found = {code for path in files for code in codes_in(path.read_text("utf-8"))}
    return found | {CONFLICT_COPY, NOT_DOWNLOADED, FUTURE_TIME}


def rows() -> dict[str, tuple[str, str]]:
    """Code -> its severity and whether it stops a strict reader, as the page has it."""
    return {code: (severity, stops) for code, severity, stops, _ in ROW.findall(PAGE)}


def test_the_scan_finds_codes_of_all_kinds() -> None:
    assert {"conflict_kept", "no_metadata", "orphaned_call", "recovered_backup"} <= codes_of_the_layout()


def test_every_code_has_a_row_and_every_row_a_code() -> None:
    written = [code for code, *_ in ROW.findall(PAGE)]
    assert sorted(written) == sorted({*CODES, *codes_of_the_layout()})


def test_the_severities_of_lines_are_those_of_the_code() -> None:
    documented = rows()
    expected = {code: (row.severity.name, "yes" if row.stops else "no") for code, row in CODES.items()}
    assert {code: documented[code] for code in CODES} == expected


def test_every_severity_of_the_page_exists() -> None:
    assert {severity for severity, _ in rows().values()} <= {severity.name for severity in Severity}
    explained = re.findall(r"^\| `(\w+)` \| (?!\w+ \|)", PAGE, re.MULTILINE)
    assert [severity.name for severity in Severity] == explained[: len(Severity)]


def test_the_table_of_forms_is_that_of_the_code() -> None:
    table = re.findall(r"^    (\S.*?)  +(\S.*)$", forms or "", re.MULTILINE)
    assert len(table) > 20
    page = PAGE.partition("## Stored values")[2].partition("\n## ")[0]
    documented = [left for left, _ in re.findall(r"^\| (.+?) \| (.+) \|$", page, re.MULTILINE)]
    wanted = [left.replace("``", "`") for left, right in table if not left.startswith("---")]
    assert documented == wanted


def test_every_secret_key_is_documented() -> None:
    section = PAGE.partition("## Secrets")[2].partition("\n## ")[0]
    assert sorted(SECRET_KEYS) == sorted(re.findall(r"`([a-z_-]+)`", section.partition("That is")[0]))
