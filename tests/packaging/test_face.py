"""The public face: which names there are, and what asking for them costs."""

import subprocess
import sys

import pytest

import sessionary

FACE = [
    "AlreadyExists",
    "AmbiguousId",
    "BrainstormStore",
    "Breadcrumb",
    "Conflict",
    "Corrupt",
    "CosmosConfig",
    "EventReader",
    "EventsLog",
    "FeatureStore",
    "ForkResult",
    "HybridSessionStore",
    "Invalid",
    "InvalidId",
    "Locked",
    "Mailbox",
    "Message",
    "NotFound",
    "Problem",
    "PullResult",
    "RemoteError",
    "Repaired",
    "Restored",
    "Rewound",
    "SchemaError",
    "SessionStatus",
    "SessionStore",
    "SessionaryError",
    "StorageFailed",
    "Summary",
    "SyncResult",
    "TransitionError",
    "Undone",
    "Unsupported",
    "WorkSession",
    "WorkStore",
    "Workspace",
    "__version__",
    "create_breadcrumb",
    "create_session",
    "forget_undo",
    "fork_session",
    "fork_session_in_memory",
    "get_fork_preview",
    "get_session_lineage",
    "is_fork",
    "list_breadcrumbs",
    "list_session_forks",
    "list_sessions",
    "load_breadcrumb",
    "load_cosmos_config_from_settings",
    "load_session",
    "repair",
    "restore_backup",
    "rewind",
    "run_inbox",
    "save_session",
    "undo",
    "undo_entries",
    "write_breadcrumb",
]
HEAVY = {"click", "msgspec", "rich", "ruamel", "stringzilla", "yaml"}
NOT_FOR_A_VERSION = {"rich", "ruamel", "yaml"}


def loaded_after(code: str) -> set[str]:
    """The top-level modules that a fresh interpreter has loaded after running `code`."""
    tail = "\nimport sys\nsys.stderr.write('LOADED ' + ' '.join({n.partition('.')[0] for n in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code + tail], capture_output=True, text=True, check=True)
    return set(done.stderr.rpartition("LOADED ")[2].split())


def test_the_face_is_exactly_this() -> None:
    assert sorted(sessionary.__all__) == FACE
    assert dir(sessionary) == FACE


@pytest.mark.parametrize("name", sorted(set(FACE) - {"__version__"}))
def test_every_name_matches_its_package(name: str) -> None:
    value = getattr(sessionary, name)
    assert value.__name__ == name
    assert value is getattr(sys.modules[value.__module__], name)


def test_every_error_is_on_the_face() -> None:
    from sessionary import errors

    raised = {
        n for n, v in vars(errors).items() if isinstance(v, type) and issubclass(v, errors.SessionaryError)
    }
    assert raised <= set(FACE)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Sessions'"):
        sessionary.Sessions  # noqa: B018


def test_importing_sessionary_loads_nothing_heavy() -> None:
    assert loaded_after("import sessionary; sessionary.__version__") & HEAVY == set()


def test_importing_the_errors_loads_nothing_heavy() -> None:
    assert loaded_after("from sessionary import NotFound, SessionaryError") & HEAVY == set()


def test_importing_the_store_draws_nothing() -> None:
    assert loaded_after("from sessionary import SessionStore, EventsLog") & {"click", "rich", "yaml"} == set()


SEED = (
    "CosmosConfig",
    "EventsLog",
    "HybridSessionStore",
    "PullResult",
    "SessionStore",
    "SyncResult",
    "load_cosmos_config_from_settings",
)


@pytest.mark.parametrize("name", SEED)
def test_the_names_of_the_specification_are_under_both_import_names(name: str) -> None:
    import amplifier_session_storage

    assert getattr(amplifier_session_storage, name) is getattr(sessionary, name)
    assert name in amplifier_session_storage.__all__
    assert name in dir(amplifier_session_storage)


SYNC = {"azure", "msgspec", "psycopg", "obstore", "yaml", "zstandard"}


def test_importing_the_hybrid_store_loads_no_driver() -> None:
    code = "from sessionary import HybridSessionStore, CosmosConfig, load_cosmos_config_from_settings"
    assert loaded_after(code) & (SYNC - {"msgspec", "yaml"}) == set()


def test_a_local_hybrid_store_loads_no_remote() -> None:
    code = "from sessionary import HybridSessionStore; HybridSessionStore('x').list_sessions()"
    assert loaded_after(code) & (SYNC - {"msgspec"}) == set()


def test_importing_the_yaml_stores_reads_no_yaml_yet() -> None:
    assert (
        loaded_after("from sessionary import BrainstormStore") & {"click", "rich", "ruamel", "yaml"} == set()
    )


def test_printing_the_version_loads_neither_yaml_nor_rich() -> None:
    code = "\n".join([
        "import sys",
        "from sessionary.cli import main",
        "sys.argv = ['sessionary', '--version']",
        "try:",
        "    main()",
        "except SystemExit as end:",
        "    assert not end.code, end.code",
    ])  # fmt: skip
    assert loaded_after(code) & NOT_FOR_A_VERSION == set()
