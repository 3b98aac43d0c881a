"""Runs every `test_*.py` beneath this directory, each in a process with a time limit, and adds up the counts."""

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

from harness.processes import MARK, marked_pids, sweep
from harness.report import PREFIX

HERE = Path(__file__).resolve().parent
LIMIT_SECONDS = 600


def run(script):
    """`(passed, failed, skipped)` of one script; a script that breaks is one failure."""
    mark = uuid.uuid4().hex
    process = subprocess.Popen(
        [sys.executable, str(script)],
        env={**os.environ, MARK: mark},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        sweep(mark)
        output, _ = process.communicate()
        output += f"\ntimed out after {LIMIT_SECONDS} s\n".encode()
    deadline = time.monotonic() + 3
    while marked_pids(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    leftovers = sweep(mark)
    text = output.decode(errors="replace")
    lines = text.splitlines()
    counts = [line for line in lines if line.startswith(PREFIX)]
    print("\n".join(line for line in lines if not line.startswith(PREFIX)))
    passed, failed, skipped = map(int, counts[-1].split()[1:]) if counts else (0, 1, 0)
    if counts and process.returncode != 0 and not failed:
        failed += 1
    for name in leftovers:
        print(f"LEFT BEHIND: {name}")
        failed += 1
    return passed, failed, skipped


def main(parts):
    scripts = sorted(HERE.rglob("test_*.py"))
    if parts:
        scripts = [script for script in scripts if any(part in str(script.relative_to(HERE)) for part in parts)]
    totals = [0, 0, 0]
    for script in scripts:
        name = script.relative_to(HERE)
        print(f"--- {name}", flush=True)
        started = time.monotonic()
        counts = run(script)
        totals = [total + count for total, count in zip(totals, counts, strict=True)]
        print(f"--- {name}: {time.monotonic() - started:.1f} s", flush=True)
    passed, failed, skipped = totals
    if skipped:
        print(f"SKIPPED {skipped}: this run does not show everything; the reasons stand above")
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
