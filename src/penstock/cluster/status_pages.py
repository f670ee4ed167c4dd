"""A server's health and numbers by HTTP, for those who do not speak gRPC.

In:   ``GET /healthz``, ``/readyz`` and ``/metrics``.
Out:  whether the server is there, whether its whole cluster is, and Prometheus' text format.
Not:  shows nothing of models, graphs or values.
"""

from __future__ import annotations

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from penstock.cluster.health import all_tasks_answer
from penstock.cluster.server import Server
from penstock.errors import UnavailableError

_PATIENCE = 5.0


class StatusPages:
    """Listens until it is closed."""

    def __init__(self, server: Server, bind: str, port: int) -> None:
        """Listen; raises UnavailableError if the port cannot be had.  Port 0 means any."""
        try:
            self._http = ThreadingHTTPServer((bind, port), _handler_of(server))
        except OSError as cause:
            raise UnavailableError(
                f"The status pages cannot be had at {bind}:{port}: {cause.strerror}"
            ) from None
        self._http.daemon_threads = True
        #: The port that it listens at.
        self.port: int = self._http.server_address[1]
        Thread(target=self._http.serve_forever, name="penstock-status", daemon=True).start()

    def close(self) -> None:
        """Listen no longer."""
        self._http.shutdown()
        self._http.server_close()


def _handler_of(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _PATIENCE

        def do_GET(self) -> None:
            """Answer one of the pages."""
            pages: dict[str, Callable[[], tuple[int, str]]] = {
                "/healthz": lambda: _state(is_good=server.is_ready),
                "/readyz": lambda: _state(is_good=all_tasks_answer(server)),
                "/metrics": lambda: (200, server.metrics.text()),
            }
            page = pages.get(self.path)
            status, text = page() if page is not None else (404, "no such page\n")
            content = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_args: Any) -> None:
            """Say nothing: probes come every few seconds."""

    return Handler


def _state(*, is_good: bool) -> tuple[int, str]:
    return (200, "ok\n") if is_good else (503, "not ready\n")
