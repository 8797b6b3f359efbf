"""Rules for what identifies the user: home folders, user names, mail addresses; and the rules file of the user."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping

from sessionary.disk.fs import OS_FS, Fs, read_bytes
from sessionary.errors import Invalid, NotFound
from sessionary.xdg import config_folder, file_in

RULES_FILE = "redaction.toml"

MAIL = r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}"
OPTIONAL: Mapping[str, str] = {"mail address": MAIL}
"""Rules that are off until the rules file of the user turns them on."""

# In JSON text a backslash is doubled, within a string of it twice. A pattern is fast if it begins with a set of
# characters, so what must not stand in front is looked for behind the first one.
_BEGIN = r"[\\/-](?:(?<![\w.~-].)|(?<=/mnt/[a-z].))"
_HOMES = (
    r"[\\/]{0,3}(?:home|Users)[\\/]{1,4}[^\\/\s\"'`<>|:*?,;()\[\]{}]+",
    r"(?<=-)(?:home|Users)-[A-Za-z0-9]+",
)
_IN_PATH = re.compile(r"(?:^|[\\/])(?:home|Users)[\\/]+([^\\/\x00-\x1f]+)")
_NOT_A_NAME = frozenset(
    "admin administrator agent app build code coder default dev developer docker git guest home node public root"
    " runner shared test ubuntu user username users vscode work workspace".split()
)
_SHORTEST = 3


def personal_rules(home: str, user: str, paths: Iterable[str | None] = ()) -> dict[str, str]:
    """Rules for home folders and user names.

    Args:
        user: the name of the user; may be empty.
        paths: paths of the sessions, such as the folder that the agent worked in: their home folders count too.
    """
    names = {user, os.path.basename(home.rstrip(os.sep))}
    for path in paths:
        names.update(_IN_PATH.findall(path or ""))
    known = sorted(
        (re.escape(name) for name in names if len(name) >= _SHORTEST and name.lower() not in _NOT_A_NAME),
        key=len,
        reverse=True,
    )
    places = list(_HOMES)
    if home.rstrip(os.sep).count(os.sep) > 1:  # neither / nor /root: those identify no user
        place = home.strip(os.sep)
        slug = place.replace(os.sep, "-")
        places += [rf"(?<=[\\/]){re.escape(place)}(?![\w.-])", rf"(?<=-){re.escape(slug)}(?![\w.])"]
    rules = {"home folder": f"{_BEGIN}(?:{'|'.join(places)})"}
    if known:
        rules["user name"] = rf"(?i)(?<![A-Za-z0-9])(?:{'|'.join(known)})(?![A-Za-z0-9])"
    return rules


def rules_file() -> str | None:
    """The default path of the user's rules; None if there is no place for it."""
    return file_in(config_folder(), RULES_FILE)


def load_rules(path: str | None, *, fs: Fs = OS_FS) -> dict[str, str | None]:
    """Load the rules of the user: a TOML file with a table `rules`.

    A rule is a regular expression under its name; ``false`` turns a kept rule off, and ``true`` one of `OPTIONAL` on.

    Args:
        path: the file; None for the default one, which may be missing.

    Raises:
        NotFound: the file does not exist.
        Invalid: it is not such a file.
    """
    place = path or rules_file()
    data = None if place is None else read_bytes(fs, place)
    if data is None or place is None:
        if path is not None:
            raise NotFound(f"{path} does not exist", path=path, operation="redact")
        return {}
    try:
        found = tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise _invalid(place, f"it is not TOML: {error}") from None
    rules = found.pop("rules", {})
    if found or not isinstance(rules, dict):
        raise _invalid(place, f"unknown setting {next(iter(found), 'rules')}")
    return {name: _rule(place, name, value) for name, value in rules.items()}


def _rule(place: str, name: str, value: object) -> str | None:
    if value is False:
        return None
    if isinstance(value, str):
        return value
    if value is True and name in OPTIONAL:
        return OPTIONAL[name]
    raise _invalid(place, f"{name} is neither a regular expression nor false")


def _invalid(place: str, what: str) -> Invalid:
    hint = "docs/howto/export.md has an example"
    return Invalid(f"{place}: {what}", path=place, operation="redact", hint=hint)
