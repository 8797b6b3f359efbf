"""The store of the OpenAI Agents SDK for `agmi-check` of agent-memory-integrity, which edits stored records.

Its nine edits are T1 to T9. What shows one is `sessionary check --chain`, with the end of the chain kept apart.
"""

import asyncio
import json
import os
import shutil
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any

from agmi.adapters.base import MemoryAdapter, Record

from sessionary import Workspace
from sessionary.plugs.openai_agents import DurableSession

ONE, OTHER = "one", "other"


class DurableSessionAdapter(MemoryAdapter):  # type: ignore[misc]
    """Sessions with a hash chain. A record of the tool is a line of the journal that adds an item."""

    name = "sessionary"
    detection_point = "audit"
    supports_replay = True
    supports_metadata = True
    supports_snapshot = True
    remembers = True
    """Whether the end of the chain is kept apart."""

    def setup(self) -> None:
        self.place = Path(tempfile.mkdtemp())
        self.folder = self.place / "home" / "openai-agents"
        self.state = os.environ.get("XDG_STATE_HOME")
        os.environ["XDG_STATE_HOME"] = str(self.place / "state")

    def teardown(self) -> None:
        os.environ.pop("XDG_STATE_HOME")
        if self.state is not None:
            os.environ["XDG_STATE_HOME"] = self.state
        shutil.rmtree(self.place)

    def _fill(self, name: str, texts: list[str]) -> None:
        session = DurableSession(name, self.folder, durability="none", chain=True)
        for text in texts:
            asyncio.run(session.add_items([{"role": "user", "content": text}]))
        session.close()
        if self.remembers:
            assert self._check(remember=True) == []

    def seed(self, n: int) -> None:
        self._fill(ONE, [f"seed {number}" for number in range(n)])

    def seed_other(self, n: int) -> None:
        self._fill(OTHER, [f"other {number}" for number in range(n)])

    def append_genuine(self) -> None:
        self._fill(ONE, ["late"])

    def reload(self) -> None:
        pass  # each check opens the files

    def _check(self, *, remember: bool = False) -> list[str]:
        workspace = Workspace(self.folder.parent, cache=str(self.place / "cache"))
        found = [row for ref in workspace.refs() for row in workspace.check_chain(ref, remember=remember)]
        return [problem.message for problem in (*found, *workspace.check_remembered())]

    def verify(self) -> bool:
        problems = self._check()
        self.verify_detail = problems[0] if problems else None
        return not problems

    def _lines(self, name: str = ONE) -> list[bytes]:
        return (self.folder / f"{name}.records").read_bytes().splitlines()

    def _write(self, lines: list[bytes]) -> None:
        (self.folder / f"{ONE}.records").write_bytes(b"".join(line + b"\n" for line in lines))

    def read_all_raw(self, name: str = ONE) -> list[Record]:
        lines = self._lines(name)[1:]
        return [Record(seq, json.loads(line) | {"owner": name}) for seq, line in enumerate(lines)]

    def read_other_raw(self) -> list[Record]:
        return self.read_all_raw(OTHER)

    def write_raw(self, record: Record) -> None:
        lines = self._lines()
        fields = {key: value for key, value in record.fields.items() if key != "owner"}
        lines[record.seq + 1 : record.seq + 2] = [json.dumps(fields, separators=(",", ":")).encode()]
        self._write(lines)

    def delete_raw(self, seq: int) -> None:
        lines = self._lines()
        del lines[seq + 1]
        self._write(lines)

    def mutate_payload(self, record: Record) -> Record:
        record.fields["add"][0]["content"] += " tampered"
        return record

    def forge_record(self, template: Record) -> Record:
        """A record behind the last one, with its number and everything else right but the hash."""
        fields = json.loads(json.dumps(template.fields))
        fields |= {"n": fields["n"] + 1, "first": fields["first"] + 1}
        return self.mutate_payload(Record(template.seq + 1, fields))

    def replay_onto(self, victim_seq: int, donor: Record) -> None:
        victim = self.read_all_raw()[victim_seq]
        victim.fields["add"] = donor.fields["add"]
        self.write_raw(victim)

    def read_meta(self, seq: int) -> dict[str, Any]:
        return {"at": self.read_all_raw()[seq].fields["at"]}

    def write_meta(self, seq: int, meta: dict[str, Any]) -> None:
        record = self.read_all_raw()[seq]
        record.fields["at"] = "2000-01-01T00:00:00.000Z"
        self.write_raw(record)

    def identity_of(self, record: Record) -> str:
        return f"{record.fields['owner']} {record.fields['n']}"

    def payload_of(self, record: Record) -> str:
        return json.dumps(record.fields["add"])

    def owner_of(self, record: Record) -> str:
        return str(record.fields["owner"])

    def snapshot_store(self) -> object:
        return self._copy_store(self.folder)

    def restore_store(self, token: Any) -> None:
        self._restore_store(token, self.folder)


class ChainAlone(DurableSessionAdapter):
    """The same without the end of the chain: what the file alone can show."""

    remembers = False


class ForgesTheChain(DurableSessionAdapter):
    """An attacker who computes the hashes anew from the changed record on, as the format describes."""

    def _write(self, lines: list[bytes]) -> None:
        made = lines[:1]
        for line in lines[1:]:
            fields = json.loads(line) | {"prev": sha256(made[-1]).hexdigest()}
            made.append(json.dumps(fields, separators=(",", ":")).encode())
        super()._write(made)
