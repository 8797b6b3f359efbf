"""A Hypothesis machine over the amplifier store: any order of writes, operations, crashes and foreign hands.

The model is a plain list of messages and a plain dict of metadata, and uses nothing of the store; what a turn is, and
what mends a conversation, it takes from the pure rules of `transcript`.  After a power cut the model says what *may* be
there (the old, the new, or the old with the first few new messages behind it); whatever of that is found is the truth
from then on.
"""

from __future__ import annotations

import copy
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any, Literal

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sessionary.disk.fs import OS_FS, OsFs
from sessionary.disk.journal import is_json_text
from sessionary.layouts.amplifier.session import pool_of
from sessionary.layouts.amplifier.store import SessionStore
from sessionary.transcript.repair import mend
from sessionary.transcript.slicing import slice_to_turn
from sessionary.transcript.turn_boundaries import boundaries
from tests.support.original import load_transcript
from tests.support.recorder import RecordingFs
from tests.support.strategies import json_values, text
from tests.support.survivors import materialise, survivors

ID = "s"
MESSAGES = st.lists(
    st.builds(
        lambda role, content, extra: {"role": role, "content": content, **extra},
        st.sampled_from(["user", "assistant", "tool"]),
        text(),
        st.dictionaries(st.sampled_from(["usage", "flag", "data"]), json_values(finite=True), max_size=2),
    ),
    max_size=3,
)


def as_json(value: Any) -> Any:
    """What JSON makes of a value; two halves of a surrogate pair side by side become one character, for example."""
    return json.loads(json.dumps(value))


class StoreMachine(RuleBasedStateMachine):
    """Rules over one session; subclass it in a test module to run it (``TestX = StoreMachine.TestCase``)."""

    def __init__(self) -> None:
        super().__init__()
        self.scratch = Path(tempfile.mkdtemp(prefix="sessionary-machine-"))
        self.folder = self.scratch / "0"
        self.cuts = 0
        self.messages: list[dict[str, Any]] = []
        self.metadata: dict[str, Any] = {}
        self.way_back: tuple[list[dict[str, Any]], Any] | None = None
        self.forks = 0

    def teardown(self) -> None:
        pool_of(OS_FS).drop(str(self._session))
        shutil.rmtree(self.scratch)

    @property
    def _session(self) -> Path:
        return Path(self.folder, "sessions", ID).resolve()

    @property
    def store(self) -> SessionStore:
        return SessionStore(self.folder / "sessions", durability="none")

    @initialize(messages=MESSAGES)
    def begin(self, messages: list[dict[str, Any]]) -> None:
        self.metadata = {"session_id": ID, "created": "t", "bundle": "b"}
        self.messages = list(messages)
        self.store.save(ID, messages, self.metadata)

    @rule(new=MESSAGES)
    def grow(self, new: list[dict[str, Any]]) -> None:
        self.messages += new
        self.store.save(ID, self.messages, self.metadata)

    @rule(new=MESSAGES)
    def append(self, new: list[dict[str, Any]]) -> None:
        self.messages += new
        self.store.append(ID, new)

    @precondition(lambda self: self.messages)
    @rule(data=st.data(), value=json_values(finite=True))
    def edit_in_place(self, data: st.DataObject, value: Any) -> None:
        place = data.draw(st.integers(0, len(self.messages) - 1))
        self.messages[place]["data"] = value
        self.store.save(ID, self.messages, self.metadata)

    @rule(keep=st.integers(0, 4))
    def drop_the_rest(self, keep: int) -> None:
        self.messages = self.messages[:keep]
        self.store.save(ID, self.messages, self.metadata)

    @rule(key=st.sampled_from(["name", "turn_count"]), value=json_values(finite=True))
    def update_metadata(self, key: str, value: Any) -> None:
        self.metadata[key] = value
        assert as_json(self.store.update_metadata(ID, {key: value})) == as_json(self.metadata)

    @rule()
    def forget_the_process(self) -> None:
        """What follows happens in a process that knows nothing."""
        pool_of(OS_FS).drop(str(self._session))
        self.messages = [self._without_time(message) for message in self.store.load(ID)[0]]

    @rule(new=MESSAGES)
    def another_process_appends(self, new: list[dict[str, Any]]) -> None:
        """Another file system object is another pool: as far as the store can see, another process."""
        SessionStore.with_fs(OsFs(), self.folder / "sessions", durability="none").append(ID, new)
        self.messages += new
        self.store.load(ID)

    @precondition(lambda self: not self._ends_without_newline())
    @rule(torn=st.sampled_from([b'{"role": "us', b"\0" * 9, b"\xe6\x87", b"{", b"}{"]))
    def a_foreign_writer_dies(self, torn: bytes) -> None:
        with open(self._session / "transcript.jsonl", "ab") as file:
            file.write(torn)

    def _ends_without_newline(self) -> bool:
        """True after a power cut that left a whole record without its newline.

        That record was never promised. It is read while it lasts, but whatever a foreign writer glues to it takes it
        along.
        """
        _, _, tail = (self._session / "transcript.jsonl").read_bytes().rpartition(b"\n")
        return bool(tail) and is_json_text(tail)

    @rule()
    def trash_and_undo(self) -> None:
        self.store.delete(ID)
        assert not self.store.exists(ID)
        assert self.store.undo(ID) == ID

    @rule(data=st.data())
    def rewind(self, data: st.DataObject) -> None:
        turns = boundaries(as_json(self.messages))
        to_turn = data.draw(st.integers(0, len(turns)))
        done = self.store.rewind(ID, to_turn)
        assert done.turns_before == len(turns)
        if to_turn == len(turns):
            assert not done.changed
            return
        count = self.metadata.get("turn_count")
        counts = count is not None and as_json(count) != to_turn
        self.way_back = copy.deepcopy(self.messages), dict(self.metadata) if counts else None
        self.messages = self.messages[: turns[to_turn]] if to_turn else []
        if counts:
            self.metadata["turn_count"] = to_turn

    @rule(orphans=st.sampled_from(["complete", "drop"]))
    def repair(self, orphans: Literal["complete", "drop"]) -> None:
        done = self.store.repair(ID, orphans=orphans)
        assert not done.remaining
        assert done.metadata_from is None
        if done.kept_in is not None:
            self.way_back = copy.deepcopy(self.messages), None
        self.messages = mend(as_json(self.messages), orphans=orphans).messages
        assert not self.store.repair(ID, orphans=orphans).changed

    @precondition(lambda self: self.way_back is not None)
    @rule()
    def undo(self) -> None:
        """Undo restores what an operation displaced, and can itself be undone."""
        assert self.way_back is not None
        messages, metadata = self.way_back
        assert self.store.undo(ID) == ID
        self.way_back = copy.deepcopy(self.messages), None if metadata is None else dict(self.metadata)
        self.messages = messages
        self.metadata = self.metadata if metadata is None else metadata

    @precondition(lambda self: bool(boundaries(as_json(self.messages))))
    @rule(data=st.data())
    def fork(self, data: st.DataObject) -> None:
        messages = as_json(self.messages)
        turn = data.draw(st.integers(1, len(boundaries(messages))))
        self.forks += 1
        result = self.store.fork(ID, turn, f"fork{self.forks}")
        forked, metadata = self.store.load(result.session_id)
        assert [self._without_time(m) for m in forked] == [
            self._without_time(m) for m in slice_to_turn(messages, turn)
        ]
        assert (metadata["parent_id"], metadata["forked_from_turn"]) == (ID, turn)
        self.store.delete(result.session_id, erase=True)

    @rule(new=MESSAGES, edit=st.booleans(), choice=st.integers(0, 10**6))
    def power_cut(self, new: list[dict[str, Any]], edit: bool, choice: int) -> None:
        """Save under ``full``, lose power anywhere in it, and go on with what is left."""
        pool_of(OS_FS).drop(str(self._session))
        old = copy.deepcopy(self.messages)
        wanted = copy.deepcopy(self.messages) + new
        if edit and wanted:
            wanted[0]["data"] = "edited before the cut"
        unpromised = self._ends_without_newline()
        fs = RecordingFs(self.folder)
        SessionStore.with_fs(fs, self.folder / "sessions").save(ID, wanted, self.metadata)
        fs.mark("saved")
        left = list(survivors(fs.recording, "relaxed", limit=12, seed=choice))
        survivor = left[choice % len(left)]
        self.cuts += 1
        self.folder = self.scratch / str(self.cuts)
        materialise(survivor, self.folder)
        found = [self._without_time(message) for message in self.store.load(ID)[0]]
        allowed = [wanted] if survivor.acked else [old, wanted, *self._grown(old, wanted)]
        if unpromised and not survivor.acked:
            allowed.append(old[:-1])  # the newline that was to end its last record became NULs
        assert found in map(as_json, allowed), survivor.describe()
        self.messages = found

    def _grown(self, old: list[Any], new: list[Any]) -> list[list[Any]]:
        return [new[:end] for end in range(len(old), len(new))] if new[: len(old)] == old else []

    def _without_time(self, message: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in message.items() if name != "timestamp"}

    @invariant()
    def what_is_loaded_is_the_model(self) -> None:
        if not self.metadata:
            return
        messages, metadata = self.store.load(ID)
        assert [self._without_time(message) for message in messages] == as_json(self.messages)
        assert all(message["timestamp"] for message in messages)
        assert metadata == as_json(self.metadata)

    @invariant()
    def the_original_reads_the_same_after_a_write(self) -> None:
        if not self.metadata:
            return
        data = (self._session / "transcript.jsonl").read_bytes()
        if data.endswith(b"\n"):
            original = load_transcript(self._session)
            assert [self._without_time(message) for message in original] == as_json(self.messages)
