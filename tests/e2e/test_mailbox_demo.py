"""The demonstration of the mailbox kills what it says it kills, and notices what it says it would."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from sessionary.testing.mailbox_demo import MailboxBroken, demonstrate_mailbox

pytestmark = pytest.mark.lane("sigkill")

ROW = re.compile(r"^   (\d+) +(producer|consumer) +(writing a message|applying \w+) +(\d+) +(\d+)$")


def test_it_tells_what_it_did_and_the_facts_agree(tmp_path: Path) -> None:
    told = list(demonstrate_mailbox(tmp_path / "s", kills=2, seed=3))
    rows = [match.groups() for line in told if (match := ROW.match(line))]
    assert [row[1] for row in rows] == ["producer", "consumer"] * 2
    end = re.match(r"   A last consumer runs to the end: (\d+) messages, (\d+) lines in the log.", told[-3])
    assert end
    assert end[1] == end[2] == str((tmp_path / "s" / "log.jsonl").read_bytes().count(b"\n"))
    assert int(rows[-1][3]) <= int(end[1])
    assert [int(row[4]) for row in rows] == [0, 2, 2, 4]  # each consumer applied two before its last one
    assert told[-2] == f"   All {rows[-1][3]} acknowledged messages are among them; none is applied twice."


def lose_a_message(session: Path) -> None:
    sorted((session / "breadcrumbs" / "0").glob("*.json"))[0].unlink()


def double_a_line(session: Path) -> None:
    path = session / "log.jsonl"
    path.write_bytes(path.read_bytes() + path.read_bytes().split(b"\n")[0] + b"\n")


def swallow_a_message(session: Path) -> None:
    path = session / "attempts.work.jsonl"
    name = sorted((session / "breadcrumbs" / "0").glob("*.json"))[-1].name
    path.write_bytes(b'{"at": "t", "what": "dead", "id": "x", "file": "0/%s"}\n' % name.encode())


@pytest.mark.parametrize(
    ("meddle", "complaint"),
    [
        (lose_a_message, "1 are lost"),
        (double_a_line, "1 messages were applied twice"),
        (swallow_a_message, "were never applied"),
    ],
)
def test_a_planted_fault_is_noticed(meddle: Callable[[Path], None], complaint: str, tmp_path: Path) -> None:
    with pytest.raises(MailboxBroken, match=complaint):
        list(demonstrate_mailbox(tmp_path / "s", kills=1, seed=1, meddle=meddle))
