"""The double reads as the original does, faults included."""

import os
from pathlib import Path

import pytest

from tests.support import original

GOOD = '{"role": "user", "content": "a\u2028b"}\n{"role": "assistant", "content": "c"}\n'


def session(folder: Path, **files: str | bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    names = {"transcript": "transcript.jsonl", "metadata": "metadata.json"}
    for key, content in files.items():
        name, _, backup = key.partition("_")
        path = folder / (names[name] + (".backup" if backup else ""))
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def test_a_good_transcript_is_read_and_line_separators_of_unicode_do_not_end_a_line(tmp_path: Path) -> None:
    folder = session(tmp_path / "s", transcript=GOOD)
    assert [message["content"] for message in original.load_transcript(folder)] == ["a\u2028b", "c"]
    assert original.transcript_source(folder) == "main"


@pytest.mark.parametrize("blank", ["\n", "\n\n", "", " \n\t\n"])
def test_blank_lines_and_an_empty_file_are_an_empty_conversation(tmp_path: Path, blank: str) -> None:
    folder = session(tmp_path / "s", transcript=blank, transcript_backup=GOOD)
    assert original.load_transcript(folder) == []
    assert original.transcript_source(folder) == "main"


def test_one_bad_line_drops_the_whole_file_for_the_backup(tmp_path: Path) -> None:
    folder = session(tmp_path / "s", transcript=GOOD + '{"role": "us', transcript_backup=GOOD)
    assert len(original.load_transcript(folder)) == 2
    assert original.transcript_source(folder) == "backup"
    folder = session(tmp_path / "t", transcript="{", transcript_backup="{")
    assert original.load_transcript(folder) == []
    assert original.transcript_source(folder) == "lost"
    assert original.transcript_source(session(tmp_path / "u")) == "none"


def test_bad_utf8_and_deep_nesting_escape(tmp_path: Path) -> None:
    folder = session(tmp_path / "s", transcript=b'"\xff"\n', transcript_backup=GOOD)
    with pytest.raises(UnicodeDecodeError):
        original.load_transcript(folder)
    folder = session(tmp_path / "s", transcript="[" * 100_000)
    with pytest.raises(RecursionError):
        original.load_transcript(folder)


def test_metadata_falls_back_and_ends_as_a_stub(tmp_path: Path) -> None:
    assert original.load_metadata(session(tmp_path / "s")) == {}
    folder = session(tmp_path / "s", metadata='{"a": 1}')
    assert original.load_metadata(folder) == {"a": 1}
    session(folder, metadata="{", metadata_backup='{"a": 0}')
    assert original.load_metadata(folder) == {"a": 0}
    session(folder, metadata_backup="")
    assert original.load_metadata(folder) == {"session_id": "s", "recovered": True}


def test_sessions_are_folders_newest_first(tmp_path: Path) -> None:
    for age, name in enumerate(["new", "old", "parent-1234_explorer", ".trash"]):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    (tmp_path / "file").touch()
    assert original.list_sessions(tmp_path) == ["new", "old"]
    assert original.list_sessions(tmp_path, top_level_only=False) == ["new", "old", "parent-1234_explorer"]
    assert original.list_sessions(tmp_path / "missing") == []


def test_a_session_is_found_by_id_or_by_the_only_prefix(tmp_path: Path) -> None:
    for name in ("abc", "abcd", "abce", "abcf", "xyz", "xyz_child"):
        (tmp_path / name).mkdir()
    assert original.find_session(tmp_path, "abc") == "abc"
    assert original.find_session(tmp_path, " x ") == "xyz"
    with pytest.raises(ValueError, match=r"^Ambiguous session ID 'ab' matches 4 sessions: .* and 1 more$"):
        original.find_session(tmp_path, "ab")
    with pytest.raises(ValueError, match=r"^Session ID cannot be empty$"):
        original.find_session(tmp_path, "  ")
    with pytest.raises(FileNotFoundError, match=r"^No session found matching 'xyz_child'$"):
        original.find_session(tmp_path, "xyz_child")
    assert original.find_session(tmp_path, "xyz_", top_level_only=False) == "xyz_child"


def test_loading_checks_the_id_and_the_folder(tmp_path: Path) -> None:
    session(tmp_path / "s", transcript=GOOD, metadata="{}")
    assert original.load(tmp_path, "s")[1] == {}
    with pytest.raises(FileNotFoundError, match=r"^Session 'x' not found$"):
        original.load(tmp_path, "x")
    for bad in ("", " ", "a/b", "a\\b", ".", ".."):
        with pytest.raises(ValueError, match="session_id"):
            original.load(tmp_path, bad)
    for odd in ("...", ".hid", " x ", "a:b"):
        original.check_id(odd)


def test_the_foundation_skips_or_names_bad_lines(tmp_path: Path) -> None:
    path = session(tmp_path / "s", transcript='{"n": 1}\n\nnot json\n{"n": 2}\n') / "transcript.jsonl"
    assert original.read_jsonl(path) == [{"n": 1}, {"n": 2}]
    with pytest.raises(ValueError, match=r"^Malformed JSON at line 3: "):
        original.load_transcript_with_lines(path)
    path.write_text('\n{"n": 1}\n')
    assert original.load_transcript_with_lines(path) == [{"n": 1, "line_num": 2}]
    assert not original.is_session(tmp_path / "s")
    assert original.is_session(session(tmp_path / "s", metadata="{}"))


def test_transcript_and_slugs() -> None:
    assert (
        original.count_turns([{"role": "user"}, {"role": "assistant"}, {"content": "?"}, {"role": "user"}])
        == 2
    )
    assert original.working_slug("/home/u/a:b") == "-home-u-ab"


@pytest.mark.lane("samples")
def test_it_reads_the_sample_sessions(shared: Path) -> None:
    bases = list((shared / "samples" / "amplifier" / "projects").glob("*/sessions"))
    found = [base / name for base in bases for name in original.list_sessions(base, top_level_only=False)]
    assert found
    sources = [original.transcript_source(folder) for folder in found]
    assert sources.count("main") > len(found) // 2
