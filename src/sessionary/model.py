"""The vocabulary: values that packages exchange, without behaviour.

What a list holds by the ten thousand (`SessionRef`, `Summary`) is a msgspec Struct: the catalogue reads it back
without a line of Python per session. The others are not dataclasses either, as these take their time at every start.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct, field


class Severity(IntEnum):
    """How bad a problem is; the worst one is the health of the session.

    note: nothing is wrong, but worth knowing.
    cosmetic: stray bytes, yet no record is missing or hidden.
    hides_data: something is there that an ordinary reader will not show.
    stops_resume: the agent that owns the session will refuse it, or start from an older copy.
    lost_data: a record is gone, wholly or in part.
    """

    note = 1
    cosmetic = 2
    hides_data = 3
    stops_resume = 4
    lost_data = 5


class Problem(NamedTuple):
    """One thing that is not as it should be, and where.

    Attributes:
        code: stable snake_case word (``torn_tail``, ``bad_json``, …; docs/formats/amplifier.md lists them).
        severity: how bad it is.
        path: the file.
        line: line number, from 1; None where the whole file is meant.
        byte: offset of the first byte concerned, from 0.
        message: one sentence for the user.
        repair: what would heal it, in words or as a command; None when nothing needs doing.
        span: number of bytes concerned.
    """

    code: str
    severity: Severity
    path: str
    line: int | None
    byte: int | None
    message: str
    repair: str | None = None
    span: int = 0

    @classmethod
    def of_file(
        cls, code: str, severity: Severity, path: str, message: str, repair: str | None = None
    ) -> Problem:
        """A problem of a whole file or folder."""
        return cls(code, severity, path, None, None, message, repair)

    def as_dict(self) -> dict[str, Any]:
        """The fields as JSON, with the severity as its word."""
        return {**self._asdict(), "severity": self.severity.name}


def health(problems: list[Problem]) -> str:
    """The worst severity among the problems as a word, or ``ok``."""
    return max(problem.severity for problem in problems).name if problems else "ok"


class Record(Struct, frozen=True, gc=False):
    """One readable JSON object of a line file, and its place.

    Attributes:
        value: the decoded object.
        line: line number, from 1.
        byte: offset of its first byte.
        raw: its bytes without the newline.
    """

    value: dict[str, Any]
    line: int
    byte: int
    raw: bytes


class SessionRef(Struct, frozen=True, array_like=True, gc=False):
    """The place of one session: which layout, which project, which id, and a locator that its layout understands.

    The locator is the path of a folder or a file, or names a row of a database. It is text, because a list of ten
    thousand sessions makes as many of these and asks few for a path.
    """

    kind: str
    session_id: str
    locator: str
    project: str | None = None

    @property
    def path(self) -> Path:
        """The locator as a path, of layouts that store sessions in files."""
        return Path(self.locator)


class Summary(Struct, frozen=True, array_like=True, gc=False):
    """What a list shows of one session. Times are UTC; None where the session does not say.

    `listed` is False for entries among the sessions that are not sessions: no list shows it, `check` reports it.
    `cwd` is the folder that the agent worked in, `branch` its git branch, `usage` what its models used and when.
    `version` is that of the agent which wrote it last.
    `nested` is True for the session of a sub-agent: it belongs to its parent, and is not counted by itself.
    `archived` is True for one that is left only in the archive.
    `tags` and `starred` are what the user has given to it, and never part of what the catalogue keeps.
    `unread` is True where the session is not read yet: documents and stats are known, and nothing is counted.
    """

    ref: SessionRef
    agent: str
    title: str | None
    parent: str | None
    messages: int
    turns: int
    turn_count: int | None
    created: datetime | None
    updated: datetime | None
    size: int
    health: str
    problems: list[Problem] = field(default_factory=list)
    listed: bool = True
    cwd: str | None = None
    branch: str | None = None
    usage: list[TimedUsage] = field(default_factory=list)
    nested: bool = False
    version: str | None = None
    archived: bool = False
    tags: list[str] = field(default_factory=list)
    starred: bool = False
    unread: bool = False

    @property
    def models(self) -> list[str]:
        """The models that wrote messages, sorted."""
        return sorted({one.model for one in self.usage} - {NO_MODEL})

    def total_usage(self) -> Usage | None:
        """The usage of all models together; None if no message states any."""
        total: Usage | None = None
        for one in self.usage:
            if one.usage != NO_USAGE:
                total = one.usage if total is None else total.plus(one.usage)
        return total

    def usage_by_model(self) -> dict[str, Usage]:
        """The usage of each model."""
        total: dict[str, Usage] = {}
        for one in self.usage:
            total[one.model] = total.get(one.model, Usage()).plus(one.usage)
        return total


class Header(Struct, frozen=True):
    """What a session says of itself beside its messages: in documents, names and stats. Fields as in `Summary`.

    `updated` is when the session changed last, by its messages, documents or files, whichever the layout believes.
    `agent` is None where the kind names the agent. `facts` are further values to be shown above the messages.
    """

    agent: str | None = None
    title: str | None = None
    parent: str | None = None
    created: datetime | None = None
    updated: datetime | None = None
    size: int = 0
    turn_count: int | None = None
    problems: list[Problem] = field(default_factory=list)
    listed: bool = True
    cwd: str | None = None
    branch: str | None = None
    nested: bool = False
    facts: dict[str, Any] = field(default_factory=dict)


class Usage(Struct, frozen=True, array_like=True, gc=False):
    """Tokens of one or several responses of a model, and their cost in US dollars if the agent states it.

    Attributes:
        input: what was neither read from a cache nor written to one.
        output: what the model wrote, its reasoning included.
        cache_read: input that was read from a cache.
        cache_write: input that was written to a cache.
        reasoning: the part of the output that is reasoning, as far as it is stated.
        cost: what the agent states; None if it states nothing.
        cache_write_1h: the part of `cache_write` that is kept for an hour.
        web_searches: searches that the provider ran and charges for.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    cost: float | None = None
    cache_write_1h: int = 0
    web_searches: int = 0

    @property
    def context(self) -> int:
        """All input tokens."""
        return self.input + self.cache_read + self.cache_write

    @property
    def tokens(self) -> int:
        """All tokens."""
        return self.context + self.output

    def plus(self, other: Usage) -> Usage:
        """The sum of both."""
        cost = self.cost if other.cost is None else other.cost + (self.cost or 0.0)
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.reasoning + other.reasoning,
            cost,
            self.cache_write_1h + other.cache_write_1h,
            self.web_searches + other.web_searches,
        )


NO_USAGE = Usage()

NO_MODEL = "(not named)"
"""Stands for the model of a message that states usage and names no model."""


QUARTER = 900
"""Seconds of a quarter of an hour. In every time zone of today a day begins with one."""


class TimedUsage(Struct, frozen=True, array_like=True, gc=False):
    """The usage of one model in a quarter of an hour, by requests of about one size.

    Attributes:
        quarter: the number of quarters since 1970 (UTC); 0 for messages without a time.
        model: its name, or `NO_MODEL`.
        context: every request had more input tokens than this; one of `CONTEXTS`, or 0.
        usage: the sum.
    """

    quarter: int
    model: str
    context: int
    usage: Usage


CONTEXTS = (32_000, 100_000, 128_000, 200_000, 256_000, 272_000, 512_000)
"""Input tokens beyond which providers charge other prices for a whole request."""


class Place(Struct, frozen=True, array_like=True, gc=False):
    """Where a record is stored: a file with line (from 1) and byte (from 0)."""

    path: str | None
    line: int | None = None
    byte: int | None = None


class Text(Struct, frozen=True, gc=False):
    """Words that were said."""

    text: str


class Thinking(Struct, frozen=True, gc=False):
    """Words that a model thought; empty where only a signature is stored."""

    text: str


class ToolCall(Struct, frozen=True, gc=False):
    """A call of a tool: its id, the name of the tool (``?`` if missing), and the arguments, decoded where possible."""

    call_id: str | None
    name: str
    arguments: Any


class ToolResult(Struct, frozen=True, gc=False):
    """The result of a tool: the id of the call, the result as it is stored, and whether it is an error."""

    call_id: str | None
    stored: Any
    is_error: bool = False

    @property
    def text(self) -> str:
        """The result in words; of a block without text, only its type."""
        if isinstance(self.stored, str):
            return self.stored
        if not isinstance(self.stored, list):
            return "" if self.stored is None else str(self.stored)
        return "\n".join(filter(None, map(_words_of, self.stored)))


class Other(Struct, frozen=True, gc=False):
    """A part of another kind: ``image``, ``document``, … or ``record`` for a record that is not a message.

    Its value is kept where nothing else of the message can be shown.
    """

    kind: str
    value: Any = None


Part = Text | Thinking | ToolCall | ToolResult | Other


class Message(Struct, frozen=True, gc=False):
    """One message, the same for every agent.

    Attributes:
        role: ``user``, ``assistant``, ``system``, ``tool``, or another word that the store uses; None if it names none.
        origin: who is behind it: ``person``, ``agent``, ``tool``, ``harness`` (reminders, hooks, notices), or
            ``compaction`` (a summary that stands for earlier messages).
        parts: what it says, in order.
        time: when (UTC); None if the record does not say.
        id: the agent's own id of it.
        parent: the id of the message before it, in stores that are trees.
        model: the model that wrote it.
        usage: what the model was given and gave for it.
        place: where it is stored.
        further: where the rest of it is stored, of a message that its agent stores in several records.
    """

    role: str | None
    origin: str
    parts: tuple[Part, ...]
    time: datetime | None = None
    id: str | None = None
    parent: str | None = None
    model: str | None = None
    usage: Usage | None = None
    place: Place = Place(None)
    further: tuple[Place, ...] = ()

    @property
    def text(self) -> str:
        """The words: of a tool's message what the tools answered, of any other its texts."""
        if self.role == "tool":
            return "\n".join(part.text for part in self.parts if isinstance(part, ToolResult))
        return "\n".join(part.text for part in self.parts if isinstance(part, Text) and part.text)

    @property
    def calls(self) -> list[ToolCall]:
        """The tools that are called."""
        return [part for part in self.parts if isinstance(part, ToolCall)]

    @property
    def results(self) -> list[ToolResult]:
        """What tools answered."""
        return [part for part in self.parts if isinstance(part, ToolResult)]

    @property
    def thoughts(self) -> list[str]:
        """The thinking of the model, as far as it is stored."""
        return [part.text for part in self.parts if isinstance(part, Thinking) and part.text]


PERSON, AGENT, TOOL, HARNESS, COMPACTION = "person", "agent", "tool", "harness", "compaction"


def _words_of(block: Any) -> str:
    if isinstance(block, str):
        return block
    if not isinstance(block, dict):
        return ""
    text = block.get("text")
    is_text = isinstance(text, str) and block.get("type") in ("text", "input_text", "output_text")
    return str(text) if is_text and text else f"[{block.get('type')}]"


class Fact(Struct, frozen=True, array_like=True, gc=False):
    """Something that the stream of a session says of it: title, parent, cwd, branch, nested or version.

    Of several of one name the one of the highest rank counts, of equal ranks the last.
    """

    name: str
    value: str
    rank: int = 0


class UsageEvent(Struct, frozen=True, gc=False):
    """Usage that the store states in a record of its own and not in a message. It counts; nothing is shown of it.

    `summed` is True for the sum of several requests, whose single sizes are unknown.
    """

    usage: Usage
    model: str | None = None
    time: datetime | None = None
    summed: bool = False


class Aside(Struct, frozen=True, gc=False):
    """A message outside of the conversation: on a branch that was left, or of a sub-agent in the same file.

    Its usage counts and a search finds it. It has no index and is in no turn.
    """

    message: Message


class Inherited(Struct, frozen=True, gc=False):
    """A message of another session with which this one begins, such as one before a fork.

    It is shown before the first message. The other session counts it, and a search finds it there.
    """

    message: Message


class Cursor(NamedTuple):
    """How far a session was read. The bytes are made and understood by its layout alone."""

    state: bytes


class Reset(NamedTuple):
    """Messages before the cursor changed: the session is read from its start, and what was read before is void."""


class Skipped(NamedTuple):
    """Records that were not decoded, since none of them can be of interest.

    Attributes:
        records: their number.
        time: the time of the last of them that has one.
    """

    records: int
    time: datetime | None


Item = Message | Aside | Inherited | Problem | Fact | UsageEvent | Reset | Skipped | Cursor
"""What reading a session yields."""


def from_start(items: Iterator[Item], after: Cursor | None) -> Iterator[Item]:
    """The items of a session that can only be read from its start, as `Layout.read` yields them."""
    if after is not None:
        yield Reset()
    yield from items
