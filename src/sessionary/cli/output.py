"""Printing: the only module that writes to the terminal.

Only results go to standard output, so that a pipe carries nothing else; messages to the user go to standard
error. Colour only repeats what a sign or a word states, and only on a terminal. Stored text passes
`escaping.harmless` first; JSON is made harmless by escapes, which do not change the decoded value.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, TextIO

import click
import msgspec

from sessionary.cli import pager
from sessionary.errors import StorageFailed
from sessionary.escaping import harmless, harmless_json

WIDTH = 80
WIDEST = 100
FORM = "sessionary.form"
"""Key of the form of the result in the context of a command: ``json`` or ``jsonl``; missing for text."""
_PIECE = 500  # lines
_COLOURS = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "blue": 34, "magenta": 35, "cyan": 36}
_ASCII = str.maketrans(
    {
        **dict(zip("✓✗…▸·→×»«└├▶●←•★", "+x~>->x><`|>*<**", strict=True)),
        **dict.fromkeys("━═─", "-"),
        **dict.fromkeys("┃┆│▌", "|"),
        **dict.fromkeys("┏┓┗┛┡┩╇┳┻┼┬┴┤╭╮╰╯┌┐┘", "+"),
        **dict(zip("▁▂▃▄▅▆▇█", "_.-:=+*#", strict=True)),
    }
)
_encoder = msgspec.json.Encoder()


class _Paging:
    """The running pager, and the messages to print after it has ended."""

    def __init__(self) -> None:
        self.page: pager.Pager | None = None
        self.asides: list[str] = []


_paging = _Paging()


def line(text: str = "") -> None:
    """One line of the result."""
    _write(_result(), text)


def lines(texts: Iterable[str]) -> None:
    """Many lines of the result, or none.

    In pieces, since each step copies the text, and first use of memory is slow.
    """
    left = iter(texts)
    while some := list(islice(left, _PIECE)):
        _write(_result(), "\n".join(some))


def raw(stored: bytes, *, end: bytes = b"\n") -> None:
    """One line of the result, with its stored bytes."""
    with refusals():
        if (buffer := getattr(sys.stdout, "buffer", None)) is not None:
            buffer.write(stored)
            buffer.write(end)
        else:
            sys.stdout.write((stored + end).decode(errors="backslashreplace"))


def stored(record: bytes) -> None:
    """A stored record, unchanged; on a terminal, control characters are escaped."""
    if is_terminal():
        line(harmless(record.decode("utf-8", "backslashreplace")))
    else:
        raw(record)


def flush() -> None:
    """Flush the result so far, for results that arrive slowly."""
    with refusals():
        _result().flush()


def end() -> None:
    """End the result: it was written completely, or an error is raised."""
    with refusals():
        sys.stdout.flush()


def open_streams() -> None:
    """Replace a standard stream that the caller has closed (`>&-`), for which Python has None.

    Messages are dropped then, as the caller asked. A result must not be dropped silently: its stream raises,
    as a closed one would.
    """
    if sys.stderr is None:
        sys.stderr = _Nowhere()
    if sys.stdout is None:
        sys.stdout = _Closed()
    elif isinstance(raw_stream := getattr(sys.stdout, "buffer", None), io.RawIOBase):
        sys.stdout = _Whole(sys.stdout, raw_stream)


class _Whole(io.TextIOWrapper):
    """Standard output with a buffer below it, where Python runs without one (PYTHONUNBUFFERED).

    Without a buffer Python loses the rest of a partial write, on a full disk or a closed pipe, without an
    error. Each line is still flushed at once.
    """

    def __init__(self, before: TextIO, stream: io.RawIOBase) -> None:
        self._below = io.BufferedWriter(stream)
        super().__init__(self._below, encoding=before.encoding, errors=before.errors, line_buffering=True)
        self.before = before

    def leave(self) -> TextIO:
        """The stream below, flushed and detached, so that it is not closed with this object."""
        self.detach()
        self._below.detach()
        return self.before


def let_go() -> None:
    """Discard a stream that refuses its pending data, after the error was reported.

    The interpreter flushes both streams when it ends. If one refuses again, it prints a message of its own
    and exits with 120, whatever the exit code was.
    """
    for name in ("stdout", "stderr"):
        try:
            getattr(sys, name).flush()
        except OSError:
            setattr(sys, name, _Nowhere())
    if isinstance(sys.stdout, _Whole):
        sys.stdout = sys.stdout.leave()


class _Nowhere(io.TextIOBase):
    """A missing or failing standard error: what is written to it is dropped."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        return len(text)


class _Closed(io.TextIOBase):
    """A missing standard output: every write fails, as the system call would."""

    encoding = "utf-8"

    def write(self, _: str) -> int:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))


@contextmanager
def refusals() -> Iterator[None]:
    """Raise StorageFailed for a full disk or a closed stream under the result, BrokenPipeError for a closed pipe."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise refused(error) from error


def refused(error: OSError) -> StorageFailed:
    """The error to raise."""
    return StorageFailed(
        f"The result cannot be printed: {error.strerror or error}",
        operation="print",
        errno=error.errno,
        outcome="unknown",
        hint="standard output may be incomplete; changes made before are in effect",
    )


def aside(text: str) -> None:
    """One line for the user on standard error; while a pager runs, it is held until the pager ends."""
    if _paging.page is not None:
        _paging.asides.append(text)
    else:
        _write(sys.stderr, text)


@contextmanager
def paged() -> Iterator[None]:
    """A block whose result is paged on a terminal. Quitting the pager ends the block."""
    words = pager.command() if sys.stdout.isatty() else None
    if words is None:
        yield
        return
    _paging.page = page = pager.Pager(words, sys.stdout.encoding or "utf-8")
    try:
        yield
    except BrokenPipeError:
        pass
    finally:
        page.close()
        asides, _paging.page, _paging.asides = _paging.asides, None, []
        for text in asides:
            aside(text)


def is_on_screen() -> bool:
    """True while a pager shows the result, so that nothing else may be drawn."""
    return _paging.page is not None and _paging.page.started


def value(document: Any) -> None:
    """One JSON document, indented on a terminal, else on one line."""
    encoded = _encode(document, sys.stdout)
    line(_indented(encoded) if sys.stdout.isatty() else encoded)


def is_json() -> bool:
    """True if the command prints its result as JSON: with ``--json`` or ``--jsonl``."""
    return _form() is not None


def wants(form: str) -> bool:
    """True if the command was given the option of this form: ``json`` or ``jsonl``."""
    return _form() == form


def _form() -> str | None:
    context = click.get_current_context(silent=True)
    return None if context is None else context.meta.get(FORM)


def shown(document: Any, texts: Iterable[str], *, asides: Iterable[str] = ()) -> int:
    """Print a result as one JSON document, or as lines and `asides`; return the exit code."""
    if is_json():
        value(document)
        return 0
    lines(texts)
    for text in asides:
        aside(text)
    return 0


class Growing:
    """One JSON object on one line, with a list in it whose items are written as they come."""

    def __init__(self, first: dict[str, Any], name: str) -> None:
        self._head = f'{_encode(first, sys.stdout)[:-1]},"{name}":['
        self._lead = self._head

    def add(self, item: Any) -> None:
        """Write one more item of the list. The caller flushes."""
        self._print(self._lead + _encode(item, sys.stdout))
        self._lead = ","

    def end(self, rest: dict[str, Any]) -> None:
        """Write the rest of the object."""
        head = self._head if self._lead == self._head else ""
        self._print(f"{head}],{_encode(rest, sys.stdout)[1:]}\n")

    def _print(self, text: str) -> None:
        with refusals():
            _result().write(text)


def values(documents: Iterable[Any]) -> None:
    """A stream of JSON documents, one per line."""
    for document in documents:
        line(_encode(document, sys.stdout))


def items(documents: Iterable[Any]) -> None:
    """A list as one JSON document, or with ``--jsonl`` one item per line."""
    if wants("jsonl"):
        values(documents)
    else:
        value(list(documents))


def listed(documents: Iterable[Any], texts: Iterable[str], none: str | None) -> int:
    """Print a list as JSON, or as lines; return the exit code.

    Args:
        none: printed on standard error instead of the lines, if there are no items.
    """
    if is_json():
        items(documents)
    elif none is not None:
        aside(none)
    else:
        with paged():
            lines(texts)
    return 0


def holding(document: dict[str, Any], name: str) -> None:
    """An object as one JSON document, or with ``--jsonl`` one item of the list of that name per line."""
    if wants("jsonl"):
        values(document[name])
    else:
        value(document)


def problem(document: Any) -> None:
    """One JSON document on standard error."""
    aside(_encode(document, sys.stderr))


def paint(text: str, colour: str) -> str:
    """The text in a colour (or bold, dim), if colours are on."""
    return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if has_colours() else text


def is_terminal() -> bool:
    """True if a user reads the result on a terminal."""
    return sys.stdout.isatty()


def has_colours() -> bool:
    """True if colours are wanted and visible."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and sys.stdout.isatty()


def room() -> int | None:
    """The width of a line in cells; None without a terminal: nothing is cut then.

    COLUMNS, if set, wins in both cases.
    """
    if not sys.stdout.isatty() and not os.environ.get("COLUMNS"):
        return None
    import shutil  # imported here: only a terminal needs a width

    return max(shutil.get_terminal_size((WIDTH, 24)).columns, 40)


def height() -> int:
    """The lines of the terminal; 24 if unknown."""
    import shutil  # as in `room`

    return shutil.get_terminal_size((WIDTH, 24)).lines


def width() -> int:
    """The width of wrapped text: that of the terminal up to a readable maximum; 80 if unknown."""
    return min(room() or WIDTH, WIDEST)


def _result() -> TextIO | pager.Pager:
    return _paging.page or sys.stdout


def _write(stream: TextIO | pager.Pager, text: str) -> None:
    if not text.isascii() and not _is_utf8(stream):
        encoding = "ascii" if _is_plain_terminal(stream) else stream.encoding
        text = text.translate(_ASCII).encode(encoding, "backslashreplace").decode(encoding)
    try:
        stream.write(text + "\n")
    except BrokenPipeError:
        raise
    except OSError as error:
        if stream is not sys.stderr:  # a failure of standard error cannot be reported
            raise refused(error) from error


def _encode(document: Any, stream: TextIO) -> str:
    """JSON text without characters that a terminal obeys; plain ASCII if the stream is not UTF-8."""
    try:
        text = _encoder.encode(document).decode()
    except (UnicodeEncodeError, msgspec.MsgspecError, OverflowError):
        import json  # imported here: rarely needed

        # A lone surrogate, which JSON can escape and UTF-8 cannot encode; or an integer beyond 64 bits.
        return json.dumps(msgspec.to_builtins(document), ensure_ascii=True)
    if not _is_utf8(stream):
        import json

        return json.dumps(json.loads(text), ensure_ascii=True)
    return harmless_json(text)


def _indented(encoded: str) -> str:
    try:
        return msgspec.json.format(encoded, indent=2)
    except msgspec.DecodeError:  # a lone surrogate, from a file name that is not valid UTF-8
        import json  # imported here: rarely needed

        return json.dumps(json.loads(encoded), ensure_ascii=True, indent=2)


def _is_utf8(stream: TextIO | pager.Pager) -> bool:
    is_utf8 = (stream.encoding or "utf-8").lower().replace("-", "") == "utf8"
    return is_utf8 and not _is_plain_terminal(stream)


def _is_plain_terminal(stream: TextIO | pager.Pager) -> bool:
    """True for a terminal under the C locale. Python writes UTF-8 there, which the terminal may not show.

    A pipe or a file gets the bytes unchanged: there, `LC_ALL=C` is set for the order of `sort`.
    """
    return os.environ.get("LC_ALL") in ("C", "POSIX") and (isinstance(stream, pager.Pager) or stream.isatty())
