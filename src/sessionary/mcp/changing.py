"""The tools that change sessions: repair, fork, rewind. Without `--allow-writes` they return what they would do."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import Any, Literal

from sessionary.mcp import answers
from sessionary.mcp.answers import DEFAULT_TOKENS, Answer
from sessionary.mcp.reading import Call
from sessionary.workspace import documents

NOT_WRITTEN = (
    "nothing was written: this server runs without --allow-writes. The user can run `sessionary {command}`, or start "
    "the server with --allow-writes"
)


class Changing:
    """The tools that change sessions.

    Args:
        home: the words of a command line that name the home of the server.
    """

    def __init__(self, call: Callable[[], Call], *, allow_writes: bool, home: Sequence[str]) -> None:
        self._call = call
        self._allow_writes = allow_writes
        self._home = home

    def repair_session(
        self,
        session: str,
        orphans: Literal["complete", "drop"] = "complete",
        bad_bytes: Literal["replace", "drop"] = "replace",
        dry_run: bool = False,
        max_tokens: int = DEFAULT_TOKENS,
    ) -> Answer:
        """Repair a session that its agent or the provider of its model refuses. The answer has the command of the undo.

        The session must be closed in its agent. orphans: tool calls without a result get one that says so
        (complete), or are removed (drop). bad_bytes: messages with invalid UTF-8 are kept with U+FFFD (replace), or
        quarantined (drop). dry_run: only return what would be done. Sessions of most agents can only be read; of these
        only conflict copies of a file synchroniser are merged.
        """
        tokens = answers.room(max_tokens)
        call = self._call()
        ref = call.find(session)
        found = call.workspace.repair(
            ref, orphans=orphans, bad_bytes=bad_bytes, dry_run=dry_run or not self._allow_writes
        )
        undo = None if found.kept_in is None else ("undo", ref.session_id)
        asked = ("repair", ref.session_id, "--orphans", orphans, "--bad-bytes", bad_bytes)
        return self._answer(call, documents.of_repair(found), tokens, undo, asked, dry_run=dry_run)

    def fork_session(
        self,
        session: str,
        turn: int | None = None,
        name: str | None = None,
        dry_run: bool = False,
        max_tokens: int = DEFAULT_TOKENS,
    ) -> Answer:
        """Create a new session from the first turns of another one, which stays unchanged.

        turn: the last turn to copy; all by default. name: the name of the new session. dry_run: only return what it
        would contain.
        """
        tokens = answers.room(max_tokens)
        call = self._call()
        ref = call.find(session)
        asked = ("fork", ref.session_id, *(() if turn is None else ("--turn", str(turn))))
        if dry_run or not self._allow_writes:
            document = documents.of_fork_preview(ref, None, call.workspace.preview_fork(ref, turn))
            return self._answer(call, document, tokens, None, asked, dry_run=dry_run)
        made = call.workspace.fork(ref, turn, name=name)
        return self._answer(
            call, documents.of_fork(ref, made), tokens, ("trash", made.session_id), asked, dry_run=dry_run
        )

    def rewind_session(
        self, session: str, turn: int, dry_run: bool = False, max_tokens: int = DEFAULT_TOKENS
    ) -> Answer:
        """Remove all turns behind a turn; 0 means before the first. The answer has the command that undoes it.

        The session must be closed in its agent. dry_run: only return what would be removed.
        """
        tokens = answers.room(max_tokens)
        call = self._call()
        ref = call.find(session)
        done = call.workspace.rewind(ref, turn, dry_run=dry_run or not self._allow_writes)
        undo = None if done.kept_in is None else ("undo", ref.session_id)
        asked = ("rewind", ref.session_id, str(turn))
        return self._answer(call, documents.of_rewound(ref, done), tokens, undo, asked, dry_run=dry_run)

    def _answer(
        self,
        call: Call,
        document: dict[str, Any],
        tokens: int,
        undo: Sequence[str] | None,
        asked: Sequence[str],
        *,
        dry_run: bool,
    ) -> Answer:
        notes = []
        if not self._allow_writes:
            notes.append(NOT_WRITTEN.format(command=self._command(asked)))
        elif dry_run:
            notes.append("nothing was written: call again with dry_run=false")
        fitted = answers.fitted(call.clean(document), tokens - 100)
        if fitted.lists_cut or fitted.longest is not None:
            notes.append("long lists and texts are cut: a larger max_tokens, or check_session, has more")
        return Answer(
            fitted.value | {"undo": None if undo is None else f"sessionary {self._command(undo)}"}, notes
        )

    def _command(self, words: Sequence[str]) -> str:
        return shlex.join([words[0], *self._home, *words[1:]])
