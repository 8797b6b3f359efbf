"""`work start`, `pause`, `resume`, `interrupt`, `fail` and `close`: start a work session, change its status."""

from __future__ import annotations

import click

from sessionary.cli import options, output
from sessionary.cli.changing import print_command
from sessionary.cli.lazy import command
from sessionary.cli.text import harmless, shell_line
from sessionary.cli.work import places
from sessionary.layouts.maestro.records import WorkSession, document_of
from sessionary.layouts.maestro.sharing import check_mode, share
from sessionary.layouts.maestro.store import WorkStore


class Mode(click.ParamType[int]):
    """The mode of a folder in octal digits, such as ``2770``."""

    name = "mode"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return check_mode(int(value, 8))
        except ValueError as error:
            self.fail(f"{value!r} is not valid: {error}", param, ctx)


@command(
    "start",
    "sessionary work start --purpose 'Rewrite the checkout'",
    "sessionary work start --type work_track --entity track_id=T-1 --json",
)
@places.on_store
@click.option(
    "--type", "type_", default="work_task", show_default=True, metavar="TYPE", help="work_track, fix, …"
)
@click.option("--purpose", metavar="TEXT", help="What the session is for.")
@click.option(
    "--parent", metavar="ID", shell_complete=places.complete, help="The parent session, which keeps running."
)
@options.repeated(
    "--entity",
    "entities",
    type=places.Pair("=", "an entity", "KEY=VALUE", "track_id=T-1"),
    metavar="KEY=VALUE",
    help="What it is about.",
)
@places.context("Where it happens, for example file:src/app.py.")
@click.option(
    "--mode", type=Mode(), metavar="MODE", help="Let other accounts post: 2770 for the group, 1777 for all."
)
@options.json_result
def start_command(
    store: WorkStore,
    type_: str,
    purpose: str | None,
    parent: str | None,
    entities: tuple[tuple[str, str], ...],
    context: dict[str, str] | None,
    mode: int | None,
) -> int:
    """Start a work session, and print its id.

    The id is the cookie that senders of messages use. Sub-work whose result goes back to its parent is
    started by `work subwork start`.

    This cannot be undone; `work close` and `work fail` end it.
    """
    session = store.create(
        type_,
        None if parent is None else store.resolve(parent),
        related_entity=dict(entities),
        purpose=purpose,
        context=context,
    )
    closed = [] if mode is None else share(store.fs, store.folder(session.session_id), mode)
    folder = store.folder(session.session_id)
    asides = [harmless(folder)]
    if closed:
        line = shell_line(["chmod", "a+x", *closed])
        asides.append(f"Other accounts cannot reach it yet. Run: {harmless(line)}")
    document = document_of(session) | {"path": folder} | ({} if mode is None else {"unreachable": closed})
    return output.shown(document, [session.session_id], asides=asides)


_UNDO = {"pause": "resume", "resume": "pause", "interrupt": "resume"}


def _changing(name: str, words: str, more: str = "", option: click.Option | None = None) -> click.Command:
    """The command that calls the method `name` of the store."""

    @places.session
    @places.on_store
    @options.json_result
    def command(session: str, store: WorkStore, **given: str | None) -> int:
        session_id = store.resolve(session)
        before = store.load(session_id).status
        changed: WorkSession = getattr(store, name)(session_id, **given)
        output.shown(document_of(changed), places.changed(changed))
        undo = "interrupt" if name == "resume" and before == "interrupted" else _UNDO.get(name)
        if undo is not None and not output.is_json():
            root = click.get_current_context().params["root"]
            where = [] if root is None else ["--root", str(root)]
            print_command("undo", shell_line(["sessionary", "work", undo, changed.session_id, *where]))
        return 0

    epilog = f"\b\nExample:\n  sessionary work {name} db5b5fab{more}\n"
    made = click.command(name, help=words, epilog=epilog)(command)
    made.params[2:2] = [] if option is None else [option]
    return made


pause_command = _changing(
    "pause", "Pause a running work session.\n\nUndo: `work resume`; the command is printed."
)
resume_command = _changing(
    "resume",
    "Resume a paused or interrupted work session.\n\n"
    "Undo: `work pause` or `work interrupt`; the command is printed.",
)
interrupt_command = _changing(
    "interrupt",
    "Interrupt a work session.\n\nUndo: `work resume`; the command is printed.",
    " --reason 'The machine restarts'",
    click.Option(["--reason"], metavar="TEXT", help="The reason, stored with the session."),
)
fail_command = _changing(
    "fail",
    "End a work session as failed.\n\n"
    "This cannot be undone: a session that has ended cannot be resumed. Start a new one instead.",
)
close_command = _changing(
    "close",
    "End a work session as completed.\n\n"
    "Refused if it has already ended, or while a session that it started is running or paused; these are named."
    " Sub-work with a result for its parent is closed by `work subwork close`.\n\n"
    "This cannot be undone: a completed session stays completed.",
)
