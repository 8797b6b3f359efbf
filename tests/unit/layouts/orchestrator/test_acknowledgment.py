"""Sections "Contract Acknowledgment" and "Change Management"."""

import hashlib
from typing import Any

import pytest

from sessionary.errors import Invalid, NotFound
from tests.unit.layouts.orchestrator.conftest import ID

TEXT = b"# Session State Specification\r\n\n**Version**: 1.0  \n\xff exact bytes\n"


@pytest.fixture
def spec(tmp_path: Any) -> Any:
    path = tmp_path / "spec.md"
    path.write_bytes(TEXT)
    return path


def test_the_file_has_the_form_of_the_contract(store: Any, home: Any, spec: Any) -> None:
    """Section "Contract Acknowledgment"; the checksum is that of the exact bytes."""
    assert store.acknowledge("agent-1", spec) == home / "contract-acknowledgment.md"
    assert (home / "contract-acknowledgment.md").read_text() == (
        "# Contract Acknowledgment\n\n"
        "Agent: agent-1\n"
        "Date: 2025-01-09T12:00:00.000000Z\n"
        "Contract Version: 1.0\n"
        f"Checksum: {hashlib.sha256(TEXT).hexdigest()}\n\n"
        "I acknowledge that I have read and will adhere to the Session State Specification v1.0.\n"
    )


def test_each_agent_has_a_block_of_its_own(store: Any, home: Any, spec: Any, clock: Any) -> None:
    """Section "Contract Acknowledgment": all agents; acknowledging again touches no other agent's."""
    path = home / "contract-acknowledgment.md"
    for agent in ("one", "two", "three"):
        store.acknowledge(agent, spec)
    text = path.read_text().replace("v1.0.\n\n# Contract", "v1.0.\nA note of a person.\n\n# Contract", 1)
    path.write_text(text)
    clock.move(hours=1)
    for agent in ("two", "one"):
        store.acknowledge(agent, spec)
    again = path.read_text()
    assert again.replace("T13:", "T12:") == text
    assert again.count("T13:") == 2
    found = store.verify_acknowledgment(spec_path=spec)
    assert [(each.agent, each.holds) for each in found] == [("one", True), ("two", True), ("three", True)]


def test_a_changed_contract_must_be_acknowledged_again(store: Any, spec: Any) -> None:
    """Section "Modification Process", rules 3 and 4."""
    store.acknowledge("one", spec)
    spec.write_bytes(TEXT.replace(b"\r\n", b"\n"))
    (found,) = store.verify_acknowledgment("one", spec_path=spec)
    assert (found.holds, found.reason) == (
        False,
        "has acknowledged another text: the contract was changed since",
    )
    spec.write_bytes(TEXT.replace(b"1.0", b"1.1"))
    (found,) = store.verify_acknowledgment("one", spec_path=spec)
    assert found.reason == "has acknowledged version 1.0; the contract is of version 1.1"
    store.acknowledge("one", spec)
    assert store.verify_acknowledgment("one", spec_path=spec)[0].holds


def test_another_agent_has_not_acknowledged(store: Any, spec: Any) -> None:
    """Section "Contract Acknowledgment": each agent by itself."""
    store.acknowledge("one", spec)
    (found,) = store.verify_acknowledgment("two", spec_path=spec)
    assert (found.holds, found.reason) == (False, "has not acknowledged the contract")


def test_a_contract_or_an_agent_that_is_none(store: Any, spec: Any, tmp_path: Any, home: Any) -> None:
    with pytest.raises(NotFound, match="No contract"):
        store.acknowledge("one", tmp_path / "gone.md")
    for agent in ("", " ", "a\nb"):
        with pytest.raises(Invalid):
            store.acknowledge(agent, spec)
    assert not home.exists()


def test_writes_can_be_made_to_require_it(make: Any, spec: Any) -> None:
    """Section "Contract Acknowledgment": all agents must; the setting is off by default."""
    make().create(ID)
    strict = make(require_ack=spec, agent="agent-1")
    calls: list[Any] = [
        lambda: strict.create("b-2025-01-09"),
        lambda: strict.update(ID),
        lambda: strict.append(ID, {"command": "x"}),
        lambda: strict.pause(ID),
    ]
    for call in calls:
        with pytest.raises(Invalid, match="agent-1 has not acknowledged"):
            call()
    assert strict.load(ID).model_in_use == "sonnet", "a reader need not"
    strict.acknowledge("agent-1", spec)
    strict.update(ID)
    with pytest.raises(Invalid, match="agent-2"):
        strict.update(ID, agent="agent-2")
    spec.write_bytes(TEXT + b"more\n")
    assert [problem.code for problem in strict.validate()] == ["stale_acknowledgment"]
