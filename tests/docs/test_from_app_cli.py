"""The steps from the original's store to ours work as documented, with a database and without."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cosmos_double import CosmosDouble

REPO = Path(__file__).resolve().parents[2]
PAGE = (REPO / "docs" / "howto" / "from-app-cli.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
ID = "3f0c81d2-0000-4000-8000-000000000001"


def walk(place: Path, **environ: str) -> str:
    """Run all examples of the page in order, in one program; returns what they print."""
    place.mkdir()
    script = place / "example.py"
    script.write_text("\n".join(BLOCKS))
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "SESSIONARY_", "AMPLIFIER_"))}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=place,
        env={**kept, "HOME": str(place), **environ},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def stored(place: Path) -> list[Path]:
    return list(place.glob(f".amplifier/projects/*/sessions/{ID}/transcript.jsonl"))


def test_the_examples_run_where_nothing_is_set_up(tmp_path: Path) -> None:
    said = walk(tmp_path / "home")
    assert said == "0 sent, 0 already there, 0 not sent\n0 downloaded, 0 diverged, 0 skipped\n"
    assert len(stored(tmp_path / "home")) == 1


def test_the_examples_run_with_a_database_that_the_environment_names(tmp_path: Path) -> None:
    pytest.importorskip("azure.cosmos", reason="needs sessionary[cosmos]")
    with CosmosDouble() as double:
        said = walk(tmp_path / "home", AMPLIFIER_COSMOS_ENDPOINT=double.endpoint)
    sent = "1 sent, 0 already there, 0 not sent"
    earlier = "0 sent, 1 already there, 0 not sent"  # background sync was faster
    assert said in [f"{found}\n0 downloaded, 0 diverged, 0 skipped\n" for found in (sent, earlier)]


def test_the_three_steps_are_those_of_the_specification() -> None:
    step = re.findall(r"^## Step (\d): ", PAGE, re.MULTILINE)
    assert step == ["1", "2", "3"]
    assert "from amplifier_session_storage import SessionStore\n" in BLOCKS[0]
    assert "    cosmos_config=load_cosmos_config_from_settings(),\n" in BLOCKS[1]
    assert "The distribution is called `sessionary`" in PAGE
    assert "amplifier-foundation is not needed" in PAGE


def test_the_environment_that_the_page_names_is_that_of_the_code() -> None:
    source = (REPO / "src" / "sessionary" / "sync" / "cosmos_config.py").read_text("utf-8")
    named = set(re.findall(r"AMPLIFIER_[A-Z_]+", PAGE))
    assert named == {f"AMPLIFIER_COSMOS_{name}" for name in ("ENDPOINT", "DATABASE", "CONTAINER", "KEY")} | {
        "AMPLIFIER_ENABLE_SYNC"
    }
    assert "AMPLIFIER_ENABLE_SYNC" in source
    assert 'DATABASE: Final = "amplifier-db"' in source
    assert 'CONTAINER: Final = "sessionary"' in source
