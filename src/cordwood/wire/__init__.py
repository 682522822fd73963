"""The wire layer: Kafka's messages as typed classes, and the bytes they travel as.

``messages`` declares each message once for all its versions, ``compiler`` turns a declaration and a version into a pair
of functions at first use, ``registry`` lists the APIs, ``frame`` puts headers and sizes around bodies for a broker,
``client_frame`` for a client. Whatever bytes a peer sends, decoding them takes memory in proportion to their number,
and raises nothing but ``ProtocolError``.

A broker needs all messages; a client in a process that lives for a second does not. Therefore neither this module nor
``client_frame`` loads any of them.
"""

from .compiler import decode, decoder, encode, encoder
from .types import NO_UUID, Records

__all__ = [
    "NO_UUID",
    "Records",
    "decode",
    "decoder",
    "encode",
    "encoder",
]
