"""`sync init`: choose a remote, test that it can hold sessions, and store the settings."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from sessionary.cli import options, output
from sessionary.cli.changing import done
from sessionary.cli.lazy import command
from sessionary.cli.project_options import may_ask
from sessionary.cli.sync import places
from sessionary.cli.text import one_line
from sessionary.disk.fs import OS_FS, stat_or_none
from sessionary.errors import AlreadyExists
from sessionary.sync.remotes import check_address
from sessionary.sync.settings import Settings, stable_name
from sessionary.workspace.sync_setup import set_up
from sessionary.workspace.syncing import settings_at

_SECRET = re.compile(r"secret|password|token|sas|signature|key(?!_id$)", re.IGNORECASE)
"""Parts of option names that denote credentials; the id of a key is not one."""


@command(
    "init",
    "sessionary sync init postgresql://db.example.org/sessions",
    "sessionary sync init s3://bucket/prefix --option region=eu-central-1 --encrypt ~/.config/sessionary/key.txt",
    "sessionary sync init https://ACCOUNT.documents.azure.com/amplifier-db/sessionary",
    "sessionary sync init az://ACCOUNT/CONTAINER --exclude '*/private*' --redact",
)
@click.argument("address", metavar="ADDRESS")
@places.settings_option
@click.option("--tenant", metavar="NAME", help="Owner of the sessions: the same name on all your machines.")
@click.option("--device", metavar="NAME", help="Name of this machine (default: its host name).")
@options.repeated("--include", metavar="PATTERN", help="Only projects whose name matches, such as git:*.")
@options.repeated("--exclude", metavar="PATTERN", help="Not the projects whose name matches.")
@options.repeated(
    "--project", "projects", metavar="DIR", help="Also synchronise the sessions in this project folder."
)
@options.flag("--logs", help="Also synchronise event logs.")
@options.flag("--redact", help="Redact what looks like a secret before it is sent.")
@options.repeated("--redact-rule", "rules", metavar="NAME=REGEX", help="Redact matches of REGEX, too.")
@click.option(
    "--encrypt",
    metavar="FILE",
    help="Encrypt everything for the age key in this file; the file is created if missing.",
)
@options.repeated(
    "--option", "options", metavar="NAME=VALUE", help="A setting of the store, such as region or endpoint."
)
@options.flag("--replace", help="Replace the previous settings.")
@options.json_result
def init_command(
    address: str,
    settings_path: Path | None,
    tenant: str | None,
    device: str | None,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    projects: tuple[str, ...],
    logs: bool,
    redact: bool,
    rules: tuple[str, ...],
    encrypt: str | None,
    options: tuple[str, ...],
    replace: bool,
) -> int:
    """Set the remote, and test that it can hold sessions.

    ADDRESS never contains a password or key: those come from the environment, or from where the client of the
    store looks (PGPASSWORD or ~/.pgpass; AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY;
    GOOGLE_APPLICATION_CREDENTIALS; AZURE_STORAGE_ACCOUNT_KEY; SESSIONARY_COSMOS_KEY, or your sign-in to
    Azure). Missing tables and containers are created; buckets are not. The settings are stored in a file that
    you can read and edit.

    This cannot be undone; `sync init --replace` sets a new remote.
    """
    check_address(address)
    place = settings_at(settings_path)
    if not replace and stat_or_none(OS_FS, str(place)) is not None:
        raise AlreadyExists(f"{place} already has settings", path=place, hint="use --replace to replace them")
    settings = Settings(
        remote=address,
        tenant=_tenant(address, tenant),
        device=device or platform.node() or "unnamed",
        include=include or ("*",),
        exclude=exclude,
        logs=logs,
        redact=redact,
        redact_rules=_pairs(rules, "--redact-rule"),
        encrypt=None if encrypt is None else os.path.abspath(os.path.expanduser(encrypt)),
        options=_pairs(options, "--option"),
        projects=tuple(os.path.abspath(os.path.expanduser(folder)) for folder in projects),
    )
    settings.rules()
    made, apart, there = set_up(settings, place)
    lines = [
        *done(f"{one_line(settings.remote)} is ready for the sessions of {one_line(settings.tenant)}"),
        f"  settings in {one_line(str(place))}, without any secret",
    ]
    document = _object(settings, place, apart, there, made)
    return output.shown(document, lines, asides=_advice(settings, apart, there))


def _tenant(address: str, given: str | None) -> str:
    """The tenant: as given, else the role of the address, else the user who is logged in, after a question."""
    if given:
        return given
    parts = urlsplit(address)
    guess = (parts.username if parts.scheme.startswith("postgres") else None) or stable_name(os.environ)
    if may_ask():
        answer: str = click.prompt(
            "Owner of the sessions (the same name on all your machines)", default=guess, err=True
        )
        return answer
    if guess is None:
        raise click.UsageError(
            "give --tenant NAME: the owner of the sessions, the same name on all your machines"
        )
    return guess


def _pairs(words: Iterable[str], option: str) -> dict[str, str]:
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not name or not equals:
            raise click.UsageError(f"{option} takes NAME=VALUE, not {word}")
        if _SECRET.search(name):
            raise click.UsageError(
                f"{option} {name} would store a secret in the settings: set it in the environment"
            )
        found[name] = value
    return found


def _object(settings: Settings, place: Path, apart: bool | None, there: bool, made: bool) -> dict[str, Any]:
    """With the field names of docs/cli-json.md."""
    return {
        "settings": str(place),
        "remote": settings.remote,
        "tenant": settings.tenant,
        "device": settings.device,
        "tenants_kept_apart": apart,
        "holds_sessions": there,
        "key_made": settings.encrypt if made else None,
    }


def _advice(settings: Settings, apart: bool | None, there: bool) -> Iterator[str]:
    """Warnings, and the next command."""
    if settings.encrypt is not None:  # an earlier attempt may have created it without printing this
        place = one_line(settings.encrypt)
        yield f"The key is in {place}. Copy it to your other machines, and to a safe place:"
        yield "Without it, nothing that is stored can be read."
    if apart is False:
        yield "This server does not separate tenants: each user who may read the tables can read all sessions."
    yield "next: sessionary sync pull" if there else "next: sessionary sync push"
