"""The tables of tokens and cost: what is shown, and what is said of the rest."""

import pytest

from sessionary.cli.spending_tables import SHOWN, report_unpriced, spending_object, spending_tables
from sessionary.model import Usage
from sessionary.workspace.spending import Spending, SpendingReport


def report(days: int = 1, projects: tuple[str, ...] = ("/a",)) -> SpendingReport:
    one = Spending(Usage(10, 5), 2.0)
    return SpendingReport(
        total=Spending(Usage(10 * days, 5 * days), 2.0 * days),
        models={"m": one},
        days={
            f"2026-01-{day:02}" if day <= 31 else f"2026-02-{day - 31:02}": one for day in range(1, days + 1)
        },
        projects=dict.fromkeys(projects, one),
        agents={"pi": one},
        sessions=1,
        prices="2026-01-01",
    )


def test_the_newest_days_are_shown_and_the_others_counted() -> None:
    lines = list(spending_tables(report(SHOWN + 5)))
    days = [line.split()[0] for line in lines if line.startswith("2026-")]
    assert (len(days), days[0], days[-1]) == (SHOWN, "2026-01-06", "2026-02-04")
    assert "and 5 earlier days; --json prints all" in lines
    assert len(spending_object(report(SHOWN + 5))["days"]) == SHOWN + 5


def test_projects_of_one_name_are_two_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/u")
    lines = list(spending_tables(report(projects=("/home/u", "-home-u"))))
    assert sum(line.startswith("~ ") for line in lines) == 2


def test_of_models_without_a_price_the_one_with_more_tokens_comes_first() -> None:
    found = report()
    found.models = {
        "a": Spending(Usage(1), None, 1),
        "b": Spending(Usage(9), None, 9),
        "c": Spending(Usage(1), 2.0),
        "d": Spending(Usage(9), None, 9),
    }
    lines = [line.split()[0] for line in spending_tables(found) if line[:2] in ("a ", "b ", "c ", "d ")]
    assert lines == ["c", "b", "d", "a"]


def test_of_equal_costs_the_order_of_their_sums_does_not_matter() -> None:
    found = report()
    found.models = {"a": Spending(Usage(1), 0.3 + 0.2 + 0.1), "b": Spending(Usage(1), 0.1 + 0.2 + 0.3)}
    assert found.models["a"].cost != found.models["b"].cost
    lines = [line.split()[0] for line in spending_tables(found) if line[:2] in ("a ", "b ")]
    assert lines == ["a", "b"]


def test_without_usage_there_is_no_table() -> None:
    assert list(spending_tables(SpendingReport())) == []


def test_control_characters_in_names_do_not_reach_the_terminal() -> None:
    found = report()
    found.models = {"a\x1b[31m\nb": Spending(Usage(1), None, 1)}
    assert "\x1b" not in "".join(line for line in spending_tables(found) if "a" in line and "b" in line)


def test_what_the_cost_leaves_out(capsys: pytest.CaptureFixture[str]) -> None:
    found = report()
    found.total = Spending(Usage(200), None, 50)
    assert "200 tokens, cost unknown" in list(spending_tables(found))
    found.unpriced_sessions, found.silent_sessions = 1, 2
    found.models = {name: Spending(Usage(1), None, 1) for name in "dcba"}
    report_unpriced(found)
    assert capsys.readouterr().err.splitlines() == [
        "No price is known for 50 tokens (25%) in 1 session: a, b, c and 1 more",
        "2 sessions without token counts",
    ]


@pytest.mark.parametrize(
    ("cost", "unpriced", "shown"),
    [
        (2.0, 0, "$2.00"),
        (1234.5, 1, "$1,234.50+"),
        (0.005, 0, "$0.0050"),
        (0.00001, 0, "<$0.0001"),
        (0.0, 0, "$0.00"),
        (None, 3, "?"),
    ],
)
def test_costs(cost: float | None, unpriced: int, shown: str) -> None:
    found = report()
    found.models = {"m": Spending(Usage(10), cost, unpriced)}
    row = next(line for line in spending_tables(found) if line.startswith("m "))
    assert row.split()[4] == shown
