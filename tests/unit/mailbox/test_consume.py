"""Each message is applied once, in order; what cannot be applied is reported and kept."""

import inspect
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sessionary import Invalid, InvalidId, Locked, Mailbox, NotFound, run_inbox
from sessionary.disk.fs import OS_FS
from sessionary.disk.lock import FileLock
from sessionary.layouts.maestro.records import Breadcrumb
from sessionary.mailbox import delivery as round_
from sessionary.mailbox.ledger import Ledger, entry
from sessionary.mailbox.message_lock import Claim
from sessionary.testing.wrapper import UNSYNCED, WrappedFs
from tests.in_place import change_in_place
from tests.messages import echo, lines, log, message, prompts, put

LATER = timedelta(seconds=10)


def later() -> datetime:
    return datetime.now(UTC) + LATER


def refuse(crumb: Breadcrumb) -> None:
    raise RuntimeError(f"not {crumb.prompt}")


def codes(problems: Any) -> list[str]:
    return [found.code for found in problems]


@pytest.fixture
def no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch ends with its last line, not by the clock, however slow the machine is."""
    monkeypatch.setattr(round_, "SECONDS", 600.0)


# -- applying


def test_the_signatures_are_those_of_the_specification() -> None:
    reported: dict[Callable[..., Any], str] = {
        Mailbox: "session_dir, consumer='work', *, shared=False",
        # The last one is ours, for a mailbox that another device consumes.
        Mailbox.consume: "self, handler, *, limit=None, timeout=5.0, delivery='at_least_once', max_attempts=5, "
        "take_over=False",
        Mailbox.pending: "self",
        Mailbox.status: "self",
    }
    for call, wanted in reported.items():
        signature = inspect.signature(call)
        plain = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
        assert str(signature.replace(parameters=plain, return_annotation=signature.empty)) == f"({wanted})"
    first = list(inspect.signature(run_inbox).parameters.values())[:4]
    assert [(each.name, each.default) for each in first[2:]] == [("interval", 1.0), ("stop", None)]
    assert [each.name for each in first[:2]] == ["session_id", "apply"]


def test_each_message_is_one_line_that_carries_its_id_its_time_and_the_result(tmp_path: Path) -> None:
    first, second = put(tmp_path, "a", number=1), put(tmp_path, "b", number=2, depth=3)
    results = {"a": {"done": True, "umlaut": "ä"}, "b": None}
    report = Mailbox(tmp_path).consume(lambda crumb: results[crumb.prompt])
    assert (report.applied, report.pending, report.problems) == (2, 0, [])
    one, two = log(tmp_path)
    assert one.pop("applied_at") <= two.pop("applied_at")
    assert one == {
        "breadcrumb_id": first.breadcrumb_id,
        "file": f"0/{first.timestamp}.json",
        "result": {"done": True, "umlaut": "ä"},
    }
    assert two == {
        "breadcrumb_id": second.breadcrumb_id,
        "file": f"3/{second.timestamp}.json",
        "result": None,
    }


def test_messages_are_applied_in_the_order_of_their_times_whatever_their_depth(tmp_path: Path) -> None:
    for number, depth in ((3, 0), (1, 1), (2, 0), (1, 0)):
        put(tmp_path, f"{number}.{depth}", number=number, depth=depth)
    mailbox = Mailbox(tmp_path)
    assert [crumb.prompt for crumb in mailbox.pending()] == ["1.0", "1.1", "2.0", "3.0"]
    mailbox.consume(echo)
    assert prompts(tmp_path) == ["1.0", "1.1", "2.0", "3.0"]


def test_no_consumer_applies_a_message_twice(tmp_path: Path) -> None:
    put(tmp_path, "a")
    mailbox = Mailbox(tmp_path)
    assert mailbox.consume(echo).applied == 1
    assert mailbox.consume(refuse).applied == 0
    assert Mailbox(tmp_path).consume(refuse).applied == 0
    assert mailbox.pending() == Mailbox(tmp_path).pending() == []
    assert len(log(tmp_path)) == 1


def test_a_late_message_with_an_older_time_or_another_depth_is_applied_too(tmp_path: Path) -> None:
    mailbox = Mailbox(tmp_path)
    put(tmp_path, "new", number=9)
    mailbox.consume(echo)
    put(tmp_path, "older", number=1)
    put(tmp_path, "deeper", number=2, depth=4)
    assert mailbox.consume(echo).applied == 2
    assert prompts(tmp_path) == ["new", "older", "deeper"]


def test_a_new_name_with_a_known_id_is_skipped_and_the_messages_stay_where_they_are(tmp_path: Path) -> None:
    put(tmp_path, "a", number=1, known="same")
    mailbox = Mailbox(tmp_path)
    mailbox.consume(echo)
    put(tmp_path, "again", number=2, known="same")
    put(tmp_path, "twin", number=3, known="twins")
    put(tmp_path, "twin", number=4, known="twins")
    assert mailbox.consume(echo).applied == 1
    assert mailbox.consume(refuse).applied == Mailbox(tmp_path).consume(refuse).applied == 0
    assert prompts(tmp_path) == ["a", "twin"]
    assert len(os.listdir(tmp_path / "breadcrumbs" / "0")) == 4


def test_known_names_are_skipped_without_being_opened(tmp_path: Path) -> None:
    crumb = put(tmp_path, "a", number=1)
    Mailbox(tmp_path).consume(echo)
    (tmp_path / "breadcrumbs" / "0" / f"{crumb.timestamp}.json").write_bytes(b"no longer a message")
    assert Mailbox.with_fs(OS_FS, tmp_path, now=later).consume(refuse).problems == []


def test_a_limit_is_kept_and_the_rest_waits(tmp_path: Path) -> None:
    for number in range(5):
        put(tmp_path, str(number), number=number)
    mailbox = Mailbox(tmp_path)
    report = mailbox.consume(echo, limit=2)
    assert (report.applied, report.pending) == (2, 3)
    assert mailbox.consume(refuse, limit=0).applied == 0
    mailbox.consume(echo)
    assert prompts(tmp_path) == ["0", "1", "2", "3", "4"]


def test_each_consumer_has_a_ledger_of_its_own(tmp_path: Path) -> None:
    put(tmp_path, "a")
    assert Mailbox(tmp_path).consume(echo).applied == 1
    assert Mailbox(tmp_path, "audit").consume(echo).applied == 1
    assert prompts(tmp_path) == prompts(tmp_path, "audit") == ["a"]
    assert sorted(path.name for path in tmp_path.glob("*.jsonl")) == ["log.audit.jsonl", "log.jsonl"]


def test_other_lines_of_the_log_are_left_alone_and_count_as_nothing(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(b'{"note": "of mine"}\n[1]\n\n"text"\n{"breadcrumb_id": 7}\n')
    put(tmp_path, "a")
    report = Mailbox(tmp_path).consume(echo)
    assert (report.applied, report.problems) == (1, [])
    assert (tmp_path / "log.jsonl").read_bytes().startswith(b'{"note": "of mine"}\n[1]\n\n"text"\n')


def test_an_odd_result_is_stored_as_json_all_the_same(tmp_path: Path) -> None:
    put(tmp_path, "a")
    Mailbox(tmp_path).consume(lambda crumb: {"when": datetime(2026, 3, 1, tzinfo=UTC), "half": "\ud83d"})
    assert log(tmp_path)[0]["result"]["when"].startswith("2026-03-01")
    assert Mailbox(tmp_path).pending() == []


@pytest.mark.usefixtures("no_hurry")
def test_many_messages_share_a_flush(tmp_path: Path) -> None:
    for number in range(130):
        put(tmp_path, str(number), number=number)
    flushes: list[int] = []

    class Counting(type(UNSYNCED)):  # type: ignore[misc]
        def fdatasync(self, fd: int) -> None:
            flushes.append(fd)

    Mailbox.with_fs(Counting(), tmp_path).consume(lambda crumb: None)
    assert len(flushes) == 3  # of 64, 64, and 2 lines
    assert len(log(tmp_path)) == 130


# -- handlers that fail


def test_a_message_whose_handler_raised_stays_pending_and_those_behind_it_are_applied(tmp_path: Path) -> None:
    for number in range(3):
        put(tmp_path, str(number), number=number)
    mailbox = Mailbox(tmp_path)
    report = mailbox.consume(lambda crumb: echo(crumb) if crumb.prompt != "1" else refuse(crumb))
    assert (report.applied, report.pending) == (2, 1)
    assert codes(report.problems) == ["handler_failed"]
    (failure,) = report.failures
    assert (failure.attempt, str(failure.error)) == (1, "not 1")
    assert [crumb.prompt for crumb in mailbox.pending()] == ["1"]
    assert mailbox.consume(echo).applied == 1
    assert prompts(tmp_path) == ["0", "2", "1"]


def test_attempts_are_counted_across_processes_and_the_last_one_makes_a_dead_letter(tmp_path: Path) -> None:
    crumb = put(tmp_path, "poison", number=1)
    for attempt in (1, 2):
        report = Mailbox(tmp_path).consume(refuse, max_attempts=3)
        assert (report.failures[0].attempt, report.pending) == (attempt, 1)
    mailbox = Mailbox(tmp_path)
    report = mailbox.consume(refuse, max_attempts=3)
    assert (codes(report.problems), report.pending) == (["dead_letter"], 0)
    for box in (mailbox, Mailbox(tmp_path)):
        assert box.consume(echo).applied == 0
        assert box.pending() == []
        (dead,) = box.status().dead
        assert (dead.breadcrumb_id, dead.attempts) == (crumb.breadcrumb_id, 3)
        assert dead.error == "RuntimeError: not poison"
    assert log(tmp_path) == []
    assert not any("breadcrumb_id" in line for line in lines(tmp_path / "attempts.work.jsonl"))


def test_a_dead_letter_stays_dead_under_another_name_until_it_is_revived(tmp_path: Path) -> None:
    crumb = put(tmp_path, "poison", number=1)
    mailbox = Mailbox(tmp_path)
    mailbox.consume(refuse, max_attempts=1)
    put(tmp_path, "poison", number=2, known=crumb.breadcrumb_id)
    assert mailbox.consume(echo).applied == 0
    assert mailbox.revive("unknown") == []
    assert Mailbox(tmp_path).revive() == [crumb.breadcrumb_id]
    assert mailbox.consume(refuse, max_attempts=2).failures[0].attempt == 1
    assert mailbox.consume(echo).applied == 1
    assert prompts(tmp_path) == ["poison"]


def test_a_result_that_is_neither_dict_nor_none_is_a_failed_attempt(tmp_path: Path) -> None:
    put(tmp_path, "a")
    report = Mailbox(tmp_path).consume(lambda crumb: ["no"])  # type: ignore[arg-type, return-value]
    assert isinstance(report.failures[0].error, Invalid)
    assert (report.applied, report.pending) == (0, 1)


def test_an_interrupt_ends_the_call_and_keeps_handled_results(tmp_path: Path) -> None:
    for number in range(3):
        put(tmp_path, str(number), number=number)

    def interrupted(crumb: Breadcrumb) -> dict[str, Any]:
        if crumb.prompt == "1":
            raise KeyboardInterrupt
        return echo(crumb)

    mailbox = Mailbox(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        mailbox.consume(interrupted)
    assert prompts(tmp_path) == ["0"]
    assert mailbox.consume(echo).applied == 2


# -- at most once


def test_at_most_once_never_calls_a_handler_twice_for_a_message(tmp_path: Path) -> None:
    crumb = put(tmp_path, "a", number=1)
    mailbox = Mailbox(tmp_path)

    def dies(crumb: Breadcrumb) -> None:
        raise SystemExit

    with pytest.raises(SystemExit):
        mailbox.consume(dies, delivery="at_most_once")
    put(tmp_path, "b", number=2)
    called: list[str] = []
    report = Mailbox(tmp_path).consume(lambda crumb: called.append(crumb.prompt), delivery="at_most_once")
    assert called == ["b"]
    assert codes(report.problems) == ["dead_letter"]
    assert "interrupted" in report.problems[0].message
    assert [dead.breadcrumb_id for dead in Mailbox(tmp_path).status().dead] == [crumb.breadcrumb_id]


def test_at_most_once_has_each_message_in_the_log_before_the_next_one_begins(tmp_path: Path) -> None:
    for number in range(3):
        put(tmp_path, str(number), number=number)
    seen: list[int] = []

    def look(crumb: Breadcrumb) -> None:
        seen.append(len(log(tmp_path)))

    Mailbox(tmp_path).consume(look, delivery="at_most_once")
    assert seen == [0, 1, 2]


def test_at_most_once_gives_a_failed_message_up_at_once(tmp_path: Path) -> None:
    put(tmp_path, "a")
    report = Mailbox(tmp_path).consume(refuse, delivery="at_most_once", max_attempts=5)
    assert (codes(report.problems), report.pending) == (["dead_letter"], 0)


def test_at_least_once_delivers_again_what_a_crash_cut_off(tmp_path: Path) -> None:
    put(tmp_path, "a")
    with pytest.raises(SystemExit):
        Mailbox(tmp_path).consume(lambda crumb: (_ for _ in ()).throw(SystemExit), delivery="at_most_once")
    assert Mailbox(tmp_path).consume(echo).applied == 1


# -- files that are not messages


def test_a_bad_file_is_reported_once_per_consumer_and_hides_no_other(tmp_path: Path) -> None:
    put(tmp_path, "a", number=1)
    bad = tmp_path / "breadcrumbs" / "0" / "20260301_080000_000000.json"
    bad.write_bytes(b'{"prompt": "half')
    schema = tmp_path / "breadcrumbs" / "0" / "20260301_080000_000001.json"
    schema.write_bytes(b"[1, 2]")
    mailbox = Mailbox.with_fs(OS_FS, tmp_path, now=later)
    report = mailbox.consume(echo)
    assert (report.applied, report.pending) == (1, 0)
    assert sorted(codes(report.problems)) == ["bad_breadcrumb", "no_breadcrumb"]
    assert {found.path for found in report.problems} == {str(bad), str(schema)}
    assert mailbox.consume(echo).problems == []
    assert Mailbox.with_fs(OS_FS, tmp_path, now=later).consume(echo).problems == []
    assert Mailbox(tmp_path).status().bad == [f"0/{bad.name}", f"0/{schema.name}"]
    assert len(Mailbox.with_fs(OS_FS, tmp_path, "other", now=later).consume(echo).problems) == 2


def test_a_bad_file_that_is_repaired_is_delivered(tmp_path: Path) -> None:
    crumb = put(tmp_path, "a", number=1)
    path = tmp_path / "breadcrumbs" / "0" / f"{crumb.timestamp}.json"
    whole = path.read_bytes()
    path.write_bytes(whole[:30])
    Mailbox.with_fs(OS_FS, tmp_path, now=later).consume(echo)
    path.write_bytes(whole)
    mailbox = Mailbox(tmp_path)
    assert mailbox.consume(echo).applied == 1
    assert mailbox.status().bad == []


def test_a_bad_file_that_is_repaired_in_place_with_its_old_mtime_is_delivered(tmp_path: Path) -> None:
    crumb = put(tmp_path, "a", number=1)
    path = tmp_path / "breadcrumbs" / "0" / f"{crumb.timestamp}.json"
    whole = path.read_bytes()
    path.write_bytes(b"[" + whole[1:])
    Mailbox.with_fs(OS_FS, tmp_path, now=later).consume(echo)
    change_in_place(path, b"[", b"{")
    assert path.read_bytes() == whole
    assert Mailbox(tmp_path).consume(echo).applied == 1


def test_a_young_file_that_cannot_be_parsed_counts_as_not_yet_written(tmp_path: Path) -> None:
    crumb = put(tmp_path, "a", number=1)
    path = tmp_path / "breadcrumbs" / "0" / f"{crumb.timestamp}.json"
    whole = path.read_bytes()
    path.write_bytes(b"")
    mailbox = Mailbox(tmp_path)
    report = mailbox.consume(refuse)
    assert (report.applied, report.pending, report.unwritten, report.problems) == (0, 0, 1, [])
    assert mailbox.pending() == []
    assert mailbox.status().unwritten == 1
    path.write_bytes(whole)
    assert mailbox.consume(echo).applied == 1


def test_bad_files_are_moved_aside_on_request_and_nothing_else_is(tmp_path: Path) -> None:
    put(tmp_path, "a", number=1)
    for depth, text in ((0, b"zero"), (2, b"two")):
        folder = tmp_path / "breadcrumbs" / str(depth)
        folder.mkdir(exist_ok=True)
        (folder / "20260301_080000_000000.json").write_bytes(text)
    error = tmp_path / "breadcrumbs" / "error"
    error.mkdir()
    (error / "0-20260301_080000_000000.json").write_bytes(b"older")
    mailbox = Mailbox.with_fs(OS_FS, tmp_path, now=later)
    assert mailbox.quarantine() == []
    mailbox.consume(echo)
    moved = mailbox.quarantine()
    assert [Path(path).read_bytes() for path in moved] == [b"zero", b"two"]
    assert sorted(os.listdir(error)) == [
        "0-20260301_080000_000000.json",
        "0-20260301_080000_000000.json.2",
        "2-20260301_080000_000000.json",
    ]
    assert mailbox.quarantine() == mailbox.status().bad == []
    assert len(os.listdir(tmp_path / "breadcrumbs" / "0")) == 1
    assert mailbox.consume(echo).problems == []


def test_names_that_are_not_messages_are_not_looked_at(tmp_path: Path) -> None:
    put(tmp_path, "a")
    folder = tmp_path / "breadcrumbs" / "0"
    for name in (".hidden.json", "x.json.tmp", "notes.txt"):
        (folder / name).write_bytes(b"no message")
    (tmp_path / "breadcrumbs" / "error").mkdir()
    (tmp_path / "breadcrumbs" / "error" / "x.json").write_bytes(b"no message")
    (tmp_path / "breadcrumbs" / "1").write_bytes(b"a file where a folder should be")
    report = Mailbox.with_fs(OS_FS, tmp_path, now=later).consume(echo)
    assert (report.applied, report.problems) == (1, [])


def test_a_message_that_is_taken_away_causes_no_problem(tmp_path: Path) -> None:
    crumb = put(tmp_path, "a")
    mailbox = Mailbox(tmp_path)
    assert len(mailbox.pending()) == 1
    path = tmp_path / "breadcrumbs" / "0" / f"{crumb.timestamp}.json"
    path.unlink()
    assert mailbox.consume(refuse).problems == []
    put(tmp_path, "a", known=crumb.breadcrumb_id)
    assert mailbox.consume(echo).applied == 1


def test_a_depth_that_the_folder_and_the_message_tell_differently_is_noted(tmp_path: Path) -> None:
    crumb = put(tmp_path, "a", number=1, depth=2)
    path = tmp_path / "breadcrumbs" / "2" / f"{crumb.timestamp}.json"
    document = json.loads(path.read_bytes()) | {"depth_level": 1}
    path.write_text(json.dumps(document))
    report = Mailbox(tmp_path).consume(lambda crumb: {"depth": crumb.depth_level})
    assert codes(report.problems) == ["depth_differs"]
    assert log(tmp_path)[0]["result"] == {"depth": 1}


# -- the ledger, damaged and restored


def test_a_line_written_during_the_handler_is_not_repeated(tmp_path: Path) -> None:
    put(tmp_path, "a", number=1)
    put(tmp_path, "b", number=2)

    def meddle(crumb: Breadcrumb) -> dict[str, Any]:
        if crumb.prompt == "a":
            with open(tmp_path / "log.jsonl", "ab") as file:
                line = {"breadcrumb_id": crumb.breadcrumb_id, "result": {"prompt": "by another"}}
                file.write(json.dumps(line).encode() + b"\n")
        return echo(crumb)

    report = Mailbox(tmp_path).consume(meddle)
    assert (report.applied, report.pending) == (1, 0)
    assert prompts(tmp_path) == ["by another", "b"]


def test_half_a_line_at_the_end_of_the_log_is_set_aside_and_its_message_applied(tmp_path: Path) -> None:
    put(tmp_path, "a", number=1)
    put(tmp_path, "b", number=2)
    mailbox = Mailbox.with_fs(OS_FS, tmp_path)  # a line that was not whole is in no copy either
    mailbox.consume(echo)
    path = tmp_path / "log.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    report = mailbox.consume(echo)
    assert (report.applied, report.problems) == (1, [])
    assert prompts(tmp_path) == ["a", "b"]
    assert len(list(tmp_path.glob("log.jsonl.torn-*"))) == 1


def test_a_last_line_that_only_lacks_its_newline_counts_and_is_not_written_again(tmp_path: Path) -> None:
    put(tmp_path, "a", number=1)
    put(tmp_path, "b", number=2)
    Mailbox(tmp_path).consume(echo)
    path = tmp_path / "log.jsonl"
    path.write_bytes(path.read_bytes()[:-1])
    mailbox = Mailbox(tmp_path)
    assert mailbox.pending() == []
    put(tmp_path, "c", number=3)
    assert mailbox.consume(echo).applied == 1
    assert prompts(tmp_path) == ["a", "b", "c"]


def test_a_damaged_line_is_reported_once_with_its_place(tmp_path: Path) -> None:
    put(tmp_path, "a")
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"note": 1}\n{"breadcrumb_id": "x\0\0\0\n')
    mailbox = Mailbox(tmp_path)
    (found,) = mailbox.consume(echo).problems
    assert (found.code, found.line, found.byte) == ("bad_ledger_line", 2, 12)
    assert mailbox.consume(echo).problems == []
    assert codes(mailbox.status().problems) == ["bad_ledger_line"]


def test_a_log_that_is_put_back_to_an_older_one_has_its_messages_applied_again(tmp_path: Path) -> None:
    put(tmp_path, "a", number=1)
    mailbox = Mailbox.with_fs(OS_FS, tmp_path)  # without a copy of the log its age is unknown
    mailbox.consume(echo)
    older = (tmp_path / "log.jsonl").read_bytes()
    put(tmp_path, "b", number=2)
    mailbox.consume(echo)
    (tmp_path / "older").write_bytes(older)
    os.replace(tmp_path / "older", tmp_path / "log.jsonl")
    assert [crumb.prompt for crumb in mailbox.pending()] == ["b"]
    mailbox.consume(echo)
    assert prompts(tmp_path) == ["a", "b"]


# -- who may work


def test_a_second_worker_waits_and_is_then_refused(tmp_path: Path) -> None:
    put(tmp_path, "a")
    second = Mailbox(tmp_path)

    def meddle(crumb: Breadcrumb) -> None:
        with pytest.raises(Locked) as caught:
            second.consume(refuse, timeout=0.05)
        assert caught.value.details["waited"] == 0.05
        assert second.status().worker["pid"] == os.getpid()
        assert Mailbox(tmp_path, "audit").consume(echo, timeout=0).applied == 1

    assert Mailbox(tmp_path).consume(meddle).failures == []
    assert second.consume(refuse).applied == 0


def test_shared_workers_skip_what_another_has_claimed_and_nothing_is_doubled(tmp_path: Path) -> None:
    for number in range(4):
        put(tmp_path, str(number), number=number)
    second = Mailbox(tmp_path, shared=True)

    def slow(crumb: Breadcrumb) -> dict[str, Any]:
        if crumb.prompt == "1":
            assert second.consume(echo, timeout=0).applied == 2
        return echo(crumb)

    assert Mailbox(tmp_path, shared=True).consume(slow).applied == 2
    assert sorted(prompts(tmp_path)) == ["0", "1", "2", "3"]


def test_a_shared_worker_repeats_nothing_that_another_wrote_down_meanwhile(
    tmp_path: Path,
) -> None:
    crumbs = [put(tmp_path, str(number), number=number) for number in range(5)]
    names = [f"{crumb.timestamp}.json" for crumb in crumbs]
    claims = [Claim.take(OS_FS, str(tmp_path / "breadcrumbs" / "0" / name)) for name in names]

    class Meeting(WrappedFs):
        """The other one is done as soon as we have met it once."""

        def lock(self, fd: int, how: int) -> None:
            try:
                super().lock(fd, how)
            except BlockingIOError:
                now = datetime.now(UTC)
                ledger = Ledger(str(tmp_path / "log.jsonl"), FileLock(str(tmp_path / ".lock")))
                ledger.append(
                    [entry(crumb.breadcrumb_id, f"0/{crumb.timestamp}.json", None, now) for crumb in crumbs]
                )
                for claim in claims:
                    assert claim is not None
                    claim.let_go()
                raise

    report = Mailbox.with_fs(Meeting(UNSYNCED), tmp_path, shared=True).consume(refuse)
    assert (report.applied, report.pending, report.failures) == (0, 0, [])


def test_a_slow_handler_delays_no_shared_worker(tmp_path: Path) -> None:
    slow = put(tmp_path, "slow", number=0)
    claim = Claim.take(OS_FS, str(tmp_path / "breadcrumbs" / "0" / f"{slow.timestamp}.json"))
    assert claim is not None
    put(tmp_path, "next", number=1)
    mailbox = Mailbox(tmp_path, shared=True)
    assert mailbox.consume(echo).applied == 1
    claim.let_go()
    assert mailbox.consume(echo).applied == 1


@pytest.mark.parametrize("shared", [True, False])
def test_a_busy_shared_worker_takes_what_arrives_meanwhile(shared: bool, tmp_path: Path) -> None:
    for number in range(3):
        put(tmp_path, str(number), number=number)
    (tmp_path / "breadcrumbs" / "0" / "20990101_000000_000000.json").write_text("{")
    seen: list[str] = []

    def handler(crumb: Breadcrumb) -> dict[str, Any]:
        if not seen:
            put(tmp_path, "3", number=3)
        seen.append(crumb.prompt)
        if crumb.prompt == "1":
            raise ValueError(crumb.prompt)
        return echo(crumb)

    report = Mailbox(tmp_path, shared=shared).consume(handler)
    assert seen == (["0", "1", "2", "3"] if shared else ["0", "1", "2"])
    assert (report.applied, report.unwritten, len(report.failures)) == (2 + shared, 1, 1)


def test_a_shared_worker_with_a_limit_takes_no_more(tmp_path: Path) -> None:
    for number in range(4):
        put(tmp_path, str(number), number=number)
    report = Mailbox(tmp_path, shared=True).consume(echo, limit=2)
    assert (report.applied, report.pending) == (2, 2)


def test_a_shared_worker_takes_a_message_that_another_releases(tmp_path: Path) -> None:
    held = put(tmp_path, "held", number=0)
    claim = Claim.take(OS_FS, str(tmp_path / "breadcrumbs" / "0" / f"{held.timestamp}.json"))
    assert claim is not None
    put(tmp_path, "next", number=1)

    def handler(crumb: Breadcrumb) -> dict[str, Any]:
        claim.let_go()
        return echo(crumb)

    assert Mailbox(tmp_path, shared=True).consume(handler).applied == 2
    assert prompts(tmp_path) == ["next", "held"]


@pytest.mark.parametrize("shared", [True, False])
def test_a_file_that_is_not_a_message_does_not_wait_beside_one_that_is(shared: bool, tmp_path: Path) -> None:
    good = put(tmp_path, "good", number=5)
    bad = tmp_path / "breadcrumbs" / "0" / "20260101_000000_000000.json"
    bad.write_text("null")
    mailbox = Mailbox(tmp_path, shared=shared)
    report = mailbox.consume(echo)
    assert (report.applied, report.pending, codes(report.problems)) == (1, 0, ["no_breadcrumb"])
    bad.write_text(json.dumps({**vars(good), "breadcrumb_id": "another", "timestamp": bad.stem}))
    put(tmp_path, "next", number=6)
    report = mailbox.consume(echo)
    assert (report.applied, report.pending, report.problems) == (2, 0, [])


def test_a_message_that_was_taken_away_waits_for_no_shared_worker(tmp_path: Path) -> None:
    put(tmp_path, "gone", number=1)
    put(tmp_path, "here", number=2)
    second = Mailbox(tmp_path, shared=True)
    assert len(second.pending()) == 2
    next(path for path in tmp_path.rglob("*000001.json")).unlink()
    report = second.consume(echo)
    assert (report.applied, report.pending, report.problems) == (1, 0, [])


def test_a_session_that_was_moved_away_is_reported_by_an_open_mailbox(tmp_path: Path) -> None:
    session, aside = tmp_path / "session", tmp_path / "aside"
    session.mkdir()
    put(session, "a", number=1)
    put(session, "bad", number=2)
    mailbox, shared = Mailbox(session), Mailbox(session, "other", shared=True)
    assert (mailbox.consume(echo).applied, shared.consume(refuse).applied) == (2, 0)

    def move(crumb: Breadcrumb) -> dict[str, Any]:
        session.rename(aside)
        return echo(crumb)

    put(session, "b", number=3)
    for call in (
        lambda: mailbox.consume(move),
        lambda: mailbox.consume(echo),
        lambda: shared.consume(echo),
        lambda: mailbox.run(echo),
        mailbox.quarantine,
        mailbox.revive,
        mailbox.pending,
        mailbox.status,
        lambda: next(mailbox.watch()),
    ):
        with pytest.raises(NotFound, match=str(session)):
            call()
    assert list(tmp_path.iterdir()) == [aside]
    assert Mailbox(aside).consume(echo).applied == 1
    assert prompts(aside) == ["a", "bad", "b"]


def test_an_exclusive_worker_and_shared_ones_exclude_each_other(tmp_path: Path) -> None:
    put(tmp_path, "a")

    def meddle(crumb: Breadcrumb) -> None:
        with pytest.raises(Locked):
            Mailbox(tmp_path).consume(refuse, timeout=0)

    assert Mailbox(tmp_path, shared=True).consume(meddle).failures == []


def test_a_failed_shared_message_is_free_for_others(tmp_path: Path) -> None:
    put(tmp_path, "a")
    first = Mailbox(tmp_path, shared=True)
    assert len(first.consume(refuse).failures) == 1
    assert Mailbox(tmp_path, shared=True).consume(echo).applied == 1
    assert first.consume(refuse).failures == []


# -- asking


def test_pending_and_status_leave_no_trace(tmp_path: Path) -> None:
    put(tmp_path, "a")
    before = sorted(tmp_path.rglob("*"))
    mailbox = Mailbox(tmp_path)
    assert len(mailbox.pending()) == 1
    status = mailbox.status()
    assert (status.consumer, status.applied, status.pending, status.worker) == ("work", 0, 1, {})
    assert sorted(tmp_path.rglob("*")) == before


def test_status_reports_the_state_of_a_consumer(tmp_path: Path) -> None:
    put(tmp_path, "good", number=1)
    poison = put(tmp_path, "poison", number=2)
    mailbox = Mailbox(tmp_path)
    mailbox.consume(lambda crumb: echo(crumb) if crumb.prompt == "good" else refuse(crumb))
    status = mailbox.status()
    assert (status.applied, status.pending, status.failing) == (1, 1, {poison.breadcrumb_id: 1})


@pytest.mark.parametrize("name", ["", "a/b", "..", ".x", "a.b", "-x", "ä", "x" * 65, "a\n"])
def test_a_consumer_that_cannot_be_a_file_name_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidId):
        Mailbox(tmp_path, name)


def test_a_missing_session_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        Mailbox(tmp_path / "gone")


@pytest.mark.parametrize("wrong", [{"delivery": "maybe"}, {"limit": -1}, {"max_attempts": 0}])
def test_arguments_without_sense_are_refused_before_anything_happens(wrong: Any, tmp_path: Path) -> None:
    put(tmp_path, "a")
    with pytest.raises(Invalid):
        Mailbox(tmp_path).consume(refuse, **wrong)
    assert not list(tmp_path.glob("*.jsonl"))


def test_a_closed_mailbox_can_be_used_again(tmp_path: Path) -> None:
    with Mailbox(tmp_path) as mailbox:
        put(tmp_path, "a")
        mailbox.consume(echo)
    put(tmp_path, "b")
    assert mailbox.consume(echo).applied == 1
    mailbox.close()
    mailbox.close()


def test_a_child_that_a_handler_forks_keeps_no_claim(tmp_path: Path) -> None:
    put(tmp_path, "a")
    reading, writing = os.pipe()
    child = 0

    def forks(crumb: Breadcrumb) -> None:
        nonlocal child
        child = os.fork()
        if not child:
            os.read(reading, 1)
            os._exit(0)
        raise RuntimeError("fails, while its child lives")

    first = Mailbox(tmp_path, shared=True)
    first.consume(forks)
    try:
        assert Mailbox(tmp_path, shared=True).consume(echo, timeout=0).applied == 1
    finally:
        os.write(writing, b"x")
        os.waitpid(child, 0)
        os.close(reading)
        os.close(writing)


def test_a_message_of_another_id_but_equal_text_is_another_message(tmp_path: Path) -> None:
    for _ in range(2):
        put(tmp_path, "same", number=1)
    assert message("x").breadcrumb_id != message("x").breadcrumb_id
    assert Mailbox(tmp_path).consume(echo).applied == 2
