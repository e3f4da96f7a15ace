"""Programs that use the module: the examples, and one whose memory is measured."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from conftest import DATA, zipped

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"

MEMORY = """
import resource, sys, offload
count = sum(1 for _ in offload.images(sys.argv[1], hash=True, on_error="collect"))
print(count, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def run(*command: object) -> "subprocess.CompletedProcess[str]":
    words = [sys.executable, *map(str, command)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_memory_does_not_grow_with_a_wheel(tmp_path: Path) -> None:
    data = (DATA / "hip.o").read_bytes() + bytes(8 << 20)
    found = []
    for members in (4, 128):
        wheel = zipped(tmp_path / f"a{members}.whl", {f"x/{n}.o": data for n in range(members)})
        done = run("-c", MEMORY, wheel)
        assert done.returncode == 0, done.stderr
        count, megabytes = map(int, done.stdout.split())
        assert count == 5 * members
        found.append(megabytes)
    # 1 GiB of members.
    assert found[1] < found[0] + 100


def test_examples(tmp_path: Path) -> None:
    wheel = zipped(tmp_path / "foo-1.0-py3-none-any.whl", {"foo/hip.o": (DATA / "hip.o").read_bytes()})
    host = zipped(tmp_path / "host-1.0-py3-none-any.whl", {"foo/a.txt": b""})
    done = run(EXAMPLES / "architectures.py", wheel, host)
    assert done.returncode == 0 and "gfx1100 (3,208 bytes)" in done.stdout and "no device code" in done.stdout
    assert run(EXAMPLES / "architectures.py", "--split", host, wheel).returncode == 1
    assert run(EXAMPLES / "architectures.py", "--split", host).returncode == 0
    done = run(EXAMPLES / "sizes.py", wheel)
    assert done.returncode == 0 and "gfx1100 elf" in done.stdout and "bytes  " in done.stdout
    assert run(EXAMPLES / "require.py", "--gpu", "gfx1100", wheel).returncode == 0
    done = run(EXAMPLES / "require.py", "--gpu", "gfx1100", "--gpu", "sm_90", wheel)
    assert done.returncode == 1 and "sm_90: no" in done.stdout
    assert run(EXAMPLES / "require.py", "--gpu", "gfx1100", tmp_path / "none").returncode == 1
