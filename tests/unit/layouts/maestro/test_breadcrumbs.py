"""Breadcrumb files: made once and never overwritten, times in UTC out and tolerant in, wrong content reported."""

import errno
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from sessionary.disk.fs import OS_FS
from sessionary.errors import Corrupt, SchemaError, StorageFailed
from sessionary.layouts.maestro.breadcrumbs import CrumbFile, create_breadcrumb, read_crumb, write_crumb
from sessionary.layouts.maestro.compat_api import load_breadcrumb
from sessionary.layouts.maestro.records import CRUMB_KEYS, Breadcrumb
from sessionary.layouts.maestro.statuses import NEXT
from sessionary.layouts.maestro.store import WorkStore
from sessionary.testing.wrapper import WrappedFs

STAMP = "20260301_090000_000001"
STATUSES = sorted(NEXT)


class Refusing(WrappedFs):
    """Links fail with this number."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def call(self, name: str, *arguments: Any, **options: Any) -> Any:
        if name in ("link", "link_fd"):
            raise OSError(self.number, os.strerror(self.number))
        return super().call(name, *arguments, **options)


def crumb(prompt: str = "p", stamp: Any = STAMP, **more: Any) -> Breadcrumb:
    made = create_breadcrumb(prompt, "r", [], [], None, 0, "opus", {"input": 1, "output": 2})
    made.timestamp = stamp
    for key, value in more.items():
        setattr(made, key, value)
    return made


def put(folder: Path, text: str | bytes, name: str = f"{STAMP}.json", depth: int = 0) -> CrumbFile:
    path = folder / "breadcrumbs" / str(depth) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return CrumbFile(name, depth, str(path))


# -- writing


def test_senders_of_one_microsecond_all_keep_their_messages(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        paths = list(
            pool.map(lambda number: write_crumb(str(tmp_path), crumb(str(number)), durable=False), range(80))
        )
    names = sorted(os.listdir(tmp_path / "breadcrumbs" / "0"))
    assert names == [f"20260301_090000_{number:06}.json" for number in range(1, 81)]
    assert {load_breadcrumb(path).prompt for path in paths} == {str(number) for number in range(80)}
    assert all(load_breadcrumb(path).timestamp == Path(path).stem for path in paths)


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP])
def test_without_hard_links_nothing_is_overwritten_either(number: int, tmp_path: Path) -> None:
    fs = Refusing(number)
    for prompt in ("one", "two"):
        write_crumb(str(tmp_path), crumb(prompt), fs=fs)
    assert [
        each.prompt for each in map(load_breadcrumb, sorted((tmp_path / "breadcrumbs" / "0").iterdir()))
    ] == [
        "one",
        "two",
    ]


def test_a_disk_that_refuses_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(StorageFailed) as caught:
        write_crumb(str(tmp_path), crumb(), fs=Refusing(errno.ENOSPC))
    assert caught.value.outcome == "not_committed"
    assert os.listdir(tmp_path / "breadcrumbs" / "0") == []


@pytest.mark.parametrize(
    "stamp", ["2026-03-01T09:00:00.000001Z", "2026-03-01T10:00:00.000001+01:00", "2026-03-01 09:00:00.000001"]
)
def test_a_time_of_another_form_is_written_as_the_specification_has_it(stamp: str, tmp_path: Path) -> None:
    path = write_crumb(str(tmp_path), crumb(stamp=stamp))
    assert Path(path).name == f"{STAMP}.json"
    assert load_breadcrumb(path).timestamp == STAMP


def test_a_file_has_the_fifteen_keys_and_no_others(tmp_path: Path) -> None:
    path = write_crumb(str(tmp_path), crumb())
    assert tuple(json.loads(Path(path).read_text())) == CRUMB_KEYS
    assert len(CRUMB_KEYS) == 15


# -- reading


def test_times_of_any_form_are_ordered_by_their_instants(tmp_path: Path) -> None:
    stamps = ["2026-03-01T10:00:00+02:00", "20260301_083000_000000", "2026-03-01T09:00:00", "no time at all"]
    for number, stamp in enumerate(stamps):
        put(tmp_path / "s", json.dumps(crumb(str(number), stamp).__dict__), f"{number}.json")
    assert [each.prompt for each in WorkStore(tmp_path).list_breadcrumbs("s")] == ["0", "1", "2", "3"]


def test_a_missing_time_is_the_name_of_the_file_and_missing_keys_are_empty(tmp_path: Path) -> None:
    found = read_crumb(OS_FS, put(tmp_path, '{"breadcrumb_id": "x", "tags": null}')).breadcrumb
    assert found is not None
    assert (found.timestamp, found.prompt, found.tags, found.kind, found.cost) == (
        STAMP,
        "",
        [],
        "note",
        None,
    )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "bad_breadcrumb"),
        ('{"breadcrumb_id": "x"', "bad_breadcrumb"),
        ("\x00" * 20, "bad_breadcrumb"),
        (b"\xff\xfe{", "bad_breadcrumb"),
        ("[" * 100_000, "bad_breadcrumb"),
        ("[]", "no_breadcrumb"),
        ("null", "no_breadcrumb"),
        ('{"prompt": "without an id"}', "no_breadcrumb"),
        ('{"breadcrumb_id": 7}', "no_breadcrumb"),
        ('{"breadcrumb_id": "x", "depth_level": -1}', "no_breadcrumb"),
        ('{"breadcrumb_id": "x", "depth_level": true}', "no_breadcrumb"),
        ('{"breadcrumb_id": "x", "tools_called": {}}', "no_breadcrumb"),
        ('{"breadcrumb_id": "x", "cost": "much"}', "no_breadcrumb"),
    ],
)
def test_what_is_not_a_breadcrumb_is_reported_and_hides_no_other(
    text: str | bytes, code: str, tmp_path: Path
) -> None:
    file = put(tmp_path / "s", text)
    os.utime(file.path, (1, 1))
    put(tmp_path / "s", json.dumps(crumb("good").__dict__), "20260301_090000_000002.json")
    found = WorkStore(tmp_path).breadcrumbs("s")
    assert [each.prompt for each in found.breadcrumbs] == ["good"]
    assert [(problem.code, problem.path) for problem in found.problems] == [(code, file.path)]
    with pytest.raises(Corrupt if code == "bad_breadcrumb" else SchemaError):
        load_breadcrumb(file.path)


def test_a_young_file_that_cannot_be_parsed_is_not_yet_written(tmp_path: Path) -> None:
    file = put(tmp_path, '{"breadcrumb_id')
    written = os.stat(file.path).st_mtime
    assert read_crumb(OS_FS, file, now=written + 4.9).unfinished
    assert [problem.code for problem in read_crumb(OS_FS, file, now=written + 5.1).problems] == [
        "bad_breadcrumb"
    ]
    assert read_crumb(OS_FS, file, now=written - 3600).unfinished  # the clock of the sender goes before ours


def test_the_depth_in_the_breadcrumb_counts_and_folders_without_a_number_are_passed_over(
    tmp_path: Path,
) -> None:
    put(tmp_path / "s", json.dumps(crumb("deep", depth_level=3).__dict__), depth=1)
    (tmp_path / "s" / "breadcrumbs" / "error").mkdir()
    (tmp_path / "s" / "breadcrumbs" / "error" / f"{STAMP}.json").write_text("junk")
    found = WorkStore(tmp_path).breadcrumbs("s", depth=3)
    assert [each.prompt for each in found.breadcrumbs] == ["deep"]
    assert [problem.code for problem in found.problems] == ["depth_differs"]


# -- statuses


@pytest.mark.parametrize("before", STATUSES)
@pytest.mark.parametrize("after", STATUSES)
def test_every_way_from_status_to_status(before: str, after: str, tmp_path: Path) -> None:
    store = WorkStore(tmp_path)
    session = store.create("fix", status=before)
    move = {
        "running": store.resume, "paused": store.pause, "completed": store.complete, "interrupted": store.interrupt,
        "failed": store.fail,
    }[after]  # fmt: skip
    allowed = {
        "running": {"paused", "completed", "interrupted", "failed"},
        "paused": {"running", "completed", "interrupted", "failed"},
        "interrupted": {"running"},
        "completed": set(),
        "failed": set(),
    }[before] | {before}
    if after in allowed:
        assert move(session.session_id).status == after
        assert store.load(session.session_id).status == after
        assert (store.load(session.session_id).closed_at is None) == (after in ("running", "paused"))
        assert (store.load(session.session_id).modified == session.modified) == (before == after)
    else:
        with pytest.raises(ValueError, match=f"cannot become {after}"):
            move(session.session_id)
        assert store.load(session.session_id) == session


@pytest.mark.parametrize(
    ("field", "value", "reported"),
    [
        ("breadcrumb_id", "", "breadcrumb_id is missing"),
        ("breadcrumb_id", 5, "breadcrumb_id is a number"),
        ("prompt", {"a": "question"}, "prompt is a object"),
        ("prompt", b"bytes", "prompt is a object"),
        ("cost", True, "cost is a boolean"),
        ("payload", ["a", "list"], "payload is a list"),
        ("tools_called", {"tool": "x"}, "tools_called is a object"),
    ],
)
def test_what_no_reader_would_take_is_not_written(
    field: str, value: Any, reported: str, tmp_path: Path
) -> None:
    with pytest.raises(SchemaError, match=reported):
        write_crumb(str(tmp_path), crumb(**{field: value}))
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.parametrize("field", ["prompt", "tools_called", "token_count", "kind", "tags"])
def test_empty_values_are_written_and_read_as_their_defaults(field: str, tmp_path: Path) -> None:
    nothing: dict[str, Any] = {field: None}
    path = write_crumb(str(tmp_path), crumb(**nothing))
    assert json.loads(Path(path).read_bytes())[field] is None
    assert getattr(load_breadcrumb(path), field) in ("", [], {}, "note")


def test_a_subclass_is_written_as_it_lists_its_fields(tmp_path: Path) -> None:
    class Tagged(Breadcrumb):
        unknown_keys = {"sender": "other"}  # noqa: RUF012 - that of the class it stands in for is a mapping too

    class Loud(Breadcrumb):
        def __getattribute__(self, name: str) -> Any:
            value = super().__getattribute__(name)
            return value.upper() if name == "prompt" else value

    values = vars(crumb("hello"))
    wholes = [
        json.loads(Path(write_crumb(str(tmp_path), kind(**values))).read_bytes()) for kind in (Tagged, Loud)
    ]
    assert wholes[0]["sender"] == "other"
    assert wholes[1]["prompt"] == "HELLO"
