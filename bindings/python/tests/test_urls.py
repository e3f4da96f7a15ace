"""Files on a server: the same answers as for the file, and a query that is never shown."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import offload
from conftest import DATA, zipped

NAME = "foo-1.0+cu12-py3-none-any.whl"


class Handler(http.server.BaseHTTPRequestHandler):
    """Gives ranges of the files of a directory."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    place: Path

    def do_GET(self) -> None:
        path = self.place / self.path[1:].partition("?")[0].replace("%2B", "+")
        data = path.read_bytes() if path.is_file() else b""
        start, last = (int(part) for part in self.headers["Range"].removeprefix("bytes=").split("-"))
        part = data[start : last + 1]
        self.send_response(206 if part else 404)
        self.send_header("Content-Length", str(len(part)))
        self.send_header("Content-Range", f"bytes {start}-{start + len(part) - 1}/{len(data)}")
        self.end_headers()
        self.wfile.write(part)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    members = {"foo/hip.so": (DATA / "hip-two-units.so").read_bytes(), "foo/hip.o": (DATA / "hip.o").read_bytes()}
    zipped(tmp_path / NAME, {**members, "foo/__init__.py": b"pass"})
    handler = type("Here", (Handler,), {"place": tmp_path})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_a_url_is_answered_as_the_file(server: str, tmp_path: Path) -> None:
    url, path = server + NAME.replace("+", "%2B") + "?token=secret", tmp_path / NAME
    there, here = list(offload.images(url, hash=True)), list(offload.images(path, hash=True))
    assert len(there) == 9 and [one.member for one in there] == [one.member for one in here]
    for one, other in zip(there, here):
        assert {**one.to_dict(), "file": ""} == {**other.to_dict(), "file": ""}
        assert "secret" not in one.file
    image = next(one for one in there if one.target == "gfx1100")
    same = here[there.index(image)]
    assert image.extract() == same.extract() and image.kernels() == same.kernels()
    for gpu in ("gfx1100", "gfx1030"):
        assert offload.match(url, gpu).verdict == offload.match(path, gpu).verdict
    scan = offload.scan([url, path], hash=True)
    table = pa.table(scan)
    rows = [[{**row, "source": ""} for row in table.to_pylist() if ("http" in row["source"]) == is_url] for is_url in (True, False)]
    assert rows[0] == rows[1] and len(rows[0]) == 9
    assert [(one.package, one.version) for one in scan.results] == [("foo", "1.0+cu12")] * 2
    assert any("request" in one.message for one in scan.results[0].findings)
    assert "secret" not in str(table.to_pylist()) + str(scan.results)


def test_what_is_not_there_is_an_error(server: str) -> None:
    with pytest.raises(offload.UrlError, match="404") as caught:
        list(offload.images(server + "gone.whl?token=secret"))
    assert caught.value.kind == "file/url" and "secret" not in str(caught.value)
    with pytest.raises(offload.UrlError, match="404"):
        offload.match(server + "gone.whl", "gfx1100")
    scan = offload.scan([server + "gone.whl", server + NAME])
    assert pa.table(scan).column("error").null_count == 9 and [one.ok for one in scan.results] == [False, True]
    with pytest.raises((offload.OffloadError, OSError), match="URL"):
        offload.thin(server + NAME, "small.whl", keep=["gfx1100"])
