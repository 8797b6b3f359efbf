"""The commands that check and repair features."""

from __future__ import annotations

from pathlib import Path

import click

from sessionary.cli import changing, options, output, project_options
from sessionary.cli.feature import params
from sessionary.cli.lazy import command
from sessionary.layouts.orchestrator.repairing import Repaired
from sessionary.layouts.orchestrator.store import FeatureStore


@command("validate", "sessionary feature validate", "sessionary feature validate sign-in-2025-01-09 --notes")
@params.optional_feature
@params.store
@params.require_ack
@project_options.notes
@options.as_json("the findings", "one problem")
def validate_command(
    store: FeatureStore, feature_id: str | None, require_ack: Path | None, notes: bool
) -> int:
    """Check features; nothing is changed.

    Without an ID, all features and the list of features are checked.

    Exit code 13: something worse than a note was found.
    """
    problems = FeatureStore(store.home, require_ack=require_ack).validate(feature_id)
    checked = 1 if feature_id is not None else len(store.list_features())
    home = str(store.home.resolve())
    return project_options.report(problems, home, checked=checked, with_notes=notes)


@command(
    "repair",
    "sessionary feature repair sign-in-2025-01-09",
    "sessionary feature repair sign-in-2025-01-09 --rewrite-history",
    "sessionary feature repair --rebuild-index",
)
@params.optional_feature
@params.store
@options.flag("--rewrite-history", help="Rewrite split entries and wrong durations; the old file is kept.")
@options.choice(
    "--bad-bytes",
    default="replace",
    among=["replace", "drop"],
    help="With --rewrite-history: entries with invalid UTF-8: replace the bytes by U+FFFD, or drop the entry.",
)
@options.flag("--rebuild-index", help="Rebuild the list of features from their folders.")
@options.json_result
def repair_command(
    store: FeatureStore, feature_id: str | None, rewrite_history: bool, bad_bytes: str, rebuild_index: bool
) -> int:
    """Repair what `validate` finds.

    The state is rebuilt from the history, missing files are created, and a missing row of the list is added.
    Replaced files are kept beside the new ones. A list with a conflict is never overwritten: a proposal is
    written beside it. Exit code 3: something could not be repaired. This cannot be undone, except from the kept files.
    """
    if (feature_id is None) != rebuild_index:
        raise click.UsageError("give the ID of a feature, or --rebuild-index")
    if feature_id is None:
        done = store.rebuild_index()
    else:
        done = store.repair(feature_id, rewrite_history=rewrite_history, bad_bytes=bad_bytes)
    if output.is_json():
        output.value({"feature_id": feature_id, **done.as_dict()})
    else:
        _print_repair(done)
    return options.PARTLY if project_options.exit_code(done.problems) else 0


def _print_repair(done: Repaired) -> None:
    project_options.warn(done.problems)
    for action in done.actions:
        output.lines(changing.done(action))
    for path in done.kept:
        changing.print_command("kept", project_options.near_path(path))
    if not done.actions and project_options.exit_code(done.problems) == 0:
        output.lines(changing.done("nothing to repair"))
    if done.lost:
        output.lines(changing.lost(done.lost))


@command(
    "migrate",
    "sessionary feature migrate sign-in-2025-01-09",
    "sessionary feature migrate sign-in-2025-01-09 --switch",
)
@params.feature
@params.store
@options.flag("--switch", help="Give the new file the name of the old one, which is kept under another name.")
@options.json_result
def migrate_command(store: FeatureStore, feature_id: str, switch: bool) -> int:
    """Write the state in the newest version of its format.

    The new file is written beside the old one, which is not changed. With --switch the old one is renamed, and
    renaming it back is the undo.
    """
    made = store.migrate(feature_id, switch=switch)
    text = "the state already has the newest version: nothing to do"
    if made is not None:
        text = f"{project_options.near_path(str(made))} has the newest version"
    document = {"feature_id": feature_id, "path": made and str(made), "switched": switch}
    return params.print_outcome(store, text, document)
