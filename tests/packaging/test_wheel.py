"""What an installation contains, and that it leaves other people's packages alone.

The names under which older stores were imported may belong to a distribution that is really installed.
Whoever comes first or last, by pip or as an editable checkout: theirs wins while it is there, ours takes over
when it is not, and no file of either is ever touched by the other.
"""

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import sessionary
from tests.packaging.conftest import Environment

OLD_NAME = "amplifier_session_storage"
BuildWheel = Callable[[str, dict[str, str]], Path]

# Who answers to the old name, without running what answers.
WHO = f"""
import importlib.util
origin = importlib.util.find_spec({OLD_NAME!r}).origin
print("ours" if "_compat" in origin else "theirs")
"""

# Files that the record of a distribution lists and that are not there as listed. The record is read by hand,
# because `importlib.metadata.files` leaves out what is missing.
LOST = """
import base64, csv, hashlib
from importlib.metadata import distribution
owner = distribution(NAME)
for path, digest, _ in csv.reader(owner.read_text("RECORD").splitlines()):
    file = owner.locate_file(path)
    if not file.exists():
        print("missing", path)
    elif digest:
        kind, _, expected = digest.partition("=")
        found = base64.urlsafe_b64encode(hashlib.new(kind, file.read_bytes()).digest()).rstrip(b"=").decode()
        if found != expected:
            print("changed", path)
"""


def lost(environment: Environment, name: str) -> str:
    return environment.run(f"NAME = {name!r}" + LOST)


def test_the_wheel_holds_our_package_and_one_line_of_path(our_wheel: Path) -> None:
    with zipfile.ZipFile(our_wheel) as wheel:
        names = wheel.namelist()
        pth = wheel.read("zzz_sessionary_compat.pth")
    version = our_wheel.name.split("-")[1]
    assert {name.split("/")[0] for name in names} == {
        "sessionary",
        f"sessionary-{version}.dist-info",
        "zzz_sessionary_compat.pth",
    }
    assert pth.decode().splitlines() == ["sessionary/_compat"]
    assert "sessionary/py.typed" in names
    assert f"sessionary-{version}.dist-info/licenses/LICENSE" in names
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]


def test_the_wheel_installs_both_programs(our_wheel: Path) -> None:
    with zipfile.ZipFile(our_wheel) as wheel:
        (points,) = [name for name in wheel.namelist() if name.endswith("/entry_points.txt")]
        lines = wheel.read(points).decode().splitlines()
    assert [line for line in lines if line] == [
        "[console_scripts]",
        "maestro = sessionary.cli.maestro:main",
        "sessionary = sessionary.cli:main",
    ]


def test_an_installation_answers_to_both_names(our_wheel: Path, bare: Environment) -> None:
    bare.install(our_wheel)
    code = f"""
import sessionary, sys
import {OLD_NAME}, {OLD_NAME}.local
from {OLD_NAME}.local import events_log, session_store
for module in {OLD_NAME}, {OLD_NAME}.local, session_store:
    assert module.SessionStore is sessionary.SessionStore
for module in {OLD_NAME}, {OLD_NAME}.local, events_log:
    assert module.EventsLog is sessionary.EventsLog
assert session_store.is_top_level_session("a") and not {OLD_NAME}.is_top_level_session("a_b")
assert session_store.extract_session_mode({{"bundle": session_store.BUNDLE_PREFIX + "x"}}) == ("x", None)
print(sessionary.__file__.startswith(sys.prefix), sys.path[-1].endswith("_compat"))
"""
    assert bare.run(code, borrow=True) == "True True"


def test_the_version_is_said_once(our_wheel: Path, bare: Environment) -> None:
    bare.install(our_wheel)
    assert (
        bare.run("from importlib.metadata import version; print(version('sessionary'))")
        == sessionary.__version__
    )


@pytest.fixture(params=["installed", "editable"])
def theirs(request: pytest.FixtureRequest, build_wheel: BuildWheel, tmp_path: Path) -> Path:
    """A wheel that provides the old name, with its code inside or, as an editable checkout, elsewhere."""
    files = {f"{OLD_NAME}/__init__.py": "", f"{OLD_NAME}/local/__init__.py": ""}
    if request.param == "installed":
        return build_wheel(OLD_NAME, files)
    checkout = tmp_path / "checkout"
    for path, text in files.items():
        (checkout / path).parent.mkdir(parents=True, exist_ok=True)
        (checkout / path).write_text(text)
    return build_wheel(OLD_NAME, {f"{OLD_NAME}.pth": f"{checkout}\n"})


def test_ours_first(our_wheel: Path, theirs: Path, bare: Environment) -> None:
    bare.install(our_wheel)
    assert bare.run(WHO) == "ours"
    bare.install(theirs)
    assert bare.run(WHO) == "theirs"
    bare.uninstall(OLD_NAME)
    assert bare.run(WHO) == "ours"
    assert lost(bare, "sessionary") == ""
    bare.install(theirs)
    bare.uninstall("sessionary")
    assert bare.run(WHO) == "theirs"
    assert lost(bare, OLD_NAME) == ""


def test_theirs_first(our_wheel: Path, theirs: Path, bare: Environment) -> None:
    bare.install(theirs)
    bare.install(our_wheel)
    assert bare.run(WHO) == "theirs"
    bare.uninstall("sessionary")
    assert bare.run(WHO) == "theirs"
    assert lost(bare, OLD_NAME) == ""
    bare.install(our_wheel)
    bare.uninstall(OLD_NAME)
    assert bare.run(WHO) == "ours"
    assert lost(bare, "sessionary") == ""


def test_a_lost_or_changed_file_would_be_noticed(our_wheel: Path, bare: Environment) -> None:
    bare.install(our_wheel)
    bare.run(
        "import importlib.util, os\n"
        f"origin = importlib.util.find_spec({OLD_NAME!r}).origin\n"
        "os.remove(origin)\n"
        "open(os.path.join(os.path.dirname(origin), 'local', '__init__.py'), 'a').write('#')"
    )
    folder = f"sessionary/_compat/{OLD_NAME}"
    assert lost(bare, "sessionary") == f"missing {folder}/__init__.py\nchanged {folder}/local/__init__.py"
