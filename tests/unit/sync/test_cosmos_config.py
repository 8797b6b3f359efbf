"""Which Cosmos DB: what is wrong is reported at once, where it was set, and a key is never shown."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sessionary.errors import Corrupt, Invalid, StorageFailed
from sessionary.sync.cosmos_config import CosmosConfig, load_cosmos_config_from_settings

ENDPOINT = "https://name.documents.azure.com:443/"
OTHER = "https://other.documents.azure.com:443/"
KEY = "c2VjcmV0LWtleQ=="


class Credential:
    def get_token(self, *scopes: str, **rest: Any) -> None: ...


# -- the values


def test_a_config_holds_what_it_is_given() -> None:
    config = CosmosConfig(ENDPOINT, "db", "box", key=KEY)
    assert (config.endpoint, config.database, config.container) == (ENDPOINT, "db", "box")
    assert (config.key, config.credential, config.is_plain) == (KEY, None, False)
    assert CosmosConfig("http://127.0.0.1:8081", "db", "box").is_plain


def test_neither_key_nor_credential_is_shown() -> None:
    assert repr(CosmosConfig(ENDPOINT, "db", "box", key=KEY)) == (
        f"CosmosConfig(endpoint='{ENDPOINT}', database='db', container='box', key=<hidden>)"
    )
    assert "credential=<hidden>)" in str(CosmosConfig(ENDPOINT, "db", "box", credential=Credential()))
    assert "hidden" not in repr(CosmosConfig(ENDPOINT, "db", "box"))


@pytest.mark.parametrize(
    ("endpoint", "why"),
    [
        ("", "missing"),
        (None, "missing"),
        ("name.documents.azure.com", "not an https:// address"),
        ("ftp://name", "not an https:// address"),
        ("https://", "not an https:// address"),
        ("https://name:port", "not an address"),
        ("https://[::1", "not an address"),
        ("https://name/dbs", "only a host"),
        ("https://user:pass@name/", "only a host"),
        (f"AccountEndpoint={ENDPOINT};AccountKey={KEY};", "connection string"),
    ],
)
def test_what_is_not_an_endpoint_is_refused(endpoint: Any, why: str) -> None:
    with pytest.raises(Invalid, match=why) as caught:
        CosmosConfig(endpoint, "db", "box")
    assert caught.value.hint
    assert KEY not in str(caught.value)
    assert "pass@" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "a/b", "a\\b", "a?", "a#", "a ", " a", "x" * 256, None])
def test_a_name_that_the_service_refuses_is_refused(name: Any) -> None:
    with pytest.raises(Invalid, match="database"):
        CosmosConfig(ENDPOINT, name, "box")
    with pytest.raises(Invalid, match="container"):
        CosmosConfig(ENDPOINT, "db", name)


@pytest.mark.parametrize("key", ["", "not base64!", "ü", "abc", b"c2VjcmV0", 7])
def test_what_is_not_a_key_is_refused_and_not_shown(key: Any) -> None:
    with pytest.raises(Invalid, match="base64") as caught:
        CosmosConfig(ENDPOINT, "db", "box", key=key)
    assert "not base64!" not in str(caught.value)


def test_a_credential_is_one_and_goes_over_tls_without_a_key() -> None:
    assert CosmosConfig(ENDPOINT, "db", "box", credential=Credential()).credential
    with pytest.raises(Invalid, match="both"):
        CosmosConfig(ENDPOINT, "db", "box", key=KEY, credential=Credential())
    with pytest.raises(Invalid, match="get_token; str has none"):
        CosmosConfig(ENDPOINT, "db", "box", credential="secret")
    with pytest.raises(Invalid, match="only sent over TLS"):
        CosmosConfig("http://127.0.0.1:8081/", "db", "box", credential=Credential())


# -- where they are kept


def load(tmp_path: Path, text: str | None = None, **environ: str) -> CosmosConfig | None:
    path = tmp_path / "settings.yaml"
    if text is not None:
        path.write_text(text)
    named = {f"AMPLIFIER_COSMOS_{name.upper()}": value for name, value in environ.items() if name.islower()}
    return load_cosmos_config_from_settings(
        path, environ=named | {k: v for k, v in environ.items() if k.isupper()}
    )


FILE = f"""
bundle: {{active: foundation}}
session_storage:
  mode: hybrid
  cosmos:
    endpoint: {ENDPOINT}
    database: filed
    container: box
    key: {KEY}
"""


def test_nothing_set_up_means_local_only(tmp_path: Path) -> None:
    assert load(tmp_path) is None
    assert load(tmp_path, "") is None
    assert load(tmp_path, "bundle: {}\n") is None
    assert load(tmp_path, "session_storage:\n") is None
    assert load(tmp_path, "session_storage: {mode: local}\n") is None
    assert load_cosmos_config_from_settings(tmp_path / "settings.yaml" / "no" / "folder", environ={}) is None


def test_the_environment_alone_is_enough(tmp_path: Path) -> None:
    assert load(tmp_path, endpoint=ENDPOINT) == CosmosConfig(ENDPOINT, "amplifier-db", "sessionary")
    assert load(tmp_path, endpoint=ENDPOINT, database="d", container="c", key=KEY) == CosmosConfig(
        ENDPOINT, "d", "c", key=KEY
    )


def test_the_settings_file_alone_is_enough(tmp_path: Path) -> None:
    assert load(tmp_path, FILE) == CosmosConfig(ENDPOINT, "filed", "box", key=KEY)


def test_the_environment_goes_before_the_file_value_by_value(tmp_path: Path) -> None:
    assert load(tmp_path, FILE, database="told") == CosmosConfig(ENDPOINT, "told", "box", key=KEY)
    other_key = "b3RoZXI="
    assert load(tmp_path, FILE, key=other_key) == CosmosConfig(ENDPOINT, "filed", "box", key=other_key)


def test_a_key_in_the_file_is_never_sent_to_another_endpoint(tmp_path: Path) -> None:
    assert load(tmp_path, FILE, endpoint=OTHER) == CosmosConfig(OTHER, "filed", "box")
    assert load(tmp_path, FILE, endpoint=ENDPOINT) == CosmosConfig(ENDPOINT, "filed", "box", key=KEY)


def test_the_way_in_can_be_chosen(tmp_path: Path) -> None:
    by_credential = CosmosConfig(ENDPOINT, "filed", "box")
    for method in ("default_credential", "managed_identity", "service_principal"):
        assert load(tmp_path, FILE, auth_method=method) == by_credential
    assert load(tmp_path, FILE, auth_method="key") == CosmosConfig(ENDPOINT, "filed", "box", key=KEY)
    with pytest.raises(Invalid, match="the key is missing"):
        load(tmp_path, FILE, auth_method="key", endpoint=OTHER)
    with pytest.raises(Invalid, match="unknown auth_method 'oauth'"):
        load(tmp_path, FILE, auth_method="oauth")


def test_synchronising_can_be_turned_off(tmp_path: Path) -> None:
    assert load(tmp_path, FILE, AMPLIFIER_ENABLE_SYNC="false") is None
    assert load(tmp_path, FILE, AMPLIFIER_ENABLE_SYNC="true") is not None
    assert load(tmp_path, FILE.replace("hybrid", "local"), endpoint=ENDPOINT) is None


OFF = ["local", "Local", "off", "OFF", "false", "False", "no", "none", "disabled", "0", "' off '"]
ON = ["hybrid", "Hybrid", "cloud", "on", "true", "yes", "1"]


@pytest.mark.parametrize("mode", OFF)
def test_a_word_for_off_turns_it_off(tmp_path: Path, mode: str) -> None:
    assert load(tmp_path, FILE.replace("hybrid", mode), endpoint=ENDPOINT) is None
    assert load(tmp_path, FILE, AMPLIFIER_ENABLE_SYNC=mode.strip("'")) is None
    assert load(tmp_path, f"session_storage: {mode}\n") is None


@pytest.mark.parametrize("mode", ON)
def test_a_word_for_on_leaves_it_on(tmp_path: Path, mode: str) -> None:
    assert load(tmp_path, FILE.replace("hybrid", mode)) is not None
    assert load(tmp_path, FILE, AMPLIFIER_ENABLE_SYNC=mode) is not None


@pytest.mark.parametrize("mode", ["hybird", "locale", "7", "1.5", "[local]", "{local: 1}", "", "~"])
def test_an_unknown_mode_is_refused_and_nothing_is_sent(tmp_path: Path, mode: str) -> None:
    with pytest.raises(Invalid, match=r"session_storage\.mode .*(not a known mode|empty)") as caught:
        load(tmp_path, FILE.replace("hybrid", mode))
    assert str(tmp_path / "settings.yaml") in str(caught.value)
    assert "hybrid" in str(caught.value.hint)
    assert "local" in str(caught.value.hint)


def test_an_unknown_word_in_the_environment_is_refused(tmp_path: Path) -> None:
    for word in ("nope", "ture", "2"):
        with pytest.raises(Invalid, match="AMPLIFIER_ENABLE_SYNC in the environment is"):
            load(tmp_path, FILE, AMPLIFIER_ENABLE_SYNC=word)
    assert load(tmp_path, FILE, AMPLIFIER_ENABLE_SYNC=" ") is not None


@pytest.mark.parametrize(
    ("endpoint", "address"),
    [
        (ENDPOINT, "https://name.documents.azure.com/my%20db/box"),
        ("https://NAME.documents.azure.com", "https://name.documents.azure.com/my%20db/box"),
        ("http://127.0.0.1:8081/", "cosmos+http://127.0.0.1:8081/my%20db/box"),
        ("http://[::1]:80", "cosmos+http://[::1]/my%20db/box"),
    ],
)
def test_all_spellings_of_an_endpoint_have_one_address(endpoint: str, address: str) -> None:
    assert CosmosConfig(endpoint, "my db", "box").address == address


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("session_storage: {mode: hybrid}\n", "without an endpoint"),
        ("session_storage: {cosmos: {endpiont: https://x, database: d}}\n", "without an endpoint"),
        ("session_storage: [cosmos]\n", "not a map"),
        ("session_storage: {cosmos: x}\n", "not a map"),
        ("session_storage: {cosmos: {endpoint: 7}}\n", r"cosmos\.endpoint .* is not text"),
        ("session_storage: {cosmos: {endpoint: name}}\n", "not an https:// address"),
    ],
)
def test_a_setup_by_half_is_reported_with_its_place(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(Invalid, match=why) as caught:
        load(tmp_path, text)
    assert str(tmp_path / "settings.yaml") in str(caught.value)
    assert caught.value.hint


def test_a_file_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    with pytest.raises(Corrupt, match=r"settings\.yaml|YAML"):
        load(tmp_path, "session_storage: {\n")
    (tmp_path / "folder").mkdir()
    with pytest.raises(StorageFailed, match="folder"):
        load_cosmos_config_from_settings(tmp_path / "folder", environ={})


def test_a_config_is_made_without_anything_of_azure() -> None:
    code = "import sys, sessionary.sync.cosmos_config; assert not {'azure', 'requests', 'yaml'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
