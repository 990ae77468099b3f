"""Messages of MPI, each compared with what it has to be: exchange.py LARGEST [STEP]

Sizes go from one byte to LARGEST, each STEP times the one before (4 if not given). Each rank exchanges with its neighbours, then come allreduce,
alltoall, and one-sided operations with fences and with locks. Rank 0 prints what passed; the first difference ends all ranks.
"""
import sys
from array import array

from mpi4py import MPI

# Bytes of an element of sums, and repetitions of small messages, so that they also overtake each other.
WORD = 8
SMALL, OFTEN = 4096, 5
# Length of what a pattern repeats: a prime, so that a shift of any power of two shows.
PERIOD = 251
# The pattern once for each byte it may start with, as long as the largest message.
cycle = bytes(range(PERIOD))

world = MPI.COMM_WORLD
me, ranks = world.Get_rank(), world.Get_size()


def pattern(size, *what):
    """Bytes that depend on who sends what to whom."""
    start = sum(value * factor for value, factor in zip(what, (7, 31, 101))) % PERIOD
    return bytearray((cycle[start:] + cycle * (size // PERIOD + 1))[:size])


def check(got, wanted, what):
    if bytes(got) != bytes(wanted):
        at = next(i for i, (a, b) in enumerate(zip(got, wanted)) if a != b)
        print(f'rank {me}: {what} differs at {at} of {len(wanted)}', flush=True)
        world.Abort(1)


def send_and_receive(size, turn):
    """With both neighbours, blocking and not; receives are posted before and after what they match."""
    right, left = (me + 1) % ranks, (me - 1) % ranks
    got = bytearray(size)
    world.Sendrecv([pattern(size, me, turn), MPI.BYTE], right, 1, [got, MPI.BYTE], left, 1)
    check(got, pattern(size, left, turn), f'sendrecv of {size}')
    first, second = bytearray(size), bytearray(size)
    early = world.Irecv([first, MPI.BYTE], right, 2)
    sent = [world.Isend([pattern(size, me, to, turn), MPI.BYTE], to, tag) for to, tag in ((left, 2), (right, 3))]
    late = world.Irecv([second, MPI.BYTE], left, 3)
    MPI.Request.Waitall([early, late] + sent)
    check(first, pattern(size, right, me, turn), f'isend of {size}')
    check(second, pattern(size, left, me, turn), f'isend of {size}, taken late,')


def allreduce(size, turn):
    count = max(size // WORD, 1)
    mine = array('q', pattern(count * WORD, 1, turn))
    # No sum may overflow.
    mine = array('q', [v >> 8 for v in mine])
    total = array('q', bytes(count * WORD))
    world.Allreduce([mine, MPI.INT64_T], [total, MPI.INT64_T], MPI.SUM)
    check(total.tobytes(), array('q', [v * ranks for v in mine]).tobytes(), f'allreduce of {size}')


def alltoall(size, turn):
    mine = bytearray().join(pattern(size, me, to, turn) for to in range(ranks))
    got = bytearray(size * ranks)
    world.Alltoall([mine, MPI.BYTE], [got, MPI.BYTE])
    check(got, bytearray().join(pattern(size, of, me, turn) for of in range(ranks)), f'alltoall of {size}')


def one_sided(window, memory, largest, size, turn):
    """Puts into the right neighbour's first half, gets from its second half; then the same under a lock."""
    right, left = (me + 1) % ranks, (me - 1) % ranks
    # What is put has to stay where it is until the fence or the flush.
    got, first, second = bytearray(size), pattern(size, me, 4, turn), pattern(size, me, 5, turn)
    memory[largest:largest + size] = pattern(size, me, 3, turn)
    window.Fence()
    window.Put([first, MPI.BYTE], right, (0, size, MPI.BYTE))
    window.Get([got, MPI.BYTE], right, (largest, size, MPI.BYTE))
    window.Fence()
    check(got, pattern(size, right, 3, turn), f'get of {size}')
    check(memory[:size], pattern(size, left, 4, turn), f'put of {size}')
    world.Barrier()
    got = bytearray(size)
    window.Lock(right)
    window.Put([second, MPI.BYTE], right, (0, size, MPI.BYTE))
    window.Flush(right)
    window.Get([got, MPI.BYTE], right, (0, size, MPI.BYTE))
    window.Unlock(right)
    check(got, second, f'put and get of {size} under a lock')
    world.Barrier()


def atomics(window, memory):
    """Every rank adds to a word of rank 0, and each sum is seen once."""
    turns = 20
    if me == 0:
        memory[:WORD] = bytes(WORD)
    window.Fence()
    one, old = array('q', [1]), array('q', [0])
    seen = []
    window.Lock(0, MPI.LOCK_SHARED)
    for _ in range(turns):
        window.Fetch_and_op([one, MPI.INT64_T], [old, MPI.INT64_T], 0, 0, MPI.SUM)
        window.Flush(0)
        seen.append(old[0])
    window.Unlock(0)
    every = sorted(sum(world.allgather(seen), []))
    if every != list(range(turns * ranks)):
        print(f'rank {me}: sums of atomics were {every}', flush=True)
        world.Abort(1)
    window.Fence()


def main():
    largest = int(sys.argv[1])
    step = int(sys.argv[2]) if len(sys.argv) > 2 else 4
    sizes = []
    while not sizes or sizes[-1] * step <= largest:
        sizes.append(sizes[-1] * step if sizes else 1)
    window = MPI.Win.Allocate(2 * max(largest, WORD), 1, comm=world)
    memory = window.tomemory()
    for size in sizes:
        for turn in range(OFTEN if size <= SMALL else 1):
            send_and_receive(size, turn)
            allreduce(size, turn)
            alltoall(size, turn)
            one_sided(window, memory, max(largest, WORD), size, turn)
    atomics(window, memory)
    window.Free()
    # Requests of every rank have been answered before anyone takes its card down.
    world.Barrier()
    if me == 0:
        print(f'{ranks} ranks, {len(sizes)} sizes up to {sizes[-1]}: all as it should be', flush=True)


main()
