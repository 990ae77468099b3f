"""Runs rdma-core's own pyverbs tests on two cards. FOLDER is what ./tests/pyverbs/fetch has unpacked; the other arguments are those of unittest.

The tests ask sysfs for the IP address of a card, and connect two processes by one address of one card. Here the addresses are those that
`ferric run` gives, and the process that connects has the second card."""
import errno
import os
import sys
import time
import unittest
from importlib.machinery import SourceFileLoader

ADDRESSES = {'ferric0': '10.0.0.1', 'ferric1': '10.0.0.2'}
SERVER, CLIENT = ADDRESSES.values()
# Of the first card's second function.
SECOND = '10.0.1.1'

folder = os.path.join(sys.argv.pop(1), 'usr')
sys.path.insert(0, os.path.join(folder, 'lib/python3/dist-packages'))
sys.path.insert(0, os.path.join(folder, 'share/doc/rdma-core/tests'))

from args_parser import parser

tests = SourceFileLoader('tests', os.path.join(sys.path[0], '__init__.py')).load_module()
import tests.base
import tests.base_rdmacm
import tests.rdmacm_utils
import tests.test_rss_traffic
from pyverbs.cmid import AddrInfo
from pyverbs.pyverbs_error import PyverbsRDMAError


def with_address(case, dev, port, index):
    case.args.append([dev, port, index, ADDRESSES[dev], None])


def of_client(src=None, **others):
    return AddrInfo(src=CLIENT if src == SERVER else src, **others)


def of_second_function(src=None, **others):
    return AddrInfo(src=SECOND if src == SERVER else src, **others)


class Unhurried:
    """A barrier. A datagram is lost when the card has not heard of the receive, and the tests send one as soon as it is posted; a card that is a
    program hears of it when it has its turn."""

    def __init__(self, barrier):
        self.barrier = barrier

    def wait(self):
        time.sleep(0.05)
        self.barrier.wait()


two_nodes = tests.base.RDMACMBaseTest.two_nodes_rdmacm_traffic


def on_two_cards(case, connection_resources, test_flow, **others):
    def flow(passive, **arguments):
        # The first process lets go of a card that it has closed within 50 ms; this one wants it.
        time.sleep(0.2)
        if not passive:
            tests.base_rdmacm.AddrInfo = tests.rdmacm_utils.AddrInfo = of_client
        elif test_flow.__name__ == 'rdmacm_multicast_traffic':
            # The first process keeps the card open, of which it has asked whether it has groups.
            tests.base_rdmacm.AddrInfo = tests.rdmacm_utils.AddrInfo = of_second_function
        case.syncer = Unhurried(case.syncer)
        test_flow(passive=passive, **arguments)

    two_nodes(case, connection_resources, flow, **others)


work_queues = tests.test_rss_traffic.RssRes.create_wqs


def if_there_are_any(resources):
    try:
        return work_queues(resources)
    except PyverbsRDMAError as refused:
        if refused.error_code == errno.EOPNOTSUPP:
            raise unittest.SkipTest('Create WQ is not supported')
        raise


tests.test_rss_traffic.RssRes.create_wqs = if_there_are_any
tests.base.RDMATestCase._get_ip_mac = with_address
tests.base.RDMACMBaseTest.two_nodes_rdmacm_traffic = on_two_cards
# The first, in a process in which no test has left a card open: theirs are the cards themselves, which have the connection manager.
tests.__test_modules__.sort(key=lambda module: not module.__name__.endswith('test_rdmacm'))
parser.parse_args()
unittest.main(module=tests)
