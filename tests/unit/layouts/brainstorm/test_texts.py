"""Texts for the user: Save Session, Load Session, Jump Summary Display."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from sessionary import BrainstormStore, Invalid
from sessionary.layouts.brainstorm import texts
from sessionary.layouts.brainstorm.navigation import Jump
from tests.unit.layouts.brainstorm.samples import START, document, entry, golden, put

# Section: Load Session (Auto-detect)
PROMPT = """\
-------------------------------------------------------
Session existante detectee: "feature-auth" (EMS: 52)
   Derniere activite: il y a 2 heures
   Phase: Divergent | Iteration: 3

[1] Reprendre cette session
[2] Nouvelle session
-------------------------------------------------------"""

# Section: Jump Summary Display
SUMMARY = """\
-------------------------------------------------------
Retour de 2 iterations
   Iteration: 5 → 3
   EMS: 68/100 → 52/100 (-16)
   Phase: transition → divergent

   Questions restaurees (iteration 3):
   - Quel mecanisme de revocation?
   - Comment gerer le multi-device?
-------------------------------------------------------"""


def test_the_prompt_of_a_launch_is_that_of_the_format(tmp_path: Path) -> None:
    """Section "Load Session (Auto-detect)", what is shown."""
    put(tmp_path, "feature-auth", golden("feature-auth"))
    [row] = BrainstormStore(tmp_path).detect("feature-auth").sessions
    assert row.updated is not None
    assert texts.launch_prompt(row, row.updated + timedelta(hours=2, minutes=40), "fr") == PROMPT


def test_the_summary_of_a_jump_is_that_of_the_format(tmp_path: Path) -> None:
    """Section "Back Command", 5: the jump summary."""
    value = document("feature-auth", 0)
    asked = ["Quel mecanisme de revocation?", "Comment gerer le multi-device?"]
    history = [entry(1, 25), entry(2, 38), entry(3, 52), entry(4, 60), entry(5, 68)]
    history[2] |= {"phase": "divergent", "questions": asked}
    value["session"] |= {"history": history, "iteration": 5, "ems": 68, "phase": "transition"}
    put(tmp_path, "feature-auth", value)
    assert texts.jump_summary(BrainstormStore(tmp_path).back("feature-auth", 2), "fr") == SUMMARY


def test_english_is_the_default() -> None:
    jump = Jump(1, (2, 1), (40, 25), ("divergent", "divergent"), ["Why?"])
    assert texts.jump_summary(jump) == "\n".join([
        texts.RULE,
        "Back 1 iteration",
        "   Iteration: 2 → 1",
        "   EMS: 40/100 → 25/100 (-15)",
        "   Phase: divergent → divergent",
        "",
        "   Questions restored (iteration 1):",
        "   - Why?",
        texts.RULE,
    ])  # fmt: skip


def test_a_step_forward_says_so_and_may_have_no_questions() -> None:
    jump = Jump(-1, (1, 2), (25, 40), ("divergent", "transition"), [])
    lines = texts.jump_summary(jump, "fr").splitlines()
    assert lines[1:-1] == [
        "Avance de 1 iteration",
        "   Iteration: 1 → 2",
        "   EMS: 25/100 → 40/100 (+15)",
        "   Phase: divergent → transition",
    ]


def test_the_line_after_a_save() -> None:
    """Section "Save Session", the line that is printed."""
    path = ".project-memory/brainstorm-sessions/feature-auth.yaml"
    assert texts.saved(path) == f"Session saved: {path}"


@pytest.mark.parametrize(
    ("age", "english", "french"),
    [
        (timedelta(seconds=59), "just now", "a l'instant"),
        (timedelta(minutes=1), "1 minute ago", "il y a 1 minute"),
        (timedelta(hours=1, minutes=59), "1 hour ago", "il y a 1 heure"),
        (timedelta(hours=2), "2 hours ago", "il y a 2 heures"),
        (timedelta(days=1), "1 day ago", "il y a 1 jour"),
        (timedelta(days=29), "29 days ago", "il y a 29 jours"),
        (timedelta(days=60), "2 months ago", "il y a 2 mois"),
        (timedelta(days=800), "2 years ago", "il y a 2 ans"),
        (timedelta(seconds=-30), "just now", "a l'instant"),
        (timedelta(hours=-3), "in the future", "dans le futur"),
    ],
)
def test_an_age_is_shown_in_the_largest_unit_that_fits(age: timedelta, english: str, french: str) -> None:
    """Section "Load Session (Auto-detect)", the relative age."""
    assert texts.ago(START, START + age) == english
    assert texts.ago(START, START + age, "fr") == french


def test_an_unknown_age() -> None:
    assert texts.ago(None, START) == "unknown"


def test_the_tables_of_the_languages_have_the_same_messages() -> None:
    english, french = texts.words("en"), texts.words("fr")
    assert english.keys() == french.keys()
    with pytest.raises(Invalid, match="'de'"):
        texts.words("de")


def test_a_line_of_scores() -> None:
    assert texts.sparkline([0, 25, 38, 52, 100]) == "▁▂▄▅█"
    assert texts.sparkline([]) == ""
    assert texts.sparkline(range(0, 101, 10)) == "▁▁▂▃▄▄▅▆▇██"
