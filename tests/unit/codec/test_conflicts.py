"""Merge conflict markers are named as such, with their line, in every format; both sides can be distinguished."""

import pytest

from sessionary.codec import Undecodable, decode, read_lines
from sessionary.codec.conflicts import conflicts, first_marker, is_marker, sides
from sessionary.codec.yaml_read import load_yaml
from sessionary.errors import Corrupt

TWO = b'{\n "a": 1,\n<<<<<<< HEAD\n "b": 2\n=======\n "b": 3\n>>>>>>> laptop\n}\n'
THREE = b'{\n "a": 1,\n<<<<<<< HEAD\n "b": 2\n||||||| 0a1b2c3\n "b": 1\n=======\n "b": 3\n>>>>>>> laptop\n}\n'


@pytest.mark.parametrize(
    "line", [b"<<<<<<< HEAD", b"=======", b"||||||| 0a1b2c3", b">>>>>>> x\r", b"<<<<<<<"]
)
def test_markers_are_known(line: bytes) -> None:
    assert is_marker(line)


@pytest.mark.parametrize("line", [b"<<<<<<<< HEAD", b"======", b" =======", b"<<<<<<<HEAD", b"", b"x"])
def test_other_lines_are_none(line: bytes) -> None:
    assert not is_marker(line)


@pytest.mark.parametrize("data", [TWO, THREE])
def test_json_names_the_marker_and_its_line(data: bytes) -> None:
    with pytest.raises(Undecodable) as error:
        decode(data)
    assert (error.value.code, error.value.at) == ("conflict_marker", data.index(b"<"))
    assert str(error.value) == "a merge conflict marker (<<<<<<< HEAD) in line 3"


def test_a_text_that_is_broken_otherwise_is_not_called_a_conflict() -> None:
    with pytest.raises(Undecodable) as error:
        decode(b'{"a": 1,\n=======\n}')
    assert error.value.code == "bad_json"


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"a: 1\n<<<<<<< HEAD\nb: 2\n=======\nb: 3\n>>>>>>> laptop\n", 2),
        (b"a:\n- x\n<<<<<<< HEAD\n- 'it: is'\n||||||| 0a1b\n=======\n- y\n>>>>>>> laptop\n", 3),
    ],
)
def test_yaml_names_the_marker_and_its_line(data: bytes, line: int) -> None:
    with pytest.raises(Corrupt) as error:
        load_yaml(data, path="/x/plan.yaml")
    assert error.value.details["code"] == "conflict_marker"
    assert error.value.message == f"/x/plan.yaml, line {line}: a merge conflict marker (<<<<<<< HEAD)"
    assert "resolve the merge" in str(error.value.hint)


def test_json_lines_name_each_marker_by_the_same_words() -> None:
    data = b'{"a":1}\n<<<<<<< HEAD\n{"b":2}\n=======\n{"b":3}\n>>>>>>> laptop\n'
    reading = read_lines(data)
    assert reading.values == [{"a": 1}, {"b": 2}, {"b": 3}]
    assert [(one.code, one.line, one.message) for one in reading.problems] == [
        ("conflict_marker", 2, "a merge conflict marker (<<<<<<< HEAD)"),
        ("conflict_marker", 4, "a merge conflict marker (=======)"),
        ("conflict_marker", 6, "a merge conflict marker (>>>>>>> laptop)"),
    ]


def test_the_sides_of_a_text_are_distinguished_and_the_base_belongs_to_none() -> None:
    assert sides(TWO) == (b'{\n "a": 1,\n "b": 2\n}\n', b'{\n "a": 1,\n "b": 3\n}\n')
    assert sides(THREE) == sides(TWO)
    assert sides(b"a\n<<<<<<< x\nb\n") is None


def test_only_whole_conflicts_count() -> None:
    lines = b"=======\n<<<<<<< a\n<<<<<<< b\n1\n=======\n2\n=======\n>>>>>>> c\n>>>>>>> d".split(b"\n")
    assert [tuple(one) for one in conflicts(lines)] == [(2, None, 4, 7)]


def test_a_long_marker_is_named_by_its_beginning() -> None:
    found = first_marker(b"x\n<<<<<<< " + b"y" * 1000)
    assert found is not None
    assert (found.line, found.byte, len(found.words)) == (2, 2, len("a merge conflict marker ()") + 61)
