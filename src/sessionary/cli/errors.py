"""Map exceptions to exit codes.

The codes are defined on the error classes (docs/errors.md); usage is 2, an interrupt 130, any unexpected exception 1.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import click

from sessionary.cli import formatting, output
from sessionary.cli.app import cli
from sessionary.cli.lazy import ReaderGone
from sessionary.cli.text import harmless, short_path
from sessionary.errors import SessionaryError

BUG = 1
INTERRUPTED = 130
BROKEN_PIPE = 141


def run(arguments: Sequence[str], program: click.Command = cli, name: str = "sessionary") -> int:
    """Run one command of a program, print its error on standard error, and return the exit code."""
    output.open_streams()
    try:
        return _run(arguments, program, name)
    finally:
        output.let_go()


def _run(arguments: Sequence[str], program: click.Command, name: str) -> int:
    as_json = any(word in ("--json", "--jsonl") for word in arguments)
    try:
        code = program.main(args=list(arguments), prog_name=name, standalone_mode=False)
        output.end()
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.ClickException as error:
        return _print_usage(error, as_json)
    except (KeyboardInterrupt, click.Abort):
        output.aside("interrupted")
        return INTERRUPTED
    except (ReaderGone, BrokenPipeError):
        return _end_of_pipe()
    except SessionaryError as error:
        return _print(error, as_json)
    except OSError as error:  # click prints the help itself; an error of a stream has no file name
        return (
            _print_bug(error, arguments, as_json)
            if error.filename
            else _print(output.refused(error), as_json)
        )
    except Exception as error:  # noqa: BLE001 - the outermost handler; --debug prints the traceback
        return _print_bug(error, arguments, as_json)


def _print(error: SessionaryError, as_json: bool) -> int:
    if as_json:
        output.problem(_document(error))
    else:
        output.aside(harmless(f"sessionary: {formatting.message(error)}"))
        for match in error.details.get("matches", ()):
            output.aside(harmless("  " + "  ".join(map(short_path, match.split("  ")))))
        faults = error.details.get("faults", ())
        for fault in faults if len(faults) > 1 else ():  # a single fault is in the message
            output.aside(harmless(f"  {fault}"))
        if error.hint:
            output.aside(harmless(f"  {error.hint}"))
    return error.exit_code


def _document(error: SessionaryError) -> dict[str, Any]:
    """The error as in docs/cli-json.md, with absolute paths."""
    document: dict[str, Any] = {**error.as_dict(), "exit_code": error.exit_code}
    context = document.get("error_context")
    if document.get("path"):
        document["path"] = os.path.abspath(document["path"])
    if context is not None and context.get("file"):
        document["error_context"] = context | {"file": os.path.abspath(context["file"])}
    return document


def _print_usage(error: click.ClickException, as_json: bool) -> int:
    if as_json:
        output.problem({"error": "Usage", "message": error.format_message(), "exit_code": error.exit_code})
    else:
        try:
            error.show()
        except OSError:  # standard error is closed or full: nothing is left to report to
            pass
    return error.exit_code


def _print_bug(error: Exception, arguments: Sequence[str], as_json: bool) -> int:
    message = f"{type(error).__name__}: {error}"
    if "--debug" in arguments:
        import traceback  # imported here: only needed after a bug

        traceback.print_exception(error)
    elif as_json:
        output.problem({"error": "Bug", "message": message, "exit_code": BUG})
    else:
        output.aside(harmless(f"sessionary: bug in Sessionary: {message}"))
        output.aside("  `sessionary --debug ...` prints the traceback; please report it")
    return BUG


def _end_of_pipe() -> int:
    """The reader of our output has gone (`| head`): end silently, as other filters do.

    Restoring the default action and raising the signal keeps Python from flushing into the closed pipe again.
    """
    import signal

    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.raise_signal(signal.SIGPIPE)
    return BROKEN_PIPE
