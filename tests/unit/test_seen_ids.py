"""The filter of ids: it forgets none, rarely takes a new one for a known one, and stays small."""

from sessionary.transcript.seen_ids import SIZE, SeenIds


def test_no_id_is_forgotten_and_few_are_taken_for_known() -> None:
    names = [f"id-{number}" for number in range(1000)]
    seen = SeenIds(room=1000)
    for name in names:
        assert name not in SeenIds()
        seen.add(name)
    again = SeenIds(seen.state())
    assert all(name in again for name in names)
    assert sum(f"new-{number}" in again for number in range(1000)) < 50


def test_it_stays_small_and_takes_half_a_surrogate_pair() -> None:
    seen = SeenIds(room=10**9)
    seen.add("\ud800")
    assert "\ud800" in seen
    assert len(seen.state()) == SIZE
