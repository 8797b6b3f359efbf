"""Exports carry everything, name what they do not, and stored text does not act in any of them."""

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from markdown_it import MarkdownIt

from sessionary import SessionStore, Workspace
from sessionary.errors import AlreadyExists, Invalid, Unsupported
from sessionary.export import FORMATS, Loss
from sessionary.export.exact import plain
from sessionary.export.losses import CODES
from sessionary.export.wording import loss_words
from sessionary.model import Message
from sessionary.workspace.exporting import safe_name
from tests.unit.export.conftest import ID, Talk, record

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = json.loads((ROOT / "docs" / "export.schema.json").read_text("utf-8"))
HOSTILE = (
    "<script>alert(1)</script> <svg onload=alert(1)> <img src=x onerror=alert(1)>"
    " [a](javascript:alert(1)) [b](data:text/html,x) [c](java&#115;cript:alert(1)) ![d](https://t.example/p.png)"
    " [g](" + " " * 30 + "javascript:alert(1)) [h](\n javascript:alert(1))"
    " <javascript:alert(1)> [e][f]\n\n[f]: javascript:alert(1)\n\n</details></blockquote><h1>\n"
    "| ` | <img src=x> | ` |\n|---|---|---|\n\n<div onclick=alert(1)>\n```\n</pre><script>alert(2)</script>\n"
    "\x1b]0;title\x07 \u202egnp.exe \u2066 \ud83d \x00"
)
CALL = [{"type": "tool_use", "id": HOSTILE, "name": HOSTILE, "input": {HOSTILE: [HOSTILE], "n": 1}}]
RESULT = [{"type": "tool_result", "tool_use_id": HOSTILE, "content": HOSTILE, "is_error": True}]
FOLDED = [{"type": "thinking", "thinking": HOSTILE}, {"type": "text", "text": HOSTILE}]
RICH = (
    record(1, "user", HOSTILE),
    record(2, "assistant", FOLDED),
    record(3, "assistant", CALL),
    record(4, "user", RESULT),
    {**record(5, HOSTILE, "x"), "parentUuid": "u4"},
    record(6, "assistant", "Done."),
)


def text_of(workspace: Workspace, form: str, *, branches: bool = False) -> str:
    return b"".join(workspace.export(workspace.find(ID), form, branches=branches)).decode()


def document_of(workspace: Workspace, *, branches: bool = False) -> Any:
    document = json.loads(text_of(workspace, "json", branches=branches))
    Draft202012Validator(SCHEMA).validate(document)
    return document


def losses(workspace: Workspace, form: str, *, branches: bool = False) -> dict[tuple[str, str], int]:
    export = workspace.export(workspace.find(ID), form, branches=branches)
    for _ in export:
        pass
    return {(loss.code, loss.what): loss.count for loss in export.report.losses}


def test_the_published_schema_is_the_one_in_the_package() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    packaged = ROOT / "src" / "sessionary" / "export" / "session.schema.json"
    assert json.loads(packaged.read_text("utf-8")) == SCHEMA


def test_json_carries_each_message_as_it_was_read(talk: Talk) -> None:
    workspace = talk(*RICH)
    document = document_of(workspace)
    read = [one for one in workspace.read(workspace.find(ID)) if isinstance(one, Message)]
    assert [one["role"] for one in document["messages"]] == [one.role for one in read]
    assert document["messages"][0]["parts"] == [{"type": "text", "text": HOSTILE}]
    assert [part["text"] for part in document["messages"][1]["parts"]] == [HOSTILE, HOSTILE]
    assert document["messages"][2]["parts"] == [
        {"type": "tool_call", "id": HOSTILE, "name": HOSTILE, "arguments": {HOSTILE: [HOSTILE], "n": 1}}
    ]
    assert document["messages"][3]["parts"] == [
        {"type": "tool_result", "id": HOSTILE, "content": HOSTILE, "is_error": True}
    ]
    assert document["messages"][4]["parts"][0]["value"]["type"] == HOSTILE, "an unknown record, whole"
    assert document["session"]["cwd"] == "/home/zoe/app"
    assert (document["losses"], document["masked"]) == ([], [])


def test_a_line_of_jsonl_is_a_message_with_its_session(talk: Talk) -> None:
    workspace = talk(*RICH, agent=(record(1, "user", "Help"),))
    lines = [json.loads(line) for line in text_of(workspace, "jsonl").splitlines()]
    document = document_of(workspace)
    assert [{**line, "session": 0} for line in lines] == [
        {**one, "session": 0} for one in [*document["messages"], *document["subagents"][0]["messages"]]
    ]
    assert lines[0]["session"] == document["session"]
    assert lines[-1]["session"] == document["subagents"][0]["session"]
    assert lines[-1]["session"]["parent"] == ID


def test_a_chain_of_sub_agents_that_is_longer_than_the_stack_is_exported(tmp_path: Path) -> None:
    home = tmp_path / ".amplifier"
    chain = ["top", *(f"{number:016x}-{number:016x}_agent" for number in range(sys.getrecursionlimit()))]
    for session_id, parent in zip(chain, [None, *chain], strict=False):
        folder = home / "projects" / "-w" / "sessions" / session_id
        folder.mkdir(parents=True)
        (folder / "transcript.jsonl").write_text('{"role": "user", "content": "Go"}\n')
        (folder / "metadata.json").write_text(json.dumps({"session_id": session_id, "parent_id": parent}))
    workspace = Workspace(home, cache=str(tmp_path / "cache"))
    for name in ("html", "json", "jsonl", "md"):
        export = workspace.export(workspace.find("top"), name)
        assert sum(line.count(b"Go") for line in export) >= len(chain)
        assert export.report.sessions == len(chain)


def test_sub_agents_are_nested(talk: Talk) -> None:
    workspace = talk(
        record(1, "user", "Go"), agent=(record(1, "user", "Help"), record(2, "assistant", "Yes"))
    )
    document = document_of(workspace)
    assert [one["parts"][0]["text"] for one in document["subagents"][0]["messages"]] == ["Help", "Yes"]
    markdown, page = text_of(workspace, "md"), text_of(workspace, "html")
    assert (
        markdown.index("> Go")
        < markdown.index("<summary>Sub-agent: Help</summary>")
        < markdown.index("> Yes")
    )
    assert page.index("Sub-agent:") < page.index("<p>Yes</p>") < page.index("</details>")
    assert page.count("<details") == page.count("</details>")


@pytest.mark.parametrize(
    ("content", "form", "loss"),
    [
        ([{"type": "image", "source": {}}], "json", ("content", "image")),
        ([{"type": "thinking", "thinking": "", "signature": "x"}], "json", ("thinking", "signature")),
        (
            [{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "image"}]}],
            "md",
            ("content", "image"),
        ),
    ],
)
def test_content_that_is_not_carried_is_a_loss(
    talk: Talk, content: Any, form: str, loss: tuple[str, str]
) -> None:
    assert losses(talk(record(1, "user", content)), form) == {loss: 1}


def test_results_with_images_are_whole_in_json(talk: Talk) -> None:
    result = [
        {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "image", "source": {"data": "AA"}}]}
    ]
    workspace = talk(record(1, "user", result))
    assert document_of(workspace)["messages"][0]["parts"][0]["content"] == result[0]["content"]
    assert losses(workspace, "jsonl") == {}


def test_damage_and_other_branches_are_losses_with_places(talk: Talk) -> None:
    first, left = record(1, "user", "Go"), record(2, "assistant", "Left")
    workspace = talk(first, left, record(3, "assistant", "New", parent=1), b'{"type": "us')
    export = workspace.export(workspace.find(ID), "md")
    text = b"".join(export).decode()
    path = workspace.find(ID).locator
    assert export.report.losses == [
        Loss("outside", "messages", 1, (f"{path}:2",)),
        Loss("problem", "torn_tail", 1, (f"{path}:4",)),
    ]
    assert "> Left" not in text
    assert losses(workspace, "md", branches=True) == {("problem", "torn_tail"): 1}
    assert "(outside of the conversation)" in text_of(workspace, "html", branches=True)
    assert [one["outside"] for one in document_of(workspace, branches=True)["messages"]] == [
        False,
        True,
        False,
    ]


def test_strict_writes_nothing_if_something_is_lost(talk: Talk, tmp_path: Path) -> None:
    workspace = talk(record(1, "user", "Go"), b'{"type": "us')
    file = tmp_path / "out.md"
    with pytest.raises(Unsupported, match="torn_tail") as raised:
        workspace.export(workspace.find(ID), strict=True).save(file)
    assert raised.value.details["losses"][0]["code"] == "problem"
    assert [one.name for one in tmp_path.iterdir() if "out" in one.name] == []
    workspace.export(workspace.find(ID)).save(file)
    with pytest.raises(Unsupported):
        workspace.export(workspace.find(ID), strict=True).save(file, force=True)
    assert "> Go" in file.read_text("utf-8"), "what was there is kept"


def test_a_file_is_replaced_only_with_force(talk: Talk, tmp_path: Path) -> None:
    workspace = talk(record(1, "user", "Go"))
    file = tmp_path / "out.md"
    file.write_text("mine")
    with pytest.raises(AlreadyExists):
        workspace.export(workspace.find(ID)).save(file)
    assert file.read_text() == "mine"
    workspace.export(workspace.find(ID)).save(file, force=True)
    assert "> Go" in file.read_text("utf-8")
    with pytest.raises(Invalid):
        workspace.export(workspace.find(ID)).save(tmp_path, force=True)
    with pytest.raises(Invalid, match="unknown format"):
        workspace.export(workspace.find(ID), "pdf")


def test_a_file_of_messages_is_exported_too(talk: Talk, tmp_path: Path) -> None:
    workspace = talk(record(1, "user", "Go"))
    file = tmp_path / "messages.jsonl"
    file.write_text('{"role": "user", "content": "Hi"}\n')
    document = json.loads(b"".join(workspace.export(file, "json")))
    Draft202012Validator(SCHEMA).validate(document)
    assert document["session"]["kind"] == "file"
    assert document["messages"][0]["parts"] == [{"type": "text", "text": "Hi"}]


# -- hostile text


@pytest.mark.parametrize("form", FORMATS)
def test_no_character_that_a_terminal_obeys_is_written(talk: Talk, form: str) -> None:
    text = text_of(talk(*RICH), form)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)


class Tags(HTMLParser):
    """Collects the tags of a page, and the attributes that could load or run something."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str | None]] = set()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {one for one in attributes if one[0] not in ("class", "dir", "lang", "charset")}


OURS = set(
    "html head meta title style body main h1 h2 dl dt dd section header time div p pre code details summary b bdi"
    " span footer ul li table thead tbody tr th td ol blockquote".split()
)


def test_the_page_has_only_our_own_tags(talk: Talk) -> None:
    tags = Tags()
    tags.feed(text_of(talk(*RICH, agent=(record(1, "user", HOSTILE),)), "html"))
    assert tags.tags - OURS == {"a"}
    assert {name for name, _ in tags.attributes} == {"http-equiv", "content", "name", "href", "rel"}
    assert {value for name, value in tags.attributes if name == "href"} == {"https://t.example/p.png"}


def test_links_lead_to_the_web_and_say_nothing_of_the_page(talk: Talk) -> None:
    page = text_of(talk(record(1, "user", "[a](https://a.example/?x=1&y=2) [b](javascript:x)")), "html")
    assert page.count("<a ") == 1
    assert '<a href="https://a.example/?x=1&amp;y=2" rel="noreferrer noopener nofollow">' in page


def test_a_renderer_that_allows_html_shows_only_our_own(talk: Talk) -> None:
    markdown = text_of(talk(*RICH, agent=(record(1, "user", HOSTILE),)), "md")
    renderer = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    renderer.validateLink = lambda url: True  # type: ignore[method-assign]
    tags = Tags()
    tags.feed(renderer.render(markdown))
    assert tags.tags - (OURS | {"h3", "hr", "em", "strong"}) == set()
    assert tags.attributes == set()


def test_code_in_markdown_stays_as_it_is(talk: Talk) -> None:
    said = (
        "Use `List<int>` and ``a ` <b>``:\n\n```html\n<img src=x>\n```\n\n    <indented>\n\n"
        "but <b> [x](https://a.b) [y](doc/a.md)"
    )
    markdown = text_of(talk(record(1, "user", said)), "md")
    assert "> Use `List<int>` and ``a ` <b>``:" in markdown
    assert "> <img src=x>" in markdown
    assert ">     <indented>" in markdown
    assert "> but &lt;b> [x](https://a.b) [y](doc/a.md)" in markdown


def test_an_open_fence_ends_with_its_message(talk: Talk) -> None:
    markdown = text_of(talk(record(1, "user", "```\nopen"), record(2, "assistant", "Yes")), "md")
    page = MarkdownIt("commonmark").render(markdown)
    assert "<p>Yes</p>" in page


def test_names_of_files_are_safe() -> None:
    assert safe_name("codex-3f0c81d2") == "codex-3f0c81d2"
    names = [
        safe_name(text) for text in ("../../etc/passwd", "..", "a/b", "a\\b", "a b", "é", "x" * 500, "\x00")
    ]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,120}", name) for name in names)


@pytest.mark.parametrize("form", FORMATS)
def test_a_sub_agent_that_is_gone_meanwhile_is_a_loss(talk: Talk, form: str) -> None:
    workspace = talk(record(1, "user", "Go"), agent=(record(1, "user", "Help"),))
    export = workspace.export(workspace.find(ID), form)
    Path(workspace.find("agent-a1").locator).unlink()
    text = b"".join(export).decode()
    found = [(loss.code, loss.what) for loss in export.report.losses]
    expected = [("form", "session of a sub-agent")] if form == "sts" else []
    assert found == [*expected, ("session", "claude_code")]
    if form == "json":
        Draft202012Validator(SCHEMA).validate(json.loads(text))
    assert text.count("<details") == text.count("</details>")


def test_an_export_reads_nothing_before_it_is_iterated(talk: Talk) -> None:
    workspace = talk(record(1, "user", "Go"))
    ref = workspace.find(ID)
    export = workspace.export(ref)
    with ref.path.open("ab") as file:
        file.write(json.dumps(record(2, "assistant", "Late")).encode() + b"\n")
    assert b"> Late" in b"".join(export)


def test_an_orphaned_call_loses_nothing_and_a_line_that_cannot_be_read_does(tmp_path: Path) -> None:
    store = SessionStore(tmp_path / "projects" / "-w" / "sessions", durability="none")
    call = {"id": "t", "tool": "bash", "arguments": {}}
    said = [{"role": "assistant", "content": "", "tool_calls": [call]}, {"role": "user", "content": "Go"}]
    store.save("one", said, {})
    workspace = Workspace(tmp_path, cache=str(tmp_path / "cache"))
    ref = workspace.find("one")
    export = workspace.export(ref, "json")
    document = json.loads(b"".join(export))
    assert "orphaned_call" in [one["code"] for one in document["problems"]]
    assert document["losses"] == []
    with (ref.path / "transcript.jsonl").open("ab") as file:
        file.write(b'not JSON\n{"role": "user", "content": "More"}\n')
    document = json.loads(b"".join(workspace.export(ref, "json")))
    assert [(one["code"], one["what"], one["count"]) for one in document["losses"]] == [
        ("problem", "bad_json", 1)
    ]


def test_keys_without_their_surrogates_keep_their_values() -> None:
    assert plain({chr(0xD800): 1, chr(0xDFFF): 2}) == {"\ufffd": 1, "\ufffd#2": 2}


@pytest.mark.parametrize("count", [1, 2000])
@pytest.mark.parametrize("code", CODES)
def test_a_loss_reads_well_in_any_number(code: str, count: int) -> None:
    words = loss_words(Loss(code, "image", count, ("one:3",)))
    assert words.startswith(f"{count:,} × ")
    assert words.endswith(" (first at one:3)")
