/* Processes that share a card while some of them are killed.
     crowd PROCESSES VICTIMS SECONDS
   Each process opens the first card, gets a function of it, and has 100 RC queue pairs. Those of the processes that live are connected with one another; every message is
   compared, and at the end each queue pair has got as many as its peer has sent. The victims' are connected in pairs of their own, and always busy; they are killed with -9 in
   the middle of it, again and again, and others take their place. Before and afterwards the program counts how many objects it can make, in as many processes as there are, and
   the descriptors of the process that started it, which is the one that serves the card: it has one for each piece of a client's memory. */
#include <dirent.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 64, QPS = 100, SIZE = 1500, DEPTH = 4, PATIENCE = 60 };

/* What the processes tell each other. */
struct end {
	union ibv_gid gid;
	uint32_t qpn[QPS];
	/* Messages that each queue pair has sent. */
	_Atomic uint64_t sent[QPS];
	_Atomic int ready, connected;
	/* Messages that have come. */
	_Atomic uint64_t done;
	_Atomic int stopped, idle;
};
static struct { struct end ends[MOST]; _Atomic int stop, over; } *shared;
static int who, processes, victims;

static void failed(int line, const char *call)
{
	printf("process %d, line %d: %s (errno %d)\n", who, line, call, errno);
	fflush(stdout);
	_exit(1);
}
#define IS(call) do { if ((call) != 0) failed(__LINE__, #call); } while (0)
#define MADE(p) do { if (!(p)) failed(__LINE__, #p); } while (0)

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static void nap(void)
{
	usleep(1000);
}

/* A function is free again once the card has heard of its process's end. */
static struct ibv_context *opened(void)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);
	struct ibv_context *ctx = NULL;
	MADE(n > 0);
	for (double start = now(); !ctx && now() - start < PATIENCE;) {
		ctx = ibv_open_device(list[0]);
		if (!ctx && errno != EBUSY)
			break;
		if (!ctx)
			nap();
	}
	MADE(ctx);
	ibv_free_device_list(list);
	return ctx;
}

struct card {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp[QPS];
	uint8_t *memory;
};

static struct card card(void)
{
	struct card c = { .ctx = opened() };
	/* Sent and received messages of each queue pair. */
	size_t bytes = (size_t)QPS * 2 * DEPTH * SIZE;
	MADE(c.memory = malloc(bytes));
	MADE(c.pd = ibv_alloc_pd(c.ctx));
	MADE(c.mr = ibv_reg_mr(c.pd, c.memory, bytes, IBV_ACCESS_LOCAL_WRITE));
	MADE(c.cq = ibv_create_cq(c.ctx, QPS * 2 * DEPTH, NULL, NULL, 0));
	for (int i = 0; i < QPS; i++) {
		struct ibv_qp_init_attr init = { .send_cq = c.cq, .recv_cq = c.cq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1, .cap = { DEPTH, DEPTH, 1, 1, 0 } };
		struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
		MADE(c.qp[i] = ibv_create_qp(c.pd, &init));
		IS(ibv_modify_qp(c.qp[i], &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	}
	return c;
}

static void connected(struct ibv_qp *qp, union ibv_gid gid, uint32_t qpn)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .max_dest_rd_atomic = 1, .min_rnr_timer = 1, .dest_qp_num = qpn,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh.dgid = gid } };
	IS(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 16, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1 };
	IS(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
}

/* The queue pair's peer: a process and the number of one of its queue pairs. Those that live have one with everybody else in turn; a victim's are paired with one another. */
static void peer_of(int me, int i, int *process, int *number)
{
	int living = processes - victims;
	if (me >= living || living == 1) {
		*process = me;
		*number = i ^ 1;
		return;
	}
	/* Round r of `living - 1`: queue pairs r, r + living - 1, ... go to the process that is r + 1 further. What is left over at the end is paired at home. */
	int turns = QPS / (living - 1) * (living - 1), round = i % (living - 1);
	if (i >= turns) {
		*process = me;
		*number = ((i - turns) ^ 1) + turns < QPS ? ((i - turns) ^ 1) + turns : i;
		return;
	}
	*process = (me + round + 1) % living;
	*number = i - round + (living - 2 - round);
}

static uint8_t byte_of(int process, int i, uint64_t n, int at)
{
	return process * 7 + i * 31 + n * 101 + at;
}

static uint8_t *place(struct card *c, int i, int slot, int received)
{
	return c->memory + ((size_t)(i * 2 + received) * DEPTH + slot) * SIZE;
}

static void receive(struct card *c, int i, int slot)
{
	struct ibv_sge sge = { (uintptr_t)place(c, i, slot, 1), SIZE, c->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = (uint64_t)i << 8 | slot, .sg_list = &sge, .num_sge = 1 }, *bad;
	IS(ibv_post_recv(c->qp[i], &wr, &bad));
}

static void send(struct card *c, int i, uint64_t n)
{
	uint8_t *at = place(c, i, n % DEPTH, 0);
	for (int b = 0; b < SIZE; b++)
		at[b] = byte_of(who, i, n, b);
	struct ibv_sge sge = { (uintptr_t)at, SIZE, c->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad;
	IS(ibv_post_send(c->qp[i], &wr, &bad));
}

/* Waits until all processes that live have come so far. */
static void together(size_t what)
{
	double start = now();
	for (int p = 0; p < processes - victims; p++)
		while (!atomic_load((_Atomic int *)((char *)&shared->ends[p] + what))) {
			if (now() - start > PATIENCE)
				failed(__LINE__, "a process does not come");
			nap();
		}
}

static int work(void)
{
	struct card c = card();
	struct end *mine = &shared->ends[who];
	uint64_t sent[QPS] = { 0 }, completed[QPS] = { 0 }, came[QPS] = { 0 };
	int lives = who < processes - victims;
	IS(ibv_query_gid(c.ctx, 1, 0, &mine->gid));
	for (int i = 0; i < QPS; i++)
		mine->qpn[i] = c.qp[i]->qp_num;
	mine->ready = 1;
	if (lives)
		together(offsetof(struct end, ready));
	for (int i = 0; i < QPS; i++) {
		int process, number;
		peer_of(who, i, &process, &number);
		connected(c.qp[i], shared->ends[process].gid, shared->ends[process].qpn[number]);
		for (int slot = 0; slot < DEPTH; slot++)
			receive(&c, i, slot);
	}
	/* Nobody sends before its peer can answer. */
	mine->connected = 1;
	if (lives)
		together(offsetof(struct end, connected));
	double last = now();
	for (unsigned turn = 1;; turn++) {
		/* Others want to come to work, too. */
		if (lives && turn % 8 == 0)
			nap();
		int stop = shared->stop, busy = 0;
		for (int i = 0; i < QPS && !stop; i++)
			/* So many at a time that a receive waits for each. */
			if (sent[i] - completed[i] < DEPTH / 2) {
				send(&c, i, sent[i]++);
				mine->sent[i] = sent[i];
			}
		struct ibv_wc wc[16];
		int n = ibv_poll_cq(c.cq, 16, wc);
		if (n < 0)
			failed(__LINE__, "ibv_poll_cq");
		for (int k = 0; k < n; k++) {
			if (wc[k].status) {
				printf("process %d: a completion with status %d (%s)\n", who, wc[k].status, ibv_wc_status_str(wc[k].status));
				failed(__LINE__, "completion");
			}
			if (!(wc[k].opcode & IBV_WC_RECV)) {
				completed[wc[k].wr_id]++;
				continue;
			}
			int i = wc[k].wr_id >> 8, slot = wc[k].wr_id & 0xff, process, number;
			uint8_t *at = place(&c, i, slot, 1);
			peer_of(who, i, &process, &number);
			for (int b = 0; b < SIZE; b++)
				if (wc[k].byte_len != SIZE || at[b] != byte_of(process, number, came[i], b))
					failed(__LINE__, "a message is not what was sent");
			came[i]++;
			mine->done++;
			receive(&c, i, slot);
		}
		last = n > 0 ? now() : last;
		if (stop && !mine->stopped && lives) {
			mine->stopped = 1;
			together(offsetof(struct end, stopped));
			last = now();
		}
		if (!stop)
			continue;
		for (int i = 0; i < QPS; i++) {
			int process, number;
			peer_of(who, i, &process, &number);
			busy += completed[i] < sent[i] || came[i] < shared->ends[process].sent[number];
		}
		if (!busy)
			break;
		if (now() - last > PATIENCE)
			failed(__LINE__, "messages are lost");
	}
	mine->idle = 1;
	together(offsetof(struct end, idle));
	for (int i = 0; i < QPS; i++)
		IS(ibv_destroy_qp(c.qp[i]));
	IS(ibv_destroy_cq(c.cq));
	IS(ibv_dereg_mr(c.mr));
	IS(ibv_dealloc_pd(c.pd));
	IS(ibv_close_device(c.ctx));
	return 0;
}

/* Objects of each kind that a process can make, until the card has no more. */
struct counts { int qps, cqs, mrs, pds; };

static int counted(struct counts *made)
{
	struct ibv_context *ctx = opened();
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	static char memory[4096];
	MADE(pd = ibv_alloc_pd(ctx));
	MADE(cq = ibv_create_cq(ctx, 16, NULL, NULL, 0));
	struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };
	while (ibv_create_qp(pd, &init))
		made->qps++;
	while (ibv_create_cq(ctx, 16, NULL, NULL, 0))
		made->cqs++;
	while (ibv_reg_mr(pd, memory, sizeof memory, 0))
		made->mrs++;
	while (ibv_alloc_pd(ctx))
		made->pds++;
	/* All have their functions until all have counted; what is left open goes with the process. */
	shared->ends[who].ready = 1;
	double start = now();
	for (int p = 0; p < processes; p++)
		while (!shared->ends[p].ready)
			if (now() - start > PATIENCE)
				failed(__LINE__, "a process does not come");
			else
				nap();
	return 0;
}

static pid_t begun(int number, int (*what)(void *), void *with)
{
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		who = number;
		_exit(what(with));
	}
	if (pid < 0)
		failed(__LINE__, "fork");
	return pid;
}

static int working(void *unused)
{
	(void)unused;
	return work();
}

static int counting(void *made)
{
	return counted(made);
}

static void ended(pid_t pid, const char *what)
{
	int status;
	if (waitpid(pid, &status, 0) != pid || status != 0) {
		printf("%s: status %#x\n", what, status);
		exit(1);
	}
}

/* All processes count at once, as many as the card has functions. The sums. */
static struct counts count(void)
{
	struct counts *each = mmap(NULL, sizeof *each * MOST, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), sum = { 0 };
	pid_t pids[MOST];
	memset(shared, 0, sizeof *shared);
	for (int p = 0; p < processes; p++)
		pids[p] = begun(p, counting, &each[p]);
	for (int p = 0; p < processes; p++)
		ended(pids[p], "counting");
	for (int p = 0; p < processes; p++) {
		sum.qps += each[p].qps;
		sum.cqs += each[p].cqs;
		sum.mrs += each[p].mrs;
		sum.pds += each[p].pds;
	}
	munmap(each, sizeof *each * MOST);
	return sum;
}

/* Descriptors of the process that serves the card. */
static int descriptors(void)
{
	char path[64];
	int n = 0;
	snprintf(path, sizeof path, "/proc/%d/fd", getppid());
	DIR *dir = opendir(path);
	MADE(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

int main(int argc, char **argv)
{
	double seconds = argc == 4 ? atof(argv[3]) : 0;
	processes = argc == 4 ? atoi(argv[1]) : 0;
	victims = argc == 4 ? atoi(argv[2]) : 0;
	if (processes < 2 || processes > MOST || victims < 1 || victims >= processes || !(seconds > 0)) {
		fprintf(stderr, "crowd PROCESSES VICTIMS SECONDS\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	MADE((shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) != MAP_FAILED);
	/* Nobody has a connection now, and nobody will have one in the end. */
	int held = descriptors(), holds;
	struct counts before = count();
	pid_t pids[MOST];
	int killed = 0;
	uint64_t lost = 0, done = 0;
	memset(shared, 0, sizeof *shared);
	for (int p = 0; p < processes; p++)
		pids[p] = begun(p, working, NULL);
	int living = processes - victims;
	for (double start = now(); now() - start < seconds || killed < 2 * victims;) {
		int v = living + killed % victims, status;
		/* In the middle of its work. */
		for (double asked = now(); shared->ends[v].done < 50; nap())
			if (now() - asked > PATIENCE || waitpid(pids[v], &status, WNOHANG) != 0) {
				printf("a victim does not come to work\n");
				return 1;
			}
		kill(pids[v], SIGKILL);
		waitpid(pids[v], &status, 0);
		lost += shared->ends[v].done;
		memset(&shared->ends[v], 0, sizeof shared->ends[v]);
		pids[v] = begun(v, working, NULL);
		killed++;
		for (int p = 0; p < living; p++)
			if (waitpid(pids[p], &status, WNOHANG) != 0) {
				printf("process %d has ended\n", p);
				return 1;
			}
	}
	for (int v = living; v < processes; v++) {
		kill(pids[v], SIGKILL);
		waitpid(pids[v], NULL, 0);
	}
	shared->stop = 1;
	for (int p = 0; p < living; p++) {
		ended(pids[p], "a process that was to live");
		done += shared->ends[p].done;
	}
	struct counts after = count();
	/* It hears of a client's end a moment later. */
	for (double start = now(); (holds = descriptors()) > held && now() - start < PATIENCE;)
		nap();
	printf("%d processes of %d queue pairs, %d killed; %llu messages of those that live, %llu of those killed\n", processes, QPS, killed, (unsigned long long)done, (unsigned long long)lost);
	printf("before: %d queue pairs, %d completion queues, %d regions, %d domains\n", before.qps, before.cqs, before.mrs, before.pds);
	printf("after:  %d queue pairs, %d completion queues, %d regions, %d domains\n", after.qps, after.cqs, after.mrs, after.pds);
	printf("descriptors of the card's process: %d, and at most %d are right\n", holds, held);
	if (holds > held)
		return 1;
	if (memcmp(&before, &after, sizeof before) != 0 || before.qps < processes * QPS)
		return 1;
	printf("all as it should be\n");
	return 0;
}
