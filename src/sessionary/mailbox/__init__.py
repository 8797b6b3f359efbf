"""The mailbox of a work session: messages are files, and each is applied exactly once.

- `tail`: follows a line file that others append to.
- `ledger`: the applied messages: the log of the session, in which one line is effect and acknowledgment.
- `attempts`: failed attempts, dead letters, invalid message files.
- `folders`: finds pending messages at one stat per folder.
- `message_lock`: one message, one process.
- `consumer`: the state of one consumer.
- `delivery`: one call of `consume`.
- `watching`: wakes up when something arrives.
- `commands`: a handler that runs a shell command.
- `mailbox`: the interface, `Mailbox`, and the loop of a worker, `run_inbox`.

docs/howto/mailbox.md has the protocol, docs/formats/mailbox.md the files.
"""

from sessionary.mailbox.attempts import DeadLetter
from sessionary.mailbox.delivery import Failure
from sessionary.mailbox.mailbox import Mailbox, Report, Status, run_inbox

__all__ = ["DeadLetter", "Failure", "Mailbox", "Report", "Status", "run_inbox"]
