"""The tools that only read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime, time, timedelta
from itertools import islice
from typing import Any

from sessionary.errors import Invalid, NotFound
from sessionary.mcp import answers
from sessionary.mcp.answers import DEFAULT_TOKENS, Answer
from sessionary.model import SessionRef, Summary
from sessionary.workspace import Workspace, documents, gathered
from sessionary.workspace.spending import largest

LONGEST_TEXT = 1_500
"""Characters of a text in an answer with several messages."""

_IN_LIST = (
    "id kind agent project title parent messages turns created updated health cwd branch models tokens cost archived"
).split()
_IN_HIT = "role part tool outside timestamp text".split()
_MOST_ROWS = 15


class Call:
    """What one call of a tool needs: the sessions, and the rules that mask secrets.

    A call opens the sessions anew: calls run in threads of their own.
    """

    def __init__(self, workspace: Workspace, *, redact: bool) -> None:
        self.workspace: Workspace = workspace
        self.redaction = workspace.secret_rules() if redact else None

    def clean(self, document: Any) -> Any:
        """The document with its secrets masked."""
        return document if self.redaction is None else self.redaction.value(document)

    def find(self, name: str) -> SessionRef:
        """The session of this id, beginning of an id, or name. Raises as `Workspace.find`."""
        try:
            return self.workspace.find(name)
        except NotFound as error:
            hint = "call list_sessions or search_sessions for the ids of sessions"
            raise NotFound(error.message, session=name, hint=hint) from None

    def head(self, ref: SessionRef) -> dict[str, Any]:
        """What a session says of itself."""
        return self.listed(self.workspace.summary(ref))

    def listed(self, summary: Summary) -> dict[str, Any]:
        """A session as an item of a list."""
        found = documents.of_summary(summary, self.workspace.prices())
        if self.redaction is not None:
            found["title"] = documents.whole_words(found["title"])
        chosen = answers.without_empty({key: found[key] for key in _IN_LIST})
        chosen.pop("project" if "cwd" in chosen else "", None)
        if not chosen.get("archived"):
            chosen.pop("archived", None)
        shown: dict[str, Any] = self.clean(chosen)
        return shown


class Reading:
    """The tools that only read."""

    def __init__(self, call: Callable[[], Call]) -> None:
        self._call = call

    def list_sessions(
        self,
        kind: str | None = None,
        project: str | None = None,
        model: str | None = None,
        branch: str | None = None,
        health: str | None = None,
        since: str | None = None,
        until: str | None = None,
        sort: str = "changed",
        sub_agents: bool = False,
        skip: int = 0,
        max_tokens: int = DEFAULT_TOKENS,
    ) -> Answer:
        """List sessions of coding agents, the last changed first.

        kind: only this kind of agent, such as claude_code or codex. project: its path, or the end of its name.
        model: text in the name of a model. branch: a git branch. health: ok, damaged, note, cosmetic,
        hides_data, stops_resume or lost_data. since, until: ISO dates or times; a date of `until` is included. sort:
        changed, created, size, tokens, messages, turns, title or project. sub_agents: also their sessions. skip:
        sessions to pass over, for the next page.
        """
        tokens = answers.room(max_tokens)
        call = self._call()
        chosen, notes = _chosen(
            call,
            kind=kind,
            project=project,
            model=model,
            branch=branch,
            health=health,
            since=_moment("since", since),
            until=_moment("until", until, end=True),
            sort=sort,
        )
        shown = [one for one in chosen if sub_agents or not one.nested]
        if len(shown) < len(chosen):
            hidden = len(chosen) - len(shown)
            notes.append(f"sub-agents not listed: {hidden:,} (sub_agents=true lists them)")
        page = answers.page(map(call.listed, shown[_natural("skip", skip) :]), tokens, LONGEST_TEXT)
        if page.more:
            rest = len(shown) - skip - len(page.items)
            notes.insert(0, f"{rest:,} more sessions: call again with skip={skip + len(page.items)}")
        return Answer({"sessions": page.items, "total": len(shown)}, notes)

    def search_sessions(
        self,
        query: str,
        session: str | None = None,
        kind: str | None = None,
        project: str | None = None,
        role: str | None = None,
        since: str | None = None,
        until: str | None = None,
        skip: int = 0,
        max_tokens: int = DEFAULT_TOKENS,
    ) -> Answer:
        """Search the messages of all sessions, the newest sessions first. Each hit has a session id and an index.

        query: words and "phrases", each anywhere in a message; AND, OR and NOT in capitals are operators. Text,
        thinking, tool calls, results and titles are searched, case is ignored. session: only this one. kind, project:
        as in list_sessions. role: person (what the user wrote), user, assistant, tool or system. since, until: ISO
        dates or times. skip: hits to pass over, for the next page. Masked secrets cannot be found. Damaged places are
        not searched: check_session names them.
        """
        tokens = answers.room(max_tokens)
        call, notes = self._call(), list[str]()
        if session is not None:
            refs = [call.find(session)]
        elif kind is None and project is None:
            refs, failure = gathered(call.workspace.refs())
            notes += _unread(failure)
        else:
            summaries, notes = _chosen(call, kind=kind, project=project)
            refs = [one.ref for one in summaries]
        hits = call.workspace.search(
            query,
            refs,
            roles=() if role is None else (role,),
            since=_moment("since", since),
            until=_moment("until", until, end=True),
            redaction=call.redaction,
        )

        def shown(hit: Any) -> dict[str, Any]:
            found = documents.of_hit(hit)
            chosen = {key: found[key] for key in _IN_HIT if key in found}
            item: dict[str, Any] = call.clean(
                answers.without_empty({"session": found["id"], "index": found["index"], **chosen})
            )
            return item

        found = islice(iter(hits), _natural("skip", skip), None)
        page = answers.page(map(shown, found), tokens, LONGEST_TEXT)
        if page.more:
            notes.insert(
                0, f"more hits follow: call again with skip={skip + len(page.items)}, or a narrower query"
            )
        closed = sum(one.code == "unreadable_file" for one in hits.stats.problems)
        if closed:
            notes.append(f"unreadable files, not searched: {closed:,} (check_session names them)")
        return Answer({"hits": page.items, "sessions": hits.sessions}, notes)

    def read_session(
        self,
        session: str,
        first: int = 0,
        last: int | None = None,
        text_from: int = 0,
        max_tokens: int = DEFAULT_TOKENS,
    ) -> Answer:
        """Read the messages of a session, in order, as many as fit; the answer says how to get the next ones.

        session: its id, the beginning of that, its name, or latest. first, last: indexes of messages, from 0;
        negative ones count from the end. Long texts are cut, unless first and last name one message. text_from: the
        number of characters of each long text to skip, to continue a message that is larger than an answer.
        """
        tokens = answers.room(max_tokens)
        call = self._call()
        ref = call.find(session)
        alone = last == first
        head = answers.fitted(call.head(ref), tokens // 4)

        def shown(numbered: Any) -> Any:
            found = documents.of_message(numbered)
            found.pop("line")
            return _from(call.clean(answers.without_empty(found)), _natural("text_from", text_from))

        messages = call.workspace.messages(ref, first, last, redaction=call.redaction)
        longest = None if alone else LONGEST_TEXT
        page = answers.page(map(shown, messages), tokens - answers.weigh(head.value), longest)
        notes = []
        if page.more:
            notes.append(f"more messages follow: call again with first={page.items[-1]['index'] + 1}")
        if page.longest is not None or page.lists_cut:
            notes.append(_of_texts(page, alone, text_from))
        return Answer({"session": head.value, "messages": page.items}, notes)

    def get_events(
        self,
        session: str,
        fields: list[str] | None = None,
        names: list[str] | None = None,
        levels: list[str] | None = None,
        since: str | None = None,
        until: str | None = None,
        last: int | None = None,
        summary: bool = False,
        skip: int = 0,
        max_tokens: int = DEFAULT_TOKENS,
    ) -> Answer:
        """Read the event log of a session: time, level, name, duration and size of each event, and chosen fields.

        Begin with summary=true, which counts events by name and level. fields: paths such as
        data.usage.input_tokens. names: event names with * and ?. levels: such as ERROR. since, until: ISO dates or
        times. last: only the last so many events. skip: events to pass over, for the next page. Only sessions of
        Amplifier have event logs.
        """
        tokens = answers.room(max_tokens)
        call = self._call()
        wanted: dict[str, Any] = {
            "since": _moment("since", since),
            "until": _moment("until", until, end=True),
        }
        wanted |= {"event": tuple(names)} if names else {}
        wanted |= {"level": tuple(levels)} if levels else {}
        ref = call.find(session)
        reader = call.workspace.events(ref)
        try:
            if summary:
                return _counts(call, reader.summary(**wanted), tokens)
            return _events(call, reader, list(fields or ()), last, wanted, _natural("skip", skip), tokens)
        except NotFound:
            hint = "read_session has its messages"
            raise NotFound(f"session {ref.session_id} has no event log", hint=hint) from None

    def get_stats(
        self,
        kind: str | None = None,
        project: str | None = None,
        since: str | None = None,
        until: str | None = None,
        max_tokens: int = DEFAULT_TOKENS,
    ) -> Answer:
        """Count sessions, messages, turns and their health, with tokens and cost by model, project, agent and day.

        Costs are those of list prices, in US dollars. kind, project, since, until: as in list_sessions.
        """
        tokens = answers.room(max_tokens)
        call = self._call()
        first, end = _moment("since", since), _moment("until", until, end=True)
        chosen, notes = _chosen(call, kind=kind, project=project)
        stats = call.workspace.stats(call.workspace.list(since=first, until=end, summaries=chosen))
        spent = call.workspace.spending(chosen, since=first, until=end)
        tables: dict[str, Any] = {}
        for name, rows in (("models", spent.models), ("projects", spent.projects), ("agents", spent.agents)):
            tables[name] = [_row(name[:-1], key, one) for key, one in largest(rows)[:_MOST_ROWS]]
            notes += _left_out(len(rows) > _MOST_ROWS, name, "filter by project, kind or time")
        days = sorted(spent.days.items(), key=lambda row: row[0] or "", reverse=True)
        tables["days"] = [_row("day", key, one) for key, one in days[:_MOST_ROWS]]
        notes += _left_out(len(days) > _MOST_ROWS, "days", "give since and until")
        content = {
            "sessions": stats.sessions,
            "messages": stats.messages,
            "turns": stats.turns,
            "size": stats.size,
            "first": stats.first,
            "last": stats.last,
            "health": dict(stats.health),
            "usage": answers.without_empty(documents.of_spending(spent.total)),
            **tables,
        }
        fitted = answers.fitted(call.clean(content), tokens)
        return Answer(fitted.value, notes + _left_out(fitted.lists_cut, "rows", "give a larger max_tokens"))

    def check_session(self, session: str, skip: int = 0, max_tokens: int = DEFAULT_TOKENS) -> Answer:
        """Check a session: each problem with its severity, file, line, byte and remedy. Changes nothing.

        stops_resume marks what the agent or the provider of its model rejects. skip: problems to pass over.
        """
        tokens = answers.room(max_tokens)
        call = self._call()
        ref = call.find(session)
        found = list(call.workspace.check(ref))
        head = answers.fitted(call.head(ref), tokens // 4)
        items = (call.clean(answers.without_empty(documents.of_problem(one))) for one in found)
        rest = islice(items, _natural("skip", skip), None)
        page = answers.page(rest, tokens - answers.weigh(head.value), LONGEST_TEXT)
        notes = []
        if page.more:
            left = len(found) - skip - len(page.items)
            notes.append(f"{left:,} more problems: call again with skip={skip + len(page.items)}")
        return Answer({"session": head.value, "problems": page.items, "total": len(found)}, notes)

    def diff_sessions(
        self, a: str, b: str, branch: int = 0, other_branch: int = 0, max_tokens: int = DEFAULT_TOKENS
    ) -> Answer:
        """Compare two sessions: turns, equal turns, errors, tokens, cost, and how often tools and files occur.

        branch, other_branch: n for the nth branch that was left in `a` or `b`; 0 for the conversation.
        """
        tokens = answers.room(max_tokens)
        call = self._call()
        one, other = call.find(a), call.find(b)
        found = documents.of_comparison(
            call.workspace.diff(one, other, branch=branch, other_branch=other_branch)
        )
        for side in (found["a"], found["b"]) if call.redaction is not None else ():
            side["title"] = documents.whole_words(side["title"])
        found |= {name: documents.most_different(found[name]) for name in ("tools", "files")}
        fitted = answers.fitted(call.clean(found), tokens)
        return Answer(fitted.value, _left_out(fitted.lists_cut, "tools or files", "give a larger max_tokens"))

    def export_session(
        self,
        session: str,
        format: str = "md",  # noqa: A002 - the word for it
        position: int = 0,
        max_tokens: int = DEFAULT_TOKENS,
    ) -> Answer:
        """Export a session as text, a part of it per call.

        format: a format of `sessionary export`, such as md, html, json or jsonl. position: the character to begin at;
        the answer says where the next part begins.
        """
        tokens = answers.room(max_tokens)
        call = self._call()
        ref = call.find(session)
        export = call.workspace.export(ref, format, redact=call.redaction is not None)
        text, more = _part((line.decode() for line in export), _natural("position", position), tokens)
        notes = []
        if more:
            notes.append(f"the export continues: call again with position={position + len(text)}")
            notes.append("`sessionary export ID --output FILE` writes the whole export to a file")
        return Answer({"file_name": export.file_name, "text": text}, notes)


def _chosen(call: Call, **wanted: Any) -> tuple[list[Summary], list[str]]:
    """The sessions that `Workspace.list` chooses, and which folders could not be read."""
    found, failure = gathered(call.workspace.summaries())
    return call.workspace.list(**wanted, summaries=found, failure=failure), _unread(failure)


def _counts(call: Call, summary: Any, tokens: int) -> Answer:
    """The events of a log, counted."""
    fitted = answers.fitted(call.clean(documents.of_event_summary(summary)), tokens)
    return Answer({"summary": fitted.value}, _left_out(fitted.lists_cut, "names", "choose some by names"))


def _events(
    call: Call,
    reader: Any,
    paths: list[str],
    last: int | None,
    wanted: dict[str, Any],
    skip: int,
    tokens: int,
) -> Answer:
    """The events that match, from the `skip`th one on."""

    def shown(view: Any) -> dict[str, Any]:
        head, found = view
        item = {
            key: value for key, value in documents.of_event(head).items() if key not in ("byte", "session")
        }
        fields = documents.of_fields(found, call.redaction)
        return answers.without_empty(call.clean(item) | {"fields": fields})

    page = answers.page(
        map(shown, islice(reader.views(paths, last=last, **wanted), skip, None)), tokens, LONGEST_TEXT
    )
    notes = [f"more events follow: call again with skip={skip + len(page.items)}"] if page.more else []
    if page.longest is not None or page.lists_cut:
        notes.append("large fields are cut: choose fields inside of them")
    if reader.problems:
        notes.append(f"{len(reader.problems):,} damaged places are left out: check_session names them")
    return Answer({"events": page.items}, notes)


def _unread(failure: Any) -> list[str]:
    if failure is None:
        return []
    places = len(failure.details.get("folders", [failure.path]))
    number = "1 folder or file" if places == 1 else f"{places:,} folders or files"
    return [
        f"{number} cannot be read, and the sessions there are missing: `sessionary doctor` names what is unreadable"
    ]


def _moment(name: str, text: str | None, *, end: bool = False) -> datetime | None:
    """The time that a text names, with a time zone; of a date its begin, or with `end` that of the next day."""
    if text is None:
        return None
    try:
        if len(text) == len("2026-03-14"):
            day = date.fromisoformat(text) + timedelta(days=end)
            return datetime.combine(day, time()).astimezone()
        found = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise Invalid(
            f"{name} is not a date or time: {text}", hint="write 2026-03-14 or 2026-03-14T09:30:00+01:00"
        ) from None
    return found if found.tzinfo is not None else found.astimezone()


def _natural(name: str, number: int) -> int:
    if number < 0:
        raise Invalid(f"{name} is {number}", hint=f"{name} counts from 0")
    return number


def _from(value: Any, start: int) -> Any:
    """The value with the first `start` characters of each longer text left out."""
    if not start:
        return value
    if isinstance(value, str):
        return value[start:] if len(value) > start else value
    if isinstance(value, list):
        return [_from(one, start) for one in value]
    if isinstance(value, dict):
        return {key: _from(one, start) for key, one in value.items()}
    return value


def _of_texts(page: answers.Page, alone: bool, text_from: int) -> str:
    if not alone:
        return "long texts are cut: call with first and last the index of one message to read it"
    if page.longest is None:
        return "long lists of this message are cut: a larger max_tokens, or export_session, has them"
    return f"the texts of this message go on: call again with text_from={text_from + page.longest}"


def _left_out(is_cut: bool, what: str, remedy: str) -> list[str]:
    return [f"not all {what} are shown: {remedy}"] if is_cut else []


def _row(what: str, name: str | None, spending: Any) -> dict[str, Any]:
    return {what: name or f"(no {what})", **answers.without_empty(documents.of_spending(spending))}


def _part(lines: Iterable[str], position: int, tokens: int) -> tuple[str, bool]:
    """The text from a position on that fits, and whether more follows."""
    most = tokens * answers.BYTES_PER_TOKEN
    text, passed = "", 0
    rest: Iterator[str] = iter(lines)
    for line in rest:
        passed += len(line)
        if passed > position:
            text += line[max(position - (passed - len(line)), 0) :]
        if len(text) > most:
            break
    shown = text[:most]
    while answers.weigh({"text": shown}) > tokens:
        shown = shown[: len(shown) * 9 // 10]
    return shown, len(shown) < len(text) or next(rest, None) is not None
