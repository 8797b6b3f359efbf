"""Any order of writes, reads, edits, crashes and foreign hands; see `tests.support.machine`."""

from hypothesis import Phase, settings

from tests.support.machine import StoreMachine

TestStore = StoreMachine.TestCase
if settings().max_examples <= 100:
    # Without shrinking, which would take minutes here: a failing example is short as it is, and printed.
    phases = (Phase.explicit, Phase.reuse, Phase.generate)
    TestStore.settings = settings(max_examples=150, stateful_step_count=20, phases=phases)
