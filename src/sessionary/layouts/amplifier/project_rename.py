"""Move sessions after their project folder was renamed, to where the agent will look for them.

The agent stores sessions under a name derived from the path of the project (`ids.project_slug`), so a renamed
folder loses its conversations. The name does not determine the path: `/a/b-c` and `/a/b/c` share one. So the
session itself (its `working_dir`, or else that of its parent) determines to which of the two it belongs, and
one that belongs to the other stays.

Each session moves by itself, under its lock: first its `working_dir` is updated, then its folder is renamed.
If interrupted anywhere, every session is complete in the old project or in the new one, and running it again
does the rest. The reverse order would fail, since a moved session is not visited again. Collisions are found
before anything moves. The trash moves too, and first, so that the old project exists as long as work is left.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sessionary.codec import reencode_document
from sessionary.disk import atomic
from sessionary.disk.fs import OS_FS, Fs, is_there, names_in
from sessionary.errors import AlreadyExists, Invalid, Locked, NotFound
from sessionary.layouts import cleaned_up
from sessionary.layouts.amplifier.files import METADATA, TRANSCRIPT
from sessionary.layouts.amplifier.ids import PROJECTS, SESSIONS, path_slug
from sessionary.layouts.amplifier.recovery import read_metadata
from sessionary.layouts.amplifier.session import Session, pool_of
from sessionary.layouts.amplifier.trash import not_moved
from sessionary.layouts.trash import TRASH
from sessionary.model import Problem

_SHOWN = 20
_WORKING_DIR = "working_dir"


@dataclass(frozen=True, slots=True)
class Step:
    """One session that moves.

    Attributes:
        session_id: its id.
        source: its folder.
        target: its new folder; the same if only the path changes, and not the name derived from it.
        before: its current `working_dir` if that changes; else None.
        after: its new `working_dir`.
        trashed: True if it is in the trash, and moves to the other trash.
    """

    session_id: str
    source: str
    target: str
    before: str | None
    after: str | None
    trashed: bool


@dataclass(slots=True)
class Move:
    """The plan, or the result.

    Attributes:
        home: the folder that contains `projects/`.
        old: the old path of the project; None if unknown.
        new: the new path.
        old_slug: the old folder of its sessions, below `projects/`.
        new_slug: the new one.
        steps: the sessions that move.
        staying: sessions of another path that shares `old_slug`: their ids and paths.
        left: the names of other files in the old folders; they stay.
        there: number of sessions that the new project already has.
        problems: what could not be moved, and what could not be read.
    """

    home: str
    old: str | None
    new: str
    old_slug: str
    new_slug: str
    steps: list[Step] = field(default_factory=list)
    staying: list[tuple[str, str]] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    there: int = 0
    problems: list[Problem] = field(default_factory=list)

    @property
    def source(self) -> str:
        """The old folder of the sessions."""
        return _sessions(self.home, self.old_slug)

    @property
    def target(self) -> str:
        """The new folder of the sessions."""
        return _sessions(self.home, self.new_slug)


def plan(
    home: str | os.PathLike[str], old_slug: str, new: str, *, old: str | None = None, fs: Fs = OS_FS
) -> Move:
    """Plan the move of a project's sessions. Reads only.

    Args:
        home: the folder that contains `projects/`.
        old_slug: the project, by the name of its folder there.
        new: the new absolute path of the project, links resolved.
        old: the old absolute path; by default derived from its sessions.

    Raises:
        NotFound: the project does not exist.
        Invalid: `new` is not an absolute path, or the current one; or `old` is needed to distinguish two projects.
        AlreadyExists: the new project has sessions with the same ids; `details["matches"]` lists them.
        StorageFailed: a folder, or the metadata of a session, cannot be read: the session may belong elsewhere.
    """
    if not os.path.isabs(new):
        raise Invalid(f"{new} is not an absolute path", path=new)
    source = _sessions(os.fspath(home), old_slug)
    if names_in(fs, os.path.dirname(source)) is None:
        raise NotFound(f"no project {old_slug}", path=os.path.dirname(source))
    found = list(_folders(fs, source))
    folders = _WorkingDirs(fs, source, found)
    old = old or _only_path(old_slug, new, folders)
    if old == new:
        raise Invalid(f"{new} is already the path of the project", path=new)
    move = Move(os.fspath(home), old, new, old_slug, path_slug(new), problems=folders.problems)
    for name, place in found:
        elsewhere = _path_of_slug(folders.path_of(place), old_slug)
        if elsewhere is None or old is None or elsewhere in (old, new):
            move.steps += _steps(move, name, place, folders.own(place))
        else:
            move.staying.append((name, elsewhere))
    move.steps.sort(key=lambda step: (not step.trashed, _last_change(fs, step.source)))
    if move.source != move.target:
        _refuse_collisions(fs, move)
        move.there = sum(1 for _ in _folders(fs, move.target, trash=False))
        move.left = _left(fs, source, {place.split(os.sep)[0] for _, place in found})
    return move


def carry_out(
    move: Move,
    *,
    passed: Callable[[], object] = lambda: None,
    fs: Fs = OS_FS,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> None:
    """Carry out a plan. A session that is in use stays and is reported in `problems`.

    Args:
        passed: called after each session.

    *Durability*: a processed session is in its new place, flushed. If this does not return, every session is
    complete in the old project or the new one, and planning and running it again does the rest.
    """
    for step in move.steps:
        try:
            _move_one(fs, step, now)
        except Locked as error:
            move.problems.append(not_moved(step.source, error))
        passed()
    if move.source != move.target:
        cleaned_up.move(fs, move.source, move.target)
        _tidy(fs, move.source)


def _tidy(fs: Fs, sessions: str) -> None:
    """Remove the empty folders."""
    bin_ = os.path.join(sessions, TRASH)
    times = [os.path.join(bin_, time) for time in names_in(fs, bin_) or ()]
    for folder in (*times, bin_, sessions, os.path.dirname(sessions)):
        try:
            fs.rmdir(folder)
        except OSError:
            continue  # not empty, or already removed


def _steps(move: Move, name: str, place: str, before: str | None) -> Iterator[Step]:
    """The step for a session of the project; None if nothing has to change."""
    after = None if before is None or move.old is None else _followed(before, move.old, move.new)
    if after is not None or move.source != move.target:
        source, target = os.path.join(move.source, place), os.path.join(move.target, place)
        yield Step(name, source, target, before if after else None, after, place != name)


class _WorkingDirs:
    """The working directories of the sessions in a folder."""

    def __init__(self, fs: Fs, root: str, found: list[tuple[str, str]]) -> None:
        self._own: dict[str, str | None] = {}
        self._parents: dict[str, str] = {}
        self._by_id: dict[str, str] = {}
        self.problems: list[Problem] = []
        for name, place in found:
            stored = read_metadata(fs, os.path.join(root, place), recovery_time="", to_write=True)
            self.problems += stored.problems
            path, parent = stored.value.get(_WORKING_DIR), stored.value.get("parent_id")
            self._own[place] = path if isinstance(path, str) and path else None
            if isinstance(parent, str):
                self._parents[place] = parent
            self._by_id.setdefault(name, place)

    def own(self, place: str) -> str | None:
        """The `working_dir` of the session itself."""
        return self._own[place]

    def paths(self) -> set[str]:
        """All working directories."""
        return {path for path in self._own.values() if path is not None}

    def path_of(self, place: str) -> str | None:
        """The `working_dir` of the session, or else of its nearest ancestor that has one."""
        seen: set[str] = set()
        at: str | None = place
        while at is not None and at not in seen:
            seen.add(at)
            if (path := self._own[at]) is not None:
                return path
            at = self._by_id.get(self._parents.get(at, ""))
        return None


def _only_path(slug: str, new: str, folders: _WorkingDirs) -> str | None:
    """The path of the project, from its sessions; None if unknown. Raises Invalid if they name several."""
    paths = sorted({at for path in folders.paths() if (at := _path_of_slug(path, slug)) not in (None, new)})
    if len(paths) > 1:
        raise Invalid(
            f"{slug} has sessions of {len(paths)} paths, which share that name",
            details={"matches": paths[:_SHOWN], "count": len(paths)},
            hint="name the project by its old path",
        )
    return paths[0] if paths else None


def _path_of_slug(path: str | None, slug: str) -> str | None:
    """The path itself, or the nearest parent, whose sessions are stored under `slug`; None if there is none."""
    if path is None or path_slug(path) == slug:
        return path
    for at in range(len(path) - 1, 0, -1):
        if path[at] in "/\\" and path_slug(path[:at]) == slug:
            return path[:at]
    return None


def _followed(path: str, old: str, new: str) -> str | None:
    """The new path for a path that was `old` or below it; None for any other, also for one that is already updated."""
    if not _lies_in(path, old) or (_lies_in(new, old) and _lies_in(path, new)):
        return None
    return new + path.removeprefix(old)


def _lies_in(path: str, folder: str) -> bool:
    """True also for the folder itself. Compares text: the renamed folder does not exist any more."""
    return path.startswith(folder) and (len(path) == len(folder) or path[len(folder)] in "/\\")


def _last_change(fs: Fs, folder: str) -> float:
    """The last change of a session; the steps are sorted by this.

    Updating its path counts as a change, and lists with the newest first should keep the order of the sessions.
    """
    times = [0.0]
    for path in (folder, os.path.join(folder, TRANSCRIPT), os.path.join(folder, METADATA)):
        try:
            times.append(fs.stat(path).st_mtime)
        except OSError:
            continue  # a session may lack one of the files
    return max(times)


def _refuse_collisions(fs: Fs, move: Move) -> None:
    taken = sorted(step.session_id for step in move.steps if is_there(fs, step.target))
    if taken:
        raise AlreadyExists(
            f"{move.new_slug} already has {len(taken)} of the ids; nothing was moved",
            operation="move",
            path=move.target,
            details={"matches": taken[:_SHOWN], "count": len(taken)},
            hint="trash or fork one session of each pair, then try again",
        )


def _move_one(fs: Fs, step: Step, now: Callable[[], datetime]) -> None:
    """Update the metadata of a session, then move its folder, while no other process writes to it."""
    session = pool_of(fs).get(step.source, fs, now)
    try:
        session.enter(make=False)
    except FileNotFoundError:
        return  # removed since the plan was made
    try:
        if step.after is not None:
            _put_right(session, step.after)
        if step.source != step.target:
            atomic.move_folder(step.source, step.target, fs=fs)
    finally:
        session.leave()
    if step.source != step.target:
        pool_of(fs).drop(step.source)


def _put_right(session: Session, working_dir: str) -> None:
    """Read again under the lock, so that nothing stored since is lost; unreadable metadata is not changed."""
    stored = read_metadata(session.fs, session.folder, recovery_time="", to_write=True)
    if stored.data is None or not stored.readable or stored.value.get(_WORKING_DIR) == working_dir:
        return
    document = reencode_document({**stored.value, _WORKING_DIR: working_dir})
    session.write_metadata(os.path.join(session.folder, METADATA), document, readable=True, durable=True)


def _sessions(home: str, slug: str) -> str:
    return os.path.join(home, PROJECTS, slug, SESSIONS)


def _folders(fs: Fs, root: str, *, trash: bool = True) -> Iterator[tuple[str, str]]:
    """The id of every session in a folder of sessions, and its path in it: those in the trash first."""
    bin_ = os.path.join(root, TRASH)
    for time in sorted(names_in(fs, bin_) or ()) if trash else ():
        if time.startswith("."):
            continue  # remains of an emptied trash
        for name in sorted(names_in(fs, os.path.join(bin_, time)) or ()):
            if names_in(fs, os.path.join(bin_, time, name)) is not None:
                yield name, os.path.join(TRASH, time, name)
    for name in sorted(names_in(fs, root) or ()):
        if not name.startswith(".") and names_in(fs, os.path.join(root, name)) is not None:
            yield name, name


def _left(fs: Fs, sessions: str, moving: set[str]) -> list[str]:
    """Other files in the folder of a project and in that of its sessions."""
    project = os.path.dirname(sessions)
    beside = [name for name in names_in(fs, project) or () if name != SESSIONS]
    ours = {*moving, TRASH, cleaned_up.NOTES}
    among = [name for name in names_in(fs, sessions) or () if name not in ours]
    return sorted(beside) + sorted(os.path.join(SESSIONS, name) for name in among)
