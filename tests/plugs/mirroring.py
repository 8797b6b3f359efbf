"""A program for the Claude Agent SDK that answers one prompt from a script, and mirrors its transcript."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from claude_agent_sdk import Transport

ID = "3f0c81d2-0000-4000-8000-000000000001"
_RESULT = {
    "type": "result", "subtype": "success", "duration_ms": 1, "duration_api_ms": 1, "is_error": False, "num_turns": 1,
    "session_id": ID, "result": "Ready.",
}  # fmt: skip


class Scripted(Transport):  # type: ignore[misc]
    """The program.

    Args:
        path: where it says that its transcript is.
        first: the number of the first entry that it adds.
        text: the prompt.
        middle: called when the prompt is mirrored, and the answer is not.
    """

    def __init__(self, path: str, first: int, text: str, middle: Callable[[], object]) -> None:
        self._path, self._first, self._text, self._middle = path, first, text, middle
        self._requests: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def connect(self) -> None:
        pass

    async def write(self, data: str) -> None:
        for line in data.splitlines():
            await self._requests.put(json.loads(line))

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        while True:
            request = await self._requests.get()
            if request["type"] == "control_request":
                answer = {"subtype": "success", "request_id": request["request_id"], "response": {}}
                yield {"type": "control_response", "response": answer}
            elif request["type"] == "user":
                yield self._mirrored(self._first, "user", self._text)
                await asyncio.sleep(0.2)  # the SDK stores it in a task of its own
                self._middle()
                yield self._mirrored(self._first + 1, "assistant", "Ready.")
                yield _RESULT
                return

    def _mirrored(self, number: int, role: str, said: str) -> dict[str, Any]:
        entry = {
            "type": role, "uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number else None, "sessionId": ID,
            "timestamp": f"2026-03-01T09:{number:02}:00.000Z", "message": {"role": role, "content": said},
        }  # fmt: skip
        return {"type": "transcript_mirror", "filePath": self._path, "entries": [entry]}

    async def close(self) -> None:
        pass

    def is_ready(self) -> bool:
        return True

    async def end_input(self) -> None:
        pass
