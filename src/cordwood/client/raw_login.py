"""Logging in to a broker by SASL: the exchange of messages, whose content ``raw_sasl`` provides."""

import secrets

from cordwood.wire.messages.security import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

from .raw_connection import Connection, shown
from .raw_errors import AuthenticationFailed, error_of
from .raw_sasl import Scram, plain
from .raw_settings import Security


def log_in(connection: Connection, security: Security) -> None:
    """
    Raises:
        AuthenticationFailed: our credentials were refused, or the broker could not prove that it knows the password.
    """
    handshake = connection.ask(SaslHandshakeRequest(mechanism=security.mechanism), SaslHandshakeResponse, version=1)
    if handshake.error_code:
        offered = ", ".join(handshake.mechanisms[:10]) or "none"
        raise AuthenticationFailed(
            f"the broker at {shown(connection.address)} does not take {security.mechanism}; it offers {offered}"
        )
    if security.mechanism == "PLAIN":
        _step(connection, security, plain(security.username, security.password))
        return
    scram = Scram(security.mechanism, security.username, security.password, secrets.token_hex(16))
    proof = scram.final(_step(connection, security, scram.first))
    scram.verify(_step(connection, security, proof))


def _step(connection: Connection, security: Security, data: bytes) -> bytes:
    answer = connection.ask(SaslAuthenticateRequest(auth_bytes=data), SaslAuthenticateResponse)
    if answer.error_code:
        raise AuthenticationFailed(
            f"the broker at {shown(connection.address)} refused user {security.username}: "
            f"{(answer.error_message or error_of(answer.error_code).name)[:300]}"
        )
    return bytes(answer.auth_bytes)
