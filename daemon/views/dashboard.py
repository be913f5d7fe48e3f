"""`speakd dashboard`: a page that shows the fleet, served to this machine only or written to a folder.

The page speaks MQTT over WebSocket to the broker itself; nothing but files is served here.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from daemon.config import Config
from daemon.errors import StartError

PAGE: Final = Path(__file__).with_name("page")

FILES: Final = {
    "index.html": "text/html; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
    "state.js": "text/javascript; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "vendor/mqtt.min.js": "text/javascript; charset=utf-8",
    "vendor/mqtt.LICENSE.md": "text/plain; charset=utf-8",
    "vendor/uPlot.iife.min.js": "text/javascript; charset=utf-8",
    "vendor/uPlot.min.css": "text/css; charset=utf-8",
    "vendor/uPlot.LICENSE": "text/plain; charset=utf-8",
}
"""All there is, and what it is; mqtt.js 5.16.0 and uPlot 1.6.32, both under the MIT licence."""

_CONFIG: Final = "config.js"
_WEBSOCKETS: Final = 9001
"""The port that brokers' manuals take for MQTT over WebSocket."""

_HEADERS: Final = {
    # Whatever a device may call itself: no script runs but ours, and nothing is loaded from elsewhere. mqtt.js keeps
    # its connection alive from a worker, whose time goes on while the page is in the background.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; "
    "worker-src blob:; connect-src 'self' ws: wss:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}

_CLIENT_S: Final = 10.0


def run(config: Config, *, port: int, folder: Path | None, broker: str) -> int:
    """Serve until interrupted, or write the page to `folder`; gives the exit status. StartError where that fails."""
    mqtt = config.mqtt
    url = broker or f"ws://{mqtt.host}:{_WEBSOCKETS}"
    if not url.startswith(("ws://", "wss://")):
        raise StartError(f"--broker {url!r} is no address of a WebSocket: it begins with ws:// or wss://")
    settings = config_js(url, mqtt.topic_prefix)
    if folder is not None:
        write(folder, settings)
        print(f"{folder}/index.html")
        return 0
    try:
        server = make_server(port, settings)
    except (OSError, OverflowError) as error:
        raise StartError(
            f"the page cannot be served on port {port}: {error}; choose another one with --port"
        ) from error
    with server:
        print(f"http://127.0.0.1:{server.server_port}/ shows the devices of {url}", file=sys.stderr, flush=True)
        server.serve_forever()
    return 0


def config_js(url: str, prefix: str) -> str:
    """Give what the page has to know, as a script: a page that was opened as a file may fetch nothing."""
    return f"window.SPEAKD = {json.dumps({'broker': url, 'prefix': prefix})};\n"


def write(folder: Path, settings: str) -> None:
    """Write all files. StartError where the folder takes none."""
    try:
        for name in FILES:
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(PAGE / name, target)
        (folder / _CONFIG).write_text(settings, encoding="utf-8")
    except OSError as error:
        raise StartError(f"the page cannot be written to {folder}: {error.strerror}") from error


def make_server(port: int, settings: str) -> ThreadingHTTPServer:
    """Make a server for this machine alone, on any free port for 0; OSError where it is taken."""
    files = {name: (kind, (PAGE / name).read_bytes()) for name, kind in FILES.items()}
    files[_CONFIG] = ("text/javascript; charset=utf-8", settings.encode())
    files[""] = files["index.html"]

    class Handler(BaseHTTPRequestHandler):
        timeout = _CLIENT_S
        do_GET = do_HEAD = _answer(files)  # noqa: N815  the library's names

        def log_message(self, *_: object) -> None:
            """Say nothing of every file."""

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


def _answer(files: dict[str, tuple[str, bytes]]) -> Callable[[Any], None]:
    def answer(request: BaseHTTPRequestHandler) -> None:
        """Give a file; whatever is none of them does not exist."""
        kind, content = files.get(request.path.partition("?")[0].removeprefix("/"), ("", b""))
        request.send_response(HTTPStatus.OK if kind else HTTPStatus.NOT_FOUND)
        for name, value in _HEADERS.items():
            request.send_header(name, value)
        request.send_header("Content-Type", kind or "text/plain")
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        if request.command == "GET":
            request.wfile.write(content)

    return answer
