"""What commands that change something say: long lines are broken, and lose and gain no character by it."""

import pytest

from sessionary.cli import changing, output


@pytest.mark.parametrize("width", [20, 33, 80])
@pytest.mark.parametrize("lead", ["", "    "])
def test_a_word_that_is_too_long_continues_without_a_blank(
    width: int, lead: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    word = "/home/ada/.amplifier/projects/-home-ada-shop/sessions/3f0c81d2-7a64-4b0e-9c55-1d2b7e90a1f3"
    monkeypatch.setattr(output, "width", lambda: width)
    lines = list(changing.set_in(f"{lead}it is in {word} now"))
    assert all(len(line) <= width for line in lines)
    assert lines[0].startswith(f"{lead}it is in")
    assert word in "".join(line.strip() for line in lines)
    assert lines[-1].endswith(" now")
    assert [len(line) - len(line.lstrip()) for line in lines[1:]] == [len(lead) + 2] * (len(lines) - 1)
