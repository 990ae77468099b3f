/* rsockets: what programs do wrong, and each call once as it should be. Two cards in one process, 10.0.0.1 and 10.0.0.2. Exits with 1 at the first call that does not do what
   it should. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

static void line_failed(int line, const char *call, long got, long want)
{
	printf("line %d: %s: %ld (errno %d), not %ld\n", line, call, got, errno, want);
	exit(1);
}
#define IS(call, want) do { long got_ = (long)(call); if (got_ != (long)(want)) line_failed(__LINE__, #call, got_, (long)(want)); } while (0)
#define FAILS(call, number) do { errno = 0; IS(call, -1); IS(errno, number); } while (0)

enum { PORT = 7471, MOST = 1 << 20 };
static char buf[MOST], sent[MOST];

static struct sockaddr_in at(const char *ip, int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	inet_pton(AF_INET, ip, &a.sin_addr);
	return a;
}
#define ADDR(a) ((struct sockaddr *)&(a)), sizeof(a)

static int set(int s, int level, int option, int value)
{
	return rsetsockopt(s, level, option, &value, sizeof value);
}

static int get(int s, int level, int option)
{
	int value = -1;
	socklen_t len = sizeof value;
	IS(rgetsockopt(s, level, option, &value, &len), 0);
	return value;
}

static int event(int s, int events, int ms)
{
	struct pollfd p = { .fd = s, .events = events };
	int n = rpoll(&p, 1, ms);
	return n == 1 ? p.revents : n;
}

/* A socket of the second card that does not wait. */
static int client(void)
{
	struct sockaddr_in own = at("10.0.0.2", 0);
	int s = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	IS(s >= 0, 1);
	IS(rbind(s, ADDR(own)), 0);
	return s;
}

/* Two ends of a connection: the first is the client's and does not wait, the second does. */
static void connected(int listener, int ends[2])
{
	struct sockaddr_in to = at("10.0.0.1", PORT), peer = {0};
	socklen_t len = sizeof peer;
	ends[0] = client();
	FAILS(rconnect(ends[0], ADDR(to)), EINPROGRESS);
	IS(event(listener, POLLIN, 2000), POLLIN);
	ends[1] = raccept(listener, (struct sockaddr *)&peer, &len);
	IS(ends[1] >= 0, 1);
	IS(len, sizeof peer);
	IS(peer.sin_addr.s_addr == at("10.0.0.2", 0).sin_addr.s_addr, 1);
	IS(event(ends[0], POLLOUT, 2000), POLLOUT);
	IS(get(ends[0], SOL_SOCKET, SO_ERROR), 0);
	FAILS(rconnect(ends[0], ADDR(to)), EISCONN);
	IS(rfcntl(ends[1], F_SETFL, 0), 0);
}

static void no_socket(int s)
{
	struct sockaddr_in a = at("10.0.0.1", PORT);
	struct iovec v = { buf, 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
	socklen_t len = sizeof a;
	int n = 0;
	FAILS(rbind(s, ADDR(a)), EBADF);
	FAILS(rlisten(s, 1), EBADF);
	FAILS(raccept(s, NULL, NULL), EBADF);
	FAILS(rconnect(s, ADDR(a)), EBADF);
	FAILS(rshutdown(s, SHUT_RDWR), EBADF);
	FAILS(rclose(s), EBADF);
	FAILS(rrecv(s, buf, 1, 0), EBADF);
	FAILS(rrecvfrom(s, buf, 1, 0, NULL, NULL), EBADF);
	FAILS(rrecvmsg(s, &m, 0), EBADF);
	FAILS(rread(s, buf, 1), EBADF);
	FAILS(rreadv(s, &v, 1), EBADF);
	FAILS(rsend(s, buf, 1, 0), EBADF);
	FAILS(rsendto(s, buf, 1, 0, NULL, 0), EBADF);
	FAILS(rsendmsg(s, &m, 0), EBADF);
	FAILS(rwrite(s, buf, 1), EBADF);
	FAILS(rwritev(s, &v, 1), EBADF);
	FAILS(rgetpeername(s, (struct sockaddr *)&a, &len), EBADF);
	FAILS(rgetsockname(s, (struct sockaddr *)&a, &len), EBADF);
	FAILS(rsetsockopt(s, SOL_SOCKET, SO_SNDBUF, &n, sizeof n), EBADF);
	FAILS(rgetsockopt(s, SOL_SOCKET, SO_SNDBUF, &n, &len), EBADF);
	FAILS(rfcntl(s, F_GETFL), EBADF);
	FAILS(riomap(s, buf, 1, PROT_WRITE, 0, 0), EBADF);
	FAILS(riounmap(s, buf, 1), EBADF);
	FAILS(riowrite(s, buf, 1, 0, 0), EBADF);
}

static void wrong_calls(void)
{
	no_socket(-1);
	no_socket(0);
	no_socket(1 << 20);
	FAILS(rsocket(AF_UNIX, SOCK_STREAM, 0), EAFNOSUPPORT);
	FAILS(rsocket(AF_INET, SOCK_SEQPACKET, 0), EPROTONOSUPPORT);
	FAILS(rsocket(AF_INET, SOCK_STREAM, IPPROTO_UDP), EPROTONOSUPPORT);
	FAILS(rsocket(AF_INET, SOCK_DGRAM, IPPROTO_TCP), EPROTONOSUPPORT);
	struct sockaddr_in elsewhere = at("10.9.9.9", 0), own = at("10.0.0.2", 0);
	int s = rsocket(AF_INET, SOCK_STREAM, IPPROTO_TCP);
	FAILS(rbind(s, ADDR(elsewhere)), EADDRNOTAVAIL);
	FAILS(rbind(s, (struct sockaddr *)&own, 4), EINVAL);
	FAILS(rbind(s, NULL, 0), EINVAL);
	FAILS(raccept(s, NULL, NULL), EINVAL);
	FAILS(rsend(s, buf, 1, 0), ENOTCONN);
	FAILS(rrecv(s, buf, 1, 0), ENOTCONN);
	FAILS(rshutdown(s, SHUT_WR), ENOTCONN);
	FAILS(riomap(s, buf, 0, PROT_WRITE, 0, 0), EINVAL);
	FAILS(set(s, SOL_SOCKET, 9999, 1), ENOPROTOOPT);
	FAILS(rfcntl(s, 9999, 0), EOPNOTSUPP);
	struct sockaddr_in name;
	socklen_t len = sizeof name;
	FAILS(rgetpeername(s, (struct sockaddr *)&name, &len), ENOTCONN);
	IS(rgetsockname(s, (struct sockaddr *)&name, &len), 0);
	IS(rbind(s, ADDR(own)), 0);
	FAILS(rbind(s, ADDR(own)), EINVAL);
	IS(rgetsockname(s, (struct sockaddr *)&name, &len), 0);
	IS(name.sin_addr.s_addr == own.sin_addr.s_addr && name.sin_port != 0, 1);
	IS(event(s, POLLIN | POLLOUT, 0), 0);
	IS(rclose(s), 0);
	no_socket(s);
}

static void nobody_listens(void)
{
	struct sockaddr_in to = at("10.0.0.1", 999);
	int s = client();
	FAILS(rconnect(s, ADDR(to)), EINPROGRESS);
	IS(event(s, POLLOUT, 3000), POLLOUT | POLLERR);
	IS(get(s, SOL_SOCKET, SO_ERROR), ECONNREFUSED);
	IS(get(s, SOL_SOCKET, SO_ERROR), 0);
	FAILS(rsend(s, buf, 1, 0), ECONNREFUSED);
	IS(rclose(s), 0);
	s = client();
	IS(rfcntl(s, F_SETFL, 0), 0);
	FAILS(rconnect(s, ADDR(to)), ECONNREFUSED);
	IS(rclose(s), 0);
}

/* A connection of librdmacm that is not one of rsockets, in both directions. */
static void other_protocols(int listener)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_in own = at("10.0.0.2", 0), to = at("10.0.0.1", PORT), other = at("10.0.0.1", 7000);
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7, .qp_num = 100 };
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;
	IS(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	IS(rdma_resolve_addr(id, (struct sockaddr *)&own, (struct sockaddr *)&to, 1000), 0);
	IS(rdma_resolve_route(id, 1000), 0);
	IS(rdma_migrate_id(id, channel), 0);
	IS(rdma_connect(id, &param), 0);
	FAILS(({ int n; do { n = raccept(listener, NULL, NULL); } while (n < 0 && errno == EAGAIN && event(channel->fd, POLLIN, 10) == 0); n; }), EAGAIN);
	IS(rdma_get_cm_event(channel, &e), 0);
	IS(e->event, RDMA_CM_EVENT_REJECTED);
	IS(rdma_ack_cm_event(e), 0);
	IS(rdma_destroy_id(id), 0);

	IS(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	IS(rdma_bind_addr(id, (struct sockaddr *)&other), 0);
	IS(rdma_listen(id, 1), 0);
	int s = client();
	FAILS(rconnect(s, ADDR(other)), EINPROGRESS);
	FAILS(rsend(s, buf, 1, 0), EAGAIN);
	FAILS(rrecv(s, buf, 1, 0), EAGAIN);
	FAILS(rconnect(s, ADDR(other)), EALREADY);
	IS(rdma_get_cm_event(channel, &e), 0);
	IS(e->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	struct rdma_cm_id *accepted = e->id;
	IS(rdma_accept(accepted, &param), 0);
	IS(rdma_ack_cm_event(e), 0);
	IS(event(s, POLLIN, 3000), POLLIN | POLLERR);
	IS(get(s, SOL_SOCKET, SO_ERROR), EPROTO);
	IS(rclose(s), 0);
	rdma_disconnect(accepted);
	IS(rdma_destroy_id(accepted), 0);
	IS(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

static void streams(int listener)
{
	int e[2];
	connected(listener, e);
	FAILS(rrecv(e[0], buf, 1, 0), EAGAIN);
	FAILS(rrecv(e[1], buf, 1, MSG_DONTWAIT), EAGAIN);
	FAILS(rrecv(e[1], buf, 1, MSG_OOB), EOPNOTSUPP);
	FAILS(rsendto(e[0], buf, 1, 0, ADDR(((struct sockaddr_in[]){ at("10.0.0.1", PORT) })[0])), EISCONN);
	FAILS(set(e[0], SOL_RDMA, RDMA_SQSIZE, 100), EINVAL);

	/* Bytes that are looked at are still there; what was sent in two parts is one stream. */
	IS(rsend(e[0], "first", 5, 0), 5);
	IS(rwrite(e[0], "second", 6), 6);
	IS(rrecv(e[1], buf, 11, MSG_WAITALL), 11);
	IS(memcmp(buf, "firstsecond", 11), 0);
	struct iovec v[2] = { { "ab", 2 }, { "cde", 3 } }, to[2] = { { buf, 1 }, { buf + 1, 4 } };
	struct msghdr m = { .msg_iov = v, .msg_iovlen = 2 };
	IS(rwritev(e[0], v, 2), 5);
	IS(rsendmsg(e[0], &m, 0), 5);
	IS(event(e[1], POLLIN, 1000), POLLIN);
	while (rrecv(e[1], buf, 20, MSG_PEEK) < 10)
		;
	IS(rreadv(e[1], to, 2), 5);
	IS(memcmp(buf, "abcde", 5), 0);
	struct sockaddr_in peer;
	socklen_t len = sizeof peer;
	IS(rrecvfrom(e[1], buf, 3, 0, (struct sockaddr *)&peer, &len), 3);
	IS(len == sizeof peer && peer.sin_addr.s_addr == at("10.0.0.2", 0).sin_addr.s_addr, 1);
	m.msg_iov = to;
	IS(rrecvmsg(e[1], &m, 0), 2);
	IS(memcmp(buf, "de", 2), 0);

	/* A stream that nobody reads becomes full; what is read is what was sent, and it goes on. */
	for (int i = 0; i < MOST; i++)
		sent[i] = i * 7 + (i >> 8);
	for (int round = 0; round < 3; round++) {
		long full = 0;
		while (event(e[0], POLLOUT, 50) == POLLOUT)
			full += rsend(e[0], sent + full, MOST - full, 0);
		FAILS(rsend(e[0], sent, 1, 0), EAGAIN);
		/* The receive buffer, but for what is not handed out again yet. */
		IS(full >= 1 << 16 && full <= 1 << 17, 1);
		IS(rrecv(e[1], buf, full, MSG_WAITALL), full);
		IS(memcmp(buf, sent, full), 0);
		IS(event(e[0], POLLOUT, 1000), POLLOUT);
	}

	/* Beside descriptors that are none of ours. */
	int p[2];
	IS(pipe(p), 0);
	struct pollfd both[2] = { { .fd = p[0], .events = POLLIN }, { .fd = e[1], .events = POLLIN } };
	IS(rpoll(both, 2, 20), 0);
	IS(write(p[1], "x", 1), 1);
	IS(rpoll(both, 2, -1), 1);
	IS(both[0].revents == POLLIN && both[1].revents == 0, 1);
	IS(rsend(e[0], "y", 1, 0), 1);
	while (rpoll(both, 2, -1) != 2)
		;
	fd_set reads, writes;
	FD_ZERO(&reads);
	FD_ZERO(&writes);
	FD_SET(p[0], &reads);
	FD_SET(e[1], &reads);
	FD_SET(e[0], &reads);
	FD_SET(e[0], &writes);
	struct timeval limit = { 1, 0 };
	IS(rselect(1000, &reads, &writes, NULL, &limit), 3);
	IS(FD_ISSET(p[0], &reads) && FD_ISSET(e[1], &reads) && !FD_ISSET(e[0], &reads) && FD_ISSET(e[0], &writes), 1);
	FAILS(rselect(-1, NULL, NULL, NULL, NULL), EINVAL);
	IS(rread(e[1], buf, 10), 1);

	/* One direction ends, the other goes on. */
	FAILS(rshutdown(e[0], 77), EINVAL);
	IS(rsend(e[0], "last", 4, 0), 4);
	IS(rshutdown(e[0], SHUT_WR), 0);
	FAILS(rsend(e[0], "x", 1, 0), EPIPE);
	IS(rrecv(e[1], buf, 10, MSG_WAITALL), 4);
	IS(rrecv(e[1], buf, 10, 0), 0);
	IS(rsend(e[1], "answer", 6, 0), 6);
	IS(event(e[0], POLLIN, 1000), POLLIN);
	IS(rrecv(e[0], buf, 10, 0), 6);
	IS(rclose(e[0]), 0);
	IS(event(e[1], POLLIN, 1000), POLLIN | POLLHUP);
	IS(rrecv(e[1], buf, 10, 0), 0);
	FAILS(rsend(e[1], "x", 1, 0), ECONNRESET);
	IS(rclose(e[1]), 0);

	/* What was sent before the end is read behind it. */
	connected(listener, e);
	IS(rsend(e[1], "gone", 4, 0), 4);
	IS(rclose(e[1]), 0);
	IS(event(e[0], POLLIN, 1000) & POLLIN, POLLIN);
	IS(rrecv(e[0], buf, 10, 0), 4);
	while (event(e[0], 0, 100) != POLLHUP)
		;
	IS(rrecv(e[0], buf, 10, 0), 0);
	IS(rclose(e[0]), 0);
}

enum { STREAM = 3 << 20 };
struct work { int socket, reads, seed; };

/* Sends or receives a stream by calls that wait, in pieces of different sizes. */
static void *worker(void *arg)
{
	struct work *w = arg;
	char *b = malloc(100000);
	for (long done = 0, n; done < STREAM; done += n) {
		long part = 1 + (done * 7919 + w->seed) % 99999;
		part = part < STREAM - done ? part : STREAM - done;
		if (w->reads) {
			n = rrecv(w->socket, b, part, 0);
			IS(n > 0 && n <= part, 1);
			for (long i = 0; i < n; i++)
				if (b[i] != (char)((done + i) * 31 + ((done + i) >> 8)))
					IS(done + i, -1);
		} else {
			for (long i = 0; i < part; i++)
				b[i] = (done + i) * 31 + ((done + i) >> 8);
			n = rsend(w->socket, b, part, 0);
			IS(n, part);
		}
	}
	free(b);
	return NULL;
}

static void *closer(void *socket)
{
	usleep(20000);
	IS(rclose(*(int *)socket), 0);
	return NULL;
}

/* Both directions at once, a thread for each end of each, all of which wait. */
static void threads(int listener)
{
	int e[2];
	connected(listener, e);
	IS(rfcntl(e[0], F_SETFL, 0), 0);
	pthread_t t[4];
	struct work w[4];
	for (int i = 0; i < 4; i++) {
		w[i] = (struct work){ e[i / 2], i % 2, i * 1000 };
		IS(pthread_create(&t[i], NULL, worker, &w[i]), 0);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	/* One that waits sees that its socket is closed by another. */
	IS(pthread_create(&t[0], NULL, closer, &e[1]), 0);
	IS(rrecv(e[1], buf, 1, 0) <= 0, 1);
	pthread_join(t[0], NULL);
	IS(rclose(e[0]), 0);
}

static void mappings(int listener)
{
	int e[2];
	static char target[100];
	connected(listener, e);
	/* The listener has room for two mappings of its peer's; the client has none for the server's. */
	FAILS(riomap(e[1], target, sizeof target, PROT_WRITE, 0, 0), ENOMEM);
	FAILS(riomap(e[0], target, sizeof target, PROT_READ, 0, 0), EINVAL);
	IS(riomap(e[0], target, sizeof target, PROT_WRITE, 0, 5000), 5000);
	IS(riomap(e[0], buf, 10, PROT_WRITE, 0, -1), (long)buf);
	FAILS(riomap(e[0], buf, 20, PROT_WRITE, 0, 0), ENOMEM);
	IS(riomap(e[0], sent, 20, PROT_NONE, 0, 0), 0);
	FAILS(riowrite(e[1], "x", 1, 5000, 0), EINVAL);
	/* The peer knows of them when it has received what follows. */
	IS(rsend(e[0], "mapped", 6, 0), 6);
	IS(rrecv(e[1], sent, 6, MSG_WAITALL), 6);
	IS(riowrite(e[1], "direct", 6, 5010, 0), 6);
	IS(riowrite(e[1], "into", 4, (off_t)buf, 0), 4);
	/* As much as is left of the mapping. */
	IS(riowrite(e[1], "end of it", 9, 5095, 0), 5);
	FAILS(riowrite(e[1], "x", 1, 5100, 0), EINVAL);
	IS(rsend(e[1], "written", 7, 0), 7);
	IS(event(e[0], POLLIN, 1000), POLLIN);
	IS(rrecv(e[0], sent, 10, 0), 7);
	IS(memcmp(target + 10, "direct", 6) || memcmp(buf, "into", 4) || memcmp(target + 95, "end o", 5), 0);
	IS(riounmap(e[0], buf, 10), 0);
	FAILS(riounmap(e[0], buf, 10), EINVAL);
	IS(riomap(e[0], buf, 20, PROT_WRITE, 0, 0), 0);
	/* A mapping that was taken back: its key is none any more. */
	IS(riounmap(e[0], target, sizeof target), 0);
	IS(riowrite(e[1], "late", 4, 5000, 0), 4);
	while (event(e[1], POLLIN, 100) == 0)
		;
	FAILS(rrecv(e[1], buf, 1, 0), ECONNRESET);
	IS(get(e[1], SOL_SOCKET, SO_ERROR), ECONNRESET);
	IS(rclose(e[1]), 0);
	IS(rclose(e[0]), 0);
}

int main(void)
{
	alarm(60);
	wrong_calls();
	struct sockaddr_in here = at("10.0.0.1", PORT);
	int listener = rsocket(AF_INET, SOCK_STREAM, 0);
	IS(set(listener, SOL_SOCKET, SO_REUSEADDR, 1), 0);
	IS(set(listener, IPPROTO_TCP, TCP_NODELAY, 1), 0);
	IS(get(listener, IPPROTO_TCP, TCP_NODELAY), 1);
	IS(set(listener, SOL_RDMA, RDMA_IOMAPSIZE, 2), 0);
	IS(rbind(listener, ADDR(here)), 0);
	IS(rlisten(listener, 5), 0);
	IS(rlisten(listener, 5), 0);
	int second = rsocket(AF_INET, SOCK_STREAM, 0);
	IS(rbind(second, ADDR(here)), 0);
	FAILS(rlisten(second, 5), EADDRINUSE);
	IS(rclose(second), 0);
	IS(event(listener, POLLIN, 0), 0);
	IS(rfcntl(listener, F_SETFL, O_NONBLOCK), 0);
	IS(rfcntl(listener, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	FAILS(raccept(listener, NULL, NULL), EAGAIN);
	nobody_listens();
	other_protocols(listener);
	streams(listener);
	threads(listener);
	mappings(listener);
	IS(rclose(listener), 0);
	printf("all as it should be\n");
	return 0;
}
