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


def status(*arguments: str) -> int:
    """Runs the tool, and returns its status."""
    return subprocess.run([tool(), *arguments], capture_output=True, check=False).returncode


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


def unread(path: Path) -> Path:
    """Writes a wheel that has files of formats that are not read only."""
    return zipped(path, {"a/k.7z": b"7z\xbc\xaf\x27\x1c\0\4" + bytes(range(256)) * 8, "a/k.plan": b"ftrt" + bytes(range(256))})


def broken(path: Path, good: bytes, bad: bytes) -> Path:
    """Writes a wheel with a good library, one that is cut off, and one with a wrong checksum."""
    import zipfile

    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("foo/good.so", good)
        archive.writestr("foo/cut.so", good[: len(good) // 2])
        archive.writestr("foo/sum.so", bad)
    data = bytearray(path.read_bytes())
    data[data.index(bad, data.index(b"foo/sum.so")) + len(bad) // 2] ^= 0xFF
    path.write_bytes(data)
    return path


def saved(path: Path, files: dict[str, bytes], gone: list[str]) -> Path:
    """Writes a container image as `docker save` does: a layer with files, and one that removes some of them."""
    import hashlib
    import io
    import tarfile

    def tar(members: dict[str, bytes]) -> bytes:
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as archive:
            for name, data in members.items():
                member = tarfile.TarInfo(name)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
        return out.getvalue()

    layers = [tar(files), tar({f".wh.{name}": b"" for name in gone})]
    digests = [hashlib.sha256(layer).hexdigest() for layer in layers]
    config = {"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": [f"sha256:{one}" for one in digests]}}
    names = [f"{one}/layer.tar" for one in digests]
    manifest = [{"Config": "config.json", "RepoTags": ["made:1"], "Layers": names}]
    members = dict(zip(names, layers, strict=True))
    members |= {"config.json": json.dumps(config).encode(), "manifest.json": json.dumps(manifest).encode()}
    path.write_bytes(tar(members))
    return path
