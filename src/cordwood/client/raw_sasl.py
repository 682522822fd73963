"""SASL's PLAIN and SCRAM as the client sees them: what to send, and whether to believe the answer. Pure.

SCRAM (RFC 5802) proves that both sides know the password, without sending it. A server that demands more work than any
honest one would, or whose answer does not belong to our message, is refused.
"""

import base64
import binascii
import hashlib
import hmac

from .raw_errors import AuthenticationFailed

ITERATIONS_MIN = 4096  # the minimum of RFC 7677
ITERATIONS_MAX = 1_000_000
_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_CHANNEL = "n,,"  # no channel binding


def plain(username: str, password: str) -> bytes:
    """PLAIN's only message."""
    return f"\0{username}\0{password}".encode()


class Scram:
    """One exchange: send ``first``, pass the answer to ``final`` and send what that returns, pass the next answer to
    ``verify``."""

    def __init__(self, mechanism: str, username: str, password: str, nonce: str) -> None:
        self._hash = _HASHES[mechanism]
        self._password = password.encode()
        self._nonce = nonce
        self._first = f"n={_escaped(username)},r={nonce}"
        self._server_signature = b""

    @property
    def first(self) -> bytes:
        return (_CHANNEL + self._first).encode()

    def final(self, server_first: bytes) -> bytes:
        """The proof that we know the password."""
        text = _text(server_first)
        fields = _fields(text)
        nonce, salt, iterations = fields.get("r", ""), _decoded(fields.get("s", "")), fields.get("i", "")
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise AuthenticationFailed("SCRAM: the broker's nonce does not continue ours: somebody is in between")
        if not (iterations.isascii() and iterations.isdigit() and len(iterations) < 10):
            raise AuthenticationFailed(f"SCRAM: the broker wants {iterations[:20]!r} iterations")
        if not ITERATIONS_MIN <= int(iterations) <= ITERATIONS_MAX:
            raise AuthenticationFailed(
                f"SCRAM: the broker wants {iterations} iterations; {ITERATIONS_MIN} to {ITERATIONS_MAX} are accepted"
            )
        return self._proof(text, nonce, salt, int(iterations))

    def _proof(self, server_first: str, nonce: str, salt: bytes, iterations: int) -> bytes:
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, iterations)
        client_key = self._hmac(salted, b"Client Key")
        without_proof = f"c={base64.b64encode(_CHANNEL.encode()).decode()},r={nonce}"
        message = f"{self._first},{server_first},{without_proof}".encode()
        signature = self._hmac(hashlib.new(self._hash, client_key).digest(), message)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._server_signature = self._hmac(self._hmac(salted, b"Server Key"), message)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def verify(self, server_final: bytes) -> None:
        """Check that the broker knows the password, too."""
        fields = _fields(_text(server_final))
        if "e" in fields:
            raise AuthenticationFailed(f"SCRAM: the broker refused: {fields['e'][:200]}; are user and password right?")
        if not self._server_signature or not hmac.compare_digest(_decoded(fields.get("v", "")), self._server_signature):
            raise AuthenticationFailed(
                "SCRAM: the broker could not prove that it knows the password: is it the right one?"
            )

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._hash)


def _escaped(name: str) -> str:
    return name.replace("=", "=3D").replace(",", "=2C")


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise AuthenticationFailed("SCRAM: the broker's answer is no text") from None


def _fields(text: str) -> dict[str, str]:
    return {name: value for name, _, value in (part.partition("=") for part in text.split(","))}


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise AuthenticationFailed("SCRAM: the broker's answer is not in base64") from None
