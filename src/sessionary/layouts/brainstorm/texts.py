"""The texts of a launch, a save, a step and the state of a session, in English and in French.

The French texts are those of the format, whose prompts are French while its keys are English; they are
written without accents there, and so here.
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

_WORDS: Final[dict[str, tuple[str, str]]] = {
    "saved": ("Session saved: {path}", "Session sauvegardee: {path}"),
    "found": (
        'Existing session found: "{slug}" (EMS: {ems})',
        'Session existante detectee: "{slug}" (EMS: {ems})',
    ),
    "activity": ("   Last activity: {ago}", "   Derniere activite: {ago}"),
    "place": ("   Phase: {phase} | Iteration: {iteration}", "   Phase: {phase} | Iteration: {iteration}"),
    "resume": ("[1] Resume this session", "[1] Reprendre cette session"),
    "new": ("[2] New session", "[2] Nouvelle session"),
    "back": ("Back {count} {iterations}", "Retour de {count} {iterations}"),
    "forward": ("Forward {count} {iterations}", "Avance de {count} {iterations}"),
    "iteration": ("   Iteration: {0} → {1}", "   Iteration: {0} → {1}"),
    "ems": ("   EMS: {0}/100 → {1}/100 ({delta:+d})", "   EMS: {0}/100 → {1}/100 ({delta:+d})"),
    "phase": ("   Phase: {0} → {1}", "   Phase: {0} → {1}"),
    "questions": (
        "   Questions restored (iteration {iteration}):",
        "   Questions restaurees (iteration {iteration}):",
    ),
    "now": ("just now", "a l'instant"),
    "ahead": ("in the future", "dans le futur"),
    "unknown": ("unknown", "inconnue"),
    "ago": ("{count} {unit} ago", "il y a {count} {unit}"),
    "saved_at": (
        "   EMS: {ems}/100 | Phase: {phase} | Iteration: {iteration}",
        "   EMS: {ems}/100 | Phase: {phase} | Iteration: {iteration}",
    ),
    "again": ("   Resume: {command}", "   Reprendre: {command}"),
    "in_progress": ("in progress", "en cours"),
    "completed": ("completed", "terminee"),
    "abandoned": ("abandoned", "abandonnee"),
    "axes": ("axes", "axes"),
    "weak": ("weak", "faibles"),
    "changed": ("changed", "modifiee"),
    "worked": ("worked", "duree"),
    "minutes": ("{minutes} min", "{minutes} min"),
    "next": ("next", "suivante"),
    "suggests": ("{phase} (the score suggests {suggested})", "{phase} (le score suggere {suggested})"),
    "led": ("{mode}, facilitated by {persona}", "{mode}, menee par {persona}"),
    "of": ("{iteration} of {tip}", "{iteration} sur {tip}"),
    "archived": ("{id} is now in archive/", "{id} est maintenant dans archive/"),
    "also": ("also in progress: {slugs}", "aussi en cours: {slugs}"),
    "cleaned": ("{slug} is old and was moved to .trash/", "{slug} est ancienne, maintenant dans .trash/"),
    "not_cleaned": ("{slug} could not be cleaned up", "{slug} n'a pas pu etre rangee"),
    "notes": ("{count} notes on the file: {command}", "{count} remarques sur le fichier: {command}"),
    "low_score": (
        "finished with a score of {ems}, below {least}",
        "terminee avec un score de {ems}, sous {least}",
    ),
    "is_open": ("session {slug} is in progress", "la session {slug} est en cours"),
    "open_hint": (
        "--resume continues it, --new moves it to archive/ and starts a new one",
        "--resume la reprend, --new la deplace dans archive/ et recommence",
    ),
    "answer": ("Answer", "Reponse"),
    "undo": ("undo", "annuler"),
    "go_forward": ("forward", "avancer"),
}
# Seconds, then one and many in each language. A month has thirty days here: times beyond weeks are approximate.
_UNITS: Final = (
    (365 * 86400, ("year", "years"), ("an", "ans")),
    (30 * 86400, ("month", "months"), ("mois", "mois")),
    (86400, ("day", "days"), ("jour", "jours")),
    (3600, ("hour", "hours"), ("heure", "heures")),
    (60, ("minute", "minutes"), ("minute", "minutes")),
)


def words(lang: str) -> dict[str, str]:
    """The texts in a language. Raises Invalid if the language is unknown."""
    if lang not in LANGUAGES:
        raise Invalid(f"no messages in language {lang!r}", hint=f"use one of: {', '.join(LANGUAGES)}")
    return {name: texts[LANGUAGES.index(lang)] for name, texts in _WORDS.items()}


def say(lang: str, name: str, **values: object) -> str:
    """A text in a language, with its values."""
    return words(lang)[name].format(**values)


def saved(path: str, lang: str = "en") -> str:
    """The line after a save."""
    return say(lang, "saved", path=path)


def checkpoint(session: Brainstorm, path: str, command: str, lang: str = "en") -> str:
    """The output of an explicit save: the file, the state of the session, and the command that resumes it."""
    phase = session.phase.capitalize()
    return "\n".join([
        saved(path, lang),
        say(lang, "saved_at", ems=session.ems, phase=phase, iteration=session.iteration),
        say(lang, "again", command=command),
    ])  # fmt: skip


def ago(then: datetime | None, now: datetime, lang: str = "en") -> str:
    """The age of a time in the largest unit that fits: ``2 hours ago``, ``il y a 2 heures``."""
    if then is None:
        return say(lang, "unknown")
    seconds = (now - then).total_seconds()
    for size, *names in _UNITS:
        count = int(abs(seconds) // size)
        if count and seconds < 0:
            return say(lang, "ahead")
        if count:
            return say(lang, "ago", count=count, unit=names[LANGUAGES.index(lang)][count > 1])
    return say(lang, "now")


def launch_prompt(row: Row, now: datetime, lang: str = "en", *, choices: bool = True) -> str:
    """The output of a launch for a session that can be resumed, with its two choices if there is a terminal."""
    phase = (row.phase or "?").capitalize()
    return "\n".join([
        RULE,
        say(lang, "found", slug=row.slug, ems="?" if row.ems is None else row.ems),
        say(lang, "activity", ago=ago(row.updated, now, lang)),
        say(lang, "place", phase=phase, iteration=row.iteration or "?"),
        *(["", say(lang, "resume"), say(lang, "new")] if choices else []),
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
