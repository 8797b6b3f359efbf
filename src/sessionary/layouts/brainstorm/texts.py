"""The texts of a launch, a save, a step and the state of a session, in English and in French.

The French texts are those of the format, whose prompts are French while its keys are English; they are
written without accents there, and so here. A language is a table, and all tables have the same keys, so that
a screen is in one language.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from sessionary.errors import Invalid
from sessionary.layouts.brainstorm.navigation import Jump
from sessionary.layouts.brainstorm.reading import Row
from sessionary.layouts.brainstorm.session import Brainstorm

LANGUAGES: Final = ("en", "fr")

RULE: Final = "-" * 55
_BARS: Final = "▁▂▃▄▅▆▇█"

_WORDS: Final[dict[str, dict[str, str]]] = {
    "en": {
        "saved": "Session saved: {path}",
        "found": 'Existing session found: "{slug}" (EMS: {ems})',
        "activity": "   Last activity: {ago}",
        "place": "   Phase: {phase} | Iteration: {iteration}",
        "resume": "[1] Resume this session",
        "new": "[2] New session",
        "back": "Back {count} {iterations}",
        "forward": "Forward {count} {iterations}",
        "iteration": "   Iteration: {0} → {1}",
        "ems": "   EMS: {0}/100 → {1}/100 ({delta:+d})",
        "phase": "   Phase: {0} → {1}",
        "questions": "   Questions restored (iteration {iteration}):",
        "now": "just now",
        "ahead": "in the future",
        "unknown": "unknown",
        "ago": "{count} {unit} ago",
        "saved_at": "   EMS: {ems}/100 | Phase: {phase} | Iteration: {iteration}",
        "again": "   Resume: {command}",
        "in_progress": "in progress",
        "completed": "completed",
        "abandoned": "abandoned",
        "axes": "axes",
        "weak": "weak",
        "changed": "changed",
        "worked": "worked",
        "minutes": "{minutes} min",
        "next": "next",
        "suggests": "{phase} (the score suggests {suggested})",
        "led": "{mode}, facilitated by {persona}",
        "of": "{iteration} of {tip}",
        "archived": "{id} is now in archive/",
        "also": "also in progress: {slugs}",
        "cleaned": "{slug} is old and was moved to .trash/",
        "not_cleaned": "{slug} could not be cleaned up",
        "notes": "{count} notes on the file: {command}",
        "low_score": "finished with a score of {ems}, below {least}",
        "is_open": "session {slug} is in progress",
        "open_hint": "--resume continues it, --new moves it to archive/ and starts a new one",
        "answer": "Answer",
        "undo": "undo",
        "go_forward": "forward",
    },
    "fr": {
        "saved": "Session sauvegardee: {path}",
        "found": 'Session existante detectee: "{slug}" (EMS: {ems})',
        "activity": "   Derniere activite: {ago}",
        "place": "   Phase: {phase} | Iteration: {iteration}",
        "resume": "[1] Reprendre cette session",
        "new": "[2] Nouvelle session",
        "back": "Retour de {count} {iterations}",
        "forward": "Avance de {count} {iterations}",
        "iteration": "   Iteration: {0} → {1}",
        "ems": "   EMS: {0}/100 → {1}/100 ({delta:+d})",
        "phase": "   Phase: {0} → {1}",
        "questions": "   Questions restaurees (iteration {iteration}):",
        "now": "a l'instant",
        "ahead": "dans le futur",
        "unknown": "inconnue",
        "ago": "il y a {count} {unit}",
        "saved_at": "   EMS: {ems}/100 | Phase: {phase} | Iteration: {iteration}",
        "again": "   Reprendre: {command}",
        "in_progress": "en cours",
        "completed": "terminee",
        "abandoned": "abandonnee",
        "axes": "axes",
        "weak": "faibles",
        "changed": "modifiee",
        "worked": "duree",
        "minutes": "{minutes} min",
        "next": "suivante",
        "suggests": "{phase} (le score suggere {suggested})",
        "led": "{mode}, menee par {persona}",
        "of": "{iteration} sur {tip}",
        "archived": "{id} est maintenant dans archive/",
        "also": "aussi en cours: {slugs}",
        "cleaned": "{slug} est ancienne, maintenant dans .trash/",
        "not_cleaned": "{slug} n'a pas pu etre rangee",
        "notes": "{count} remarques sur le fichier: {command}",
        "low_score": "terminee avec un score de {ems}, sous {least}",
        "is_open": "la session {slug} est en cours",
        "open_hint": "--resume la reprend, --new la deplace dans archive/ et recommence",
        "answer": "Reponse",
        "undo": "annuler",
        "go_forward": "avancer",
    },
}
# Seconds, one, many. A month has thirty days here: times beyond weeks are approximate.
_UNITS: Final[dict[str, tuple[tuple[int, str, str], ...]]] = {
    "en": (
        (365 * 86400, "year", "years"),
        (30 * 86400, "month", "months"),
        (86400, "day", "days"),
        (3600, "hour", "hours"),
        (60, "minute", "minutes"),
    ),
    "fr": (
        (365 * 86400, "an", "ans"),
        (30 * 86400, "mois", "mois"),
        (86400, "jour", "jours"),
        (3600, "heure", "heures"),
        (60, "minute", "minutes"),
    ),
}


def words(lang: str) -> dict[str, str]:
    """The table of a language.

    Raises:
        Invalid: the language is unknown.
    """
    if lang not in _WORDS:
        raise Invalid(f"no messages in language {lang!r}", hint=f"use one of: {', '.join(LANGUAGES)}")
    return _WORDS[lang]


def say(lang: str, name: str, **values: object) -> str:
    """A text in a language, with its values."""
    return words(lang)[name].format(**values)


def saved(path: str, lang: str = "en") -> str:
    """The line after a save."""
    return words(lang)["saved"].format(path=path)


def checkpoint(session: Brainstorm, path: str, command: str, lang: str = "en") -> str:
    """The output of an explicit save: the file, the state of the session, and the command that resumes it."""
    table = words(lang)
    return "\n".join([
        table["saved"].format(path=path),
        table["saved_at"].format(
            ems=session.ems, phase=session.phase.capitalize(), iteration=session.iteration
        ),
        table["again"].format(command=command),
    ])  # fmt: skip


def ago(then: datetime | None, now: datetime, lang: str = "en") -> str:
    """How long ago a time was, in the largest unit that fits: ``2 hours ago``, ``il y a 2 heures``."""
    table = words(lang)
    if then is None:
        return table["unknown"]
    seconds = (now - then).total_seconds()
    for size, one, many in _UNITS[lang]:
        count = int(abs(seconds) // size)
        if count and seconds < 0:
            return table["ahead"]
        if count:
            return table["ago"].format(count=count, unit=one if count == 1 else many)
    return table["now"]


def launch_prompt(row: Row, now: datetime, lang: str = "en", *, choices: bool = True) -> str:
    """The output of a launch for a session that can be resumed, with its two choices if there is a terminal."""
    table = words(lang)
    return "\n".join([
        RULE,
        table["found"].format(slug=row.slug, ems="?" if row.ems is None else row.ems),
        table["activity"].format(ago=ago(row.updated, now, lang)),
        table["place"].format(phase=(row.phase or "?").capitalize(), iteration=row.iteration or "?"),
        *(["", table["resume"], table["new"]] if choices else []),
        RULE,
    ])  # fmt: skip


def jump_summary(jump: Jump, lang: str = "en") -> str:
    """The effect of a step back (or forward), and the questions that are open again."""
    table = words(lang)
    count = abs(jump.steps)
    lines = [
        RULE,
        table["back" if jump.steps > 0 else "forward"].format(
            count=count, iterations="iteration" if count == 1 else "iterations"
        ),
        table["iteration"].format(*jump.iteration),
        table["ems"].format(*jump.ems, delta=jump.ems[1] - jump.ems[0]),
        table["phase"].format(*jump.phase),
    ]
    if jump.questions:
        lines += ["", table["questions"].format(iteration=jump.iteration[1])]
        lines += [f"   - {question}" for question in jump.questions]
    return "\n".join([*lines, RULE])


def sparkline(scores: Sequence[int]) -> str:
    """Scores from 0 to 100 as one bar each."""
    top = len(_BARS) - 1
    return "".join(_BARS[min(top, max(0, score) * len(_BARS) // 101)] for score in scores)
