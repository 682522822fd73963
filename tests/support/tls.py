"""TLS before a broker that has none: a server with a certificate that passes bytes on."""

import socket
import ssl
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

_FORM = """\
[req]
distinguished_name = name
x509_extensions = extensions
prompt = no
[name]
CN = cordwood tests
[extensions]
basicConstraints = critical, CA:TRUE
keyUsage = critical, digitalSignature, keyCertSign
subjectKeyIdentifier = hash
subjectAltName = {subject}
"""


class Certificate(NamedTuple):
    """PEM files. Whoever trusts the certificate believes whoever has the key."""

    certificate: Path
    key: Path

    @property
    def both(self) -> Path:
        """One file with both of them, as a Java client wants it."""
        path = self.key.with_suffix(".pem")
        path.write_text(self.key.read_text() + self.certificate.read_text())
        return path


def make_certificate(directory: Path, name: str, *, subject: str = "IP:127.0.0.1") -> Certificate:
    made = Certificate(directory / f"{name}.crt", directory / f"{name}.key")
    form = directory / f"{name}.cnf"
    form.write_text(_FORM.format(subject=subject))
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-config", str(form)]
    subprocess.run([*command, "-keyout", str(made.key), "-out", str(made.certificate)], check=True, capture_output=True)
    return made


class TlsServer:
    """Listens before its broker is there, so that the broker can be told what address to advertise."""

    def __init__(self, own: Certificate, *, clients: Certificate | None = None) -> None:
        """
        Args:
            clients: what clients must prove that they have; None lets everybody in.
        """
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(own.certificate, own.key)
        if clients is not None:
            # With 1.3 the handshake is over, to a client, before its certificate is looked at.
            self._context.maximum_version = ssl.TLSVersion.TLSv1_2
            self._context.verify_mode = ssl.CERT_REQUIRED
            self._context.load_verify_locations(clients.certificate)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._target: tuple[str, int] | None = None
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.connections = 0

    def lead_to(self, port: int) -> None:
        self._target = ("127.0.0.1", port)

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._talk, args=(client,), daemon=True).start()

    def _talk(self, client: socket.socket) -> None:
        assert self._target is not None
        with (
            suppress(OSError),
            client,
            socket.create_connection(self._target) as plain,
            self._context.wrap_socket(client, server_side=True) as secret,
        ):
            threading.Thread(target=_pass_on, args=(plain, secret), daemon=True).start()
            _pass_on(secret, plain)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError, ValueError):  # either end may hang up at any time
        while data := source.recv(1 << 16):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)
