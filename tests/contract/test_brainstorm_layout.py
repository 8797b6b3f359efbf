"""The brainstorm layout passes the shared suite, with what differs where a session is a file and not a folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sessionary import BrainstormStore, NotFound
from sessionary.disk.fs import OS_FS, Fs
from sessionary.layouts.base import Capability
from sessionary.layouts.brainstorm.layout import BrainstormLayout
from sessionary.layouts.summary import summaries, summary_of
from sessionary.model import Message, SessionRef, Severity
from sessionary.testing.layout_suite import CountingFs, LayoutTests, LongAgoFs
from tests.unit.layouts.brainstorm.samples import FOLDER, document, entry, golden, put


class TestBrainstorm(LayoutTests):
    def layout(self, home: Path, fs: Fs) -> BrainstormLayout:
        return BrainstormLayout(home, fs)

    def put_session(
        self, home: Path, session_id: str, records: list[dict[str, Any]], parent: str | None = None
    ) -> None:
        history = [{**entry(number, 20 + number), **record} for number, record in enumerate(records, 1)]
        put(
            home,
            session_id,
            document(session_id, history=history, iteration=len(history), ems=20 + len(history)),
        )

    def conversation(self, home: Path, session_id: str) -> Path:
        return home / FOLDER / f"{session_id}.yaml"

    def ref(self, home: Path, session_id: str) -> SessionRef:
        return self.refs(home)[session_id]

    def messages(self, home: Path, session_id: str) -> list[Message]:
        found = self.layout(home, OS_FS).read(self.ref(home, session_id))
        return [one for one in found if isinstance(one, Message)]

    # What the suite says of folders, said of files

    def test_messages_come_in_the_order_of_the_store(self, tmp_path: Path) -> None:
        for name, data in (
            ("feature-auth", golden("feature-auth")),
            ("bom", b"\xef\xbb\xbf" + _named("bom")),
        ):
            put(tmp_path, name, data)
            found = BrainstormStore(tmp_path).load(name).session
            messages = self.messages(tmp_path, name)
            assert [one.role for one in messages] == [
                *["idea"] * 3, "assistant", "user", "assistant", "user", "assistant",
            ]  # fmt: skip
            assert messages[4].text == "\n".join(found["history"][0]["responses"])
            assert messages[3].text.split("\n")[1:] == found["history"][0]["questions"]
            for one in messages:
                begins = b"id: " if one.role == "idea" else b"iteration: "
                assert data[one.place.byte :].startswith(begins)
                assert data.splitlines()[(one.place.line or 0) - 1].strip().startswith(b"- " + begins)

    def test_what_party_and_panel_said_is_part_of_the_conversation(self, tmp_path: Path) -> None:
        for name, role, words in (
            (
                "feature-checkout",
                "party",
                ["Payment gateway", "Architect: Recommend facade", "Preferred token storage"],
            ),
            (
                "refactor-api",
                "panel",
                ["Repository pattern vs", "Beck: Repository enables", "Simplicity vs flexib"],
            ),
        ):
            put(tmp_path, name, golden(name))
            [said] = self.messages(tmp_path, name)
            assert said.role == role
            assert [word in said.text for word in words] == [True] * 3
            assert summary_of(self.layout(tmp_path, OS_FS), self.ref(tmp_path, name)).messages == 1

    def test_a_superseded_answer_is_still_a_message(self, tmp_path: Path) -> None:
        self.put_session(tmp_path, "one", [{}, {}])
        store = BrainstormStore(tmp_path)
        store.back("one")
        store.answer("one", ["another answer"])
        layout, ref = self.layout(tmp_path, OS_FS), self.ref(tmp_path, "one")
        said = [one.text for one in self.messages(tmp_path, "one")]
        assert [text for text in said if text.startswith("Answer")] == ["Answer 1", "Answer 2"]
        assert "another answer" in said
        assert sum("superseded by a branch" in text for text in said) == 2
        assert (summary_of(layout, ref).messages, summary_of(layout, ref).turns) == (len(said), 3)

    def test_summary_and_summaries_agree(self, tmp_path: Path) -> None:
        self.put_session(tmp_path, "one", [{}, {"responses": []}])
        self.put_session(tmp_path, "two", [{}])
        layout = self.layout(tmp_path, OS_FS)
        listed = {summary.ref.session_id: summary for summary in summaries(layout)}
        for name, ref in self.refs(tmp_path).items():
            assert summary_of(layout, ref) == listed[name]
        one = listed["one"]
        assert (one.messages, one.turns, one.turn_count, one.health) == (3, 1, 2, "ok")
        assert (one.title, one.agent, one.parent) == ("What else?", "brainstorm", None)
        assert one.size == self.conversation(tmp_path, "one").stat().st_size
        assert one.ref.project == tmp_path.name
        named = BrainstormLayout(tmp_path, project="shop")
        assert {ref.project for ref in named.discover()} == {"shop"}

    def test_a_fingerprint_is_that_of_the_state(self, tmp_path: Path) -> None:
        for name in ("one", "two"):
            self.put_session(tmp_path, name, [{}])
        fs = LongAgoFs()
        layout = self.layout(tmp_path, fs)
        before = {name: layout.fingerprint(ref) for name, ref in self.refs(tmp_path).items()}
        assert not fs.opened, "names and stats only"
        BrainstormStore(tmp_path).continue_("one", ["x"])
        after = {name: layout.fingerprint(ref) for name, ref in self.refs(tmp_path).items()}
        assert after["one"] != before["one"]
        assert after["two"] == before["two"] != b""

    def test_one_broken_session_hides_no_other(self, tmp_path: Path) -> None:
        for name in ("one", "two", "three"):
            self.put_session(tmp_path, name, [{}])
        for junk in (b"\xff\x00" * 100 + b"[" * 100_000, b"[" * 100_000, b"a: &a [*a]", b"- list", b""):
            self.conversation(tmp_path, "two").write_bytes(junk)
            layout = self.layout(tmp_path, OS_FS)
            listed = {summary.ref.session_id: summary for summary in summaries(layout)}
            assert {name: s.health for name, s in listed.items()} == {
                "one": "ok", "three": "ok", "two": "stops_resume",
            }  # fmt: skip
            assert list(layout.read(listed["two"].ref)) == []
            assert list(layout.check(listed["two"].ref)) == listed["two"].problems

    def test_what_is_gone_is_not_found(self, tmp_path: Path) -> None:
        self.put_session(tmp_path, "one", [{}])
        ref = self.ref(tmp_path, "one")
        os.rename(ref.locator, tmp_path / "elsewhere")
        layout = self.layout(tmp_path, OS_FS)
        for read in (lambda: summary_of(layout, ref), lambda: list(layout.read(ref))):
            try:
                read()
            except NotFound:
                continue
            raise AssertionError("a session that is gone was read")
        assert list(layout.parts(ref)) == []

    # What only this layout has

    def test_only_files_of_sessions_are_sessions(self, tmp_path: Path) -> None:
        self.put_session(tmp_path, "one", [{}])
        folder = self.conversation(tmp_path, "one").parent
        for name in ("archive", ".trash/20260101T000000.000000Z"):
            (folder / name).mkdir(parents=True)
            (folder / name / "two.yaml").write_bytes(self.conversation(tmp_path, "one").read_bytes())
        (folder / "dir.yaml").mkdir()
        for stranger in (".one.lock", "one.yaml.bak", "notes.txt", ".one.yaml.0123456789abcdef.tmp"):
            (folder / stranger).touch()
        assert set(self.refs(tmp_path)) == {"one"}
        layout = self.layout(tmp_path, OS_FS)
        for stranger in ("archive", "dir.yaml", "one.yaml.bak", "notes.txt", "none.yaml"):
            assert layout.ref_for_path(folder / stranger) is None
        parts = [(part.name, part.kind.value) for part in layout.parts(self.ref(tmp_path, "one"))]
        assert parts == [("one.yaml", "document"), ("one.yaml.bak", "kept")]

    def test_a_check_names_lines_and_reads_only(self, tmp_path: Path) -> None:
        put(tmp_path, "feature-auth", golden("feature-auth").replace(b"score: 8", b"score: 80"))
        fs = CountingFs()
        [problem] = self.layout(tmp_path, fs).check(self.ref(tmp_path, "feature-auth"))
        assert (problem.code, problem.severity) == ("odd_value", Severity.cosmetic)
        line = golden("feature-auth").splitlines()[(problem.line or 0) - 1]
        assert line.strip() == b"score: 8"
        assert set(fs.opened) == {"feature-auth.yaml"}

    def test_an_older_file_is_shown_as_it_will_be(self, tmp_path: Path) -> None:
        from tests.unit.layouts.brainstorm.samples import old_document

        path = put(tmp_path, "sign-in", old_document())
        before = path.read_bytes()
        summary = summary_of(self.layout(tmp_path, OS_FS), self.ref(tmp_path, "sign-in"))
        assert (summary.messages, summary.health) == (6, "note")
        assert [problem.code for problem in summary.problems] == ["old_version"]
        assert path.read_bytes() == before


def _named(slug: str) -> bytes:
    return golden("feature-auth").replace(b"feature-auth", slug.encode())


def test_the_layout_promises_no_more_than_a_file_can() -> None:
    assert BrainstormLayout.capabilities == {Capability.REWIND, Capability.TRASH}
