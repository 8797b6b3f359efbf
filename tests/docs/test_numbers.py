"""Where a page or a docstring says how long, how much or how often, it says what the code does."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from types import ModuleType

import pytest

from sessionary.codec import yaml_read
from sessionary.disk import flush_policy, lock
from sessionary.hybrid import store as hybrid
from sessionary.layouts import base
from sessionary.layouts.amplifier import conversation, events, presence
from sessionary.layouts.maestro import breadcrumbs, session_file
from sessionary.layouts.maestro import names as work_names
from sessionary.layouts.orchestrator import base_store
from sessionary.mailbox import delivery as rounds
from sessionary.mailbox import folders
from sessionary.search import scan as search
from sessionary.sync import background_sync, blocks, download, engine, heads, remote, verify_blocks
from sessionary.sync.gc import removal
from sessionary.sync.remotes import cosmos, cosmos_recent, objects, postgres, postgres_calls, sealed

DOCS = Path(__file__).resolve().parents[2] / "docs"
WORDS = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five", 10: "ten", 30: "thirty"}


def word(number: float) -> str:
    return WORDS[int(number)]


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"


def kb(size: int) -> str:
    return f"{size >> 10} kB"


def exactly(size: int) -> str:
    return f"{size:,} bytes"


def days(time: timedelta) -> str:
    return word(time / timedelta(days=1)) + " days"


def every(time: timedelta) -> str:
    return {timedelta(days=1): "once a day", timedelta(hours=1): "once an hour"}[time]


PAGES = [
    ("architecture.md", f"waits {ms(rounds.PAUSE)}, once"),
    ("architecture.md", f"After {rounds.LINES} results, or {ms(rounds.SECONDS)} after the first"),
    ("architecture.md", f"less than {word(base.MTIME_GRACE)} seconds before it was read"),
    ("architecture.md", f"in windows of {conversation.WINDOW >> 10} KiB"),
    ("architecture.md", f"with up to {conversation.WIDE_WINDOW >> 20} MiB"),
    ("architecture.md", f"a window of {kb(search.WINDOW)}"),
    (
        "architecture.md",
        f"{word(background_sync.QUIET)} seconds after the last change, {kb(background_sync.BULK)}",
    ),
    ("architecture.md", f"{background_sync.LATEST:.0f} seconds after the first"),
    ("architecture.md", f"doubles up to {word(background_sync.LONGEST_PAUSE / 60)} minutes"),
    (
        "durability.md",
        f"`batch` flushes after {flush_policy.Committer.LINES} lines, or {ms(flush_policy.Committer.SECONDS)} after",
    ),
    ("durability.md", f"readers say after {word(breadcrumbs.YOUNG)} seconds"),
    ("durability.md", f"A writer waits {word(session_file.PATIENCE)} seconds for another"),
    ("durability.md", f"A writer waits {word(lock.TIMEOUT)} seconds for another process"),
    ("durability.md", f"send for {word(background_sync.AT_EXIT)} seconds at most"),
    ("durability.md", f"quiet for {engine.QUIET:.0f} seconds"),
    ("formats/amplifier.md", f"of events within {ms(events.TOUCH_EVERY.total_seconds())} of one another"),
    (
        "formats/brainstorm.md",
        f"has at most {yaml_read.LIMITS.size >> 20} MiB and is nested at most {yaml_read.LIMITS.depth} deep",
    ),
    ("formats/brainstorm.md", f"of at most {yaml_read.LIMITS.aliased:,} values"),
    ("formats/maestro.md", f"younger than {word(breadcrumbs.YOUNG)} seconds"),
    ("formats/maestro.md", f"of more than {work_names.LARGEST >> 20} MiB"),
    ("formats/orchestrator.md", f"Both are waited for {word(base_store.TIMEOUT)} seconds"),
    ("formats/sync.md", f"blocks and heads of {exactly(remote.LARGEST_BLOCK)}"),
    ("formats/sync.md", f"blocks of at most {exactly(blocks.BLOCK)}"),
    ("formats/sync.md", f"and to {exactly(blocks.NEAR)} at least"),
    (
        "formats/sync.md",
        f"at most {heads.INLINE:,} compressed bytes MAY lie here, {exactly(heads.INLINE_ALL)} of them",
    ),
    ("formats/sync.md", f"the newest last, {heads.HISTORY} at most"),
    ("formats/sync.md", f"more than {remote.IDLE_PAGES} pages in a row"),
    ("formats/sync.md", f"more than {remote.LARGEST_BLOCK >> 10} KiB, or"),
    ("formats/sync.md", f"more than {download.ALIKE >> 20} MiB in all"),
    ("formats/sync.md", f"if {word(verify_blocks.REST)} seconds have passed"),
    ("formats/sync.md", f"data of at most {exactly(remote.LARGEST_BLOCK - sealed.OVERHEAD)} can be sealed"),
    ("howto/from-app-cli.md", f"nothing was written for {word(background_sync.QUIET)} seconds"),
    (
        "howto/from-app-cli.md",
        f"when {kb(background_sync.BULK)} have come together, and {background_sync.LATEST:.0f} seconds after",
    ),
    ("howto/from-app-cli.md", f"left, for {word(hybrid.CLOSING)} seconds at most"),
    ("howto/from-app-cli.md", f"written to in the last {presence.QUIET:.0f} seconds"),
    ("howto/from-app-cli.md", f"pauses that grow to {word(background_sync.LONGEST_PAUSE / 60)} minutes"),
    ("howto/mailbox.md", f"up to {rounds.LINES} lines, or what {ms(rounds.SECONDS)} bring"),
    ("howto/mailbox.md", f"keep coming within {ms(rounds.PAUSE)}"),
    ("howto/mailbox.md", f"changed within the last {word(folders.SETTLED_NS / 1e9)} seconds"),
    ("howto/mailbox.md", f"for {word(breadcrumbs.YOUNG)} seconds after its last change"),
    ("howto/sync.md", f"written to in the last {engine.QUIET:.0f} seconds"),
    ("howto/sync.md", f"removes what is older than {removal.RETENTION.days} days"),
    ("howto/sync-cosmos.md", f"gave no answer within {cosmos.PATIENCE:.0f} s"),
    ("howto/sync-cosmos.md", every(cosmos_recent.RELIST)),
    (
        "howto/sync-postgres.md",
        f"{postgres_calls.CONNECT} seconds for a connection, {postgres_calls.ANSWER:.0f} for an",
    ),
    ("howto/sync-postgres.md", f"all his heads, {postgres.PAGE_HEADS} at a time"),
    ("howto/sync-s3.md", f"ends after {objects.TIMEOUT[:-1]} seconds, and after {objects.CONNECT[:-1]} if"),
    ("scaling.md", every(cosmos_recent.RELIST)),
    ("scaling.md", f"a head of up to 1 kB, {cosmos.PAGE_HEADS} in a request"),
]

DOCSTRINGS = [
    (rounds, f"with its {rounds.LINES}th line, or when its first has waited for {ms(rounds.SECONDS)}"),
    (rounds, f"a batch waits {ms(rounds.PAUSE)} at a time"),
    (folders, f"left alone for {word(folders.SETTLED_NS / 1e9)} seconds"),
    (cosmos_recent, every(cosmos_recent.RELIST).capitalize()),
    (
        flush_policy,
        f"flushes after {flush_policy.Committer.LINES} lines, or {ms(flush_policy.Committer.SECONDS)} after",
    ),
    (breadcrumbs, f"for {word(breadcrumbs.YOUNG)} seconds"),
]


@pytest.mark.parametrize(("page", "claim"), PAGES)
def test_a_page_says_what_the_code_does(page: str, claim: str) -> None:
    assert claim in (DOCS / page).read_text("utf-8")


@pytest.mark.parametrize(("module", "claim"), DOCSTRINGS)
def test_a_docstring_says_what_the_code_does(module: ModuleType, claim: str) -> None:
    assert claim in " ".join((module.__doc__ or "").split())


def test_what_was_removed_is_kept_for_as_long_as_is_said() -> None:
    assert f"{days(removal.RETENTION)} at least" in " ".join((removal.Remover.__doc__ or "").split())
