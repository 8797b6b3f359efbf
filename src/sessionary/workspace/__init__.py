"""The operations on sessions of every kind: values in, values out. The command line, servers and scripts call this.

workspace   `Workspace`: one method for each operation
sessions    `Sessions`: which sessions there are, and which of them a name means
naming      short ids
changes     the operations that change sessions; the trash, and what can be undone
filters     which sessions a list is to have; which project a session belongs to
choosing    which messages of a session are asked for
searching   hits, and which sessions are searched
family      parents and children
documents   values as JSON objects
spending    tokens and cost of messages; `prices` has the prices
costs       tokens and cost from event logs
tool_times  how long the tools of a session took
syncing     the remote, and the local sessions that are compared with it; `sync_setup`, `sync_projects`, `sync_watch`
conflicts   sessions and files in two versions, and the choice of one
work        work sessions with those below them, and their breadcrumbs
failures    folders that cannot be read
labels      names, tags and stars; `seen` has when sessions were last open; `user_file` is what both are kept in
stores      the kinds of sessions, and which of them a project has
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
