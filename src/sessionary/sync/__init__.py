"""Synchronisation: sessions are pushed to a remote and pulled from it, without loss or duplication.

blocks, heads
    remote format: immutable ranges of files, and one small record for each session
remote, remotes/
    the verbs that a store must offer, and the stores that implement them
state
    what this machine knows about the remote; disposable
local_files, bundles
    local files in the form in which they are sent
download, diff
    remote files, and the comparison of both sides
merging, rewinds
    merge of two versions of a journal; notes about removed lines
pushing, upload_plan, pulling, install, apply, engine
    push and pull; `engine.Engine` is the entry point
conflicts, damage, guard
    files in two versions that only the user can merge; damaged versions; the decisions of the user
gc/
    blocks that no head reaches: counted, and removed where a store supports it
rules, identity
    which projects and files are synchronised, and the shared names of projects

The engine knows sessions only through `layouts.base`; remotes do not know sessions.
"""
