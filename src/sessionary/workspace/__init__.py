"""The operations on sessions of every kind: values in, values out. The command line, servers and scripts call this.

workspace   `Workspace`: one method for each operation
sessions    `Sessions`: find all sessions, or the one that a name means
stores      the kinds of sessions, and which of them a project has; `naming` has short ids
failures    folders and sessions that cannot be read

Read:
filters     select and sort sessions; which project a session belongs to
choosing    select messages of a session; `following` yields new ones
stored      records as they are stored; `excerpts` shows the bytes around a damaged place
searching   hits, and which sessions are searched
family      parents and children
comparing   two sessions, or branches of one
stats       totals; `tool_times` has the durations of tools
spending    tokens and cost of messages; `prices` has the prices, `costs` reads event logs
checking    check one session, or everything below a home; `chain_heads` remembers the ends of hash chains
doctor      the state of each agent, and what it will delete soon
opening     the command that continues a session in its agent
documents   values as JSON objects

Write:
changes     the operations that change sessions; the trash, and what can be undone
labels      names, tags and stars; `seen` has when sessions were last open; both are a `user_file`
mended_copy a repaired copy of a session that only its agent may write
exporting   one file in a format; `bundling` writes a folder of sessions, `imports` reads exports of other services
archive     copies of sessions; `archive_files` and `archive_index` are its data, `archive_view` shows what only it has
work        work sessions with those below them, and their breadcrumbs
syncing     the remote, and the local sessions compared with it; `sync_setup`, `sync_projects`, `sync_watch`
conflicts   sessions and files in two versions, and the choice of one
"""

from sessionary.layouts.changing import Trashed
from sessionary.layouts.changing import Undoable as Change
from sessionary.workspace.changes import ForkPreview, Repair
from sessionary.workspace.failures import gathered, in_turn
from sessionary.workspace.naming import SHORT, short_name
from sessionary.workspace.stats import Stats
from sessionary.workspace.stores import KINDS, check_folder, check_store, is_home, layout_in
from sessionary.workspace.workspace import Target, Workspace

__all__ = [
    "KINDS",
    "SHORT",
    "Change",
    "ForkPreview",
    "Repair",
    "Stats",
    "Target",
    "Trashed",
    "Workspace",
    "check_folder",
    "check_store",
    "gathered",
    "in_turn",
    "is_home",
    "layout_in",
    "short_name",
]
