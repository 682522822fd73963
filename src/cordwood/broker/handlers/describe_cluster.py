"""DescribeCluster (60), versions 0-2: the cluster's id, its brokers and its controller.

- 1: the client says whether it means to ask a broker or a controller; there is no separate controller here.
"""

from typing import TYPE_CHECKING

from cordwood.broker.connection import Call
from cordwood.cluster.image import NO_LEADER
from cordwood.errors import Error
from cordwood.wire.messages import DescribeClusterRequest, DescribeClusterResponse, DescribeClusterResponseBroker

if TYPE_CHECKING:
    from cordwood.broker.broker import Broker

BROKERS, CONTROLLERS = 1, 2


def handle(broker: "Broker", call: Call, request: DescribeClusterRequest) -> DescribeClusterResponse:
    if request.endpoint_type != BROKERS:
        error = (
            Error.MISMATCHED_ENDPOINT_TYPE if request.endpoint_type == CONTROLLERS else Error.UNSUPPORTED_ENDPOINT_TYPE
        )
        return DescribeClusterResponse(error_code=error, error_message="This is a broker's endpoint.")
    return DescribeClusterResponse(
        cluster_id=broker.image.cluster_id,
        controller_id=NO_LEADER if broker.image.controller is None else broker.image.controller,
        brokers=[
            DescribeClusterResponseBroker(broker_id=info.id, host=info.host, port=info.port, rack=info.rack)
            for info in broker.brokers(call)
        ],
    )
