"""The agents whose sessions are read where they lie: adding one is its module in `agents/` and a line here."""

from __future__ import annotations

from sessionary.layouts.agents.claude_code import ClaudeCodeLayout
from sessionary.layouts.agents.codex import CodexLayout
from sessionary.layouts.agents.copilot_cli import CopilotCliLayout
from sessionary.layouts.agents.gemini import GeminiLayout
from sessionary.layouts.agents.opencode import OpenCodeLayout
from sessionary.layouts.agents.pi import PiLayout
from sessionary.layouts.agents.qwen import QwenLayout
from sessionary.layouts.agents.reading import AgentLayout

AGENTS: tuple[type[AgentLayout], ...] = (
    ClaudeCodeLayout,
    CodexLayout,
    CopilotCliLayout,
    GeminiLayout,
    OpenCodeLayout,
    PiLayout,
    QwenLayout,
)
