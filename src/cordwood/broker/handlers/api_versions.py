"""ApiVersions (18), versions 0-4: what this broker serves.

A request in a version that we do not know is answered in version 0, with UNSUPPORTED_VERSION and the list, so that the
client can ask again in a version that both know (KIP-511). The answer's header is never the flexible one: the client
does not know yet what we speak.

Produce is listed from version 0, although 0 to 2 are refused: librdkafka takes a higher minimum as a sign that the
broker knows no compression (KAFKA-18659). Versions that Kafka has declared but not released are not served.
"""

import re
from typing import TYPE_CHECKING, Final

from cordwood.broker.connection import Call
from cordwood.errors import Error
from cordwood.wire.messages import ApiVersionsRequest, ApiVersionsResponse, ApiVersionsResponseApi
from cordwood.wire.registry import APIS

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker

PRODUCE: Final = 0
UNRELEASED_FROM: Final = {22: 6}  # of InitProducerId: for transactions that another coordinator ends (KIP-939)
SOFTWARE_LENGTH_MAX: Final = 80  # it goes into log lines

_SOFTWARE: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?")


def handle(broker: "Broker", call: Call, request: ApiVersionsRequest) -> ApiVersionsResponse:
    if call.api_version >= 3:
        name, version = request.client_software_name, request.client_software_version
        if not _SOFTWARE.fullmatch(name) or not _SOFTWARE.fullmatch(version):
            return ApiVersionsResponse(error_code=Error.INVALID_REQUEST)
        call.connection.software = f"{name}/{version}"[:SOFTWARE_LENGTH_MAX]
    return ApiVersionsResponse(api_keys=served())


def unsupported_version() -> ApiVersionsResponse:
    return ApiVersionsResponse(error_code=Error.UNSUPPORTED_VERSION, api_keys=served())


def served() -> list[ApiVersionsResponseApi]:
    from cordwood.broker.handlers import HANDLERS

    return [
        ApiVersionsResponseApi(
            api_key=key,
            min_version=0 if key == PRODUCE else served_versions(key).start,
            max_version=served_versions(key).stop - 1,
        )
        for key in sorted(HANDLERS)
    ]


def served_versions(api_key: int) -> range:
    """The served versions of an API, which must be one that is served."""
    known = APIS[api_key].versions
    return range(known.start, UNRELEASED_FROM.get(api_key, known.stop))
