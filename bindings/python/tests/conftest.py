"""Files and tools of the tests.

`OFFLOAD` is the tool beside which the module is compared, else the one of the wheel. `OFFLOAD_WHEELS` is a directory of published
wheels; tests of these are skipped without it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).resolve().parents[3] / "examples" / "data"


def tool() -> str:
    return os.environ.get("OFFLOAD") or str(Path(sys.executable).parent / "offload")


def run_json(*arguments: str) -> dict[str, Any]:
    """Runs the tool, and returns its JSON, whatever its status."""
    done = subprocess.run([tool(), *arguments, "--json"], capture_output=True, text=True, check=False)
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def wheels() -> list[Path]:
    place = os.environ.get("OFFLOAD_WHEELS")
    return sorted(Path(place).glob("*.whl")) if place else []


@pytest.fixture(scope="session")
def published() -> list[Path]:
    found = wheels()
    if not found:
        pytest.skip("no OFFLOAD_WHEELS: NOT TESTED with published wheels")
    return found


@pytest.fixture
def hip() -> Path:
    return DATA / "hip.o"


def zipped(path: Path, members: dict[str, bytes]) -> Path:
    """Writes a wheel by Python."""
    import zipfile

    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path
