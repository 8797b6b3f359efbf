"""The folder of a feature: create it, archive it, restore it."""

from __future__ import annotations

from pathlib import Path

from sessionary.disk import atomic
from sessionary.disk.fs import stat_or_none
from sessionary.errors import AlreadyExists, NotFound, TransitionError
from sessionary.layouts.orchestrator import agreements, creating, names, reading, rules
from sessionary.layouts.orchestrator.context import Context
from sessionary.layouts.orchestrator.operations import writing


def create(
    context: Context, feature_id: str | None, *, name: str | None, description: str, agent: str | None
) -> str:
    """Create a feature; see `FeatureStore.create`."""
    with context.call("create", context.root, feature_id):
        agreements.check(context, agent)
        if feature_id is not None:
            names.check_new_id(feature_id)
        new = creating.New(feature_id, name or feature_id or "", description, context.now())
        made = creating.create(context.fs, context.index, new)
        context.report.feature_id = made
        return made


def archive(context: Context, feature_id: str, agent: str | None) -> Path:
    """Move a completed feature to the archive; see `FeatureStore.archive`."""
    with writing(context, feature_id, agent, context.index.path) as feature:
        now = reading.status_of_feature(context.fs, feature.folder, context.index.load())
        if now != rules.COMPLETED:
            raise TransitionError(
                f"feature {feature_id} is {now} and cannot be archived",
                hint="complete it first",
            )
        target = f"{context.root}/{names.ARCHIVE}/{feature_id}"
        atomic.move_folder(feature.folder, target, fs=context.fs)
        feature.moved(target)
        context.pool.drop(feature.folder)
        return Path(target)


def unarchive(context: Context, feature_id: str, agent: str | None) -> Path:
    """Restore a feature from the archive; see `FeatureStore.unarchive`."""
    with context.call("update", context.root, feature_id):
        agreements.check(context, agent)
        archived = f"{context.root}/{names.ARCHIVE}/{names.check_id(feature_id)}"
        target = f"{context.root}/{feature_id}"
        if stat_or_none(context.fs, target) is not None:
            raise AlreadyExists(
                f"{feature_id} also exists outside of the archive",
                path=target,
                hint="rename one of the two folders: the id of a feature is the name of its folder",
            )
        if not reading.is_folder(context.fs, archived):
            raise NotFound(
                f"No feature {feature_id} in the archive",
                path=archived,
                hint="`sessionary feature list --archived` lists the archive",
            )
        feature = context.pool.get(archived)
        with feature.held(context.timeout):
            atomic.move_folder(archived, target, fs=context.fs)
            feature.moved(target)
            context.pool.drop(archived)
        return Path(target)
