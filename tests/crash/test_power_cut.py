"""What a real ext4 has on its disk when a call has returned, with a journal and without one."""

from pathlib import Path

import pytest

from tests.lanes import after_a_power_cut

# What is written and what is read of it afterwards; both print the same if nothing was lost.
KINDS = {
    "breadcrumbs": (
        """
works = WorkStore(root)
session = works.create("work").session_id
for number in range(40):
    crumb = create_breadcrumb(f"{number} " + "x" * 900, "", [], [], None, 0, "model", {})
    works.write_breadcrumb(crumb, session)
print(*range(40))
""",
        """
works = WorkStore(root)
(session,) = works.list_sessions()
print(*(crumb.prompt.split()[0] for crumb in works.list_breadcrumbs(session.session_id)))
""",
    ),
    "mailbox": (
        """
works = WorkStore(root)
session = works.create("work").session_id
works.write_breadcrumb(create_breadcrumb("p", "r", [], [], None, 0, "model", {}), session)
print(session, Mailbox(works.folder(session)).consume(lambda crumb: {"done": True}).applied, [])
""",
        """
works = WorkStore(root)
(session,) = [one.session_id for one in works.list_sessions()]
mailbox = Mailbox(works.folder(session))
print(session, mailbox.status().applied, mailbox.pending())
""",
    ),
    "transcripts": (
        """
store = SessionStore(root)
messages = [{"role": "user", "content": f"{number} " + "x" * 900} for number in range(30)]
store.save("s", messages[:10], {"session_id": "s"})
for number in range(10, 30):
    store.append("s", messages[number : number + 1])
store.update_metadata("s", {"name": "called"})
store.save("changed", messages, {"session_id": "changed"})
store.save("changed", messages[5:20], {"session_id": "changed"})
print(*range(30), "called", *range(5, 20))
""",
        """
store = SessionStore(root)
messages, metadata = store.load("s")
print(*(one["content"].split()[0] for one in messages), metadata["name"], end=" ")
print(*(one["content"].split()[0] for one in store.load("changed")[0]))
""",
    ),
    "surgery": (
        """
store = SessionStore(root)
turns = [{"role": role, "content": f"{n} " + "x" * 900} for n in range(10) for role in ("user", "assistant")]
for name in ("a", "b", "c"):
    store.save(name, turns, {"session_id": name})
forked = store.fork("a", 4, "forked")
store.rewind("b", 3)
store.rewind("c", 2)
store.undo("c")
store.delete("a")
EventsLog(root + "/b", durability="full").append({"event": "prompt:submit"})
print(sorted(["b", "c", "forked"]), 8, 6, 20, 1)
""",
        """
store = SessionStore(root)
held = [len(store.load(name)[0]) for name in ("forked", "b", "c")]
print(sorted(store.list_sessions()), *held, len(open(root + "/b/events.jsonl").readlines()))
""",
    ),
    "brainstorms": (
        """
store = BrainstormStore(root)
slug = store.create("an-idea", questions=["Who?"]).slug
store.answer(slug, ["We"])
print(slug, True)
""",
        """
store = BrainstormStore(root)
(found,) = store.list()
print(found.slug, "We" in str(store.load(found.slug).session))
""",
    ),
    "features": (
        """
store = FeatureStore(root)
feature = store.create(name="sign in")
store.update(feature, active_task="T1")
print(feature, "T1", len(list(store.history(feature))))
""",
        """
store = FeatureStore(root)
(feature,) = [found.feature_id for found in store.list_features()]
print(feature, store.load(feature).active_task, len(list(store.history(feature))))
""",
    ),
}
BEGIN = """
import sys
from sessionary import (
    BrainstormStore, EventsLog, FeatureStore, Mailbox, SessionStore, WorkStore, create_breadcrumb,
)
from sessionary.disk import mounts
root = sys.argv[1] + "/project/sessions"
"""
PLANTED = "mounts.flushes_links = lambda folder, device: True\n"
JOURNALS = {"journal": (), "no journal": ("^has_journal",)}


def said(folder: Path, kind: str, journal: str, plant: str = "") -> tuple[str, str]:
    """What the writer says of what it has written, and the reader of what it finds."""
    write, read = KINDS[kind]
    return after_a_power_cut(BEGIN + plant + write, BEGIN + read, folder, *JOURNALS[journal])


@pytest.mark.lane("power-cut")
@pytest.mark.parametrize("journal", JOURNALS)
@pytest.mark.parametrize("kind", KINDS)
def test_what_was_acknowledged_is_on_the_disk(tmp_path: Path, kind: str, journal: str) -> None:
    written, read = said(tmp_path, kind, journal)
    assert written == read != ""


@pytest.mark.lane("power-cut")
def test_without_a_journal_a_name_that_comes_after_the_flush_is_lost(tmp_path: Path) -> None:
    """That the proof above can fail: this order is right wherever there is a journal."""
    written, read = said(tmp_path, "breadcrumbs", "no journal", PLANTED)
    assert 0 < len(read.split()) < len(written.split())
