"""Redaction with numbered marks: the same secret gets the same mark, and each rule says how often it matched."""

import json
from pathlib import Path
from typing import Any

import pytest

from sessionary.errors import Invalid, NotFound
from sessionary.redaction import ALWAYS, Placeholders, Redaction
from sessionary.redaction.personal import load_rules, personal_rules
from sessionary.redaction.rules import COMMON, HINTS
from tests.unit.sync.test_redaction import SAMPLES

AWS = "AKIA" + "ABCD" * 4
OTHER = "AKIA" + "WXYZ" * 4
ONE = "[redacted: AWS access key 1]"


def redaction(**rules: str | None) -> tuple[Redaction, Placeholders]:
    marks = Placeholders()
    return Redaction(rules, mark=marks), marks


def test_the_same_secret_gets_the_same_mark_and_matches_are_counted() -> None:
    redact, marks = redaction()
    assert redact.text(f"{AWS} {OTHER} {AWS}") == f"{ONE} {ONE.replace('1]', '2]')} {ONE}"
    assert redact.value({"a": [f"x{AWS} {AWS}"]}) == {"a": [f"x{AWS} {ONE}"]}, "a part of a word is none"
    assert marks.counts == {"AWS access key": 4}


def test_one_secret_that_two_rules_find_has_one_mark() -> None:
    redact, marks = redaction()
    token = "ghp_" + "a1" * 18
    first = redact.text(token)
    assert redact.value({"password": token}) == {"password": first}
    assert dict(marks.counts) == {"GitHub token": 1, "value of a secret key": 1}


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        ({AWS: 1}, {ONE: 1}),
        (json.dumps({"key": AWS}), json.dumps({"key": ONE})),
        (json.dumps({"a": json.dumps({"b": [AWS]})}), json.dumps({"a": json.dumps({"b": [ONE]})})),
        ('{"key": "AKIA' + "\\u0041\\u0042CD" + "ABCD" * 3 + '"} ', json.dumps({"key": ONE})),
        ("not JSON: AKIA\\u0041BCD" + "ABCD" * 3, f"not JSON: {ONE}"),
        ("no secret: \\u0041", "no secret: \\u0041"),
        ('{"a":   1}', '{"a":   1}'),
    ],
)
def test_a_secret_within_keys_nested_json_and_escapes(stored: Any, expected: Any) -> None:
    assert redaction()[0].value(stored) == expected


def test_keys_that_are_masked_alike_keep_their_values() -> None:
    found = Redaction().value({AWS: 1, "x": 2, OTHER: 3, f"x {OTHER}": 4, "[redacted]#2": 5})
    assert list(found.items()) == [
        ("[redacted]", 1),
        ("x", 2),
        ("[redacted]#2", 3),
        ("x [redacted]", 4),
        ("[redacted]#2#2", 5),
    ]


def test_a_document_whose_key_is_a_secret_is_not_replaced() -> None:
    redact, mine = Redaction(), json.dumps({AWS: 1, "x": 2}).encode()
    black = redact.document("a.json", mine)
    assert json.loads(black) == {"[redacted]": 1, "x": 2}
    assert redact.restored("a.json", mine, black) is None
    assert redact.restored("a.json", mine, b'{"x": 3}') is None
    assert json.loads(redact.restored("a.json", b'{"x": 2}', b'{"x": 3}') or b"") == {"x": 3}


def test_a_value_under_a_secret_key_is_masked_whatever_it_is() -> None:
    redact, _ = redaction()
    mark = "[redacted: value of a secret key 1]"
    for key in ("password", "dbPassword", "x-api-key", "AWS_SECRET_ACCESS_KEY", "SecretAccessKey"):
        assert redact.value({key: "correct horse"}) == {key: mark}
    assert redact.value({"secret": ["correct horse"]}) == {"secret": [mark]}
    assert redact.value({"password": True, "max_tokens": 5, "keyboard": "qwertyuiop"}) == {
        "password": True, "max_tokens": 5, "keyboard": "qwertyuiop"
    }  # fmt: skip


@pytest.mark.parametrize(
    "spelt", [r'"password": "hunter22"', r"\"password\": \"hunter22\"", "password=hunter22"]
)
def test_an_assignment_within_text(spelt: str) -> None:
    redacted = redaction()[0].text(f"before {spelt} behind")
    assert redacted == f"before {spelt.replace('hunter22', '[redacted: assigned secret 1]')} behind"


def test_a_rule_of_the_user_replaces_a_kept_one_or_turns_it_off() -> None:
    redact, _ = redaction(**{"AWS access key": None, "customer": r"K-\d{4}"})
    assert redact.text(f"{AWS} K-1234") == f"{AWS} [redacted: customer 1]"


def test_the_blob_key_is_masked_without_the_kept_rules() -> None:
    redact = Redaction(ALWAYS, common=False)
    for text in (
        '{"blobEncryptionKey": "abc"}',
        r"{\"blobEncryptionKey\": \"abc\"}",
        "blobEncryptionKey=abc",
    ):
        assert redact.text(text) == text.replace("abc", "[redacted]")
    assert redact.value({"blobEncryptionKey": "abcdef", "password": "hunter22"}) == {
        "blobEncryptionKey": "[redacted]", "password": "hunter22"
    }  # fmt: skip


def personal(text: str) -> str:
    rules = personal_rules("/home/ada", "ada", ["/home/zoe/app", r"C:\Users\Bob Ray\app", None])
    return Redaction(rules, common=False).text(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cat /home/ada/x", "cat [redacted]/x"),
        ("/home/carl/x", "[redacted]/x"),
        ("/Users/carl", "[redacted]"),
        (r"C:\Users\Carl\x", r"C:[redacted]\x"),
        (r"C:\\Users\\Carl\\x", r"C:[redacted]\\x"),
        ("/mnt/c/Users/Carl/x", "/mnt/c[redacted]/x"),
        ("-home-carl-app", "[redacted]-app"),
        ("by Ada and zoe", "by [redacted] and [redacted]"),
        ("signed: Bob Ray", "signed: [redacted]"),
        ("adamant, src/home/index.ts, nav-home-page", "adamant, src/home/index.ts, nav-home-page"),
        ("https://example.com/home/page", "https://example.com/home/page"),
    ],
)
def test_home_folders_and_user_names(text: str, expected: str) -> None:
    assert personal(text) == expected


def test_a_home_folder_at_another_place() -> None:
    redact = Redaction(personal_rules("/srv/people/x1", ""), common=False)
    text = "/srv/people/x1/app -srv-people-x1-app a/srv/people/x1 /srv/people/x12"
    assert redact.text(text) == "[redacted]/app [redacted]-app a/srv/people/x1 /srv/people/x12"


@pytest.mark.parametrize("name", COMMON)
def test_the_words_that_a_rule_needs_are_in_what_it_matches(name: str) -> None:
    found = SAMPLES[name]
    assert any(hint in found.lower() for hint in HINTS.get(COMMON[name], (found.lower(),)))
    assert Redaction({name: COMMON[name]}, common=False).text(found) != found


def test_a_general_name_is_masked_in_paths_only() -> None:
    rules = personal_rules("/root", "root", ["/home/user/app"])
    assert Redaction(rules, common=False).text("the root of /root") == "the root of /root"
    assert Redaction(rules, common=False).text("a user in /home/user/x") == "a user in [redacted]/x"


def test_the_rules_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert load_rules(None) == {}
    file = tmp_path / "sessionary" / "redaction.toml"
    file.parent.mkdir()
    file.write_text('[rules]\ncustomer = \'K-\\d+\'\n"cookie" = false\n"mail address" = true\n')
    rules = load_rules(None)
    assert rules["customer"] == r"K-\d+"
    assert rules["cookie"] is None
    assert Redaction(rules).text("ada@example.org") == "[redacted]"


@pytest.mark.parametrize(
    "text", ["[rules", "rule = 1", "[rules]\nx = 1", "[rules]\nx = true", "rules = 1", "\xff"]
)
def test_a_wrong_rules_file_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "r.toml"
    file.write_text(text, encoding="latin-1")
    with pytest.raises(Invalid, match=r"r\.toml"):
        load_rules(str(file))
    with pytest.raises(NotFound):
        load_rules(str(tmp_path / "missing"))
