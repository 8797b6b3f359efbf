"""The layouts whose sessions have a home folder. A new agent is a module in `agents/` and a line here."""

from __future__ import annotations

from sessionary.layouts.agents.aider import AiderLayout
from sessionary.layouts.agents.claude_code import ClaudeCodeLayout
from sessionary.layouts.agents.codex import CodexLayout
from sessionary.layouts.agents.copilot_cli import CopilotCliLayout
from sessionary.layouts.agents.cursor import CursorLayout
from sessionary.layouts.agents.gemini import GeminiLayout
from sessionary.layouts.agents.opencode import OpenCodeLayout
from sessionary.layouts.agents.pi import PiLayout
from sessionary.layouts.agents.qwen import QwenLayout
from sessionary.layouts.agents.reading import AgentLayout
from sessionary.layouts.agents.vscode_chat import VsCodeChatLayout
from sessionary.layouts.records.layout import RecordsLayout

AGENTS: tuple[type[AgentLayout], ...] = (
    ClaudeCodeLayout,
    CodexLayout,
    CopilotCliLayout,
    CursorLayout,
    GeminiLayout,
    OpenCodeLayout,
    PiLayout,
    QwenLayout,
    VsCodeChatLayout,
    AiderLayout,  # last: it looks in the folders that the sessions of the others name
)

LAYOUTS: tuple[type[AgentLayout], ...] = (*AGENTS, RecordsLayout)
"""All layouts that have a home of their own: those of agents, and that of the stores for agent frameworks."""
