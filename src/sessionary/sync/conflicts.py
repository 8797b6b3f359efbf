"""Files of which two versions lie side by side: what nobody but a person can put in order.

A pull never throws away what one side has and the other has not. Where a file has no place for both, one version
stands, and the other lies beside it as ``<file>.conflict-<mark>``. Whoever asks what there is to do is told of both.
"""

from __future__ import annotations

import re
from hashlib import sha256

from sessionary.disk.fs import Fs, stat_or_none
from sessionary.errors import Invalid
from sessionary.layouts.sync import Policy, SyncLayout
from sessionary.model import SessionRef
from sessionary.sync.diff import compare
from sessionary.sync.heads import decode
from sessionary.sync.incoming import Theirs
from sessionary.sync.install import refuse_strangers
from sessionary.sync.local_files import LocalPart, Surveyor, opened
from sessionary.sync.remote import HeadRecord, Remote
from sessionary.sync.report import Beside, Outcome, SyncStatus
from sessionary.sync.rules import Projects, Rules, rule_of
from sessionary.sync.shown import is_before
from sessionary.sync.state import States, SyncedState

FOR_A_PERSON = "changed on two devices; a person has to bring both together, see `resolve`"

_ASIDE = re.compile(r"(.+)\.conflict-[^/]+", re.DOTALL)


def name_beside(path: str, data: bytes) -> str:
    """The name under which another version of a file is kept beside it, if that is known by its bytes."""
    return f"{path}.conflict-{sha256(data).hexdigest()[:12]}"


def is_for_a_person(layout: SyncLayout, ref: SessionRef) -> bool:
    """True if a session is one file of which nobody but a person may say which version stands."""
    only = layout.single_file(ref.session_id)
    return only is not None and layout.rule(only).policy is Policy.MANUAL


def versions_beside(layout: SyncLayout, ref: SessionRef) -> list[Beside]:
    """The files of a session beside which another version lies.

    Left out are conversations, which never come to that by a pull (`undo` knows of those that a save displaced), and
    files of which nobody but a person may say which version stands: whether one has said so is not told by what lies
    there, see `Engine.awaiting`.

    Raises:
        StorageFailed: the folder cannot be read.
    """
    if layout.single_file(ref.session_id) is not None:
        return []  # it forks, or a person decides
    found = []
    for part in layout.parts(ref):
        match = _ASIDE.fullmatch(part.name)
        if match is None or layout.part_kind(match[1]) is None:
            continue
        if layout.rule(match[1]).policy is not Policy.FORK:
            found.append(Beside(match[1], layout.path_of(ref, match[1]), part.path))
    return found


class Waiting:
    """Finds out which sessions of one layout wait for a person. Changes nothing, here or there.

    The other version lies beside the one here only if a pull has laid it there.

    Args:
        fs: the file system.
        layout: the sessions here.
        remote: the other side.
        states: what was agreed.
        surveyor: looks at the files here.
        rules: which of them are carried.
        projects: what a project is called on all machines.
    """

    def __init__(
        self,
        fs: Fs,
        layout: SyncLayout,
        remote: Remote,
        states: States,
        surveyor: Surveyor,
        rules: Rules,
        projects: Projects,
    ) -> None:
        self._fs = fs
        self._layout = layout
        self._remote = remote
        self._states = states
        self._surveyor = surveyor
        self._rules = rules
        self._projects = projects

    def is_for_a_person(self, ref: SessionRef) -> bool:
        """As the function of that name."""
        return is_for_a_person(self._layout, ref)

    def look(self, name: str, ref: SessionRef) -> Outcome:
        """How a session stands whose head has this name: held back, or in step as far as a person is concerned.

        Raises:
            RemoteError, Corrupt, Unsupported, Invalid, StorageFailed: as `files`.
        """
        agreed, record = self._states.agreed(name), self._remote.read_head(name)
        unmoved = record is None or (
            agreed is not None and (agreed.etag == record.etag or is_before(record, agreed))
        )
        held = None if unmoved else self.held(ref, agreed, record)
        return held or Outcome(ref.session_id, self._projects.identity(ref), SyncStatus.IN_STEP)

    def held(self, ref: SessionRef, agreed: SyncedState | None, record: HeadRecord | None) -> Outcome | None:
        """The outcome of a session that waits for a person; None for any other. Raises as `files`."""
        if record is None or not is_for_a_person(self._layout, ref):
            return None
        beside = tuple(self.files(ref, agreed, record))
        project = self._projects.identity(ref)
        return (
            Outcome(ref.session_id, project, SyncStatus.HELD_BACK, FOR_A_PERSON, beside=beside)
            if beside
            else None
        )

    def files(self, ref: SessionRef, agreed: SyncedState | None, record: HeadRecord) -> list[Beside]:
        """The files of a session that both sides have changed and nobody but a person may bring together.

        Raises:
            RemoteError: the other side cannot be read.
            Corrupt, Unsupported, Invalid: nor can what lies there, or no such session has what it names.
            StorageFailed: what is here cannot be read.
        """
        rule = rule_of(self._layout)
        head = decode(record.name, record.data)
        refuse_strangers(self._layout, head)
        mine = self._surveyor.survey(ref)
        with self._states.spool() as spool:
            closed = self._surveyor.closed(ref, (part.name for part in head.parts))
            found = compare(self._fs, self._remote, mine, agreed, head, self._rules, rule, spool, closed)
            return [self._beside(ref, mine[name], found.theirs[name]) for name in found.for_a_person(rule)]

    def _beside(self, ref: SessionRef, mine: LocalPart, theirs: Theirs) -> Beside:
        path = self._layout.path_of(ref, mine.name)
        with opened(self._fs, mine) as file:
            other = name_beside(path, b"".join(theirs.all(file)))
        return Beside(mine.name, path, other if stat_or_none(self._fs, other) is not None else None)


def nothing_to_decide(ref: SessionRef) -> Invalid:
    """The error of a decision that nobody has asked for."""
    return Invalid(
        f"there is nothing to decide about {ref.session_id}",
        operation="resolve",
        session=ref.session_id,
        hint="say `mine` or `theirs` of what `sessionary sync resolve` lists; of all else a pull keeps both",
    )
