"""The import name that callers of Maestro's breadcrumbs use; the code lives in `sessionary`."""

from sessionary.layouts.maestro.breadcrumbs import create_breadcrumb as create_breadcrumb
from sessionary.layouts.maestro.compat_api import auto_breadcrumb_wrapper as auto_breadcrumb_wrapper
from sessionary.layouts.maestro.compat_api import capture_tool_call as capture_tool_call
from sessionary.layouts.maestro.compat_api import dataclass_to_dict as dataclass_to_dict
from sessionary.layouts.maestro.compat_api import dict_to_breadcrumb as dict_to_breadcrumb
from sessionary.layouts.maestro.compat_api import generate_breadcrumb_id as generate_breadcrumb_id
from sessionary.layouts.maestro.compat_api import generate_timestamp as generate_timestamp
from sessionary.layouts.maestro.compat_api import get_breadcrumb_summary as get_breadcrumb_summary
from sessionary.layouts.maestro.compat_api import list_breadcrumbs as list_breadcrumbs
from sessionary.layouts.maestro.compat_api import load_breadcrumb as load_breadcrumb
from sessionary.layouts.maestro.compat_api import parse_ai_dialog as parse_ai_dialog
from sessionary.layouts.maestro.compat_api import reconstruct_session_timeline as reconstruct_session_timeline
from sessionary.layouts.maestro.compat_api import track_file_modification as track_file_modification
from sessionary.layouts.maestro.compat_api import write_breadcrumb as write_breadcrumb
from sessionary.layouts.maestro.costs import calculate_cost as calculate_cost
from sessionary.layouts.maestro.costs import estimate_tokens as estimate_tokens
from sessionary.layouts.maestro.records import Breadcrumb as Breadcrumb
