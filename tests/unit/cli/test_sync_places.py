"""What is remembered is stored where the documents say."""

from pathlib import Path

import pytest

from sessionary.sync.settings import Settings
from sessionary.workspace import syncing

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("page", ["howto/sync.md", "durability.md"])
def test_what_gc_removed_is_where_the_documents_say(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    folder = Path(syncing.removed(Settings(remote="s3://bucket", tenant="ada", device="desk")).folder)
    assert folder.parent == Path("~/.local/state/sessionary/sync").expanduser()
    assert folder.name.startswith("removed-")
    text = (DOCS / page).read_text("utf-8")
    assert "~/.local/state/sessionary/sync" in text
    assert "~/.local/state/sync" not in text
