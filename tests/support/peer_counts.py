"""Counts of sessions as other programs read them. Run by an interpreter that has their packages; prints JSON.

python peer_counts.py trajectory SOURCE FILE...
python peer_counts.py claude-code-log FILE...
"""

import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any


def of_trajectory(source: str, path: str) -> dict[str, int] | None:
    """What hypabolic-trajectory counts; None for a session that it refuses."""
    from hypabolic_trajectory import (  # type: ignore[import-not-found]
        NormalizeRequest,
        TrajectoryError,
        normalize_to_ir,
    )

    try:
        read = normalize_to_ir(NormalizeRequest(source=source, transcript=Path(path).read_bytes()))
    except TrajectoryError:
        return None
    kinds = Counter(f"{one.kind.value}/{one.role.value}" for one in read.records)
    usages = [one.usage for one in read.execution.model_invocations if one.usage] if read.execution else []
    return {
        "prompts": kinds["message/user"],
        "answers": kinds["message/assistant"],
        "calls": sum(len(one.tool_calls) for one in read.records),
        "results": kinds["tool_result/tool"],
        "input": sum(one.input_tokens or 0 for one in usages),
        "output": sum(one.output_tokens or 0 for one in usages),
    }


def of_claude_code_log(path: str) -> dict[str, int]:
    """What claude-code-log counts."""
    with tempfile.TemporaryDirectory() as folder:
        out, copy = Path(folder) / "out.json", Path(folder) / Path(path).name
        copy.write_bytes(Path(path).read_bytes())
        command = [
            sys.executable,
            "-m",
            "claude_code_log.cli",
            str(copy),
            "-f",
            "json",
            "-o",
            str(out),
            "--no-cache",
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        document = json.loads(out.read_text("utf-8"))
    kinds, waiting = Counter[str](), list[dict[str, Any]](document["messages"])
    while waiting:
        one = waiting.pop()
        kinds[one["type"]] += 1
        waiting += one.get("children") or []
    words = " ".join(one["token_summary"] for one in document["sessions"])
    tokens = {
        name: sum(int(found.replace(",", "")) for found in re.findall(rf"\b{name}: ([\d,]+)", words))
        for name in ("Input", "Output")
    }
    return {
        "prompts": kinds["user"],
        "answers": kinds["assistant"],
        "calls": kinds["tool_use"],
        "results": kinds["tool_result"],
        "input": tokens["Input"],
        "output": tokens["Output"],
    }


if __name__ == "__main__":
    peer, *names = sys.argv[1:]
    if peer == "trajectory":
        source, *names = names
        found: dict[str, Any] = {name: of_trajectory(source, name) for name in names}
    else:
        found = {name: of_claude_code_log(name) for name in names}
    sys.stdout.write(json.dumps(found))
