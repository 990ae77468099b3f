"""Runs rdma-core's own pyverbs tests on two cards. FOLDER is what ./tests/pyverbs/fetch has unpacked; the other arguments are those of unittest.

The tests ask sysfs for the IP address of a card, and connect two processes by one address of one card. Here the addresses are those that
`ferric run` gives, and the process that connects has the second card."""
import errno
import ipaddress
import multiprocessing
import os
import sys
import time
import unittest
from importlib.machinery import SourceFileLoader

ADDRESSES = {'ferric0': '10.0.0.1', 'ferric1': '10.0.0.2'}
SERVER = ADDRESSES['ferric0']
# Seconds in which a process that has ended must have let go of its function of a card.
PATIENCE = 10

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
from pyverbs.device import Context
from pyverbs.pyverbs_error import PyverbsRDMAError


def with_address(case, dev, port, index):
    case.args.append([dev, port, index, ADDRESSES[dev], None])


def from_address(address):
    """The tests' address information, in which the passive side's address is this one as a source."""
    return lambda src=None, **others: AddrInfo(src=address if src == SERVER else src, **others)


def own_address(context):
    """The address of the function that this process was given."""
    gids = (context.query_gid(1, index).gid for index in range(context.query_port(1).gid_tbl_len))
    last = next(gid for gid in gids if gid.startswith('0000:0000:0000:0000:0000:ffff:')).split(':')[-2:]
    return str(ipaddress.IPv4Address(int(''.join(last), 16)))


def opened(card, first):
    """That card, open: a process has one function of it as long as it has it open. With `first` it is the card's first function, whose address the
    tests know: a process that has ended or closed the card lets go of its function a moment later."""
    end = time.monotonic() + PATIENCE
    while True:
        context = Context(name=card)
        if not first or own_address(context) == ADDRESSES[card]:
            return context
        context.close()
        if time.monotonic() > end:
            raise TimeoutError(f'the first function of {card} is in use')
        time.sleep(0.05)


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
        # In the tests of multicast the process that starts these two has the first card open, of which it has asked whether it has groups; nobody
        # connects to the address there.
        first = not passive or test_flow.__name__ != 'rdmacm_multicast_traffic'
        case.card = opened('ferric0' if passive else 'ferric1', first)
        tests.base_rdmacm.AddrInfo = tests.rdmacm_utils.AddrInfo = from_address(own_address(case.card))
        case.syncer = Unhurried(case.syncer)
        test_flow(passive=passive, **arguments)

    try:
        two_nodes(case, connection_resources, flow, **others)
    finally:
        # It ends processes that take too long (all, where the connection is to be refused) without waiting for their end, and until then they have the first functions.
        for process in multiprocessing.active_children():
            process.join(PATIENCE)


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
