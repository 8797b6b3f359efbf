"""The mailbox of a work session: messages come as files, and each is applied exactly once.

following    a line file that others append to, read as it grows
ledger       what was applied: the log of the session, in which one line is effect and acknowledgment
attempts     what was not: failures, dead letters, files that are no messages
folders      which messages wait, for one stat per folder
claims       one message, one process
box          all of these for one consumer
round        one pass over the messages that wait
watching     waking up when something comes
mailbox      the face: `Mailbox`
inbox        the loop of a worker: `run_inbox`

docs/howto/mailbox.md has the protocol, docs/formats/mailbox.md the files.
"""

from sessionary.mailbox.attempts import DeadLetter
from sessionary.mailbox.delivery import Failure
from sessionary.mailbox.inbox import run_inbox
from sessionary.mailbox.mailbox import Mailbox, Report, Status

__all__ = ["DeadLetter", "Failure", "Mailbox", "Report", "Status", "run_inbox"]
