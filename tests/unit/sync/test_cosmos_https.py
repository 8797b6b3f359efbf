"""Over TLS, where a credential is used and the SDK finds the account's endpoints itself."""

import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from sessionary.errors import RemoteError
from sessionary.sync.cosmos_config import CosmosConfig
from sessionary.sync.remote import heads_of
from sessionary.sync.remotes.cosmos import CosmosRemote
from tests.support.cosmos_double import CosmosDouble, Fault

# The SDK checks no certificate of 127.0.0.1, and its library warns of that.
pytestmark = pytest.mark.filterwarnings("ignore:Unverified HTTPS request")


class Credential:
    """As those of azure.identity are."""

    def __init__(self, token: str) -> None:
        self.token = token
        self.scopes: set[str] = set()

    def get_token(self, *scopes: str, **rest: Any) -> Any:
        self.scopes |= set(scopes)
        return SimpleNamespace(token=self.token, expires_on=int(datetime.now(UTC).timestamp()) + 3600)


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    """An unsigned certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    path: Path = tmp_path_factory.mktemp("tls") / "both.pem"
    plain = serialization.NoEncryption()
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
        + made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


@pytest.fixture
def double(tls: ssl.SSLContext) -> Iterator[CosmosDouble]:
    with CosmosDouble(tls=tls, token="let me in") as double:
        yield double


def test_a_credential_is_let_in_and_asked_for_the_accounts_scope(double: CosmosDouble) -> None:
    credential = Credential("let me in")
    remote = CosmosRemote(CosmosConfig(double.endpoint, "db", "box", credential=credential), tenant="me")
    remote.prepare()
    etag = remote.swap_head("one", b"1", None)
    assert remote.swap_head("one", b"2", etag)
    assert [head.data for head in heads_of(remote)] == [b"2"]
    assert credential.scopes == {"https://127.0.0.1/.default"}
    remote.close()


def test_a_credential_without_a_right_is_reported(double: CosmosDouble) -> None:
    credential = Credential("someone else")
    remote = CosmosRemote(CosmosConfig(double.endpoint, "db", "box", credential=credential), tenant="me")
    with pytest.raises(RemoteError) as caught:
        remote.prepare()
    assert not caught.value.retryable
    assert "someone else" not in str(caught.value.as_dict())
    remote.close()


def test_a_write_that_the_sdk_repeats_by_itself_is_done_once(double: CosmosDouble) -> None:
    remote = CosmosRemote(CosmosConfig(double.endpoint, "db", "box", key=double.key), tenant="me")
    remote.prepare()
    etag = remote.swap_head("one", b"1", None)
    # It was carried out, and refused as if it had not been; the SDK asks again before it reports.
    double.faults.append(Fault("status after", on="write", status=503))
    assert remote.put_block("s", "a", b"x") is False
    double.faults.append(Fault("status after", on="write", status=503))
    assert remote.swap_head("one", b"2", etag) is None
    found = remote.read_head("one")
    assert found is not None
    assert found.data == b"2"
    remote.close()
