"""Symbolic links out of a store: neither push nor pull follows them, and everything else is synced."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sessionary.errors import Unsupported
from sessionary.model import SessionRef
from sessionary.sync.engine import Engine
from sessionary.sync.remote import heads_of
from sessionary.sync.report import Outcome, Report, SyncStatus
from tests.support.memory_remote import MemoryServer
from tests.support.policy_world import BRAINSTORM, FEATURE, WORK, PolicyDevice, PolicyWorld
from tests.support.sync_world import World

AGENT = "amplifier"
F, G = "f-2025-01-31", "f-2025-02-01"
KINDS = [AGENT, WORK, FEATURE, BRAINSTORM]
SECRET = b"not of this store"


class Case:
    """Two devices that have the sessions `one` and `two` of a kind, in step."""

    def __init__(self, root: Path, kind: str) -> None:
        self.kind = kind
        self.elsewhere = root / "elsewhere"
        self.elsewhere.mkdir()
        self._remote = MemoryServer().remote
        if kind == AGENT:
            self.agents = World(root, self._remote)
            for session in ("one", "two"):
                self.agents.say(self.agents.devices[0], session, 3)
        else:
            self.policies = PolicyWorld(root, self._remote)
            a = self.policies.devices[0]
            for session in ("one", "two"):
                self._begin(a, session)
        for at in (0, 1):
            self.run(at, "push")
            self.run(at, "pull")

    def _begin(self, device: PolicyDevice, session: str) -> None:
        if self.kind == WORK:
            device.begin(session)
            self.policies.drop(device, session)
            self.policies.apply(device, session)
        elif self.kind == FEATURE:
            device.plan(self.id(session))
            self.policies.log(device, self.id(session))
            (device.features / self.id(session) / "artifacts").mkdir()
            (device.features / self.id(session) / "artifacts" / "notes.md").write_text("some notes\n")
        else:
            self.policies.storm(device, session)

    def id(self, session: str) -> str:
        return {"one": F, "two": G}[session] if self.kind == FEATURE else session

    def engine(self, at: int) -> Engine:
        if self.kind == AGENT:
            return self.agents.devices[at].engine(self._remote())
        return self.policies.devices[at].engine(self.kind, self._remote())

    def ref(self, at: int, session: str) -> SessionRef:
        engine = self.engine(at)
        return engine.layout.place(engine.layout.project() or "-work", self.id(session))

    def folder(self, at: int, session: str) -> Path:
        return Path(self.ref(at, session).locator)

    def go_on(self, at: int, session: str) -> None:
        """Change a session, so that there is something to carry."""
        if self.kind == AGENT:
            self.agents.say(self.agents.devices[at], session, 1)
            return
        device = self.policies.devices[at]
        if self.kind == WORK:
            self.policies.apply(device, session)
            self.policies.drop(device, session)
        elif self.kind == FEATURE:
            self.policies.log(device, self.id(session))
        else:
            self.policies.storm(device, session)

    def run(self, at: int, verb: str) -> dict[str, Outcome]:
        report: Report = getattr(self.engine(at), verb)()
        found = {one.session_id: one for one in report.outcomes}
        assert len(found) == len(report.outcomes), "a session is reported twice"
        return {one: found[self.id(one)] for one in ("one", "two") if self.id(one) in found}

    def move_out(self, path: Path) -> Path:
        """Move something out of the store and leave a link; returns where it is now."""
        target = self.elsewhere / path.name
        path.rename(target)
        path.symlink_to(target)
        return target


@pytest.fixture(params=KINDS)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    return Case(tmp_path, request.param)


def contents(path: Path) -> dict[str, bytes]:
    """The bytes of a file, or of all files of a folder."""
    files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
    return {str(each): each.read_bytes() for each in sorted(files)}


def carried(folder: Path) -> dict[str, bytes]:
    """The files of a session by their names, without locks and the files beside them."""
    beside = (".lock", ".owner", ".backup", ".conflict-")
    found = {os.path.relpath(path, folder): data for path, data in contents(folder).items()}
    return {name: data for name, data in found.items() if not any(word in name for word in beside)}


def is_reported(outcome: Outcome, link: Path) -> None:
    assert outcome.standing is SyncStatus.HELD_BACK
    assert isinstance(outcome.error, Unsupported)
    assert (outcome.error.path, str(link) in outcome.note) == (str(link), True)
    assert str(link) in (outcome.error.hint or "")


@pytest.mark.parametrize("verb", ["push", "pull", "status"])
def test_a_link_is_reported_where_nothing_else_is_new(verb: str, case: Case) -> None:
    link = case.folder(0, "one")
    case.move_out(link)
    if case.kind != BRAINSTORM:
        inner = case.folder(0, "two") / FILES[case.kind][0]
        case.move_out(inner)
        is_reported(case.run(0, verb)["two"], inner)
    is_reported(case.run(0, verb)["one"], link)


@pytest.mark.parametrize("verb", ["push", "pull", "status"])
def test_a_session_behind_a_link_is_reported_and_others_go_on(verb: str, case: Case) -> None:
    link = case.folder(0, "one")
    target = case.move_out(link)
    case.go_on(0, "two")
    case.go_on(1, "one")
    case.run(1, "push")
    with (target if target.is_file() else next(f for f in target.rglob("*") if f.is_file())).open(
        "ab"
    ) as file:
        file.write(b"\n")
    before, heads = contents(target), {one.name: one.data for one in heads_of(case._remote())}
    found = case.run(0, verb)
    is_reported(found["one"], link)
    expected = {"push": SyncStatus.PUSHED, "pull": SyncStatus.IN_STEP, "status": SyncStatus.AHEAD}[verb]
    assert found["two"].standing is expected
    assert contents(target) == before
    changed = {one.name for one in heads_of(case._remote()) if heads[one.name] != one.data}
    assert len(changed) == (verb == "push")
    assert case.id("one") in case.engine(0).unsent()


def test_a_session_that_comes_anew_is_not_put_behind_a_link(case: Case) -> None:
    place = case.ref(1, "one").locator
    os.rename(place, case.elsewhere / "was here")
    os.symlink(case.elsewhere / "nothing", place)
    case.go_on(0, "one")
    case.go_on(0, "two")
    case.run(0, "push")
    for verb in ("pull", "status"):
        is_reported(case.run(1, verb)["one"], Path(place))
    assert not (case.elsewhere / "nothing").exists()
    case.run(1, "push")
    pulled = case.run(0, "pull")
    assert pulled["one"].standing is SyncStatus.IN_STEP, "a link whose disk is missing is not a deletion"
    assert case.folder(0, "one").exists()


FILES = {
    AGENT: ["transcript.jsonl", "metadata.json"],
    WORK: ["session.json", "log.jsonl", "breadcrumbs", "breadcrumbs/0"],
    FEATURE: ["state.yaml", "history.jsonl", "artifacts", "artifacts/notes.md"],
}
EACH = [(kind, name) for kind, names in FILES.items() for name in names]


@pytest.mark.parametrize(("kind", "name"), EACH)
def test_a_file_behind_a_link_is_not_sent_and_others_go_on(kind: str, name: str, tmp_path: Path) -> None:
    case = Case(tmp_path, kind)
    link = case.folder(0, "one") / name
    target = case.move_out(link)
    for path, data in contents(target).items():
        Path(path).write_bytes(
            data[:-1] + b', "more": "%s"}' % SECRET if path.endswith(".json") else data + SECRET
        )
    outcome = case.run(0, "push")["one"]
    is_reported(outcome, link)
    is_reported(case.run(0, "status")["one"], link)
    before = contents(case.folder(1, "one"))
    case.run(1, "pull")
    assert contents(case.folder(1, "one")) == before
    other = (
        case.folder(0, "one") / {AGENT: "transcript.jsonl", WORK: "log.jsonl", FEATURE: "history.jsonl"}[kind]
    )
    if other != link:
        with other.open("ab") as file:
            file.write(
                json.dumps({"breadcrumb_id": "b9", "applied_at": "x", "timestamp": "y"}).encode() + b"\n"
            )
        is_reported(case.run(0, "push")["one"], link)
        case.run(1, "pull")
        assert (case.folder(1, "one") / other.name).read_bytes() == other.read_bytes()


@pytest.mark.parametrize("dangles", [False, True])
@pytest.mark.parametrize(("kind", "name"), EACH)
def test_a_pull_writes_through_no_link(kind: str, name: str, dangles: bool, tmp_path: Path) -> None:
    case = Case(tmp_path, kind)
    link = case.folder(0, "one") / name
    target = case.move_out(link)
    if dangles:
        target.rename(case.elsewhere / "gone")
    theirs = case.folder(1, "one") / name
    for path in [theirs] if theirs.is_file() else [each for each in theirs.rglob("*") if each.is_file()]:
        change = {".jsonl": b'{"breadcrumb_id": "n", "applied_at": "1", "role": "user", "content": "n"}\n'}
        if path.suffix == ".json" and path.parent.name != "0":
            path.write_text(
                json.dumps({**json.loads(path.read_text()), "modified": "2031-01-01T00:00:00+00:00"})
            )
        elif path.suffix != ".json":
            path.write_bytes(path.read_bytes() + change.get(path.suffix, b"more: words\n"))
    case.go_on(1, "one")
    case.go_on(1, "two")
    case.run(1, "push")
    before = contents(case.elsewhere)
    for _ in range(2):
        found = case.run(0, "pull")
        is_reported(found["one"], link)
        assert contents(case.elsewhere) == before
        assert link.is_symlink()
    assert (
        found["two"].standing is SyncStatus.PULLED
        or case.run(0, "status")["two"].standing is SyncStatus.IN_STEP
    )
    case.run(0, "push")
    assert contents(case.elsewhere) == before


@pytest.mark.parametrize(("kind", "name"), EACH)
def test_when_the_file_takes_the_place_of_its_link_all_continues(
    kind: str, name: str, tmp_path: Path
) -> None:
    case = Case(tmp_path, kind)
    link = case.folder(0, "one") / name
    target = case.move_out(link)
    case.go_on(1, "one")
    case.run(1, "push")
    case.run(0, "pull")
    case.run(0, "push")
    link.unlink()
    target.rename(link)
    for at in (0, 1, 0):
        case.run(at, "pull")
        case.run(at, "push")
    assert {one.standing for at in (0, 1) for one in case.run(at, "status").values()} == {SyncStatus.IN_STEP}
    mine, theirs = (carried(case.folder(at, "one")) for at in (0, 1))
    assert mine == theirs


def test_a_conversation_continued_on_both_sides_stays_where_its_label_is_linked(tmp_path: Path) -> None:
    case = Case(tmp_path, AGENT)
    link = case.folder(0, "one") / "metadata.json"
    target = case.move_out(link)
    before = contents(target)
    for at in (0, 1):
        with (case.folder(at, "one") / "transcript.jsonl").open("ab") as file:
            file.write(json.dumps({"role": "user", "content": f"at {at}"}).encode() + b"\n")
    case.run(1, "push")
    found = case.run(0, "pull")["one"]
    is_reported(found, link)
    assert contents(target) == before
    assert sorted(path.name for path in case.folder(0, "one").parent.iterdir() if path.name[0] != ".") == [
        "one",
        "two",
    ]


def test_check_and_restore_read_and_write_through_no_link(tmp_path: Path) -> None:
    case = Case(tmp_path, AGENT)
    transcript = case.folder(0, "one") / "transcript.jsonl"
    whole = transcript.read_bytes()
    transcript.write_bytes(whole[: whole.index(b"\n") + 1])
    case.run(0, "push")
    target = case.move_out(transcript)
    before = contents(target)
    engine, ref = case.engine(0), case.ref(0, "one")
    (checked,) = [one for one in engine.checker.check(engine.listed()) if one.session_id == "one"]
    assert isinstance(checked.error, Unsupported)
    (past,) = [one for one in engine.earlier.generations(ref) if not one.present and not one.is_gone]
    with pytest.raises(Unsupported, match="symbolic link"):
        engine.earlier.restore(ref, past.first)
    assert contents(target) == before
    transcript.unlink()
    target.rename(transcript)
    folder = case.move_out(case.folder(0, "one"))
    before = contents(folder)
    with pytest.raises(Unsupported, match="symbolic link"):
        engine.earlier.restore(ref, past.first)
    (checked,) = [one for one in engine.checker.check(engine.listed()) if one.session_id == "one"]
    assert isinstance(checked.error, Unsupported)
    assert contents(folder) == before


def test_a_project_behind_a_link_is_reported_with_each_of_its_sessions(tmp_path: Path) -> None:
    case = Case(tmp_path, AGENT)
    link = case.folder(0, "one").parent.parent
    target = case.move_out(link)
    before = contents(target)
    case.go_on(1, "one")
    case.go_on(1, "two")
    case.run(1, "push")
    for verb in ("push", "pull", "status"):
        for outcome in case.run(0, verb).values():
            is_reported(outcome, link)
    assert contents(target) == before


def links_that_stay(case: Case) -> list[Callable[[], None]]:
    home = Path(case.engine(0).layout.home)
    one, two = case.folder(0, "one"), case.folder(0, "two")
    hidden = two.parent / ".kept"
    return [
        hidden.mkdir,
        lambda: move_within(one, hidden / one.name),
        lambda: move_within(home, home.with_name("x")),
    ]


def move_within(path: Path, target: Path) -> None:
    path.rename(target)
    path.symlink_to(target)


def test_a_link_within_the_store_and_one_in_the_place_of_the_store_are_followed(case: Case) -> None:
    changed = case.folder(0, "one")
    case.go_on(0, "one")
    for change in links_that_stay(case):
        change()
    assert changed.is_symlink()
    assert case.run(0, "push")["one"].standing is SyncStatus.PUSHED
    assert case.run(0, "status")["one"].standing is SyncStatus.IN_STEP
    case.run(1, "pull")
    case.go_on(1, "one")
    case.run(1, "push")
    assert case.run(0, "pull")["one"].standing is SyncStatus.PULLED
