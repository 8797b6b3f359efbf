"""The folders of editors that are built like VS Code."""

from sessionary.layouts.agents.editor_folders import path_of


def test_paths_of_uris() -> None:
    assert path_of("file:///home/u/a%20b") == "/home/u/a b"
    assert path_of("file:///c%3A/Users/u") == "c:/Users/u"
    assert path_of("vscode-remote://ssh-remote%2Bhost/home/u") == "/home/u"
    assert [path_of(one) for one in ("file://", "file://[", "", None)] == [None] * 4
