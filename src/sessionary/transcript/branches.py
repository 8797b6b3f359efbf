"""The line of a conversation that is a tree: which of its records were rewound or abandoned."""

from __future__ import annotations

from collections.abc import Mapping


def abandoned(parents: Mapping[str, str | None], leaf: str | None) -> set[str]:
    """The records that branch off the line from the root to the leaf.

    A record whose ancestors do not meet the line belongs to an earlier piece of the conversation (before a compaction,
    or before a link that is missing), and stays.

    Args:
        parents: the parent of each record, by id, in the order of the file.
        leaf: the record with which the conversation ends now; None if there is none.
    """
    line: set[str] = set()
    at = leaf
    while at is not None and at in parents and at not in line:  # parents may form a ring
        line.add(at)
        at = parents[at]
    off: dict[str, bool] = dict.fromkeys(line, True)
    gone: set[str] = set()
    for record in parents:
        path: list[str] = []
        step: str | None = record
        while step is not None and step in parents and step not in off and step not in path:
            path.append(step)
            step = parents[step]
        meets = step is not None and off.get(step, False)
        off.update(dict.fromkeys(path, meets))
        if meets and record not in line:
            gone.add(record)
    return gone
