"""Following a project folder that was renamed: its sessions go where the agent will look for them from now on.

The agent keeps sessions under a name that it derives from the path of the project (`ids.project_slug`), so a folder
that is renamed loses its conversations. The name does not tell the path: `/a/b-c` and `/a/b/c` share one. So what a
session itself says (`working_dir`, or else that of the session it comes from) decides to which of the two it belongs,
and one that belongs to the other stays.

Each session moves by itself, under its lock: first its `working_dir` is put right, then its folder is renamed. Cut
off anywhere, every session lies whole in the old project or in the new one, and running it again does the rest. The
other order would not do: nobody would look again at a session that has arrived. What would collide is found before
anything moves. The trash goes along, and goes first, so that as long as anything is left to do there is a project to
name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sessionary.codec import encode_document
from sessionary.disk import atomic
from sessionary.disk.fs import OS_FS, Fs, storage_failed
from sessionary.errors import AlreadyExists, Invalid, Locked, NotFound
from sessionary.layouts import cleaned_up
from sessionary.layouts.amplifier.files import METADATA, TRANSCRIPT
from sessionary.layouts.amplifier.ids import PROJECTS, SESSIONS, path_slug
from sessionary.layouts.amplifier.recovery import read_metadata
from sessionary.layouts.amplifier.session import Session, pool_of
from sessionary.layouts.amplifier.trash import TRASH, not_moved
from sessionary.model import Problem

_SHOWN = 20
_WORKING_DIR = "working_dir"


@dataclass(frozen=True, slots=True)
class Step:
    """One session that moves.

    Attributes:
        session_id: its id.
        source: its folder.
        target: where its folder goes; the same where only the path changes, and not the name that comes of it.
        before: the `working_dir` that it names and that changes; None if it names none, or another place.
        after: what `working_dir` is to be.
        trashed: True if it lies in the trash, and will lie in the other trash.
    """

    session_id: str
    source: str
    target: str
    before: str | None
    after: str | None
    trashed: bool


@dataclass(slots=True)
class Move:
    """What is to be done, or was.

    Attributes:
        home: the folder that holds `projects/`.
        old: the path that the project had; None if no session tells it.
        new: the path that it has.
        old_slug: the folder of its sessions, below `projects/`, until now.
        new_slug: and from now on.
        steps: the sessions that move.
        staying: sessions of another path that shares `old_slug`: the id of each, and that path.
        left: the names of other things in the old folders; they stay.
        there: how many sessions lie in the new project already.
        problems: what could not be moved now, and what could not be read.
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
        """Where the sessions lie."""
        return _sessions(self.home, self.old_slug)

    @property
    def target(self) -> str:
        """Where they are to lie."""
        return _sessions(self.home, self.new_slug)


def plan(
    home: str | os.PathLike[str], old_slug: str, new: str, *, old: str | None = None, fs: Fs = OS_FS
) -> Move:
    """What has to be done for the sessions of a project to follow its folder. Reads only.

    Args:
        home: the folder that holds `projects/`.
        old_slug: the project, by the name of its folder there.
        new: the absolute path that the project has now, links resolved.
        old: the absolute path that it had; without it, what its sessions tell.
        fs: the file system.

    Raises:
        NotFound: there is no such project.
        Invalid: `new` is no absolute path, or the path that it has; or `old` is needed to tell two projects apart.
        AlreadyExists: the new project has sessions of the same ids; `details["matches"]` names them.
        StorageFailed: a folder cannot be looked into, or the metadata of a session cannot be read: it may belong
            elsewhere.
    """
    if not os.path.isabs(new):
        raise Invalid(f"{new} is no absolute path", path=new)
    source = _sessions(os.fspath(home), old_slug)
    if _names(fs, os.path.dirname(source)) is None:
        raise NotFound(f"there is no project {old_slug}", path=os.path.dirname(source))
    found = list(_folders(fs, source))
    told = _Told(fs, source, found)
    old = old or _only_path(old_slug, new, told)
    if old == new:
        raise Invalid(f"{new} is the path that the project has already", path=new)
    move = Move(os.fspath(home), old, new, old_slug, path_slug(new), problems=told.problems)
    for name, place in found:
        elsewhere = _path_of_slug(told.path_of(place), old_slug)
        if elsewhere is None or old is None or elsewhere in (old, new):
            move.steps += _steps(move, name, place, told.own(place))
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
    """Do what was planned. A session that is in use stays where it is and is told in `problems`.

    Args:
        move: the plan.
        passed: called after each session.
        fs: the file system.
        now: the clock.

    *Durability*: a session that was passed lies in its new place, flushed. If this does not return, every session
    lies whole in the old project or the new one, and planning and doing it again does the rest.

    Raises:
        StorageFailed: the disk refused.
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
    """Remove the folders that nothing is left in."""
    bin_ = os.path.join(sessions, TRASH)
    times = [os.path.join(bin_, time) for time in _names(fs, bin_) or ()]
    for folder in (*times, bin_, sessions, os.path.dirname(sessions)):
        try:
            fs.rmdir(folder)
        except OSError:
            continue  # others' things lie there, or it is gone


def _steps(move: Move, name: str, place: str, said: str | None) -> Iterator[Step]:
    """What is to be done with a session that belongs to the project; nothing, if it is where and as it should be."""
    after = None if said is None or move.old is None else _followed(said, move.old, move.new)
    if after is not None or move.source != move.target:
        source, target = os.path.join(move.source, place), os.path.join(move.target, place)
        yield Step(name, source, target, said if after else None, after, place != name)


class _Told:
    """What the sessions of a folder say about where they were held."""

    def __init__(self, fs: Fs, root: str, found: list[tuple[str, str]]) -> None:
        self._own: dict[str, str | None] = {}
        self._parents: dict[str, str] = {}
        self._by_id: dict[str, str] = {}
        self.problems: list[Problem] = []
        for name, place in found:
            stored = read_metadata(fs, os.path.join(root, place), recovery_time="", to_write=True)
            self.problems += stored.problems
            said, parent = stored.value.get(_WORKING_DIR), stored.value.get("parent_id")
            self._own[place] = said if isinstance(said, str) and said else None
            if isinstance(parent, str):
                self._parents[place] = parent
            self._by_id.setdefault(name, place)

    def own(self, place: str) -> str | None:
        """The `working_dir` of the session itself."""
        return self._own[place]

    def paths(self) -> set[str]:
        """All that they name."""
        return {path for path in self._own.values() if path is not None}

    def path_of(self, place: str) -> str | None:
        """The `working_dir` of the session, or else of the nearest one that it comes from."""
        seen: set[str] = set()
        at: str | None = place
        while at is not None and at not in seen:
            seen.add(at)
            if (said := self._own[at]) is not None:
                return said
            at = self._by_id.get(self._parents.get(at, ""))
        return None


def _only_path(slug: str, new: str, told: _Told) -> str | None:
    """The path of the project, as its sessions tell it; None if none does.

    Raises:
        Invalid: they tell several.
    """
    paths = sorted({at for path in told.paths() if (at := _path_of_slug(path, slug)) not in (None, new)})
    if len(paths) > 1:
        raise Invalid(
            f"sessions of {len(paths)} paths lie in {slug}, because that name fits all of them",
            details={"matches": paths[:_SHOWN], "count": len(paths)},
            hint="name the project by its old path",
        )
    return paths[0] if paths else None


def _path_of_slug(path: str | None, slug: str) -> str | None:
    """The path itself, or the folder above it, whose sessions lie under `slug`; None if neither does."""
    if path is None or path_slug(path) == slug:
        return path
    for at in range(len(path) - 1, 0, -1):
        if path[at] in "/\\" and path_slug(path[:at]) == slug:
            return path[:at]
    return None


def _followed(path: str, old: str, new: str) -> str | None:
    """Where a path that was `old`, or lay in it, is now; None for any other, and for one that was put right already."""
    if not _lies_in(path, old) or (_lies_in(new, old) and _lies_in(path, new)):
        return None
    return new + path.removeprefix(old)


def _lies_in(path: str, folder: str) -> bool:
    """True for the folder itself too. By their text: what was renamed is not there to be looked at."""
    return path.startswith(folder) and (len(path) == len(folder) or path[len(folder)] in "/\\")


def _last_change(fs: Fs, folder: str) -> float:
    """When a session changed last; by this the steps are sorted.

    It counts as changed when its path is put right, and a list that shows the newest first should show the sessions in
    the same order as before.
    """
    times = [0.0]
    for path in (folder, os.path.join(folder, TRANSCRIPT), os.path.join(folder, METADATA)):
        try:
            times.append(fs.stat(path).st_mtime)
        except OSError:
            continue  # it need not have both files
    return max(times)


def _refuse_collisions(fs: Fs, move: Move) -> None:
    taken = sorted(step.session_id for step in move.steps if _is_there(fs, step.target))
    if taken:
        raise AlreadyExists(
            f"{move.new_slug} has {len(taken)} of the ids that would move there; nothing was moved",
            operation="move",
            path=move.target,
            details={"matches": taken[:_SHOWN], "count": len(taken)},
            hint="trash or fork one of each two, then try again",
        )


def _move_one(fs: Fs, step: Step, now: Callable[[], datetime]) -> None:
    """Put the metadata of a session right, and then its folder in its new place, while nobody else writes to it."""
    session = pool_of(fs).get(step.source, fs, now)
    try:
        session.enter(make=False)
    except FileNotFoundError:
        return  # taken away since the plan was made
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
    """Read again under the lock, so that nothing is lost that was stored since; what cannot be read stays as it is."""
    stored = read_metadata(session.fs, session.folder, recovery_time="", to_write=True)
    if stored.data is None or not stored.readable or stored.value.get(_WORKING_DIR) == working_dir:
        return
    document = encode_document({**stored.value, _WORKING_DIR: working_dir})
    session.write_metadata(os.path.join(session.folder, METADATA), document, readable=True, durable=True)


def _sessions(home: str, slug: str) -> str:
    return os.path.join(home, PROJECTS, slug, SESSIONS)


def _folders(fs: Fs, root: str, *, trash: bool = True) -> Iterator[tuple[str, str]]:
    """The id of every session in a folder of sessions, and where in it its folder lies: those in the trash first."""
    bin_ = os.path.join(root, TRASH)
    for time in sorted(_names(fs, bin_) or ()) if trash else ():
        if time.startswith("."):
            continue  # what an emptying of the trash has left
        for name in sorted(_names(fs, os.path.join(bin_, time)) or ()):
            if _names(fs, os.path.join(bin_, time, name)) is not None:
                yield name, os.path.join(TRASH, time, name)
    for name in sorted(_names(fs, root) or ()):
        if not name.startswith(".") and _names(fs, os.path.join(root, name)) is not None:
            yield name, name


def _left(fs: Fs, sessions: str, moving: set[str]) -> list[str]:
    """What else lies in the folder of a project and in that of its sessions."""
    project = os.path.dirname(sessions)
    beside = [name for name in _names(fs, project) or () if name != SESSIONS]
    ours = {*moving, TRASH, cleaned_up.NOTES}
    among = [name for name in _names(fs, sessions) or () if name not in ours]
    return sorted(beside) + sorted(os.path.join(SESSIONS, name) for name in among)


def _names(fs: Fs, folder: str) -> list[str] | None:
    """The names in a folder; None if there is no such folder."""
    try:
        return fs.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise storage_failed(error, "look into", folder) from error


def _is_there(fs: Fs, path: str) -> bool:
    try:
        fs.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True
