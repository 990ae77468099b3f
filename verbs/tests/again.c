/* A program that closes its card and opens it again has the same function of it, and so the same address: whenever it does. The library closes the card some 50 ms after the program has,
 * and that takes a while. The rounds try every moment of this. */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 160, FIRST_US = 50000, STEP_US = 5 };

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

int main(void)
{
	struct ibv_device **all = ibv_get_device_list(NULL);
	union ibv_gid first, gid;
	int others = 0;
	if (!all || !all[0])
		return 1;
	for (int round = 0; round < ROUNDS; round++) {
		struct ibv_context *ctx = ibv_open_device(all[0]);
		double opened = now();
		if (!ctx || ibv_query_gid(ctx, 1, 0, &gid) != 0) {
			printf("round %d: not opened\n", round);
			return 1;
		}
		if (round == 0)
			first = gid;
		others += memcmp(&first, &gid, sizeof gid) != 0;
		ibv_close_device(ctx);
		while (now() - opened < FIRST_US + round * STEP_US)
			;
	}
	printf("%d of %d times another function\n", others, ROUNDS);
	return others != 0;
}
