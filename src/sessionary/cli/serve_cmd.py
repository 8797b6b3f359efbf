"""`sessionary serve`: the sessions as a page in the browser."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from threading import Thread

import click

from sessionary.cli import collect_garbage, homes, options, output
from sessionary.cli.lazy import command
from sessionary.cli.text import one_line
from sessionary.disk.atomic import forget_file
from sessionary.errors import Unsupported
from sessionary.loopback import new_token


@command(
    "serve",
    "sessionary serve",
    "sessionary serve --read-only --home /mnt/old-laptop --home ~/.claude",
    "sessionary serve --no-open --port 8700",
    "sessionary serve --socket ~/sessionary.sock",
)
@options.repeated(
    "--home",
    "places",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Only the sessions below this folder.",
)
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    metavar="N",
    help="The port on 127.0.0.1 (default: 8642, or a free one).",
)
@click.option(
    "--socket", "path", type=click.Path(path_type=Path), metavar="FILE", help="Listen on a Unix socket."
)
@options.flag("--no-open", help="Print the link; open no browser.")
@options.flag("--read-only", help="Refuse every change.")
def serve_command(
    places: tuple[Path, ...], port: int | None, path: Path | None, no_open: bool, read_only: bool
) -> int:
    """Show the sessions in the browser, until Ctrl+C.

    The page lists and searches the sessions of all agents, and shows a session with new messages as they are
    stored. It is reachable from this machine only, and needs a token that is new at each start: the browser
    gets it with the link. With --socket no browser is opened; forward a port to the socket, for example with
    `ssh -L`.

    Needs the extra `web`: pip install 'sessionary[web]'.
    """
    if path is not None and port is not None:
        raise click.UsageError("--socket and --port exclude each other")
    try:
        from sessionary.viewer import serving
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("sessionary"):
            raise
        raise Unsupported(
            f"`sessionary serve` needs the package {error.name}", hint="pip install 'sessionary[web]'"
        ) from error
    from sessionary.viewer.library import Library

    library = Library([homes.workspace(places=[one]) for one in places] or [homes.workspace()])
    token = new_token()
    bound = serving.listen(port) if path is None else serving.listen_at(path)
    files: list[str] = []

    def started() -> None:
        if path is not None:
            output.aside(f"Serving on {one_line(str(path))}; Ctrl+C ends it")
            output.line(f"#token={token}")
            output.aside("Forward a port to it, and put this behind the address: http://localhost:PORT/")
        else:
            files.extend(_announce(serving.link_of(bound.getsockname()[1], token), no_open=no_open))
        output.flush()

    collect_garbage()
    try:
        serving.serve(library, bound, token, read_only=read_only, started=started)
    finally:
        for file in [*files, *([] if path is None else [str(path)])]:
            forget_file(file)
    return 0


def _announce(link: str, *, no_open: bool) -> list[str]:
    """Print the link, or open it; return the files to remove at the end."""
    from sessionary.viewer import serving

    if no_open:
        output.line(link)
        return []
    file = serving.redirect_file(link)
    output.aside(
        f"Serving on {link.partition('#')[0]}; Ctrl+C ends it. Without a browser: --no-open prints the link."
    )
    Thread(target=webbrowser.open, args=[Path(file).as_uri()], daemon=True).start()
    return [file]
