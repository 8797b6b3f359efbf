"""The stores themselves on two devices: what they write is brought together, and they go on with what comes of it."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sessionary.layouts.brainstorm.store import BrainstormStore
from sessionary.layouts.maestro.store import WorkStore
from sessionary.layouts.orchestrator.store import FeatureStore
from sessionary.mailbox.mailbox import Mailbox
from sessionary.model import Severity
from sessionary.testing.wrapper import UNSYNCED, WrappedFs
from tests.messages import echo, log, put
from tests.support.memory_remote import MemoryServer
from tests.support.policy_world import FEATURE, LIST, PolicyDevice, PolicyWorld

PHASE = {"phase_id": "p1", "name": "p", "tasks": [{"task_id": "t1", "name": "t"}]}
NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)


@pytest.fixture
def world(tmp_path: Path) -> PolicyWorld:
    return PolicyWorld(tmp_path, MemoryServer().remote)


def both(world: PolicyWorld, *devices: PolicyDevice) -> None:
    """Let devices synchronise one after the other, and then all once more."""
    for device in (*devices, *devices, *devices):
        world.sync(device)


@pytest.mark.parametrize("shared", [False, True])
def test_a_message_whose_name_was_taken_elsewhere_is_delivered(shared: bool, world: PolicyWorld) -> None:
    a, b = world.devices
    session = WorkStore(a.work).create("work_task").session_id
    both(world, a, b)
    here, there = a.work / session, b.work / session
    with Mailbox(here, shared=shared) as mailbox:
        put(here, "x", number=1)
        assert mailbox.consume(echo).applied == 1
        put(there, "y", number=1)
        world.sync(b)
        world.sync(a)
        assert mailbox.consume(echo).applied == 1
        assert [line["result"]["prompt"] for line in log(here)] == ["x", "y"]
        put(here, "z", number=1)
        assert mailbox.consume(echo).applied == 1, "the name is free again, and not done with"
    both(world, a, b)
    with Mailbox(there) as other:
        assert other.pending() == []
    assert len(WorkStore(b.work).list_breadcrumbs(session)) == 3
    assert sorted(log(there), key=str) == sorted(log(here), key=str)


def test_a_message_under_the_name_of_one_that_was_given_up_is_delivered(world: PolicyWorld) -> None:
    a, b = world.devices
    session = WorkStore(a.work).create("work_task").session_id
    both(world, a, b)
    here, there = a.work / session, b.work / session

    def refuse(crumb: Any) -> None:
        raise RuntimeError("no")

    with Mailbox(here) as mailbox:
        put(here, "x", number=1)
        mailbox.consume(refuse, max_attempts=1)
        put(there, "y", number=1)
        world.sync(b)
        world.sync(a)
        put(here, "z", number=1)
        assert mailbox.consume(echo).applied == 2
        assert sorted(line["result"]["prompt"] for line in log(here)) == ["y", "z"]


def test_a_device_that_takes_over_continues_where_the_other_one_stopped(world: PolicyWorld) -> None:
    a, b = world.devices
    session = WorkStore(a.work).create("work_task").session_id
    put(a.work / session, "one", number=1)
    Mailbox(a.work / session).consume(echo)
    both(world, a, b)
    put(b.work / session, "two", number=2)
    with Mailbox(b.work / session) as mailbox:
        assert mailbox.consume(echo, take_over=True).applied == 1
    both(world, b, a)
    assert [line["result"]["prompt"] for line in log(a.work / session)] == ["one", "two"]
    with pytest.raises(Exception, match="another device"):
        Mailbox(a.work / session).consume(echo)


def test_features_of_two_devices_are_sound_and_can_be_continued(world: PolicyWorld) -> None:
    a, b = world.devices
    one, two = FeatureStore(a.project), FeatureStore(b.project)
    feature = one.create("app-2026-03-01")
    both(world, a, b)
    one.update(feature, model_in_use="opus", agent="here")
    two.append(feature, {"command": "look", "agent": "there"})
    two.update(feature, active_task=None, agent="there")
    one.save_plan(feature, [PHASE])
    world.sync(a)
    world.sync(b)
    world.sync(a)
    for store in (one, two):
        assert store.load(feature).model_in_use == "opus"
        assert [problem for problem in store.validate(feature) if problem.severity > Severity.note] == []
        commands = [entry["command"] for entry in store.history(feature)]
        assert sorted(commands) == ["look", "plan", "update-state", "update-state"]
    assert [*one.history(feature)] == [*two.history(feature)]
    two.update(feature, active_task="t1")
    world.sync(b)
    world.sync(a)
    assert one.load(feature).active_task == "t1"
    assert one.task(feature, "t1", "in_progress")


def test_features_that_two_devices_began_are_both_there_and_their_lists_wait_for_a_user(
    world: PolicyWorld,
) -> None:
    a, b = world.devices
    FeatureStore(a.project).create("one-2026-03-01")
    FeatureStore(b.project).create("two-2026-03-01")
    world.sync(a)
    reported = [
        outcome for report in world.sync(b) for outcome in report.outcomes if outcome.session_id == LIST
    ]
    assert "merge both versions" in reported[0].note
    world.sync(a)
    for device in (a, b):
        assert device.feature_names() == ["one-2026-03-01", "two-2026-03-01"]
        store = FeatureStore(device.project)
        assert {row.feature_id for row in store.list_features()} == set(device.feature_names())


def test_brainstorms_that_went_two_ways_are_both_sound(world: PolicyWorld) -> None:
    a, b = world.devices
    one, two = BrainstormStore(a.project), BrainstormStore(b.project)
    one.create("ideas", now=NOW)
    both(world, a, b)
    one.answer("ideas", ["here"], now=NOW)
    two.answer("ideas", ["there"], now=NOW)
    both(world, a, b)
    found: dict[str, Any] = {}
    for store in (one, two):
        rows = list(store.list())
        assert len(rows) == 2
        assert all(row.readable for row in rows)
        assert {row.parent for row in rows} == {None, "ideas"}
        answers = {slug: store.load(slug).history[0]["responses"] for slug in (row.slug for row in rows)}
        assert sorted(answers.values()) == [["here"], ["there"]]
        found = found or answers
        assert answers == found


class AppendingFs(WrappedFs):
    """Somebody who takes no lock appends to a history in the moment in which it is replaced."""

    def call(self, name: str, *arguments: Any, **options: Any) -> Any:
        if name == "rename" and str(arguments[1]).endswith("history.jsonl"):
            with open(arguments[1], "ab") as file:
                file.write(b'{"timestamp": "2026-03-01T09:00:00Z", "command": "late"}\n')
        return super().call(name, *arguments, **options)


@pytest.mark.parametrize("here", [True, False], ids=["both have changed", "only the other side has"])
def test_a_line_that_is_appended_while_a_history_is_replaced_is_kept(here: bool, world: PolicyWorld) -> None:
    a, b = world.devices
    feature = "app-2026-03-01"
    a.plan(feature)
    both(world, a, b)
    if here:
        a.log(feature, "here", NOW)
    b.log(feature, "there", NOW)
    world.sync(b)
    a.engine(FEATURE, world.remote(), AppendingFs(UNSYNCED)).pull()
    both(world, a, b)
    for device in (a, b):
        commands = sorted(json.loads(line)["command"] for line in device.history(feature))
        assert commands == [*(["here"] if here else []), "late", "there"]
