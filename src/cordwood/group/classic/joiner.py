"""A request to join, in the form that the code here needs."""

from dataclasses import dataclass

from cordwood.coordinator.outcome import Caller
from cordwood.wire.messages import JoinGroupRequest


@dataclass(slots=True)
class Joiner:
    """Who wants to join, and how. If a protocol is named twice, the first entry counts."""

    caller: Caller
    member_id: str
    instance_id: str | None
    protocol_type: str
    protocols: dict[str, bytes]
    rebalance_timeout_ms: int
    session_timeout_ms: int
    reason: str

    @classmethod
    def of(cls, request: JoinGroupRequest, caller: Caller) -> "Joiner":
        protocols: dict[str, bytes] = {}
        for protocol in request.protocols:
            protocols.setdefault(protocol.name, protocol.metadata)
        return cls(
            caller=caller,
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            protocol_type=request.protocol_type,
            protocols=protocols,
            # A negative timeout counts as 0. In a stored group, -1 means that it was not known.
            rebalance_timeout_ms=max(
                request.rebalance_timeout_ms if caller.api_version else request.session_timeout_ms, 0
            ),
            session_timeout_ms=request.session_timeout_ms,
            reason=request.reason or "not provided",
        )
