"""A value that is not a number, or more than any clock counts, is refused as a wrong use without a crash."""

import click
import pytest
from click.testing import CliRunner

from sessionary.cli.app import cli
from sessionary.cli.param_types import Finite

GC = ["sync", "gc", "--settings", "/nowhere/sync.json", "--days"]


@pytest.mark.parametrize("days", ["0.5", "36501", "1e6", "1e300", "inf", "-inf", "nan", "month"])
def test_days_that_cannot_be_counted_back_are_refused(days: str) -> None:
    done = CliRunner().invoke(cli, [*GC, days])
    assert done.exit_code == 2
    assert "Invalid value for '--days'" in done.stderr


def test_a_hundred_years_are_taken() -> None:
    done = CliRunner().invoke(cli, [*GC, "36500"])
    assert "--days" not in done.output
    assert "sync init" in f"{done.output}{done.exception}{getattr(done.exception, 'hint', '')}"


@pytest.mark.parametrize("word", ["nan", "NaN", "inf", "Infinity"])
def test_a_number_without_an_upper_bound_is_finite_too(word: str) -> None:
    with pytest.raises(click.BadParameter, match="not a finite number"):
        Finite(0).convert(word, None, None)
    assert Finite(0).convert("1e6", None, None) == 1e6
