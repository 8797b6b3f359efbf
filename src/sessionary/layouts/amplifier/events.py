"""EventsLog: the writer of a session's event log, events.jsonl.

One event is one line. Keys have a fixed order: time, level, name and session first, `data` last, so that the
first few hundred bytes of a line identify it, however many megabytes of `data` follow. Many processes may
write one log, ours under the lock of the session; writers without a lock (amplifier's hook) are supported: a
truncated line is ended with a newline, never removed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Self

from sessionary.codec import encode_line, sanitize
from sessionary.disk.flush_policy import COMMITTER, Durability, check_durability
from sessionary.disk.fs import OS_FS, Fs, expanded, make_folder
from sessionary.disk.journal import Journal, Tail
from sessionary.disk.lifetime import ClosedOnExit
from sessionary.disk.lock import FileLock
from sessionary.errors import Invalid
from sessionary.layouts.amplifier.files import EVENTS, LOCK
from sessionary.layouts.amplifier.ids import check_new_id
from sessionary.layouts.amplifier.messages import stamp
from sessionary.layouts.amplifier.observers import listeners_of

TOUCH_EVERY = timedelta(seconds=0.2)


class EventsLog(ClosedOnExit):
    """Writer of the event log of one session.

    Args:
        session_dir: the folder of the session; created by the first append if missing.
        durability: ``batch`` (default: 64 lines or 200 ms may be lost to a power cut, nothing to a crash of the
            process), ``full`` or ``none``.
    """

    def __init__(self, session_dir: str | os.PathLike[str], *, durability: str = "batch") -> None:
        folder = os.path.realpath(expanded(session_dir))
        self.session_id: str = os.path.basename(folder)
        self.durability: Durability = check_durability(durability)
        self._folder = folder
        self._listeners = listeners_of(os.path.dirname(folder))
        self._bind(OS_FS, partial(datetime.now, UTC))

    @classmethod
    def with_fs(
        cls,
        fs: Fs,
        session_dir: str | os.PathLike[str],
        *,
        durability: str = "batch",
        now: Callable[[], datetime] | None = None,
    ) -> Self:
        """A log over another file system or clock, for tests."""
        log = cls(session_dir, durability=durability)
        log._bind(fs, now or log._now)
        return log

    def _bind(self, fs: Fs, now: Callable[[], datetime]) -> None:
        self._fs = fs
        self._now = now
        self._journal = Journal(os.path.join(self._folder, EVENTS), Tail.SEAL, fs=fs, now=now)
        self._lock = FileLock(os.path.join(self._folder, LOCK), fs)
        self._touched = self._touch_due = datetime.min.replace(tzinfo=UTC)
        self._closed = False

    def append(self, event: Mapping[str, Any]) -> None:
        """Add one event. ``event`` is required; missing ``ts``, ``lvl`` and ``session_id`` are filled in.

        Durability: that of the level of the log; see the class.

        Raises:
            Invalid: the event has no name, or the log is closed (ValueError).
            Locked: another process holds the session.
            StorageFailed: the disk refused; or an earlier flush in the background failed.
        """
        if "event" not in event:
            raise Invalid("an event needs a name under 'event'", hint="for example 'llm:request'")
        if self._closed:
            raise Invalid("the log is closed", path=self._journal.path, hint="open a new EventsLog")
        now = self._now()
        ordered = self._ordered(event, now)
        line = encode_line(sanitize(ordered)) + b"\n"
        journal = self._journal
        try:
            found = journal.enter(self._lock)
        except FileNotFoundError:
            found = self._enter_new()
        try:
            journal.append(line, found)
            if not self._touched <= now < self._touch_due:
                self._touch(now)
        finally:
            self._lock.release()
        if self.durability != "none":
            COMMITTER.commit(journal, self.durability, 1)
        for listener in self._listeners:
            listener(self.session_id, len(line))

    def close(self) -> None:
        """Flush pending lines and close the files. Closing twice has no effect.

        Raises:
            StorageFailed: the flush failed, now or earlier in the background.
        """
        self._closed = True
        try:
            COMMITTER.settle(self._journal)
        finally:
            self._journal.close()
            self._lock.close()

    # -- one method for each documented event

    def session_start(self, **data: Any) -> None:
        """Log ``session:start``."""
        self._log("session:start", data)

    def session_end(self, **data: Any) -> None:
        """Log ``session:end``."""
        self._log("session:end", data)

    def prompt_submit(self, prompt: Any, **data: Any) -> None:
        """Log ``prompt:submit``: the user's message."""
        self._log("prompt:submit", {"prompt": prompt, **data})

    def prompt_complete(self, **data: Any) -> None:
        """Log ``prompt:complete``."""
        self._log("prompt:complete", data)

    def llm_request(self, **data: Any) -> None:
        """Log ``llm:request``: provider, model, messages and other data of the caller."""
        self._log("llm:request", data)

    def llm_response(self, *, duration_ms: float | None = None, **data: Any) -> None:
        """Log ``llm:response``; ``usage`` is the source of token and cost sums."""
        self._log("llm:response", data, duration_ms=duration_ms)

    def tool_pre(self, tool: str, **data: Any) -> None:
        """Log ``tool:pre``: before a tool runs."""
        self._log("tool:pre", {"tool": tool, **data})

    def tool_post(self, tool: str, *, duration_ms: float | None = None, **data: Any) -> None:
        """Log ``tool:post``: after a tool has run."""
        self._log("tool:post", {"tool": tool, **data}, duration_ms=duration_ms)

    def tool_error(self, tool: str, error: Any, **data: Any) -> None:
        """Log ``tool:error``, level ERROR."""
        self._log("tool:error", {"tool": tool, **data}, lvl="ERROR", error=_text_of(error))

    def error(self, error: Any, *, event: str = "session:error", **data: Any) -> None:
        """Log any other error, level ERROR."""
        self._log(event, data, lvl="ERROR", error=_text_of(error))

    def _log(self, event: str, data: dict[str, Any], **top: Any) -> None:
        fields = {name: value for name, value in top.items() if value is not None}
        self.append({"event": event, **fields, **({"data": data} if data else {})})

    def _ordered(self, event: Mapping[str, Any], now: datetime) -> dict[str, Any]:
        """The event with its keys in the order of the format: identifying keys first, `data` last."""
        ordered: dict[str, Any] = {"ts": None, "lvl": None, "event": None, "session_id": None, **event}
        if not ordered["ts"]:
            ordered["ts"] = stamp(now)
        if not ordered["lvl"]:
            ordered["lvl"] = "INFO"
        if not ordered["session_id"]:
            ordered["session_id"] = self.session_id
        if "data" in ordered:
            ordered["data"] = ordered.pop("data")
        return ordered

    def _enter_new(self) -> os.stat_result | None:
        """Create the folder and take its lock, repeatedly if it is removed in between."""
        check_new_id(self.session_id)
        while True:
            make_folder(self._fs, self._folder)
            with suppress(FileNotFoundError):
                return self._journal.enter(self._lock)

    def _touch(self, now: datetime) -> None:
        """Update the folder's time, by which lists are sorted; at most five times a second."""
        self._touched, self._touch_due = now, now + TOUCH_EVERY
        try:
            self._fs.utime(self._folder)
        except OSError:
            pass  # a folder of another owner: only its place in lists is affected


def _text_of(error: Any) -> Any:
    if isinstance(error, BaseException):
        return {"type": type(error).__name__, "message": str(error)}
    return error
