"""The position of a session in its history, and its moves: answer, continue, back. Pure.

`iteration` is a cursor. Going back sets it to an earlier entry and restores the score and phase of that
entry; later entries stay, and continuing without new values goes forward over them again. Only a new answer
given while the cursor is back starts a branch: then the later entries, and the answered one if it had
answers, are marked `superseded` and skipped from then on. So no answer is lost, and the position needs no
second field.

Entries are found by their number, not by their index: of several with one number the last one that is not
superseded is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

from sessionary.errors import Invalid, NotFound, TransitionError
from sessionary.layouts.brainstorm.constants import (
    AXES,
    MOST_BACK,
    PAUSE,
    PHASES,
    is_whole,
    one_of,
    read_time,
    score_of,
    whole,
    write_time,
)
from sessionary.layouts.brainstorm.fields import read_flag

_CURSOR = ("ems", "phase", "last_question")

Session = dict[str, Any]
Entry = dict[str, Any]


class Jump(NamedTuple):
    """A move of a session.

    Attributes:
        steps: number of iterations back; negative for forward.
        iteration: before and after.
        ems: before and after.
        phase: before and after.
        questions: those of the restored iteration.
    """

    steps: int
    iteration: tuple[int, int]
    ems: tuple[int, int]
    phase: tuple[str, str]
    questions: list[str]


def live(session: Session) -> dict[int, Entry]:
    """The entries that are not superseded, by iteration."""
    return {
        entry["iteration"]: entry
        for entry in list_in(session, "history")
        if isinstance(entry, dict)
        and type(entry.get("iteration")) is int
        and not read_flag(entry.get("superseded"))
    }


def tip(session: Session) -> int:
    """The last iteration; the cursor may be before it."""
    last: int = max([*live(session), session["iteration"]])
    return last


def begin(
    session: Session, iteration: int, *, questions: Sequence[str], last_question: str | None, now: datetime
) -> None:
    """Add the entry of an iteration that starts now, with the score and the phase of the session."""
    asked = texts(questions, "a question")
    entry = {
        "iteration": iteration,
        "phase": session["phase"],
        "ems": session["ems"],
        "ems_delta": _delta(session, iteration),
        "questions": asked,
        "responses": [],
        "timestamp": write_time(now),
    }
    grown(session, "history").append(entry)
    session["iteration"] = iteration
    if last_question is not None or asked:
        session["last_question"] = asked[-1] if last_question is None else last_question


def _delta(session: Session, iteration: int) -> int:
    """The score compared with that of the iteration before this one."""
    earlier = [entry for number, entry in sorted(live(session).items()) if number < iteration]
    before = earlier[-1].get("ems") if earlier else None
    return session["ems"] - before if type(before) is int else 0


def answer(session: Session, responses: Sequence[str], *, duration: int | None, now: datetime) -> bool:
    """Record answers to the current iteration; True if that started a branch."""
    given = texts(responses, "an answer")
    if not given:
        raise Invalid("no answer given", hint="give one text for each answer")
    entries = live(session)
    at = session["iteration"]
    branches = any(number > at for number in entries)
    entry = entries.get(at)
    if branches:
        entry = _branch(session, entries, at, now)
    if entry is None:
        begin(session, at, questions=(), last_question=None, now=now)
        entry = live(session)[at]
    present = entry.get("responses")
    entry["responses"] = [*(present if isinstance(present, list) else []), *given]
    if duration is not None:
        earlier = entry.get("duration")
        entry["duration"] = whole(duration, 0, None, "the duration") + (
            earlier if type(earlier) is int else 0
        )
    return branches


def _branch(session: Session, entries: dict[int, Entry], at: int, now: datetime) -> Entry | None:
    """Supersede the later entries; return the entry at which the branch starts, if there is one."""
    entry = entries.get(at)
    for number, later in entries.items():
        if number > at:
            later["superseded"] = True
    if entry is None or not entry.get("responses"):
        return entry
    again = {
        name: list(value) if isinstance(value, list) else value
        for name, value in entry.items()
        if name not in ("responses", "duration", "left_with")
    }
    again |= {"responses": [], "timestamp": write_time(now)}
    entry["superseded"] = True
    grown(session, "history").append(again)
    return again


def rescore(
    session: Session,
    *,
    ems: int | None,
    axes: dict[str, int] | None,
    phase: str | None,
    entry_too: bool = True,
) -> None:
    """Set score and phase; with `entry_too` also in the entry of the current iteration, which then agrees.

    Raises:
        Invalid: a value that the format does not allow.
    """
    if axes is not None:
        if wrong := sorted(set(axes) - set(AXES)):
            raise Invalid(f"unknown axis {', '.join(wrong)}", hint=f"the axes are {', '.join(AXES)}")
        if missing := [name for name in AXES if name not in axes]:
            raise Invalid(f"axes are missing: {', '.join(missing)}", hint="give all of them at once")
        for name, value in axes.items():
            whole(value, 0, 100, name)
        session["ems_axes"] = {name: axes[name] for name in AXES}
        ems = score_of(axes) if ems is None else ems
    elif ems is not None:
        session.pop("ems_axes", None)  # they belong to another score
    if ems is not None:
        session["ems"] = whole(ems, 0, 100, "the score")
    if phase is not None:
        _change_phase(session, one_of(phase, PHASES, "phase"))
    entry = live(session).get(session["iteration"])
    if entry is None or not entry_too:
        return
    entry["phase"] = session["phase"]
    if entry.get("ems") != session["ems"]:
        entry["ems"] = session["ems"]
        entry["ems_delta"] = _delta(session, session["iteration"])


def _change_phase(session: Session, phase: str) -> None:
    """Set the phase, and in a progressive session the record of phases that are done."""
    state = session.get("progressive_state")
    if isinstance(state, dict) and phase in PHASES:
        reached = PHASES.index(phase)
        for place, name in enumerate(("divergent_completed", "transition_completed")):
            if reached > place and not state.get(name):
                state[name] = True
    session["phase"] = phase


def sum_up_transition(session: Session, summary: Mapping[str, Any]) -> None:
    """Record the mid-session summary of a progressive session; this makes a session progressive."""
    state: Any = session.get("progressive_state")
    if state is None:
        state = session["progressive_state"] = {"divergent_completed": False, "transition_completed": False}
        _change_phase(session, session["phase"])
    if not isinstance(state, dict) or not isinstance(summary, Mapping):
        raise Invalid("a summary must be a map", hint="give a map of words to values")
    state["transition_summary"] = dict(summary)


def go_on(
    session: Session,
    questions: Sequence[str],
    scores: Mapping[str, Any],
    *,
    last_question: str | None,
    now: datetime,
) -> Jump:
    """Move to the next iteration: the stored one while the cursor is back, else a new one.

    Args:
        scores: its initial `ems`, `axes` and `phase`, None for each that stays.

    Raises:
        TransitionError: new values were given while the cursor is back.
    """
    at = session["iteration"]
    entries = live(session)
    ahead = sorted(number for number in entries if number > at)
    if ahead:
        if questions or last_question is not None or any(value is not None for value in scores.values()):
            raise TransitionError(
                f"the session is at iteration {at} of {ahead[-1]}, and the next one already exists",
                details={"iteration": at, "tip": ahead[-1]},
                hint="continue without new values to go forward, or answer first, which starts a branch",
            )
        return _restore(session, ahead[0])
    if at not in entries:  # a file without history: keep the current iteration for going back
        left = read_time(session.get("updated")) or now
        begin(session, at, questions=(), last_question=session.get("last_question"), now=left)
    ems, phase = session["ems"], session["phase"]
    rescore(session, **scores, entry_too=False)
    begin(session, at + 1, questions=questions, last_question=last_question, now=now)
    asked = texts(questions, "a question")
    return Jump(-1, (at, at + 1), (ems, session["ems"]), (phase, session["phase"]), asked)


def go_back(session: Session, steps: int, now: datetime) -> Jump:
    """Move the cursor back over stored iterations.

    Raises:
        Invalid: further than the format or the session allows.
        NotFound: the history lacks that iteration.
    """
    at = session["iteration"]
    most = min(MOST_BACK, at - 1)
    if type(steps) is not int or not 1 <= steps <= most:
        raise Invalid(
            f"cannot go back {steps!r} from iteration {at}",
            details={"iteration": at, "most": max(most, 0)},
            hint=f"go back 1 to {most}" if most >= 1 else "this is the first iteration",
        )
    entries = live(session)
    if at - steps not in entries:
        raise _no_entry(session, at - steps, sorted(entries))
    _leave(session, entries, now)
    return _restore(session, at - steps)


def go_to_tip(session: Session) -> Jump:
    """Move the cursor to the last iteration, after steps back.

    Raises:
        NotFound: it is there, or the history lacks that iteration.
    """
    last = tip(session)
    if last not in live(session) or last == session["iteration"]:
        raise NotFound(f"{session['slug']} is at its last iteration", hint="there is nothing to undo")
    return _restore(session, last)


def _no_entry(session: Session, wanted: int, there: list[int]) -> NotFound:
    """The error for an iteration that the history lacks, with what is missing in the file."""
    at = session["iteration"]
    earlier = [number for number in there if at - MOST_BACK <= number < at]
    if earlier:
        steps = ", ".join(str(at - number) for number in reversed(earlier))
        message = f"the history lacks iteration {wanted}"
        hint = f"go back {steps} instead"
    else:
        missing = "the file has no session.history" if not there else f"session.history has none before {at}"
        message = f"cannot go back from iteration {at}: {missing}"
        hint = (
            f"`sessionary brainstorm continue {session['slug']}` adds an entry for this iteration; "
            "earlier ones can be added to the file by hand"
        )
    return NotFound(message, details={"iteration": at, "entries": there, "missing": wanted}, hint=hint)


def _leave(session: Session, entries: dict[int, Entry], now: datetime) -> None:
    """Store in the entry that the cursor leaves what going back to it would not restore."""
    at = session["iteration"]
    if at not in entries:
        asked = session.get("last_question")
        begin(session, at, questions=(), last_question=asked, now=now)
    elif at < max(entries):
        return  # it was restored itself
    entry = live(session)[at]
    left = {
        name: session.get(name) for name in _CURSOR if session.get(name) != _would_restore(entry).get(name)
    }
    if left:
        entry["left_with"] = left


def _would_restore(entry: Entry) -> dict[str, Any]:
    asked = list_in(entry, "questions")[-1:]
    found = {
        "ems": entry.get("ems"),
        "phase": entry.get("phase"),
        "last_question": asked[0] if asked else None,
    }
    return {name: value for name, value in found.items() if value is not None}


def _restore(session: Session, target: int) -> Jump:
    entry = live(session)[target]
    before = session["iteration"], session["ems"], session["phase"]
    session["iteration"] = target
    session.update(_would_restore(entry))
    left = entry.pop("left_with", None)
    for name, value in left.items() if isinstance(left, dict) else ():
        if value is None:
            session.pop(name, None)
        else:
            session[name] = value
    return Jump(
        before[0] - target,
        (before[0], target),
        (before[1], session["ems"]),
        (before[2], session["phase"]),
        [str(question) for question in list_in(entry, "questions")],
    )


def at_tip(session: Session) -> bool:
    """False if the session is back at an earlier iteration."""
    return bool(tip(session) == session["iteration"])


def pass_time(session: Session, now: datetime) -> None:
    """Add the time worked up to now to `duration_minutes`. Call it before `updated` is set."""
    minutes = duration(session, now)
    if minutes is not None:
        session["duration_minutes"] = minutes


def duration(session: Session, now: datetime) -> int | None:
    """Minutes worked on the session: the sum over its iterations if all have one, else derived from its times.

    The time between two changes counts as work unless it is longer than `PAUSE`. The file has only the time
    of the last change and the starts of iterations, so the work is summed up by both, and the larger sum is
    used. It is never less than the stored value. None without a start time.
    """
    history = [entry for entry in list_in(session, "history") if isinstance(entry, dict)]
    parts = [entry["duration"] for entry in history if type(entry.get("duration")) is int]
    present = session.get("duration_minutes")
    known = is_whole(present, 0, None)
    floor = int(present or 0) if known else 0
    if parts and len(parts) == len(history):
        return max(floor, int(sum(parts)))
    started = read_time(session.get("started_at")) or read_time(session.get("created"))
    if started is None:
        return floor if known else None
    changed = read_time(session.get("updated")) or started
    begun = (read_time(entry.get("timestamp")) for entry in history)
    moments = [time for time in (started, *begun, changed, now) if time is not None]
    since = floor + _minutes_between(min(changed, now), now, started) if known else 0
    return max(floor, since, int(sum(parts)), _worked(sorted(time for time in moments if time <= now)))


def _minutes_between(changed: datetime, now: datetime, started: datetime) -> int:
    """Whole minutes, counted from `started`, that ended between two changes; none if that was a pause.

    So changes within seconds of each other lose nothing: what each leaves out, a later one counts.
    """
    if now - changed > PAUSE:
        return 0
    minute = timedelta(minutes=1)
    return (now - started) // minute - (changed - started) // minute


def _worked(moments: Sequence[datetime]) -> int:
    """Whole minutes between the first of these times and the last, pauses left out."""
    spans = (later - earlier for earlier, later in pairwise(moments))
    worked = sum((span for span in spans if span <= PAUSE), timedelta(0))
    return int(worked.total_seconds() // 60)


def list_in(holder: dict[str, Any], name: str) -> list[Any]:
    """The list under a name; an empty one if there is none."""
    value = holder.get(name)
    return value if isinstance(value, list) else []


def grown(holder: dict[str, Any], name: str) -> list[Any]:
    """The list under a name, created if missing."""
    value = holder.get(name)
    if value is None:
        value = holder[name] = []
    if not isinstance(value, list):
        raise Invalid(f"{name} is not a list", hint=f"correct {name} in the file by hand")
    return value


def texts(values: Sequence[str], what: str) -> list[str]:
    """The texts as a list; a single text counts as a list of one. Raises Invalid if one of them is not text."""
    if isinstance(values, str):
        return [values]
    for value in values:
        if not isinstance(value, str):
            raise Invalid(f"{what} is {value!r}", hint="give texts")
    return list(values)
