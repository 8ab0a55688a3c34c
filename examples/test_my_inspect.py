"""Inspect data of one's own, tested: what a component publishes, and that it can always be read.

    pytest examples/test_my_inspect.py

``Connections`` keeps its state in an Inspect VMO, as a component of Fuchsia does. ``crashtest``
comes with fxframework: it stops the writer after every single store.
"""

import pytest

import fxframework as fxf
from fx_inspect import Inspector
from fxframework.testing import reads_back


class Connections:
    """A component that counts its connections, and says who was the last."""

    def __init__(self, inspector):
        node = inspector.root.create_child("connections")
        self.open = node.create_uint("open", 0)
        self.last = node.create_string("last", "")
        self.millis = node.create_uint_linear_histogram("millis", 0, 10, 3)

    def connect(self, peer, millis):
        """A connection was made, in so many milliseconds."""
        self.open.add(1)
        self.last.set(peer)
        self.millis.insert(millis)


@pytest.fixture
def published():
    """What the component has published, read as any other tool would read it."""
    inspector = Inspector()
    connections = Connections(inspector)
    connections.connect("peer 1", 7)
    connections.connect("peer 2", 12)
    with fxf.open(inspector.copy(), format="inspect") as capture:
        yield capture


def test_the_whole_tree(published):
    assert published.tree() == {
        "connections": {
            "open": 2,
            "last": "peer 2",
            "millis": {"floor": 0, "step": 10, "counts": [0, 1, 1, 0, 0]},
        }
    }


def test_one_value(published):
    assert published.value("root/connections:last") == "peer 2"


def test_what_is_not_there(published):
    with pytest.raises(fxf.FxError, match="selects no properties"):
        published.value("root/connections:closed")


def test_nothing_departs_from_the_format(published):
    assert not published.diagnostics


def test_it_can_be_read_after_every_store(crashtest):
    def write(memory):
        connections = Connections(Inspector(memory))
        connections.connect("a peer with a long name, which takes a second block", 7)

    report = crashtest(write, reads_back("inspect"), size=4096)
    assert report.images == report.stores + 1
