"""The chat stores of Cursor's command line: what they say, how they are read on, and what is damaged in them."""

import json
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from sessionary.disk.fs import OS_FS
from sessionary.errors import StorageFailed
from sessionary.layouts.agents.cursor import CursorLayout
from sessionary.layouts.agents.cursor_store import ChatStore
from sessionary.layouts.summary import summaries, summary_of
from sessionary.model import (
    AGENT,
    HARNESS,
    PERSON,
    TOOL,
    Aside,
    Message,
    Other,
    Problem,
    SessionRef,
)
from sessionary.testing.cursors import Reader
from tests.support.agent_files import messages, words
from tests.support.cursor_files import KEY, START, Chat, field, varint

WRITER = """
import json, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
for statement, *values in json.loads(sys.argv[2]):
    connection.execute(statement, values)
print("ready", flush=True)
sys.stdin.read()
connection.close()
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "cursor").mkdir()
    return tmp_path / "cursor"


@pytest.fixture
def chat(home: Path) -> Chat:
    return Chat(home, "s1", hasConversation=True)


def layout(home: Path) -> CursorLayout:
    return CursorLayout(home, OS_FS)


def ref(home: Path) -> SessionRef:
    (found,) = layout(home).discover()
    return found


def user(said: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": f"<user_query>\n{said}\n</user_query>"}]}


def calls(*ids: str, **more: Any) -> dict[str, Any]:
    blocks = [{"type": "tool-call", "toolCallId": one, "toolName": "Shell", "args": {"a": 1}} for one in ids]
    return {"role": "assistant", "content": blocks, **more}


def result(call_id: str, said: Any, **more: Any) -> dict[str, Any]:
    block = {"type": "tool-result", "toolCallId": call_id, "toolName": "Shell", "result": said, **more}
    return {"role": "tool", "content": [block], "id": call_id}


def talk(chat: Chat) -> None:
    chat.meta |= {"name": "Login", "lastUsedModel": "opus"}
    reasoning = {"type": "reasoning", "text": "Hm.", "signature": "x"}
    signed = {"providerOptions": {"cursor": {"modelName": "sonnet"}}}
    failed = {"providerOptions": {"cursor": {"highLevelToolCallResult": {"isError": True}}}}
    chat.add(
        {"role": "system", "content": "You are an agent."},
        {"role": "user", "content": "<user_info>\nOS\n</user_info>"},
        user("Fix the login"),
        {"role": "assistant", "id": "m1", "content": [reasoning, {"type": "text", "text": "Looking."}]},
        calls("c1", "c2", **signed),
        result("c1", "a word"),
        result("c2", "no such file", **failed),
        {"role": "assistant", "content": [{"type": "redacted-reasoning", "data": "x"}]},
        {"role": "assistant", "content": "Done."},
    )


def test_a_conversation(home: Path, chat: Chat) -> None:
    talk(chat)
    system, added, said, agent, call, one, two, hidden, done = messages(layout(home), ref(home))
    assert (system.role, system.origin, added.role, added.origin) == ("system", HARNESS, "user", HARNESS)
    assert (said.origin, said.text) == (PERSON, "Fix the login")
    assert (agent.origin, agent.id, agent.thoughts, agent.model) == (AGENT, "m1", ["Hm."], "opus")
    assert [(each.call_id, each.name, each.arguments) for each in call.calls] == [
        ("c1", "Shell", {"a": 1}), ("c2", "Shell", {"a": 1}),
    ]  # fmt: skip
    assert call.model == "sonnet"
    assert (one.origin, one.id, one.text, two.text) == (TOOL, "c1", "a word", "no such file")
    assert [each.results[0].is_error for each in (one, two)] == [False, True]
    assert (hidden.thoughts, len(hidden.parts), done.text) == ([], 1, "Done.")
    raw = json.loads(layout(home).raw(ref(home), said.place))
    assert raw == user("Fix the login")


def test_what_a_list_shows(home: Path, chat: Chat) -> None:
    talk(chat)
    one = summary_of(layout(home), ref(home))
    assert (one.title, one.turns, one.messages, one.cwd, one.models) == (
        "Login", 1, 9, "/home/u/my app", ["opus", "sonnet"],
    )  # fmt: skip
    assert (one.health, one.parent, one.nested, one.total_usage()) == ("ok", None, False, None)
    assert one.created is not None
    assert one.created.timestamp() * 1000 == START
    assert one.size == chat.path.stat().st_size + (chat.folder / "meta.json").stat().st_size


def test_what_the_document_says_comes_first(home: Path) -> None:
    chat = Chat(home, "s1", title="Mine", cwd="/w", isSubagent=True, updatedAtMs=START + 5000)
    chat.meta["subagentInfo"] = {"parentAgentId": "s0", "typeName": "explore"}
    chat.meta["lastUsedModel"] = {"modelId": "grok"}
    chat.add(user("Hi"), calls("c1"), user("Still there?"))
    one = summary_of(layout(home), ref(home))
    assert (one.title, one.cwd, one.parent, one.nested, one.models) == ("Mine", "/w", "s0", True, ["grok"])
    assert [problem.code for problem in one.problems] == ["orphaned_call"]


def test_the_name_of_a_new_chat_is_not_a_title(home: Path, chat: Chat) -> None:
    chat.add(user("Fix the login"))
    assert summary_of(layout(home), ref(home)).title == "Fix the login"


def test_messages_in_protobuf(home: Path, chat: Chat) -> None:
    inner = json.dumps({"role": "assistant", "content": "in JSON"}).encode()
    more = json.dumps({"content": [{"type": "tool-call", "toolName": "Read", "args": {}}]}).encode()
    chat.add(
        field(1, b"Hello") + field(2, b"uuid") + field(3, b""),
        field(1, field(1, "Grüß dich".encode())) + field(4, more) + field(5, b"an output"),
        field(4, inner),
        varint(7 << 3) + varint(5) + field(4, b"no JSON"),
        b"\xff\xfe an unknown blob",
    )
    said, agent, output, stated, numbers, unknown = messages(layout(home), ref(home))
    assert (said.role, said.origin, said.text) == ("user", PERSON, "Hello")
    assert (agent.text, agent.calls[0].name, output.text) == ("Grüß dich", "Read", "an output")
    assert (stated.role, stated.text) == ("assistant", "in JSON")
    for one, size in ((numbers, 11), (unknown, 18)):
        (part,) = one.parts
        assert isinstance(part, Other)
        assert (one.role, part.kind, part.value["size"]) == (None, "record", size)
    assert layout(home).raw(ref(home), unknown.place) == b"\xff\xfe an unknown blob"


def test_records_of_former_states_are_outside_of_the_conversation(home: Path, chat: Chat) -> None:
    chat.add(user("Before the summary"), {"role": "assistant", "content": "Yes."})
    chat.order = []
    chat.add({"role": "user", "content": "A summary"})
    items = list(layout(home).read(ref(home)))
    assert [one.message.text for one in items if isinstance(one, Aside)] == ["Before the summary", "Yes."]
    assert [one.text for one in items if isinstance(one, Message)] == ["A summary"]
    assert [(one.code, one.severity.name) for one in items if isinstance(one, Problem)] == [
        ("not_shown", "note")
    ]


def test_the_same_message_twice(home: Path, chat: Chat) -> None:
    chat.add(user("Go on"), {"role": "assistant", "content": "Yes."}, user("Go on"))
    assert words(layout(home), ref(home)).split("\n") == ["Go on", "Yes.", "Go on"]


def test_a_store_with_a_row_for_each_value(home: Path, chat: Chat) -> None:
    chat.add(user("Hi"))
    chat.run("DELETE FROM meta")
    for key in ("name", "latestRootBlobId", "blobEncryptionKey"):
        chat.run("INSERT INTO meta VALUES (?, ?)", key, {**chat.meta, "name": "Old"}[key])
    assert (summary_of(layout(home), ref(home)).title, words(layout(home), ref(home))) == ("Old", "Hi")


DAMAGE = {
    "no row of meta": ("DELETE FROM meta", "no_message_list"),
    "no root": ("DELETE FROM blobs WHERE id = :root", "no_message_list"),
    "a root cut short": ("UPDATE blobs SET data = substr(data, 1, 40) WHERE id = :root", "no_message_list"),
    "meta is not JSON": ("UPDATE meta SET value = '7b7b'", "bad_json"),
    "a message is gone": ("DELETE FROM blobs WHERE id = :first", "missing_message"),
    "a message is not JSON": (
        "UPDATE blobs SET data = CAST('{\"role\"' AS BLOB) WHERE id = :first",
        "bad_hash",
    ),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_damage_is_reported_and_hides_no_other_message(home: Path, chat: Chat, what: str) -> None:
    statement, code = DAMAGE[what]
    chat.add(user("One"), user("Two"), {"role": "assistant", "content": "Three"})
    with closing(sqlite3.connect(chat.path, isolation_level=None)) as connection:
        connection.execute(statement, {"root": chat.meta["latestRootBlobId"], "first": chat.order[0]})
    found = layout(home)
    items = list(found.read(ref(home)))
    problems = [one for one in items if isinstance(one, Problem)]
    assert problems[0].code == code
    assert problems[0].severity.name == "lost_data"
    assert problems[0].repair
    texts = [one.text for one in items if isinstance(one, Message)]
    assert texts[-2:] == ["Two", "Three"]
    assert len(texts) == 2 or "message is" not in what
    assert KEY not in repr(items)


def test_a_changed_record_is_shown_and_reported(home: Path, chat: Chat) -> None:
    chat.add(user("One"))
    data = json.dumps(user("Won")).encode()
    chat.run("UPDATE blobs SET data = ? WHERE id = ?", data, chat.order[0])
    (problem,) = summary_of(layout(home), ref(home)).problems
    assert (problem.code, problem.path) == ("bad_hash", f"{chat.path}#{chat.order[0]}")
    assert words(layout(home), ref(home)) == "Won"


@pytest.mark.parametrize("seed", range(6))
def test_random_bytes_in_a_row_hide_no_other_message(home: Path, chat: Chat, seed: int) -> None:
    choose = random.Random(seed)
    talk(chat)
    with closing(sqlite3.connect(chat.path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        for _ in range(60):
            name = choose.choice([*chat.order, chat.meta["latestRootBlobId"]])
            [(data,)] = connection.execute("SELECT data FROM blobs WHERE id = ?", (name,)).fetchall()
            spoilt = bytearray(data)
            at = choose.randrange(len(data))
            spoilt[at : at + choose.choice((0, 1, 3))] = choose.randbytes(choose.choice((1, 2)))
            connection.execute("UPDATE blobs SET data = ? WHERE id = ?", (bytes(spoilt), name))
            items = list(layout(home).read(ref(home)))
            assert any(isinstance(one, Problem) for one in items) or bytes(spoilt) == data
            said = [one.text for one in items if isinstance(one, Message)]
            said += [one.message.text for one in items if isinstance(one, Aside)]
            kept = {2: "Fix the login", 3: "Looking.", 5: "a word", 6: "no such file", 8: "Done."}
            for index, expected in kept.items():
                assert expected in said or name == chat.order[index]
            summary_of(layout(home), ref(home))
            connection.execute("UPDATE blobs SET data = ? WHERE id = ?", (data, name))


@pytest.mark.parametrize("seed", range(4))
def test_damaged_pages_of_the_database_never_raise_from_a_list(home: Path, seed: int) -> None:
    choose = random.Random(seed)
    chat = Chat(home, "s1")
    chat.add(*(user(f"{number} " + "x" * 3000) for number in range(30)))
    data = chat.path.read_bytes()
    whole = 0
    for _ in range(40):
        spoilt = bytearray(data)
        page = choose.randrange(len(data) // 4096) * 4096
        spoilt[page : page + 4096] = choose.choice([bytes(4096), choose.randbytes(4096)])
        chat.path.write_bytes(spoilt)
        found = [one.ref.session_id for one in summaries(layout(home))]
        assert found == ["s1"]
        try:
            items = list(layout(home).read(ref(home)))
        except StorageFailed:
            continue
        said = [one for one in items if isinstance(one, Message)]
        assert len(said) == 30 or any(isinstance(one, Problem) for one in items)
        whole += len(said) >= 28
    assert whole > 20, "a damaged page of one message hides few others"


@pytest.mark.parametrize("seed", range(15))
def test_reading_in_pieces_is_reading_as_a_whole(home: Path, chat: Chat, seed: int) -> None:
    choose = random.Random(seed)
    reader = Reader(layout(home), ref(home))
    for number in range(8):
        for _ in range(choose.randint(0, 3)):
            what = choose.choice(["add", "add", "add", "model", "rewind", "remove", "meta"])
            if what == "add":
                chat.add(choose.choice([user(f"{number}"), calls(f"c{number}"), result(f"c{number}", "x")]))
            elif what == "model":
                chat.meta["lastUsedModel"] = choose.choice(["opus", "grok"])
                chat.write()
            elif what == "rewind" and chat.order:
                chat.order.pop()
                chat.write()
            elif what == "remove" and chat.order:
                chat.run("DELETE FROM blobs WHERE id = ?", chat.order[0])
            elif what == "meta":
                chat.run("UPDATE meta SET value = '00'") if choose.random() < 0.2 else chat.write()
        reader.go_on()


def test_what_is_added_is_read_alone(home: Path, chat: Chat) -> None:
    talk(chat)
    reader = Reader(layout(home), ref(home))
    reader.go_on()
    chat.add(user("Thanks"))
    reader.go_on()
    assert reader.resets == 0
    chat.meta["lastUsedModel"] = "grok"
    chat.write()
    reader.go_on()
    assert reader.resets == 1, "the messages before were given the model of the store"


@pytest.mark.parametrize("state", ["closed", "open", "killed"])
def test_a_store_is_read_while_it_is_written(home: Path, chat: Chat, state: str) -> None:
    chat.add(user("One"))
    statements = [["PRAGMA journal_mode = WAL"], ["PRAGMA wal_autocheckpoint = 0"]]
    data = json.dumps(user("Two"))
    chat.order.append(sha256(data.encode()).hexdigest())
    root = b"".join(field(1, bytes.fromhex(one)) for one in chat.order)
    chat.meta["latestRootBlobId"] = sha256(root).hexdigest()
    statements.append(["INSERT INTO blobs VALUES (?, CAST(? AS BLOB))", chat.order[-1], data])
    statements.append([f"INSERT INTO blobs VALUES (?, x'{root.hex()}')", chat.meta["latestRootBlobId"]])
    statements.append(["UPDATE meta SET value = ?", json.dumps(chat.meta).encode().hex()])
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(chat.path), json.dumps(statements)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == b"ready\n"
    if state != "open":
        writer.kill() if state == "killed" else None
        writer.communicate()
    before = {one.name: (one.read_bytes(), one.stat().st_mtime_ns) for one in chat.folder.iterdir()}
    assert len(before) == {"closed": 2, "open": 4, "killed": 4}[state]
    assert words(layout(home), ref(home)) == "One\nTwo"
    summary_of(layout(home), ref(home))
    after = {one.name: (one.read_bytes(), one.stat().st_mtime_ns) for one in chat.folder.iterdir()}
    assert after == before
    writer.communicate()


def test_a_fingerprint_changes_with_the_log(home: Path, chat: Chat) -> None:
    chat.add(user("One"))
    later = CursorLayout(home, OS_FS, now=lambda: chat.path.stat().st_mtime + 100)
    before = later.fingerprint(ref(home))
    assert before
    assert layout(home).fingerprint(ref(home)) == b"", "it was changed a moment ago"
    (chat.folder / "store.db-wal").write_bytes(b"more")
    assert later.fingerprint(ref(home)) != before


def test_a_missing_record(home: Path, chat: Chat) -> None:
    chat.add(user("One"))
    with pytest.raises(Exception, match="There is no record nothing"):
        ChatStore(str(chat.path), OS_FS).raw("nothing")
