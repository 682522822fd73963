"""Every message in every version, byte for byte against codecs that are not ours."""

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from cordwood.wire import decode, encode
from wire.builders import MESSAGES, fit, messages, versions
from wire.oracles import kafka_python_bytes, kafka_python_versions, kio_bytes

# On one worker: to load all messages of other codecs takes as long as to compare them with ours.
pytestmark = pytest.mark.xdist_group("oracles")

EVERY_MESSAGE = pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)
FEW = settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],  # to shrink a message in all its versions takes minutes; the differing version says enough
)


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


@pytest.mark.parametrize("cls", [cls for cls in MESSAGES if kafka_python_versions(cls)], ids=lambda cls: cls.__name__)
@FEW
@given(data=st.data())
def test_bytes_are_those_of_kafka_python(cls: type, data: st.DataObject) -> None:
    drawn = data.draw(messages(cls))
    for version in kafka_python_versions(cls):
        message = fit(drawn, version)
        theirs = kafka_python_bytes(message, version)
        assert encode(message, version) == theirs
        assert decode(cls, version, theirs) == message


def test_both_know_most_of_it() -> None:
    """So that an oracle that forgets its messages does not pass for one that agrees."""
    assert sum(len(versions(cls)) for cls in MESSAGES) == 556
    assert sum(len(kafka_python_versions(cls)) for cls in MESSAGES) == 478
