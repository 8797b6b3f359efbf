"""Real processes that synchronise through Cosmos DB, and are really killed."""

import os
from collections import Counter
from pathlib import Path

import pytest

from sessionary.layouts.amplifier.store import SessionStore
from sessionary.layouts.amplifier.sync_adapter import AmplifierSyncLayout
from sessionary.sync.engine import Engine
from sessionary.sync.report import SyncStatus
from tests.servers.cosmos import Bench, Double, Npm, Server
from tests.support.torture import torture

KILLS = 60 if os.environ.get("SESSIONARY_SOAK") else 5
SESSIONS = Path("projects") / "-work" / "sessions"

DEVICE = """
import sys
from pathlib import Path
from sessionary import SessionStore
from sessionary.layouts.amplifier.sync_adapter import AmplifierSyncLayout
from sessionary.sync.cosmos_config import CosmosConfig
from sessionary.sync.engine import Engine
from sessionary.sync.remotes.cosmos import CosmosRemote
from sessionary.sync.report import SyncStatus
from tests.support.torture import ack, spec
me = spec()
root, endpoint, tenant, database = sys.argv[1:]
home = Path(root) / f"home{me.number}"
store = SessionStore(home / "projects" / "-work" / "sessions")
remote = CosmosRemote(CosmosConfig(endpoint, database, "box"), tenant=tenant)
for count in range(8):
    names = [f"{kind}.{me.number}.{me.run}.{count}" for kind in ("own", "both")]
    store.append(f"own{me.number}", [{"role": "user", "content": names[0], "pad": "x" * 3000}])
    store.append("both", [{"role": "user", "content": names[1]}])
    engine = Engine(AmplifierSyncLayout(home), remote, state_dir=home.parent / f"state{me.number}", quiet=0, block=2000)
    engine.pull()
    report = engine.push()
    if not report.of(SyncStatus.FAILED, SyncStatus.HELD_BACK, SyncStatus.DIVERGED, SyncStatus.BEHIND):
        ack(names)
"""


def survive(server: Server, tmp_path: Path) -> int:
    """Kill devices that synchronise; how many lines were promised, all of which were found once."""
    bench = Bench(server)
    config = server.config
    promises = torture(
        DEVICE,
        [str(tmp_path), config.endpoint, bench.tenant("me"), config.database],
        workers=2,
        kills=KILLS,
        most_acks=3,
        pause=0.05,
        seed=3,
    )
    fresh = tmp_path / "fresh"
    (fresh / SESSIONS).mkdir(parents=True)
    engine = Engine(AmplifierSyncLayout(fresh), bench.remote(), state_dir=tmp_path / "state", quiet=0)
    report = engine.pull()
    assert {one.standing for one in report.outcomes} == {SyncStatus.PULLED}
    store = SessionStore(fresh / SESSIONS)
    found: set[str] = set()
    for session in store.list_sessions():
        lines = Counter(message["content"] for message in store.load(session)[0])
        assert max(lines.values()) == 1, f"a line is twice in {session}"
        found |= set(lines)
    owed = {name for promise in promises for name in promise.value}
    assert owed <= found
    bench.close()
    return len(owed)


@pytest.mark.lane("sigkill")
def test_killed_devices_owe_nothing_that_they_pushed(tmp_path: Path) -> None:
    assert survive(Double(), tmp_path) > 10


@pytest.mark.lane("sigkill")
@pytest.mark.lane("cosmos-npm")
def test_killed_devices_owe_nothing_at_the_server_of_others(tmp_path: Path) -> None:
    assert survive(Npm(), tmp_path) > 10
