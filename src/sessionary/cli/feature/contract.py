"""`sessionary feature ack`: which agents have acknowledged which text of the contract."""

from __future__ import annotations

import os

import click

from sessionary.cli import lazy, options, output
from sessionary.cli.feature import params
from sessionary.cli.lazy import command
from sessionary.cli.problems import item
from sessionary.cli.text import one_line
from sessionary.errors import Invalid
from sessionary.layouts.orchestrator.store import FeatureStore


def _agent_is_text(ctx: click.Context, param: click.Parameter, words: tuple[str, ...]) -> tuple[str, ...]:
    return (*lazy.checked(ctx, param, words[:-1]), *words[-1:])


@command(
    "ack",
    "sessionary feature ack opus docs/contract.md",
    "sessionary feature ack --verify opus docs/contract.md",
    "sessionary feature ack --verify docs/contract.md      of every agent",
)
@click.argument("words", nargs=-1, metavar="[AGENT] CONTRACT", required=True, callback=_agent_is_text)
@params.store
@click.option("--verify", is_flag=True, help="Only show whether the acknowledgment is valid.")
@options.json_result
@click.option("--jsonl", is_flag=True, help="With --verify: print JSON Lines, one agent per line.")
def ack_command(store: FeatureStore, words: tuple[str, ...], verify: bool, json_: bool, jsonl: bool) -> int:
    """Record that an agent has acknowledged the contract.

    The record says that AGENT has read CONTRACT, with the checksum of its bytes. With --verify, exit code 12:
    an acknowledgment is missing, or is of another text. There is no undo: acknowledging again replaces it.
    """
    agent, contract = (None, words[0]) if len(words) == 1 else words if len(words) == 2 else ("", "")
    if not contract or (agent is None and not verify):
        raise click.UsageError("give AGENT and CONTRACT")
    if jsonl and not verify:
        raise click.UsageError("--jsonl needs --verify")
    if verify:
        return _verify(store, agent, contract, json_, jsonl)
    assert agent is not None
    place = str(store.acknowledge(agent, contract))
    document = {"agent": agent, "contract": os.path.abspath(contract), "path": place}
    text = f"{one_line(agent)} has acknowledged {one_line(contract)}"
    return params.print_outcome(store, text, document, json_=json_)


def _verify(store: FeatureStore, agent: str | None, contract: str, json_: bool, jsonl: bool) -> int:
    verdicts = store.verify_acknowledgment(agent, spec_path=contract)
    if json_ or jsonl:
        output.items((verdict._asdict() for verdict in verdicts), jsonl=jsonl)
    else:
        for verdict in verdicts:
            sign, words = ("✓ ", "holds") if verdict.holds else ("✗ ", str(verdict.reason))
            output.lines(item(sign, f"{verdict.agent} {words}"))
        if not verdicts:
            output.aside("No contract has been acknowledged.")
    return 0 if all(verdict.holds for verdict in verdicts) else Invalid.exit_code
