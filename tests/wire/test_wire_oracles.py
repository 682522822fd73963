"""Every message in every version, byte for byte against codecs that are not ours."""

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from wire.builders import MESSAGES, fit, messages, versions
from wire.oracles import kafka_python_bytes, kafka_python_class, kio_bytes

from cordwood.wire import decode, encode

EVERY_MESSAGE = pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)
FEW = settings(max_examples=15, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])


@EVERY_MESSAGE
@FEW
@given(data=st.data())
def test_bytes_are_those_of_kio(cls: type, data: st.DataObject) -> None:
    drawn = data.draw(messages(cls))
    for version in versions(cls):
        message = fit(drawn, version)
        theirs = kio_bytes(message, version)
        assert encode(message, version) == theirs
        assert decode(cls, version, theirs) == message


@EVERY_MESSAGE
@FEW
@given(data=st.data())
def test_bytes_are_those_of_kafka_python(cls: type, data: st.DataObject) -> None:
    known = [version for version in versions(cls) if kafka_python_class(cls, version)]
    if not known:
        pytest.skip("kafka-python does not know it")
    drawn = data.draw(messages(cls))
    for version in known:
        message = fit(drawn, version)
        theirs = kafka_python_bytes(message, version)
        assert encode(message, version) == theirs
        assert decode(cls, version, theirs) == message
