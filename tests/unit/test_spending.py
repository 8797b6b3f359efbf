"""What sessions used, by model, day, project and agent."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from msgspec import json

from sessionary.model import QUARTER, SessionRef, Summary, TimedUsage, Usage
from sessionary.workspace.prices import PriceFile, Prices
from sessionary.workspace.spending import Spending, SpendingReport, spending, spent

MODELS = [
    {
        "names": ["known"],
        "prices": [{"input": 1, "output": 2, "above": {"200000": {"input": 3, "output": 4}}}],
    }
]
PRICES = Prices(json.decode(json.encode({"models": MODELS, "date": "2026-01-01"}), type=PriceFile))
MILLION = 1_000_000


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) // QUARTER


def session(name: str, *usage: TimedUsage, agent: str = "pi", cwd: str | None = "/a") -> Summary:
    ref = SessionRef("pi", name, name)
    return Summary(ref, agent, None, None, 1, 1, None, None, None, 0, "ok", cwd=cwd, usage=list(usage))


def report(*sessions: Summary, zone: str = "UTC", **limits: datetime | str) -> SpendingReport:
    asked = {"since": None, "until": None, "model": None} | limits
    return spending(sessions, PRICES, lambda one: one.cwd, zone=ZoneInfo(zone), **asked)  # type: ignore[arg-type]


def test_every_table_adds_up_to_the_total() -> None:
    one = session(
        "one",
        TimedUsage(at("2026-03-01T10:00"), "known", 0, Usage(MILLION, MILLION, reasoning=5, cost=0.5)),
        TimedUsage(at("2026-03-02T10:00"), "known", 200_000, Usage(cache_read=MILLION)),
        TimedUsage(0, "other", 0, Usage(input=30, cache_write=10)),
    )
    two = session(
        "two", TimedUsage(at("2026-03-02T11:00"), "known", 0, Usage(MILLION)), agent="qwen", cwd=None
    )
    found = report(one, two)
    assert found.total == Spending(Usage(2 * MILLION + 30, MILLION, MILLION, 10, 5, 0.5), 7.0, 40)
    tables = found.models, found.days, found.projects, found.agents
    for table in tables:
        total = Spending()
        for row in table.values():
            total.usage = total.usage.plus(row.usage)
            total.unpriced += row.unpriced
        assert (total.usage, total.unpriced) == (found.total.usage, 40)
        assert sum(row.cost or 0 for row in table.values()) == pytest.approx(7.0)
    assert found.models["other"].cost is None, "unknown is not zero"
    assert {day: one.cost for day, one in found.days.items()} == {
        "2026-03-01": 3,
        "2026-03-02": 4,
        None: None,
    }
    assert {name: one.cost for name, one in found.projects.items()} == {"/a": 6, None: 1}
    assert {name: one.cost for name, one in found.agents.items()} == {"pi": 6, "qwen": 1}
    assert (found.sessions, found.unpriced_sessions, found.silent_sessions) == (2, 1, 0)
    assert spent(one, PRICES) == Spending(Usage(MILLION + 30, MILLION, MILLION, 10, 5, 0.5), 6.0, 40)


@pytest.mark.parametrize(
    ("zone", "first"),
    [
        ("UTC", "18:15"),
        ("Asia/Kathmandu", "18:15"),  # +5:45
        ("Australia/Eucla", "15:15"),  # +8:45
        ("Pacific/Chatham", "10:15"),  # +13:45 in summer
        ("America/St_Johns", "03:30"),  # -3:30
        ("Pacific/Marquesas", "09:30"),
    ],
)
def test_days_are_exact_in_every_zone(zone: str, first: str) -> None:
    """The quarter in which a day begins is of that day, and the one before it is of the day before."""
    start = at(f"2026-03-01T{first}")
    found = report(
        session("one", TimedUsage(start - 1, "known", 0, Usage(1)), TimedUsage(start, "known", 0, Usage(10))),
        zone=zone,
    )
    counts = {day: one.usage.input for day, one in found.days.items()}
    if zone == "UTC":
        assert counts == {"2026-03-01": 11}
    else:
        earlier, later = sorted(counts, key=str)
        assert (counts[earlier], counts[later]) == (1, 10)


def test_the_local_zone_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    time.tzset()
    try:
        one = session("one", TimedUsage(at("2026-03-01T18:15"), "known", 0, Usage(1)))
        found = spending([one], PRICES, lambda _: None, since=None, until=None, zone=None, model=None)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert list(found.days) == ["2026-03-02"]


def test_times_and_models_narrow() -> None:
    one = session(
        "one",
        *(TimedUsage(at(f"2026-03-01T{hour:02}:00"), "known", 0, Usage(1)) for hour in range(24)),
        TimedUsage(at("2026-03-01T10:00"), "Other", 0, Usage(100)),
        TimedUsage(0, "known", 0, Usage(1000)),
    )
    since, until = datetime(2026, 3, 1, 10, tzinfo=UTC), datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert report(one).total.usage.input == 1124
    assert report(one, since=since).total.usage.input == 114
    assert report(one, since=since, until=until).total.usage.input == 102
    assert report(one, since=since, until=until, model="OTH").total.usage.input == 100
    none = report(one, model="nothing")
    assert (none.sessions, none.silent_sessions, none.total.cost) == (0, 0, None)


def test_a_stated_cost_without_tokens_is_not_free_at_list_prices() -> None:
    found = report(session("a", TimedUsage(at("2026-03-01T10:00"), "known", 0, Usage(cost=2.5))))
    assert found.total == Spending(Usage(cost=2.5), None, 0)


def test_sessions_without_tokens_are_counted_apart() -> None:
    found = report(session("a"), session("b", TimedUsage(at("2026-03-01T10:00"), "known", 0, Usage())))
    assert (found.sessions, found.silent_sessions, found.models) == (0, 2, {})
