"""A schema registry that listens on a free port, and knows what it was told."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FakeRegistry:
    """A schema registry of a few schemas."""

    def __init__(self) -> None:
        self.answers: dict[str, object] = {}
        self.asked: list[str] = []
        self.failures = 0
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.asked.append(self.path)
                code, body = 200, registry.answers.get(self.path)
                if registry.failures:
                    registry.failures -= 1
                    code, body = 503, {}
                elif body is None:
                    code, body = 404, {"error_code": 40403, "message": "Schema not found"}
                text = json.dumps(body).encode()
                self.send_response(code)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def add(self, number: int, schema: object, **more: object) -> None:
        self.answers[f"/schemas/ids/{number}"] = {"schema": json.dumps(schema), **more}

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
