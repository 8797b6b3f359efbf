"""Folding a conversation: what counts beside its messages."""

from datetime import UTC, datetime

from sessionary.model import AGENT, PERSON, Aside, Cursor, Message, Text, TimedUsage, Usage, UsageEvent
from sessionary.transcript.fold import Fold, Progress, resumed

NINE = 4 * (20513 * 24 + 9)
"""The quarter that begins on 2026-03-01 at 9:00 UTC."""


def test_usage_outside_of_messages_counts_and_is_not_a_message() -> None:
    time = datetime(2026, 3, 1, 9, tzinfo=UTC)
    fold = Fold()
    fold.take(Message("assistant", AGENT, (Text("Done."),), time, model="m", usage=Usage(input=1)))
    fold.take(UsageEvent(Usage(input=2, output=3), "m", time))
    fold.take(UsageEvent(Usage(output=4)))
    fold.take(Aside(Message("user", PERSON, (Text("Left"),), time)))
    fold.take(Aside(Message("assistant", AGENT, (Text("Left"),), time, model="m", usage=Usage(output=1))))
    assert (fold.messages, fold.turns) == (1, 0)
    assert fold.timed_usage() == [
        TimedUsage(0, "(not named)", 0, Usage(output=4)),
        TimedUsage(NINE, "m", 0, Usage(input=3, output=4)),
    ]
    state = fold.state()
    assert state is not None
    assert resumed(Progress(Cursor(b""), state, fold.timed_usage())) == fold


def test_usage_is_kept_by_quarters_and_by_the_size_of_the_request() -> None:
    fold = Fold()
    for minute, given in ((0, 272_000), (14, 272_001), (15, 200_000), (16, 200_001)):
        time = datetime(2026, 3, 1, 9, minute, 59, tzinfo=UTC)
        usage = Usage(input=1, cache_read=given - 3, cache_write=2)
        fold.take(Message("assistant", AGENT, (), time, model="m", usage=usage))
    fold.take(UsageEvent(Usage(input=10**6), "m", datetime(2026, 3, 1, 9, 16, tzinfo=UTC), summed=True))
    fold.take(UsageEvent(Usage(input=1), "m", datetime(1960, 1, 1, tzinfo=UTC)))
    assert [(one.quarter, one.context, one.usage.context) for one in fold.timed_usage()] == [
        (0, 0, 1),
        (NINE, 256_000, 272_000),
        (NINE, 272_000, 272_001),
        (NINE + 1, 0, 10**6),
        (NINE + 1, 128_000, 200_000),
        (NINE + 1, 200_000, 200_001),
    ]
