# pyright: strict
"""A program that uses the public names as a user's would. `make types` reads it with pyright, in strict mode.

It is not run. An unknown type in the public interface is an error here.
"""

from datetime import datetime
from pathlib import Path
from typing import Any, assert_type

import sessionary
from sessionary import (
    BrainstormStore,
    Breadcrumb,
    EventReader,
    EventsLog,
    FeatureStore,
    ForkResult,
    HybridSessionStore,
    Mailbox,
    NotFound,
    Repaired,
    Rewound,
    SessionaryError,
    SessionStore,
    SyncResult,
    WorkSession,
    WorkStore,
    fork_session,
    repair,
    rewind,
    undo_entries,
)
from sessionary.disk.transaction import Entry
from sessionary.layouts.brainstorm.session import Brainstorm
from sessionary.mailbox.mailbox import Status
from sessionary.model import Problem


def sessions(store: SessionStore, session_id: str) -> None:
    store.append(session_id, [{"role": "user", "content": "Hello"}])
    messages, metadata = store.load(session_id)
    assert_type(metadata, dict[str, Any])
    store.save(session_id, messages, {**metadata, "name": "Greeting"})
    assert_type(store.find_session("3f0c"), str)
    assert_type(store.rewind(session_id, 1), Rewound)
    assert_type(store.repair(session_id), Repaired)
    assert_type(store.last_report.session, str)
    assert_type(store.base_dir, Path)


def functions(folder: Path) -> None:
    assert_type(fork_session(folder, turn=1), ForkResult)
    assert_type(rewind(folder, 1), Rewound)
    assert_type(repair(folder), Repaired)
    assert_type(undo_entries(folder), list[Entry])


def events(folder: Path) -> None:
    with EventsLog(folder) as log:
        log.append({"event": "llm:response"})
    assert_type(EventReader(folder / "events.jsonl").problems, list[Problem])


def errors(store: SessionStore) -> str:
    try:
        store.load("missing")
    except NotFound as error:
        assert_type(error.path, str | None)
        assert_type(error.at, datetime)
        assert_type(error.details, dict[str, Any])
        return error.hint or error.message
    except SessionaryError as error:
        return str(error.exit_code)
    return ""


async def synchronized(store: HybridSessionStore) -> None:
    store.save("an-id", [], {})
    assert_type(await store.sync(), SyncResult)
    store.close()


def work(root: Path, session_id: str) -> None:
    store = WorkStore(root)
    session = store.load(session_id)
    assert_type(session, WorkSession)
    for crumb in sessionary.list_breadcrumbs(session_id):
        assert_type(crumb, Breadcrumb)


def mailbox(box: Mailbox) -> None:
    assert_type(box.status(), Status)


def features(root: Path) -> None:
    store = FeatureStore(root)
    assert_type(store.home, Path)
    assert_type(store.last_report.problems, list[Problem])


def brainstorms(root: Path) -> None:
    store = BrainstormStore(root)
    assert_type(store.folder, str)
    assert_type(store.load("a-slug"), Brainstorm)
