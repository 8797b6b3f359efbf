"""contract-acknowledgment.md: which agents have acknowledged which text of the contract.

One file for all agents, with a block for each, identified by its `Agent:` line. Acknowledging again replaces
the block of that agent and changes no other byte.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from sessionary.disk import atomic
from sessionary.disk.fs import Fs, read_bytes
from sessionary.errors import Invalid, NotFound
from sessionary.layouts.orchestrator.index import Index
from sessionary.layouts.orchestrator.names import ACKNOWLEDGMENT
from sessionary.layouts.orchestrator.rules import note
from sessionary.layouts.orchestrator.times import stamp
from sessionary.model import Problem

HEADING: Final = "# Contract Acknowledgment"
_VERSION: Final = re.compile(rb"^\*\*Version\*\*:[ \t]*v?(\d+(?:\.\d+)*)", re.MULTILINE)
_BLOCK: Final = re.compile(rf"^{HEADING}[ \t]*\r?$", re.MULTILINE)
_FIELD: Final = re.compile(r"^(Agent|Date|Contract Version|Checksum):[ \t]*(.*?)[ \t]*\r?$", re.MULTILINE)
_END: Final = re.compile(
    r"^(?:I acknowledge|Agent:|Date:|Contract Version:|Checksum:)[^\n]*(?:\n|\Z)", re.MULTILINE
)


class Contract(NamedTuple):
    """The acknowledged text: its own version (else 1.0), and the SHA-256 of its exact bytes."""

    version: str
    checksum: str


class Verdict(NamedTuple):
    """Whether an acknowledgment is valid for a contract.

    Attributes:
        agent: the agent.
        holds: True if version and checksum match the contract.
        reason: why not; None if it is valid.
    """

    agent: str
    holds: bool
    reason: str | None


def record(fs: Fs, index: Index, spec: str | os.PathLike[str], agent: str, now: datetime) -> Path:
    """Record that an agent has read the contract; see `FeatureStore.acknowledge`."""
    contract = _contract(fs, spec)
    if not agent.strip() or not agent.isprintable():
        raise Invalid(f"{agent!r} is not a valid agent name", hint="give a name or id on one line")
    agent = agent.strip()
    new = (
        f"{HEADING}\n\nAgent: {agent}\nDate: {stamp(now)}\nContract Version: {contract.version}\n"
        f"Checksum: {contract.checksum}\n\nI acknowledge that I have read and will adhere to the"
        f" Session State Specification v{contract.version}.\n"
    )
    path = f"{index.home}/{ACKNOWLEDGMENT}"
    with index.held(make=True):
        text = _stored(fs, index.home)
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        start, end, _ = _blocks(text).get(agent) or (len(text), len(text), None)
        whole = text[:start] + ("" if start < len(text) else gap) + new + text[end:]
        atomic.replace(path, (whole.encode("utf-8", "surrogateescape"),), fs=fs)
    return Path(path)


def _blocks(text: str) -> dict[str, tuple[int, int, Contract]]:
    """The position of every acknowledgment and what it acknowledges, by agent; of two of one agent the last counts."""
    starts = [found.start() for found in _BLOCK.finditer(text)]
    found: dict[str, tuple[int, int, Contract]] = {}
    for start, end in zip(starts, [*starts[1:], len(text)], strict=False):
        fields = dict(_FIELD.findall(text, start, end))
        if fields.get("Agent"):
            # Text that a user has written after a block is not part of it.
            *_, last = _END.finditer(text, start, end)
            contract = Contract(fields.get("Contract Version", ""), fields.get("Checksum", ""))
            found[fields["Agent"]] = start, last.end(), contract
    return found


def require(fs: Fs, home: str, spec: str, agent: str) -> None:
    """Refuse an agent that has not acknowledged the contract. Raises Invalid."""
    verdict = verdicts(fs, home, spec, agent)[0]
    if not verdict.holds:
        raise Invalid(
            f"agent {agent} {verdict.reason}",
            path=f"{home}/{ACKNOWLEDGMENT}",
            hint=f"`sessionary feature ack {agent}` after reading {spec}",
        )


def stale(fs: Fs, home: str, spec: str | None) -> Iterator[Problem]:
    """The acknowledgments that are not valid any more, if one is required."""
    path = f"{home}/{ACKNOWLEDGMENT}"
    with suppress(NotFound):
        for each in () if spec is None else verdicts(fs, home, spec):
            if not each.holds:
                words = f"{each.agent} {each.reason}"
                yield note("stale_acknowledgment", path, words, "acknowledge it again")


def verdicts(fs: Fs, home: str, spec: str | os.PathLike[str], agent: str | None = None) -> list[Verdict]:
    """Whether the acknowledgments of a project are valid: that of one agent, or all.

    Raises:
        NotFound: no contract at that path.
    """
    present = {name: found[2] for name, found in _blocks(_stored(fs, home)).items()}
    contract = _contract(fs, spec)
    return [_verdict(name, present, contract) for name in (present if agent is None else [agent.strip()])]


def _stored(fs: Fs, home: str) -> str:
    return (read_bytes(fs, f"{home}/{ACKNOWLEDGMENT}") or b"").decode("utf-8", "surrogateescape")


def _contract(fs: Fs, spec: str | os.PathLike[str]) -> Contract:
    data = read_bytes(fs, os.fspath(spec))
    if data is None:
        raise NotFound(f"No contract at {spec}", path=spec)
    found = _VERSION.search(data)
    return Contract(found[1].decode() if found else "1.0", hashlib.sha256(data).hexdigest())


def _verdict(agent: str, present: Mapping[str, Contract], contract: Contract) -> Verdict:
    given = present.get(agent)
    if given is None:
        return Verdict(agent, False, "has not acknowledged the contract")
    if given.version != contract.version:
        why = f"has acknowledged version {given.version}; the contract is of version {contract.version}"
        return Verdict(agent, False, why)
    if given.checksum.lower() != contract.checksum:
        return Verdict(agent, False, "has acknowledged another text: the contract was changed since")
    return Verdict(agent, True, None)
