"""Files of which two versions lie side by side: what nobody but a person can put in order.

A pull never throws away what one side has and the other has not. Where a file has no place for both, one version
stands, and the other lies beside it as ``<file>.conflict-<mark>``. Whoever asks what there is to do is told of both.
"""

from __future__ import annotations

import re
from hashlib import sha256

from sessionary.disk.fs import Fs, look
from sessionary.disk.spool import Spool
from sessionary.layouts.base import Policy, Recipient
from sessionary.model import SessionRef
from sessionary.sync.comparing import compare
from sessionary.sync.heads import decode
from sessionary.sync.placing import refuse_strangers
from sessionary.sync.remote import HeadRecord, Remote
from sessionary.sync.report import Beside
from sessionary.sync.rules import Rules, rule_of
from sessionary.sync.state import Agreed
from sessionary.sync.survey import Surveyor, opened

_ASIDE = re.compile(r"(.+)\.conflict-[^/]+", re.DOTALL)


def name_beside(path: str, data: bytes) -> str:
    """The name under which another version of a file is kept beside it, if that is known by its bytes."""
    return f"{path}.conflict-{sha256(data).hexdigest()[:12]}"


def is_for_a_person(layout: Recipient, ref: SessionRef) -> bool:
    """True if a session is one file of which nobody but a person may say which version stands."""
    only = layout.only_part(ref.session_id)
    return only is not None and layout.rule(only).policy is Policy.PERSON


def versions_beside(layout: Recipient, ref: SessionRef) -> list[Beside]:
    """The files of a session beside which another version lies.

    Left out are conversations, which never come to that by a pull (`undo` knows of those that a save displaced), and
    files of which nobody but a person may say which version stands: whether one has said so is not told by what lies
    there, see `Engine.awaiting`.

    Raises:
        StorageFailed: the folder cannot be read.
    """
    if layout.only_part(ref.session_id) is not None:
        return []  # it forks, or a person decides
    found = []
    for part in layout.parts(ref):
        match = _ASIDE.fullmatch(part.name)
        if match is None or layout.part_kind(match[1]) is None:
            continue
        if layout.rule(match[1]).policy is not Policy.FORK:
            found.append(Beside(match[1], layout.path_of(ref, match[1]), part.path))
    return found


def awaited(
    fs: Fs,
    remote: Remote,
    layout: Recipient,
    surveyor: Surveyor,
    rules: Rules,
    ref: SessionRef,
    agreed: Agreed | None,
    record: HeadRecord,
    spool: Spool,
) -> list[Beside]:
    """The files of a session that both sides have changed and nobody but a person may bring together.

    Changes nothing: the other version lies beside the one here only if a pull has laid it there.

    Raises:
        RemoteError, Corrupt, Unsupported, Invalid: the other side cannot be read, or no such session has what it names.
    """
    rule = rule_of(layout)
    head = decode(record.name, record.data)
    refuse_strangers(layout, head)
    mine = surveyor.survey(ref)
    found = compare(fs, remote, mine, agreed, head, rules, rule, spool)
    waiting = []
    for name in found.for_a_person(rule):
        path = layout.path_of(ref, name)
        with opened(fs, mine[name]) as file:
            other = name_beside(path, b"".join(found.theirs[name].all(file)))
        waiting.append(Beside(name, path, other if look(fs, other) is not None else None))
    return waiting
