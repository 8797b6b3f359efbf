"""YAML as plain values, and files that ask for too much."""

import time

import pytest
import yaml
from hypothesis import given, reject
from hypothesis import strategies as st

from sessionary.codec import yaml_read
from sessionary.codec.yaml_faults import Faults
from sessionary.codec.yaml_read import Limits, compose, line_of, load_yaml
from sessionary.errors import Corrupt, SchemaError
from sessionary.model import Severity


def refused(data: bytes) -> tuple[str, int | None, int | None]:
    with pytest.raises(Corrupt) as caught:
        load_yaml(data, path="f.yaml")
    error = caught.value
    assert error.path == "f.yaml"
    assert error.hint
    assert "f.yaml" in str(error)
    return error.details["code"], error.details["line"], error.details["column"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-7", -7),
        ("0x1f", 31),
        ("1.5", 1.5),
        ("-.5", -0.5),
        ("1.0e+16", 1e16),
        (".inf", float("inf")),
        ("-.inf", float("-inf")),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("'1'", "1"),
        ('"true"', "true"),
        ("!!str 5", "5"),
        ("!!int '5'", 5),
        ("[a, 1]", ["a", 1]),
        ("{a: 1}", {"a": 1}),
        ("|\n  two\n  lines\n", "two\nlines\n"),
    ],
)
def test_what_both_versions_of_yaml_read_alike_is_read_so(text: str, value: object) -> None:
    assert load_yaml(f"k: {text}\n".encode()) == {"k": value}
    assert type(load_yaml(f"k: {text}\n".encode())["k"]) is type(value)


@pytest.mark.parametrize(
    "word",
    "yes no on off y n Yes NO 012 0o17 1_000 12:30:45 1e3 1.5e3 2026-01-09 2026-01-09T10:30:00Z 0b11 09".split(),
)
def test_a_word_that_the_versions_read_differently_stays_text(word: str) -> None:
    assert load_yaml(f"k: {word}".encode()) == {"k": word}


def test_an_explicit_timestamp_stays_text_too() -> None:
    assert load_yaml(b"k: !!timestamp 2026-01-09") == {"k": "2026-01-09"}


def test_keys_are_text() -> None:
    assert load_yaml(b"1: a\ntrue: b\n1.2: c\n") == {"1": "a", "true": "b", "1.2": "c"}


def test_the_order_of_keys_is_kept() -> None:
    assert list(load_yaml(b"z: 1\na: 2\nm: 3\n")) == ["z", "a", "m"]


def test_an_empty_file_is_none() -> None:
    assert load_yaml(b"") is load_yaml(b"# only words\n") is None


def test_a_byte_order_mark_is_passed_over() -> None:
    assert load_yaml(b"\xef\xbb\xbfa: 1\n") == {"a": 1}


def test_an_alias_is_a_copy() -> None:
    value = load_yaml(b"a: &x [1]\nb: *x\n")
    value["a"].append(2)
    assert value == {"a": [1, 2], "b": [1]}


def test_equal_keys_are_an_error_with_the_place_of_the_second() -> None:
    assert refused(b"a: 1\nb:\n  c: 2\n  c: 3\n") == ("duplicate_key", 4, 3)
    assert refused(b"a: 1\n'a': 2\n") == ("duplicate_key", 2, 1)


def laughs(width: int = 9, levels: int = 12) -> bytes:
    lines = ["k0: &k0 [" + ",".join(["lol"] * width) + "]"]
    lines += [f"k{n}: &k{n} [" + ",".join([f"*k{n - 1}"] * width) + "]" for n in range(1, levels)]
    return "\n".join(lines).encode()


def test_a_billion_laughs_are_refused_at_once() -> None:
    start = time.perf_counter()
    assert refused(laughs())[0] == "too_many_aliases"
    assert time.perf_counter() - start < 10  # that many words would take hours


def test_what_names_itself_is_refused() -> None:
    assert refused(b"a: &x [*x]") == ("too_deep", 1, 4)
    assert refused(b"a: &x {b: *x}")[0] == "too_deep"


@pytest.mark.parametrize("data", [b"[" * 100_000, b"- " * 100_000, b"{a: " * 50_000, b"? " * 100_000])
def test_depth_is_refused_on_the_way_down(data: bytes) -> None:
    assert refused(data)[0] == "too_deep"


def test_the_depth_that_is_allowed_is_read() -> None:
    assert load_yaml(b"[" * 100 + b"]" * 100)
    assert refused(b"[" * 101 + b"]" * 101)[0] == "too_deep"


def test_a_file_that_is_too_large_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_read, "LIMITS", Limits(size=7))
    assert refused(b"a: 12345")[0] == "too_large"


@pytest.mark.parametrize(
    ("data", "code", "line"),
    [
        (b"a: 1\nb: [\n", "bad_yaml", 3),
        (b"a: 1\nb: @c\n", "bad_yaml", 2),
        (b"a: 1\nb: \x00\n", "bad_yaml", 2),
        (b"a: 1\nb: \xff\n", "bad_utf8", 2),
        (b"a: 1\n---\nb: 2\n", "several_documents", 2),
        (b"a: 1\nb: !!python/object:os.system x\n", "unknown_tag", 2),
        (b"b: !!python/object/apply:os.system [x]\n", "unknown_tag", 1),
        (b"a: !!binary aGk=\n", "unknown_tag", 1),
        (b"a: !!int no\n", "bad_yaml", 1),
        (b"a: " + b"9" * 5000, "bad_yaml", 1),
        (b"[a]: 1\n", "odd_key", 1),
        (b"a: 1\n<<: {b: 2}\n", "odd_key", 2),
        (b"a: *nowhere\n", "bad_yaml", 1),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(data: bytes, code: str, line: int) -> None:
    assert refused(data)[:2] == (code, line)


@pytest.mark.parametrize(
    ("data", "line", "column", "corrected", "value"),
    [
        ("a:\n\tb: 1\n", 2, 1, "a:\n  b: 1\n", {"a": {"b": 1}}),
        ("é:\n  b: 1\n\tc: 2\n", 3, 1, "é:\n  b: 1\n  c: 2\n", {"é": {"b": 1, "c": 2}}),
        ("a:\n  b: 1\n  \tc: 2\n", 3, 3, "a:\n  b: 1\n  c: 2\n", {"a": {"b": 1, "c": 2}}),
        ("a:\n\t- b\n", 2, 1, "a:\n  - b\n", {"a": ["b"]}),
        ("a:\n  -\tb: 1\n    c: 2\n", 2, 4, "a:\n  - b: 1\n    c: 2\n", {"a": [{"b": 1, "c": 2}]}),
        ("a: |\n  x\n\ty\n", 3, 1, "a: |\n  x\n  y\n", {"a": "x\ny\n"}),
        ("a:\n  b: 1\n\t# why\n", 3, 1, "a:\n  b: 1\n  # why\n", {"a": {"b": 1}}),
        ("a: 1\n\t\nb: 2\n", 2, 1, "a: 1\n  \nb: 2\n", {"a": 1, "b": 2}),
    ],
)
def test_a_tab_that_indents_is_named_and_its_remedy_helps(
    data: str, line: int, column: int, corrected: str, value: object
) -> None:
    with pytest.raises(Corrupt) as caught:
        load_yaml(data.encode(), path="f.yaml")
    error = caught.value
    assert str(error).startswith(f"f.yaml, line {line}, column {column}: a tab where")
    assert error.hint is not None
    assert "replace the tab by blanks" in error.hint
    assert load_yaml(corrected.encode()) == value


def test_tabs_between_values_are_read() -> None:
    data = b'a:\t1\nb\t: "x\ty"\t# z\nc:\t[1,\t2]\t\nd:\t# e\n  f: g\n'
    assert load_yaml(data) == {"a": 1, "b": "x\ty", "c": [1, 2], "d": {"f": "g"}}


@given(st.binary(max_size=60) | st.text("ab:-[]{}&*!|>'\"%@#?,\n \t0", max_size=40).map(str.encode))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        load_yaml(data)
    except Corrupt as refusal:
        code = refusal.details["code"]
    else:
        return
    assert code in (
        "bad_yaml",
        "bad_utf8",
        "duplicate_key",
        "odd_key",
        "unknown_tag",
        "several_documents",
        "too_deep",
    )


@given(st.text("ab:-[]{},\n #'\"01.", max_size=30))
def test_what_is_read_is_what_pyyaml_reads_where_words_are_not_in_doubt(text: str) -> None:
    try:
        ours = load_yaml(text.encode())
    except Corrupt:
        reject()
    theirs = yaml.load(text, yaml.BaseLoader)

    def words(value: object) -> object:
        if isinstance(value, dict):
            return {key: words(child) for key, child in value.items()}
        if isinstance(value, list):
            return [words(child) for child in value]
        return value if isinstance(value, str) else "?"

    def same_shape(one: object, other: object) -> bool:
        if isinstance(one, dict) and isinstance(other, dict):
            return list(one) == list(other) and all(same_shape(one[k], other[k]) for k in one)
        if isinstance(one, list) and isinstance(other, list):
            return len(one) == len(other) and all(map(same_shape, one, other))
        return one == "?" or one == other

    assert theirs is None or same_shape(words(ours), theirs) or ours is None


def test_a_line_is_found_by_the_way_to_it() -> None:
    root = compose(b"a: 1\nb:\n  - c: 2\n    d: 3\n  - e\n")
    assert line_of(root, ["b", 0, "d"]) == 4
    assert line_of(root, ["b", 1]) == 5
    assert line_of(root, ["b", 0, "missing"]) == 3
    assert line_of(root, []) == 1
    assert line_of(None, ["a"]) is None


def test_all_faults_are_reported_at_once() -> None:
    faults = Faults("f.yaml", b"a: 1\nb:\n  - c: 2\n")
    faults.add("odd_value", ["b", 0, "c"], "must be text", "quote it")
    faults.add("no_value", ["d"], "is missing", "add it", Severity.note)
    faults.add("no_value", ["b"], "is wrong", "mend it")
    with pytest.raises(SchemaError) as caught:
        faults.raise_any(Severity.stops_resume, operation="load", session="s")
    assert caught.value.details["faults"] == ["line 3: b[0].c: must be text", "line 2: b: is wrong"]
    assert str(caught.value) == "f.yaml: line 3: b[0].c: must be text (and 1 more)"
    assert caught.value.hint == "quote it"
    assert [problem.line for problem in faults.problems()] == [3, 1, 2]
    Faults("f.yaml").raise_any(Severity.note, operation="load")
