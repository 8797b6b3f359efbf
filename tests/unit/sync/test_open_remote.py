"""An address names the remote; settings are kept without secrets, and are reported when they are damaged."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sessionary.errors import Invalid, NotFound
from sessionary.sync.remotes import check_address, open_remote
from sessionary.sync.remotes.sealed import PlainRemote
from sessionary.sync.settings import (
    Settings,
    cache_path,
    load_settings,
    read_identity,
    removed_folder,
    save_settings,
    stable_name,
    state_folder,
)

ADDRESSES = [
    ("s3://bucket/prefix", "ObjectStoreRemote"),
    ("gs://bucket", "ObjectStoreRemote"),
    ("az://account/container", "ObjectStoreRemote"),
    ("postgresql://ada@db.example.org/sessions?sslmode=verify-full", "PostgresRemote"),
    ("https://account.documents.azure.com/db/box", "CosmosRemote"),
    ("cosmos+http://127.0.0.1:8081/db/box", "CosmosRemote"),
]
SETTINGS = Settings(
    remote="s3://bucket/prefix", tenant="ada", device="desk", exclude=("git:*/private*",), logs=True
)


@pytest.mark.parametrize(("url", "kind"), ADDRESSES)
def test_an_address_opens_its_kind_of_remote_without_asking_the_network(
    url: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for extra in ("obstore", "psycopg", "azure.cosmos"):
        pytest.importorskip(extra, reason=f"{extra} is not installed")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "ZHVtbXk=")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    remote = open_remote(url, "ada", environ={})
    try:
        assert isinstance(remote, PlainRemote)
        assert type(remote.inner).__name__ == kind
    finally:
        remote.close()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:hunter2@db/sessions",
        "postgresql://db/sessions?password=hunter2",
        "postgresql://db/sessions?sslpassword=hunter2",
        "https://user:hunter2@account.documents.azure.com/db/box",
        "s3://key:hunter2@bucket",
        "az://account/container?sig=hunter2",
    ],
)
def test_an_address_with_a_secret_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(Invalid, match="with a secret in it") as caught:
        check_address(url)
    assert "hunter2" not in f"{caught.value}{caught.value.hint}{caught.value.as_dict()}"


@pytest.mark.parametrize("url", ["", "bucket", "ftp://host/x", "memory://", "file:///tmp", "s3:/bucket"])
def test_what_is_not_an_address_of_a_remote_is_refused(url: str) -> None:
    with pytest.raises(Invalid, match="not an address of a remote"):
        check_address(url)


def test_settings_come_back_as_they_were_saved(tmp_path: Path) -> None:
    path = tmp_path / "new" / "sync.json"
    save_settings(path, SETTINGS)
    assert load_settings(path) == SETTINGS
    assert path.read_text().endswith("}\n")
    assert path.stat().st_mode & 0o077 == 0


def test_missing_settings_are_reported_with_the_way_to_them(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as caught:
        load_settings(tmp_path / "sync.json")
    assert "sync init" in str(caught.value.hint)


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"remote": "s3://b"}', '{"remote": 1, "tenant": "a", "device": "b"}']
)
def test_damaged_settings_are_reported_with_their_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "sync.json"
    path.write_text(text)
    with pytest.raises(Invalid, match=r"sync\.json"):
        load_settings(path)


def test_settings_with_a_secret_in_the_address_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "sync.json"
    path.write_text('{"remote": "postgresql://a:hunter2@db/x", "tenant": "a", "device": "b"}')
    with pytest.raises(Invalid, match="with a secret in it"):
        load_settings(path)


def test_what_is_remembered_is_apart_for_each_remote_tenant_home_and_layout(tmp_path: Path) -> None:
    import msgspec

    folders = {
        state_folder("/state", settings, home, layout)
        for settings in (
            SETTINGS,
            msgspec.structs.replace(SETTINGS, remote="s3://other"),
            msgspec.structs.replace(SETTINGS, tenant="bob"),
        )
        for home in (tmp_path / "a", tmp_path / "b")
        for layout in ("amplifier", "maestro")
    }
    assert len(folders) == 12
    other_rules = msgspec.structs.replace(SETTINGS, logs=False, device="laptop")
    assert state_folder("/state", other_rules, tmp_path / "a", "amplifier") in folders


@pytest.mark.parametrize(("place", "begins"), [(cache_path, "heads-"), (removed_folder, "removed-")])
def test_what_was_fetched_or_removed_is_kept_apart_for_each_remote_tenant_and_endpoint(
    place: Callable[[str, Settings], str], begins: str
) -> None:
    import msgspec

    others = {"remote": "s3://other"}, {"tenant": "bob"}, {"options": {"endpoint": "https://minio.example"}}
    settings = [SETTINGS, *(msgspec.structs.replace(SETTINGS, **other) for other in others)]
    assert len({place("/state", one) for one in settings}) == 4
    assert place("/state", msgspec.structs.replace(SETTINGS, logs=False)) == place("/state", SETTINGS)
    assert place("/state", SETTINGS).startswith(f"/state/{begins}")


def test_rules_are_those_of_the_settings() -> None:
    rules = SETTINGS.rules()
    assert rules.admits("git:github.com/example/shop")
    assert not rules.admits("git:github.com/example/private-notes")
    assert rules.logs
    assert rules.redact is None


def test_an_identity_is_found_in_its_file(tmp_path: Path) -> None:
    path = tmp_path / "key.txt"
    path.write_text("# created: today\nAGE-SECRET-KEY-1QQQ\n")
    assert read_identity(str(path)) == "AGE-SECRET-KEY-1QQQ"
    path.write_text("# nothing\n")
    with pytest.raises(Invalid, match="no age identity"):
        read_identity(str(path))
    with pytest.raises(NotFound, match="does not exist"):
        read_identity(str(tmp_path / "gone.txt"))


@pytest.mark.parametrize(
    ("environ", "name"),
    [({"USER": "ada"}, "ada"), ({"LOGNAME": "ada"}, "ada"), ({"USER": "root"}, None), ({}, None)],
)
def test_a_name_that_many_machines_have_identifies_none(environ: dict[str, str], name: str | None) -> None:
    assert stable_name(environ) == name
