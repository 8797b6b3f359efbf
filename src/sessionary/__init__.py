"""Sessionary stores, reads, checks, repairs and syncs the sessions of coding agents.

Every public name is exported here and imported on first use: a command that prints the version, or a program that
needs only the event log, does not load the rest. A test pins the list of names.
"""

from typing import TYPE_CHECKING

from sessionary.lazy_exports import on_demand
from sessionary.version import __version__ as __version__

if TYPE_CHECKING:
    from sessionary.errors import AlreadyExists as AlreadyExists
    from sessionary.errors import AmbiguousId as AmbiguousId
    from sessionary.errors import Conflict as Conflict
    from sessionary.errors import Corrupt as Corrupt
    from sessionary.errors import Invalid as Invalid
    from sessionary.errors import InvalidId as InvalidId
    from sessionary.errors import Locked as Locked
    from sessionary.errors import NotFound as NotFound
    from sessionary.errors import RemoteError as RemoteError
    from sessionary.errors import SchemaError as SchemaError
    from sessionary.errors import SessionaryError as SessionaryError
    from sessionary.errors import StorageFailed as StorageFailed
    from sessionary.errors import TransitionError as TransitionError
    from sessionary.errors import Unsupported as Unsupported
    from sessionary.hybrid import HybridSessionStore as HybridSessionStore
    from sessionary.hybrid import PullResult as PullResult
    from sessionary.hybrid import SyncResult as SyncResult
    from sessionary.layouts.amplifier.event_reader import EventReader as EventReader
    from sessionary.layouts.amplifier.events import EventsLog as EventsLog
    from sessionary.layouts.amplifier.forks import ForkResult as ForkResult
    from sessionary.layouts.amplifier.forks import fork_session as fork_session
    from sessionary.layouts.amplifier.forks import fork_session_in_memory as fork_session_in_memory
    from sessionary.layouts.amplifier.forks import get_fork_preview as get_fork_preview
    from sessionary.layouts.amplifier.lineage import get_session_lineage as get_session_lineage
    from sessionary.layouts.amplifier.lineage import is_fork as is_fork
    from sessionary.layouts.amplifier.lineage import list_session_forks as list_session_forks
    from sessionary.layouts.amplifier.repairing import Repaired as Repaired
    from sessionary.layouts.amplifier.repairing import repair as repair
    from sessionary.layouts.amplifier.rewinding import Rewound as Rewound
    from sessionary.layouts.amplifier.rewinding import rewind as rewind
    from sessionary.layouts.amplifier.store import SessionStore as SessionStore
    from sessionary.layouts.amplifier.transactions import Restored as Restored
    from sessionary.layouts.amplifier.transactions import Undone as Undone
    from sessionary.layouts.amplifier.transactions import forget_undo as forget_undo
    from sessionary.layouts.amplifier.transactions import restore_backup as restore_backup
    from sessionary.layouts.amplifier.transactions import undo as undo
    from sessionary.layouts.amplifier.transactions import undo_entries as undo_entries
    from sessionary.layouts.brainstorm.store import BrainstormStore as BrainstormStore
    from sessionary.layouts.maestro.breadcrumbs import create_breadcrumb as create_breadcrumb
    from sessionary.layouts.maestro.compat_api import create_session as create_session
    from sessionary.layouts.maestro.compat_api import list_breadcrumbs as list_breadcrumbs
    from sessionary.layouts.maestro.compat_api import list_sessions as list_sessions
    from sessionary.layouts.maestro.compat_api import load_breadcrumb as load_breadcrumb
    from sessionary.layouts.maestro.compat_api import load_session as load_session
    from sessionary.layouts.maestro.compat_api import save_session as save_session
    from sessionary.layouts.maestro.compat_api import write_breadcrumb as write_breadcrumb
    from sessionary.layouts.maestro.records import Breadcrumb as Breadcrumb
    from sessionary.layouts.maestro.records import SessionStatus as SessionStatus
    from sessionary.layouts.maestro.records import WorkSession as WorkSession
    from sessionary.layouts.maestro.store import WorkStore as WorkStore
    from sessionary.layouts.orchestrator.store import FeatureStore as FeatureStore
    from sessionary.mailbox import Mailbox as Mailbox
    from sessionary.mailbox import run_inbox as run_inbox
    from sessionary.model import Message as Message
    from sessionary.model import Problem as Problem
    from sessionary.model import Summary as Summary
    from sessionary.sync.cosmos_config import CosmosConfig as CosmosConfig
    from sessionary.sync.cosmos_config import (
        load_cosmos_config_from_settings as load_cosmos_config_from_settings,
    )
    from sessionary.workspace import Workspace as Workspace


__getattr__, __dir__, __all__ = on_demand(
    __name__,
    {
        "sessionary.errors": (
            "AlreadyExists AmbiguousId Conflict Corrupt Invalid InvalidId Locked NotFound RemoteError "
            "SchemaError SessionaryError StorageFailed TransitionError Unsupported"
        ),
        "sessionary.layouts.amplifier.event_reader": "EventReader",
        "sessionary.layouts.amplifier.events": "EventsLog",
        "sessionary.layouts.amplifier.forks": (
            "ForkResult fork_session fork_session_in_memory get_fork_preview"
        ),
        "sessionary.layouts.amplifier.repairing": "Repaired repair",
        "sessionary.layouts.amplifier.transactions": (
            "Restored Undone forget_undo restore_backup undo undo_entries"
        ),
        "sessionary.layouts.amplifier.rewinding": "Rewound rewind",
        "sessionary.layouts.amplifier.store": "SessionStore",
        "sessionary.layouts.amplifier.lineage": "get_session_lineage is_fork list_session_forks",
        "sessionary.layouts.brainstorm.store": "BrainstormStore",
        "sessionary.layouts.maestro.records": "Breadcrumb SessionStatus WorkSession",
        "sessionary.layouts.maestro.store": "WorkStore",
        "sessionary.layouts.maestro.breadcrumbs": "create_breadcrumb",
        "sessionary.layouts.maestro.compat_api": (
            "create_session list_breadcrumbs list_sessions "
            "load_breadcrumb load_session save_session write_breadcrumb"
        ),
        "sessionary.layouts.orchestrator.store": "FeatureStore",
        "sessionary.sync.cosmos_config": "CosmosConfig load_cosmos_config_from_settings",
        "sessionary.hybrid": "HybridSessionStore PullResult SyncResult",
        "sessionary.mailbox": "Mailbox run_inbox",
        "sessionary.model": "Message Problem Summary",
        "sessionary.workspace": "Workspace",
    },
    "__version__",
)
