"""`sessionary search`: find messages that match words, newest sessions first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from datetime import UTC, datetime
from itertools import chain
from typing import Any

import click

from sessionary.cli import completing, formatting, homes, options, output, targets
from sessionary.cli.lazy import command
from sessionary.cli.progress import Progress
from sessionary.cli.targets import project_name, project_names, report_failure, report_missing_archive
from sessionary.cli.text import cells, fit, harmless, one_line
from sessionary.errors import SessionaryError
from sessionary.model import SessionRef
from sessionary.search import PARTS, PERSON, Alternative, Hit, Needle, Pattern, Query, Span, parsed
from sessionary.search.expression import split
from sessionary.workspace import Workspace, documents, gathered
from sessionary.workspace.searching import Hits

LIMIT = 50
NOTHING_FOUND = 1
"""The exit code of a search without a hit, as that of `grep`."""
_ROLES = (PERSON, "user", "assistant", "tool", "system", "developer", "command", "idea", "party", "panel")
_WHO = {"assistant": "Agent", "tool": "Tool", "system": "System", "developer": "Developer", "user": "Hook"}


@command(
    "search",
    'sessionary search "race condition"',
    'sessionary search cache invalidation --role person --since "last week"',
    "sessionary search pytest --tool bash --project app --limit 0",
    'sessionary search timeout OR "timed out" NOT redis',
    'sessionary search --regex "HTTP [45]\\d\\d" --errors',
    "sessionary search deadlock --jsonl | jq -r .locator",
    "sessionary show 3f0c81d2:14  open a hit at its message",
)
@click.argument("words", nargs=-1, metavar="[WORDS]...")
@options.home
@options.repeated(
    "--role",
    "roles",
    type=click.Choice(_ROLES),
    metavar="ROLE",
    help="Only messages of this role; `person`: what the user wrote.",
)
@options.repeated(
    "--in",
    "parts",
    type=click.Choice(PARTS),
    metavar="PART",
    help="Search only: text, thinking, call (input of a tool) or result.",
)
@options.repeated("--tool", "tools", metavar="NAME", help="Search only calls of this tool.")
@options.flag("--errors", help="Search only the results of tools that failed.")
@options.project
@options.kinds
@click.option(
    "--session",
    metavar="ID | DIR",
    shell_complete=completing.sessions(),
    help="Only this session: its id, the beginning of that, its name, or the path of its folder.",
)
@options.top_level
@options.since
@options.until
@options.flag("--regex", help="WORDS are regular expressions, as in Python.")
@options.flag("--case", help="Match case.")
@options.flag("--fold", help="Ignore accents: resume finds résumé, and the reverse.")
@click.option(
    "--limit",
    type=click.IntRange(0),
    default=LIMIT,
    show_default=True,
    metavar="N",
    help="Stop after N hits; 0: no limit.",
)
@options.as_json("the hits", "one hit")
def search_command(
    words: tuple[str, ...],
    roles: tuple[str, ...],
    parts: tuple[str, ...],
    tools: tuple[str, ...],
    errors: bool,
    project: str | None,
    kinds: tuple[str, ...],
    session: str | None,
    top_level: bool,
    since: datetime | None,
    until: datetime | None,
    regex: bool,
    case: bool,
    fold: bool,
    limit: int,
) -> int:
    """Search the messages of all sessions, newest sessions first.

    Sessions of sub-agents are searched too. A message matches if it contains all WORDS, each anywhere in it;
    quote a phrase to match it as a whole. OR, AND and NOT in capitals are operators: NOT applies to the next
    word, AND is the default and binds more tightly than OR. An argument that begins with a double quote is a
    complete expression. Case, the kind of white space and the Unicode form are ignored; accents count, unless
    --fold is given. Text, tool calls, results and titles are searched, never the JSON around them. With
    --regex each of WORDS is matched against a text with its line breaks; ^ and $ match at lines. A message
    without a time gets the time of the previous message. In brainstorms, questions, answers, ideas and rounds
    are searched; in features, the commands of the history.

    Each hit begins with ID:INDEX, which `sessionary show` opens at that message. Exit code 1: no hit.
    """
    alternatives = _alternatives(words, regex=regex, case=case, fold=fold)
    if not (tools or errors) and not (alternatives and all(one.wanted for one in alternatives)):
        raise click.UsageError("give words to search for, or --tool or --errors")
    workspace = homes.workspace()
    chosen = (frozenset(roles), frozenset(tools), frozenset(parts))
    query = Query((), *chosen, since, until, alternatives, errors)
    report_missing_archive(workspace)
    refs, failure = gathered(workspace.refs())
    asked = [targets.session(workspace, session)] if session else refs
    if project is not None:
        summaries, failure = gathered(workspace.summaries())
        of_it = {one.ref for one in workspace.of_project(project, summaries, failure)}
        asked = [ref for ref in asked if ref in of_it]
    if kinds:
        asked = [ref for ref in asked if ref.kind in kinds]
    if top_level:
        nested = {one.ref.locator for one in gathered(workspace.summaries())[0] if one.nested}
        asked = [ref for ref in asked if ref.locator not in nested]
    hits = workspace.search(query, asked, limit=limit)
    progress = Progress("searching", hits.size)
    with nullcontext() if output.is_json() else output.paged(), progress:
        hits.passed = progress.advance
        found = _shown_alone(hits, progress)
        if output.wants("jsonl"):
            for hit in found:
                output.values([documents.of_hit(hit)])
                output.flush()
        elif output.wants("json"):
            output.value(_report(list(found), hits))
        else:
            _print(workspace, refs, found)
            _print_totals(hits)
    for session_id, places in Counter(ref.session_id for ref, _ in hits.stats.damaged).items():
        look = formatting.command("check", session_id)
        what = formatting.count(places, "damaged place")
        output.aside(f"{what} not searched; run `{one_line(look)}` for details")
    unread = any(problem.code == "unreadable_file" for problem in hits.stats.problems)
    return report_failure(failure, "searched") or (3 if unread else 0) or (0 if hits.count else NOTHING_FOUND)


def _alternatives(words: tuple[str, ...], *, regex: bool, case: bool, fold: bool) -> tuple[Alternative, ...]:
    """The search expression of a command line.

    Raises:
        UsageError: two options exclude each other.
        Invalid: a word cannot be searched for, or an operator has none.
    """
    if regex and fold:
        raise click.UsageError("--regex and --fold exclude each other")
    if regex:
        return parsed(words, lambda word: Pattern(word, case=case))
    terms = (split(word) if word.startswith('"') else (word,) for word in words)
    return parsed(chain.from_iterable(terms), lambda word: Needle(word, case=case, fold=fold))


def _shown_alone(hits: Hits, progress: Progress) -> Iterator[Hit]:
    """The hits, with the progress bar removed while each is printed."""
    for hit in hits:
        progress.pause()
        yield hit


def _print(workspace: Workspace, refs: list[SessionRef], hits: Iterable[Hit]) -> None:
    """Each hit as soon as it is found, under the title of its session."""
    now = datetime.now(UTC)
    short = workspace.short_ids(refs)
    projects = project_names(workspace, {ref.project for ref in refs})
    last = None
    for hit in hits:
        if hit.ref.locator != last:
            if last is not None:
                output.line()
            project = _folder_of(workspace, hit.ref) or (hit.ref.project and projects.get(hit.ref.project))
            output.lines(_title(_name_of(workspace, hit.ref), project or ""))
            last = hit.ref.locator
        output.lines(_hit_lines(hit, short.get(hit.ref, hit.ref.session_id), now))
        output.flush()


def _name_of(workspace: Workspace, ref: SessionRef) -> str:
    try:
        return workspace.title(ref) or ref.session_id
    except SessionaryError:
        return ref.session_id


def _folder_of(workspace: Workspace, ref: SessionRef) -> str | None:
    try:
        folder = workspace.folder(ref)
    except SessionaryError:
        return None
    return folder and project_name(folder)


def _title(title: str, project: str) -> Iterator[str]:
    """The title of a session, with its project at the right."""
    width = output.width()
    project = fit(one_line(project), width // 3, keep_end=True)
    name = fit(one_line(title[: 4 * width]), width - cells(project) - 2)
    gap = " " * (width - cells(name) - cells(project))
    yield (
        output.paint(name, "bold") + gap + output.paint(project, "dim")
        if project
        else output.paint(name, "bold")
    )


def _hit_lines(hit: Hit, short: str, now: datetime) -> Iterator[str]:
    """Two lines: locator, author and time; then the excerpt, with the found words between » and «."""
    facts = [_who(hit), *(("outside of the conversation",) if hit.outside else ())]
    if hit.about is not None:
        facts.append(("" if hit.time else "after ") + formatting.stamp(hit.about, now))
    yield f"  {output.paint(one_line(f'{short}:{hit.index}'), 'cyan')}  {' · '.join(facts)}"
    yield "    " + _marked(hit, output.width() - 4)


def _who(hit: Hit) -> str:
    if hit.part == "title":
        return "Title"
    who = "You" if hit.person else _WHO.get(hit.role or "", one_line(hit.role or "?"))
    if hit.part == "call":
        return f"{who} calls {fit(one_line(hit.tool or '?'), 30)}"
    if hit.part == "result":
        return "Tool" if hit.role == "tool" else "Tool result"
    return f"{who}, thinking" if hit.part == "thinking" else who


def _marked(hit: Hit, room: int) -> str:
    """The excerpt on one line, cut around the first mark."""
    if not hit.marks:
        return fit(harmless(hit.text), room)
    first, *others = hit.marks
    found = _mark(hit.text, first)
    after = "".join(_pieces(hit.text, first.end, others))
    before = harmless(hit.text[: first.start])
    lead = max(room - cells(found) - cells(after), (room - cells(found)) // 3, 0)
    if cells(before) + bool(hit.cut[0]) > lead:
        before = fit("…" + before[-lead:], lead, keep_end=True) if lead > 1 else ""
    elif hit.cut[0]:
        before = "…" + before
    tail = max(room - cells(before) - cells(found), 0)
    after = fit(after + ("…" if hit.cut[1] else ""), tail) if tail else ""
    return before + output.paint(fit(found, room - cells(before)), "yellow") + after


def _pieces(text: str, start: int, marks: list[Span]) -> Iterator[str]:
    """The text behind the first mark, with the marks in it."""
    for mark in marks:
        yield harmless(text[start : mark.start])
        yield _mark(text, mark)
        start = mark.end
    yield harmless(text[start:])


def _mark(text: str, mark: Span) -> str:
    return f"»{harmless(text[mark.start : mark.end])}«"


def _report(found: list[Hit], hits: Hits) -> dict[str, Any]:
    stats = hits.stats
    return {
        "hits": list(map(documents.of_hit, found)),
        "complete": hits.is_complete,
        "sessions": stats.sessions,
        "bytes": stats.bytes,
        "older": stats.older,
        "undated": stats.undated,
        "problems": [{"session": ref.session_id, **problem.as_dict()} for ref, problem in stats.damaged],
    }


def _print_totals(hits: Hits) -> None:
    """Print the numbers of hits and of searched sessions."""
    stats = hits.stats
    if not hits.is_complete:
        output.aside(f"Stopped after {formatting.count(hits.count, 'hit')}; --limit 0 shows all.")
        return
    left_out = f", {stats.older:,} of them older than --since" if stats.older else ""
    where = f"{formatting.count(hits.sessions, 'session')} ({formatting.size(stats.bytes)} read{left_out})"
    if hits.count:
        output.aside(f"{formatting.count(hits.count, 'hit')} in {len(hits.found_in):,} of {where}")
    else:
        output.aside(f"No hits in {where}.")
    if stats.undated:
        what = formatting.count(stats.undated, "message")
        output.aside(f"{what} with these words left out: no time in them or in any message before")
