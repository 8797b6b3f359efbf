"""The groups of commands: `work`, `brainstorm`, `feature`, `archive` and `sync`."""

from __future__ import annotations

from sessionary.cli.lazy import LazyGroup, command, places_in

# In the order of the help: each command and its module.
_WORK = {
    "list": "listing",
    "show": "show_cmd",
    "tree": "listing",
    "breadcrumbs": "breadcrumbs",
    "breadcrumb": "breadcrumbs",
    "timeline": "breadcrumbs",
    "stats": "stats_cmd",
    "start": "lifecycle",
    "pause": "lifecycle",
    "resume": "lifecycle",
    "interrupt": "lifecycle",
    "fail": "lifecycle",
    "close": "lifecycle",
    "pending": "mailbox_cmd",
    "status": "mailbox_cmd",
    "consume": "delivering",
    "watch": "delivering",
    "revive": "mailbox_cmd",
    "quarantine": "mailbox_cmd",
    "ledger": "mailbox_cmd",
}
WORK = places_in("sessionary.cli.work", _WORK)
SUBWORK = {"subwork": "sessionary.cli.work.subwork_cmd:subwork_command"}
SHORT = {"ls": "list", "l": "list", "sh": "show", "tr": "tree"}


@command(
    "work",
    "sessionary work list",
    "sessionary work show latest",
    "sessionary work consume latest --exec './apply.sh'",
    cls=LazyGroup,
    places={**WORK, **SUBWORK},
    short=SHORT,
)
def work_command() -> None:
    """Start work sessions, show them, and apply their messages.

    They are stored in docs/sessions of a project. `maestro wsession` and `maestro work` have the same
    commands, unless another program of that name is installed.
    """


_BRAINSTORM = {
    "start": "launching",
    "continue": "moving",
    "answer": "moving",
    "back": "moving",
    "update": "moving",
    "status": "reading",
    "technique": "noting",
    "party": "noting",
    "panel": "noting",
    "idea": "noting",
    "save": "moving",
    "finish": "moving",
    "reopen": "moving",
    "list": "reading",
    "show": "reading",
    "validate": "maintenance",
    "cleanup": "maintenance",
    "restore": "maintenance",
    "migrate": "maintenance",
}


@command(
    "brainstorm",
    'sessionary brainstorm start feature-auth -q "Who signs in?"',
    'sessionary brainstorm answer feature-auth "developers and admins" --ems 38',
    'sessionary brainstorm continue feature-auth -q "How long does it live?"',
    "sessionary brainstorm back feature-auth",
    "sessionary brainstorm save feature-auth",
    "sessionary brainstorm list",
    cls=LazyGroup,
    places=places_in("sessionary.cli.brainstorm", _BRAINSTORM),
)
def brainstorm_command() -> None:
    """Record brainstorms: questions, answers, ideas and rounds.

    They are stored in .project-memory/brainstorm-sessions/ below the folder of the project.
    """


_FEATURE = {
    "create": "writing",
    "plan": "planning",
    "task": "planning",
    "update": "writing",
    "log": "writing",
    "history": "reading",
    "status": "reading",
    "list": "reading",
    "pause": "writing",
    "resume": "writing",
    "complete": "writing",
    "archive": "writing",
    "unarchive": "writing",
    "ack": "writing",
    "validate": "repair",
    "repair": "repair",
    "migrate": "repair",
}


@command(
    "feature",
    'sessionary feature create "Sign in" --description "Log in with OAuth"',
    "sessionary feature plan sign-in-2025-01-09 --from plan.yaml",
    "sessionary feature update sign-in-2025-01-09 --task T1 --model opus",
    'sessionary feature log sign-in-2025-01-09 "make test" --duration 5200',
    "sessionary feature status sign-in-2025-01-09",
    "sessionary feature repair sign-in-2025-01-09",
    cls=LazyGroup,
    places=places_in("sessionary.cli.feature", _FEATURE),
)
def feature_command() -> None:
    """Manage features of a project: plan, state and history.

    They follow the contract of the orchestrator and are stored in .ai-session/ below the folder of the project.
    """


_ARCHIVE: dict[str, str] = dict.fromkeys(("add", "run", "list", "verify", "restore", "rm"), "archiving")


@command(
    "archive",
    "sessionary archive run",
    "sessionary archive list",
    "sessionary archive restore 3f0c81d2",
    "sessionary archive verify",
    cls=LazyGroup,
    places=places_in("sessionary.cli", _ARCHIVE),
)
def archive_command() -> None:
    """Keep exact copies of sessions before agents delete them.

    Sources are only read. A session whose source is gone stays in `sessionary list`, and `show` and `search` read
    it from the archive.
    """


_SYNC = {
    "init": "init",
    "push": "push_pull",
    "pull": "push_pull",
    "status": "push_pull",
    "watch": "watching",
    "resolve": "resolving",
    "history": "earlier",
    "restore": "earlier",
    "project": "projects",
    "check": "checking",
    "gc": "gc",
}


@command(
    "sync",
    "sessionary sync demo                            two machines on this one",
    "sessionary sync init postgresql://db.example.org/sessions",
    "sessionary sync push",
    "sessionary sync status",
    "sessionary sync watch",
    cls=LazyGroup,
    places={**places_in("sessionary.cli.sync", _SYNC), "demo": "sessionary.cli.demo_cmd:sync_demo_command"},
)
def sync_command() -> None:
    """Share sessions between machines.

    The remote is a folder, a database or an object store. Sessions stay ordinary files; a remote holds copies.
    If two machines continue one session, both versions are kept.
    """
