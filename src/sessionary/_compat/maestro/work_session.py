"""The import name that callers of Maestro's work sessions use; the code lives in `sessionary`."""

from sessionary.layouts.maestro.compat_api import create_session as create_session
from sessionary.layouts.maestro.compat_api import find_session_by_id as find_session_by_id
from sessionary.layouts.maestro.compat_api import get_child_sessions as get_child_sessions
from sessionary.layouts.maestro.compat_api import get_open_child_sessions as get_open_child_sessions
from sessionary.layouts.maestro.compat_api import get_session_cookie as get_session_cookie
from sessionary.layouts.maestro.compat_api import get_session_hierarchy as get_session_hierarchy
from sessionary.layouts.maestro.compat_api import get_sessions_base_path as get_sessions_base_path
from sessionary.layouts.maestro.compat_api import list_sessions as list_sessions
from sessionary.layouts.maestro.compat_api import load_session as load_session
from sessionary.layouts.maestro.compat_api import save_session as save_session
from sessionary.layouts.maestro.records import SessionStatus as SessionStatus
from sessionary.layouts.maestro.records import SessionType as SessionType
from sessionary.layouts.maestro.records import WorkSession as WorkSession
from sessionary.layouts.maestro.statuses import complete_session as complete_session
from sessionary.layouts.maestro.statuses import interrupt_session as interrupt_session
from sessionary.layouts.maestro.statuses import is_session_closed as is_session_closed
from sessionary.layouts.maestro.statuses import pause_session as pause_session
from sessionary.layouts.maestro.statuses import resume_session as resume_session
