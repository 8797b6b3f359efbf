"""A path that begins with a missing home is reported; no folder called `~` is ever made."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sessionary import (
    BrainstormStore,
    EventReader,
    EventsLog,
    FeatureStore,
    SessionStore,
    WorkStore,
    fork_session,
    rewind,
)
from sessionary.disk.fs import expanded
from sessionary.errors import Invalid

NOBODY = "~nobody-of-this-name/work"


def test_a_home_is_put_in_front(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert expanded("~/work") == f"{tmp_path}/work"
    assert expanded(Path("~")) == str(tmp_path)
    assert expanded("work/~/~") == "work/~/~"
    assert expanded("./~") == "./~"


@pytest.mark.parametrize(
    "use",
    [
        SessionStore,
        WorkStore,
        BrainstormStore,
        FeatureStore,
        EventsLog,
        EventReader,
        fork_session,
        lambda path: rewind(path, 1),
    ],
)
def test_a_missing_home_is_reported(
    use: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Invalid, match="unknown home directory ~nobody-of-this-name") as caught:
        use(NOBODY)
    assert caught.value.hint == (
        "set HOME, or give an absolute path; ./~nobody-of-this-name is a folder named ~nobody-of-this-name"
        " in the current directory"
    )
    assert list(tmp_path.iterdir()) == []
