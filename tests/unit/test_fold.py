"""Folding a conversation: what counts beside its messages."""

from datetime import UTC, datetime

from sessionary.model import AGENT, PERSON, Aside, DailyUsage, Message, Text, Usage, UsageEvent
from sessionary.transcript.fold import Fold, resumed


def test_usage_outside_of_messages_counts_and_is_no_message() -> None:
    time = datetime(2026, 3, 1, 9, tzinfo=UTC)
    fold = Fold()
    fold.take(Message("assistant", AGENT, (Text("Done."),), time, model="m", usage=Usage(input=1)))
    fold.take(UsageEvent(Usage(input=2, output=3), "m", time))
    fold.take(UsageEvent(Usage(output=4)))
    fold.take(Aside(Message("user", PERSON, (Text("Left"),), time)))
    fold.take(Aside(Message("assistant", AGENT, (Text("Left"),), time, model="m", usage=Usage(output=1))))
    assert (fold.messages, fold.turns) == (1, 0)
    assert fold.daily_usage() == [
        DailyUsage("", "(not named)", Usage(output=4)),
        DailyUsage("2026-03-01", "m", Usage(input=3, output=4)),
    ]
    state = fold.state()
    assert state is not None
    assert resumed(state) == fold
