"""The acknowledgments of a project: record one, verify them, refuse an agent without one."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from sessionary.disk import atomic
from sessionary.disk.fs import read_bytes
from sessionary.errors import Invalid, NotFound
from sessionary.layouts.orchestrator import acknowledgment, checking, names
from sessionary.layouts.orchestrator.context import Context
from sessionary.model import Problem


def acknowledge(context: Context, agent: str, spec_path: str | os.PathLike[str]) -> Path:
    """Record that an agent has read the contract; see `FeatureStore.acknowledge`."""
    with context.call("create", names.ACKNOWLEDGMENT, None):
        contract = _contract(context, spec_path)
        acknowledgment.block(agent, contract, context.now())  # refused before anything is created
        path = _path(context)
        with context.index.held(make=True):
            new = acknowledgment.with_block(_acknowledged(context), agent, contract, context.now())
            atomic.replace(path, (new.encode("utf-8", "surrogateescape"),), fs=context.fs)
        return Path(path)


def verify(
    context: Context, agent: str | None, spec_path: str | os.PathLike[str]
) -> list[acknowledgment.Verdict]:
    """Whether acknowledgments are valid; see `FeatureStore.verify_acknowledgment`."""
    with context.call("read", names.ACKNOWLEDGMENT, None):
        return _verdicts(context, spec_path, agent)


def check(context: Context, agent: str | None) -> None:
    """Refuse a write of an agent that has not acknowledged the contract, if that is required.

    Raises:
        Invalid: it has not.
    """
    if context.require_ack is None:
        return
    who = agent or context.agent
    verdict = _verdicts(context, context.require_ack, who)[0]
    if not verdict.holds:
        raise Invalid(
            f"agent {who} {verdict.reason}",
            path=_path(context),
            hint=f"`sessionary feature ack {who}` after reading {context.require_ack}",
        )


def stale(context: Context) -> list[Problem]:
    """The acknowledgments that are not valid any more, if one is required."""
    if context.require_ack is None:
        return []
    with suppress(NotFound):
        return [
            checking.note(
                "stale_acknowledgment", _path(context), f"{each.agent} {each.reason}", "acknowledge it again"
            )
            for each in _verdicts(context, context.require_ack)
            if not each.holds
        ]
    return []


def _verdicts(
    context: Context, spec_path: str | os.PathLike[str], agent: str | None = None
) -> list[acknowledgment.Verdict]:
    return acknowledgment.verdicts(_acknowledged(context), _contract(context, spec_path), agent)


def _path(context: Context) -> str:
    return f"{context.root}/{names.ACKNOWLEDGMENT}"


def _acknowledged(context: Context) -> str:
    return (read_bytes(context.fs, _path(context)) or b"").decode("utf-8", "surrogateescape")


def _contract(context: Context, spec_path: str | os.PathLike[str]) -> acknowledgment.Contract:
    data = read_bytes(context.fs, os.fspath(spec_path))
    if data is None:
        raise NotFound(f"No contract at {spec_path}", path=spec_path)
    return acknowledgment.contract_of(data)
