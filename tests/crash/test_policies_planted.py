"""The tests of bringing files together find known mistakes: each is planted in turn, and some stage must fail."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sessionary.disk import atomic
from sessionary.errors import SessionaryError
from sessionary.layouts import fields, ledger_owner
from sessionary.layouts.brainstorm.sync_adapter import BrainstormSyncLayout
from sessionary.layouts.maestro.sync_adapter import MaestroSyncLayout
from sessionary.layouts.orchestrator.sync_adapter import FeatureSyncLayout
from sessionary.layouts.sync import Policy, Rule
from sessionary.sync import apply, bundles, diff, engine, install, pushing
from sessionary.sync.apply import Writer
from sessionary.sync.diff import Comparison
from sessionary.sync.heads import decode
from sessionary.sync.install import Placer
from sessionary.sync.local_files import opened
from sessionary.sync.merging import Merged, merge
from sessionary.sync.pulling import Puller
from sessionary.sync.report import FOR_USER
from tests.crash.policy_stages import STAGES, Stage, sweep

Plant = Callable[[pytest.MonkeyPatch], None]
BY_NAME = {stage.name: stage for stage in STAGES}


def merged_by(patch: pytest.MonkeyPatch, change: Callable[..., Merged]) -> None:
    patch.setattr(apply, "merge", change)


def drop_lines_of_one_moment(patch: pytest.MonkeyPatch) -> None:
    def careless(rule: Rule, common: Any, mine: Any, theirs: Any) -> Merged:
        found = merge(rule, common, mine, theirs)
        by_time = {line.split(b'"')[3]: line for line in found.lines}
        return Merged(list(by_time.values()), [])

    merged_by(patch, careless)


def lines_that_both_have_stand_twice(patch: pytest.MonkeyPatch) -> None:
    merged_by(patch, lambda rule, common, mine, theirs: Merged([*mine.lines, *theirs.lines], []))


def lines_in_the_order_in_which_they_came(patch: pytest.MonkeyPatch) -> None:
    def arrived(rule: Rule, common: Any, mine: Any, theirs: Any) -> Merged:
        return Merged([*theirs.lines, *(line for line in mine.lines if line not in theirs.lines)], [])

    merged_by(patch, arrived)


def what_was_meant_twice_stands_once(patch: pytest.MonkeyPatch) -> None:
    def once(rule: Rule, common: Any, mine: Any, theirs: Any) -> Merged:
        return Merged(list(dict.fromkeys(merge(rule, common, mine, theirs).lines)), [])

    merged_by(patch, once)


def only_the_other_side_counts(patch: pytest.MonkeyPatch) -> None:
    merged_by(patch, lambda rule, common, mine, theirs: Merged(list(theirs.lines), []))


def a_ledger_is_a_history(patch: pytest.MonkeyPatch) -> None:
    def plain(rule: Rule, common: Any, mine: Any, theirs: Any) -> Merged:
        return merge(Rule(Policy.UNION, rule.time), common, mine, theirs)

    merged_by(patch, plain)


def both_lines_of_a_message_give_way(patch: pytest.MonkeyPatch) -> None:
    def strict(rule: Rule, common: Any, mine: Any, theirs: Any) -> Merged:
        found = merge(rule, common, mine, theirs)
        keys = {line.split(b'"')[3] for line in found.doubled}
        return Merged([line for line in found.lines if line.split(b'"')[3] not in keys], found.doubled)

    merged_by(patch, strict)


def the_last_to_arrive_wins(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        FeatureSyncLayout, "merged", lambda self, name, base, mine, theirs, **_: fields.Merged(mine, True)
    )


def the_first_to_arrive_wins(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        FeatureSyncLayout, "merged", lambda self, name, base, mine, theirs, **_: fields.Merged(theirs, False)
    )


def the_later_document_wins_whole(patch: pytest.MonkeyPatch) -> None:
    right = FeatureSyncLayout.merged
    patch.setattr(
        FeatureSyncLayout,
        "merged",
        lambda self, name, base, mine, theirs, **how: right(self, name, None, mine, theirs, **how),
    )


def the_base_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(diff, "_add_base", lambda remote, result, agreed, name: None)


def a_message_gets_the_name_of_another(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(bundles, "names_of", lambda items: {one.name: one for one in items})
    patch.setattr(Writer, "_create", lambda self, path, one: atomic.replace(path, (one.data,), fs=self._fs))


def a_name_is_used_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Writer, "_rename", lambda self, path, name: None)


def the_other_bundle_replaces_ours(patch: pytest.MonkeyPatch) -> None:
    right = Writer._unbundle

    def replace(self: Writer, theirs: Any, here: Any) -> None:
        present = self._surveyor.items(self._ref)
        right(self, theirs, here)
        with opened(self._fs, here) as file:
            others = set(bundles.unpack_items(theirs.all(file)))
        for path, one in present.items():
            if one not in others:
                self._fs.unlink(path)

    patch.setattr(Writer, "_unbundle", replace)


def the_list_is_not_for_a_user(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Comparison, "for_user", lambda self, rule: [])


def what_is_held_back_is_agreed_to(patch: pytest.MonkeyPatch) -> None:
    right = Puller._merge

    def agreeing(self: Puller, one: Any, *rest: Any) -> Any:
        outcome = right(self, one, *rest)
        if outcome is not None and outcome.note == FOR_USER:
            self._agree(one, Comparison())
        return outcome

    patch.setattr(Puller, "_merge", agreeing)


def a_named_owner_is_not_written(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ledger_owner, "name_owner", lambda ledger, device, *, here, fs: None)


def a_take_over_is_not_reported(patch: pytest.MonkeyPatch) -> None:
    right = pushing.Pusher._taken
    patch.setattr(
        pushing.Pusher,
        "_taken",
        lambda self, ref, head, mine: [one for one in right(self, ref, head, mine) if one not in head.owners],
    )


def tombstones_are_ignored(patch: pytest.MonkeyPatch) -> None:
    def living(name: str, data: bytes) -> Any:
        return msgspec.structs.replace(decode(name, data), deleted=False)

    patch.setattr(engine, "decode", living)


def children_come_before_their_parents(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(engine.Engine, "_above", lambda self, head: "")

    def enter(self: Placer, staged: str, ref: Any) -> None:
        atomic.move_folder(staged, ref.locator, fs=self._fs)

    patch.setattr(Placer, "enter", enter)


def children_lie_at_the_top(patch: pytest.MonkeyPatch) -> None:
    place = MaestroSyncLayout.place
    patch.setattr(
        MaestroSyncLayout, "place", lambda self, project, session, parent=None: place(self, project, session)
    )


def one_of_two_brainstorms_is_enough(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Comparison, "is_diverged", lambda self, rule: False)
    patch.setattr(Writer, "_keep_both", lambda self, name, found, mine: "")


def the_sibling_keeps_its_label(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BrainstormSyncLayout, "set_parent", lambda self, ref, parent, now: None)


def a_file_session_is_in_a_folder(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(install.Placer, "enter", lambda self, staged, ref: atomic.move_folder(staged, ref.locator))


PLANTED: list[tuple[Plant, str]] = [
    (drop_lines_of_one_moment, "logged on both"),
    (lines_that_both_have_stand_twice, "applied on both"),
    (lines_in_the_order_in_which_they_came, "logged on both"),
    (what_was_meant_twice_stands_once, "logged on both"),
    (only_the_other_side_counts, "logged on both"),
    (a_ledger_is_a_history, "applied on both"),
    (both_lines_of_a_message_give_way, "applied on both"),
    (the_last_to_arrive_wins, "one field, later there"),
    (the_first_to_arrive_wins, "one field, later here"),
    (the_later_document_wins_whole, "other fields on both"),
    (the_base_is_forgotten, "other fields on both"),
    (the_base_is_forgotten, "reported on both"),
    (a_message_gets_the_name_of_another, "one name on both"),
    (a_name_is_used_again, "one name on both"),
    (the_other_bundle_replaces_ours, "messages on both"),
    (the_list_is_not_for_a_user, "listed on both"),
    (what_is_held_back_is_agreed_to, "listed on both"),
    (a_named_owner_is_not_written, "applied there"),
    (a_take_over_is_not_reported, "taken over here"),
    (tombstones_are_ignored, "archived there"),
    (children_come_before_their_parents, "a family there"),
    (children_lie_at_the_top, "a family there"),
    (one_of_two_brainstorms_is_enough, "answered on both"),
    (the_sibling_keeps_its_label, "answered on both"),
    (a_file_session_is_in_a_folder, "answered there"),
]


@pytest.mark.parametrize(("plant", "name"), PLANTED, ids=lambda one: getattr(one, "__name__", str(one)))
def test_a_planted_mistake_is_found(
    plant: Plant, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage: Stage = BY_NAME[name]
    plant(monkeypatch)
    with pytest.raises((AssertionError, SessionaryError, OSError, LookupError)):
        sweep(stage, tmp_path)
