"""What an installation contains, and that it leaves other people's packages alone.

The names under which older stores were imported may belong to a distribution that is really installed.
Whichever comes first or last, by pip or as an editable checkout: theirs wins while it is there, ours takes over
when it is not, and no file of either is ever touched by the other.
"""

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import sessionary
from tests.packaging.conftest import Environment

OLD_NAME = "amplifier_session_storage"
MAESTRO = "maestro"
BuildWheel = Callable[[str, dict[str, str]], Path]

# A finder as the editable installations of setuptools bring one: it comes behind the search of the path.
FINDER = """
import sys
from importlib.util import spec_from_file_location
class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name == NAME:
            folder = FOLDER + "/" + name
            return spec_from_file_location(name, folder + "/__init__.py", submodule_search_locations=[folder])
sys.meta_path.append(Finder)
"""


def who(environment: Environment, name: str) -> str:
    """Who answers to an old name, ours or theirs, and to a module below it: nothing of ours may show through."""
    below = "work_session" if name == MAESTRO else "local"
    code = f"""
import {name}.{below}
origins = {{"ours" if "_compat" in each.__file__ else "theirs" for each in ({name}, {name}.{below})}}
print(*origins)
"""
    return environment.run(code, borrow=True)


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


# What is true of the one name is true of the other: together they cover each name and each way.
@pytest.fixture(params=[(OLD_NAME, "path"), (MAESTRO, "inside"), (MAESTRO, "finder")])
def way(request: pytest.FixtureRequest) -> tuple[str, str]:
    """An import name of another package, and the path of the code in its wheel."""
    name, place = request.param
    return name, place


@pytest.fixture
def name(way: tuple[str, str]) -> str:
    return way[0]


@pytest.fixture
def theirs(way: tuple[str, str], build_wheel: BuildWheel, tmp_path: Path) -> Path:
    """A wheel that provides the name, with its code inside or, as an editable checkout, elsewhere."""
    name, place = way
    files = {f"{name}/__init__.py": "", f"{name}/work_session.py": "", f"{name}/local/__init__.py": ""}
    if place == "inside":
        return build_wheel(name, files)
    checkout = tmp_path / "checkout"
    for path, text in files.items():
        (checkout / path).parent.mkdir(parents=True, exist_ok=True)
        (checkout / path).write_text(text)
    if place == "path":
        return build_wheel(name, {f"{name}.pth": f"{checkout}\n"})
    finder = FINDER.replace("NAME", repr(name)).replace("FOLDER", repr(str(checkout)))
    files = {f"__editable___{name}_finder.py": finder, f"{name}.pth": f"import __editable___{name}_finder\n"}
    return build_wheel(name, files)


def test_ours_first(our_wheel: Path, theirs: Path, name: str, bare: Environment) -> None:
    bare.install(our_wheel)
    assert who(bare, name) == "ours"
    bare.install(theirs)
    assert who(bare, name) == "theirs"
    bare.uninstall(name)
    assert who(bare, name) == "ours"
    assert lost(bare, "sessionary") == ""
    bare.install(theirs)
    bare.uninstall("sessionary")
    assert who(bare, name) == "theirs"
    assert lost(bare, name) == ""


def test_theirs_first(our_wheel: Path, theirs: Path, name: str, bare: Environment) -> None:
    bare.install(theirs)
    bare.install(our_wheel)
    assert who(bare, name) == "theirs"
    bare.uninstall("sessionary")
    assert who(bare, name) == "theirs"
    assert lost(bare, name) == ""
    bare.install(our_wheel)
    bare.uninstall(name)
    assert who(bare, name) == "ours"
    assert lost(bare, "sessionary") == ""


def test_an_installation_answers_to_the_names_of_maestro(our_wheel: Path, bare: Environment) -> None:
    bare.install(our_wheel)
    code = """
import maestro, sessionary
from maestro.work_session import WorkSession, SessionStatus, create_session, load_session, save_session
from maestro.work_session import list_sessions
from maestro.breadcrumb import Breadcrumb, create_breadcrumb, write_breadcrumb, load_breadcrumb, list_breadcrumbs
assert WorkSession is sessionary.WorkSession and create_breadcrumb is sessionary.create_breadcrumb
print(maestro.__file__.endswith("_compat/maestro/__init__.py"))
"""
    assert bare.run(code, borrow=True) == "True"


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
