"""`work pending`, `status`, `revive`, `quarantine` and `ledger`: inspect and repair the mailbox of a work session."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from typing import Any

import click

from sessionary.cli import changing, options, output
from sessionary.cli.formatting import count
from sessionary.cli.lazy import SuggestingGroup, command
from sessionary.cli.text import one_line
from sessionary.cli.work import places, render
from sessionary.errors import NotFound
from sessionary.layouts.maestro.records import crumb_document
from sessionary.layouts.maestro.store import WorkStore
from sessionary.mailbox.consumers import statuses_of
from sessionary.mailbox.mailbox import Mailbox, Status

_COMPLETE = "The log is complete."


def _on_mailbox(command: Callable[..., int]) -> Callable[..., int]:
    """The options of a command on one consumer; it is given the open mailbox, and the names of session and consumer."""

    @functools.wraps(command)
    def called(session: str, store: WorkStore, consumer: str, **rest: Any) -> int:
        session_id, folder = places.resolved(store, session)
        with Mailbox(folder, consumer) as box:
            return command(box, {"session_id": session_id, "consumer": consumer}, **rest)

    return places.session(places.on_store(places.consumer(options.json_result(called))))


@command(
    "pending",
    "sessionary work pending latest",
    "sessionary work pending db5b5fab --json | jq '.messages[].prompt'",
)
@places.session
@places.on_store
@places.consumer
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Show only the first N messages.")
@options.as_json("them", "one message")
def pending_command(session: str, store: WorkStore, consumer: str, limit: int | None) -> int:
    """Show pending messages in the order of their application. Nothing is applied.

    Exit code 13: some files are not messages, or the log is damaged or has lost lines.
    """
    session_id, folder = places.resolved(store, session)
    return show_pending(folder, session_id, consumer, limit)


def show_pending(folder: str, session_id: str, consumer: str, limit: int | None) -> int:
    """Print the pending messages of a consumer, and its state; return the exit code."""
    with Mailbox(folder, consumer) as box:
        status, waiting = box.status(), box.pending()[:limit]
    if output.is_json():
        messages = [crumb_document(crumb) for crumb in waiting]
        document = {"session_id": session_id, **render.consumer_object(status), "messages": messages}
        output.holding(document, "messages")
        return code_of(status)
    with output.paged():
        output.lines(line for crumb in waiting for line in (*render.whole(crumb), ""))
    for problem in status.problems:
        places.print_problem(problem)
    output.aside(render.counts(status))
    return code_of(status)


@command(
    "status",
    "sessionary work status latest",
    "sessionary work status db5b5fab --json | jq '.consumers[].dead'",
)
@places.session
@places.on_store
@options.as_json("them", "one consumer")
def status_command(session: str, store: WorkStore) -> int:
    """Count the messages of each consumer of a work session.

    Counted are applied, pending and failed messages. Exit code 13: some files are not messages, or a log is
    damaged or has lost lines.
    """
    session_id, folder = places.resolved(store, session)
    statuses = statuses_of(folder)
    if output.is_json():
        found = [render.consumer_object(status) for status in statuses]
        output.holding({"session_id": session_id, "consumers": found}, "consumers")
    else:
        output.lines(render.consumers(statuses))
        places.print_problems([problem for status in statuses for problem in status.problems])
    return max(map(code_of, statuses))


@command(
    "revive",
    "sessionary work revive db5b5fab               all dead letters",
    "sessionary work revive db5b5fab 8425e1f9      this one",
)
@_on_mailbox
@click.argument("messages", nargs=-1, metavar="[MESSAGE]...")
def revive_command(box: Mailbox, names: dict[str, Any], messages: tuple[str, ...]) -> int:
    """Retry messages that were given up.

    MESSAGE is an id or a prefix of one; by default all dead letters are retried. This cannot be undone.
    """
    chosen = _chosen(box.status(), messages)
    revived = box.revive(*chosen) if chosen else []
    texts = [f"{count(len(revived), 'message')} pending again"] if revived else []
    return _print_done({**names, "revived": revived}, texts, "No dead letters.")


@command("quarantine", "sessionary work quarantine db5b5fab")
@_on_mailbox
def quarantine_command(box: Mailbox, names: dict[str, Any]) -> int:
    """Move invalid message files to breadcrumbs/error/.

    They are those that `consume` reported. Their bytes stay unchanged. This cannot be undone; if moved back and
    repaired, they are delivered.
    """
    moved = box.quarantine()
    if not moved and not output.is_json():
        output.aside("No invalid message files are known; `work consume` finds them.")
    texts = (one_line(os.path.relpath(path)) for path in moved)
    return output.shown({**names, "paths": moved}, texts)


def _print_done(document: dict[str, Any], texts: Sequence[str], otherwise: str) -> int:
    """Print what was done, or that nothing had to be."""
    if not texts and not output.is_json():
        output.aside(otherwise)
    done = (line for text in texts for line in changing.done(one_line(text)))
    return output.shown(document, done)


def code_of(status: Status) -> int:
    """The exit code of `check`: 13 if a message or a line of the log cannot be read."""
    return places.DAMAGED if any(map(places.is_damage, status.problems)) else 0


def _chosen(status: Status, words: tuple[str, ...]) -> list[str]:
    """The ids of the dead letters that the words name; without words, of all.

    Raises:
        NotFound: a word matches none.
    """
    ids = [dead.breadcrumb_id for dead in status.dead]
    if not words:
        return ids
    chosen: list[str] = []
    for word in words:
        found = [known for known in ids if known == word] or [
            known for known in ids if known.startswith(word)
        ]
        if not found:
            raise NotFound(
                f"no dead letter of {status.consumer} with an id that begins with {word}",
                hint="`sessionary work status` lists the dead letters",
            )
        chosen += found
    return chosen


@click.group("ledger", cls=SuggestingGroup)
def ledger_command() -> None:
    """Restore or accept a log that has lost lines.

    A switch of branches, `git stash -u` or a restored backup may remove lines from the log. Their messages
    would be applied a second time, so `consume` and `watch` stop until you run one of these commands.
    """


@command("restore", "sessionary work ledger restore db5b5fab", group=ledger_command)
@_on_mailbox
def restore_command(box: Mailbox, names: dict[str, Any]) -> int:
    """Restore the missing lines of the log, and set damaged ones aside.

    They come from the copy in $XDG_STATE_HOME/sessionary, and their messages are not applied again. A log
    with damaged lines is kept beside the new one. This cannot be undone.
    """
    number, damaged = box.restore_ledger(), box.set_damage_aside()
    texts = [f"{count(number, 'message')} put back into the log of {names['session_id']}"] if number else []
    if damaged:
        texts.append(f"{count(damaged, 'damaged line')} quarantined")
    return _print_done({**names, "messages": number, "damaged": damaged}, texts, _COMPLETE)


@command("accept", "sessionary work ledger accept db5b5fab --consumer audit", group=ledger_command)
@_on_mailbox
def accept_command(box: Mailbox, names: dict[str, Any]) -> int:
    """Accept the log as it is, without the missing lines.

    Messages of missing lines are applied again. The copy with the missing lines is kept beside the new one.
    This cannot be undone.
    """
    number = box.accept_ledger()
    texts = [f"{count(number, 'message')} no longer in the log of {names['session_id']}"] if number else []
    return _print_done({**names, "messages": number}, texts, _COMPLETE)
