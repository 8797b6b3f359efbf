"""The streams: what is printed arrives, whole."""

import pytest

from sessionary.cli import output


@pytest.mark.parametrize("count", [0, 1, 499, 500, 501, 1000, 1234])
def test_many_lines_come_whole_and_in_their_order(count: int, capsys: pytest.CaptureFixture[str]) -> None:
    texts = ["" if number % 500 == 0 else f"line {number}" for number in range(count)]
    output.lines(iter(texts))
    assert capsys.readouterr().out == "".join(f"{text}\n" for text in texts)
