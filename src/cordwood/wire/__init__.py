"""The wire layer: Kafka's messages as typed classes, and the bytes they travel as.

``messages`` declares each message once for all its versions, ``compiler`` turns a declaration and a version into a pair
of functions at first use, ``registry`` lists the APIs, ``frame`` puts headers and sizes around bodies. Whatever bytes a
peer sends, decoding them takes memory in proportion to them and raises ``ProtocolError`` or nothing.
"""

from .compiler import decode, decoder, encode, encoder
from .frame import (
    Encoded,
    RequestHead,
    read_correlation_id,
    read_request,
    read_request_head,
    read_response,
    request_frame,
    response_frame,
)
from .registry import API_BY_NAME, APIS, Api
from .types import NO_UUID, Records

__all__ = [
    "APIS",
    "API_BY_NAME",
    "NO_UUID",
    "Api",
    "Encoded",
    "Records",
    "RequestHead",
    "decode",
    "decoder",
    "encode",
    "encoder",
    "read_correlation_id",
    "read_request",
    "read_request_head",
    "read_response",
    "request_frame",
    "response_frame",
]
