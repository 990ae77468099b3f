/* Datagram rsockets: what programs do wrong, and each call once as it should be. Two cards in one process, 10.0.0.1 and 10.0.0.2, whose addresses an interface has. Exits with 1 at
   the first call that does not do what it should. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
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

enum { PORT = 7471, MANY = 2000 };

static struct sockaddr_in at(const char *ip, int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	inet_pton(AF_INET, ip, &a.sin_addr);
	return a;
}
#define ADDR(a) ((struct sockaddr *)&(a)), sizeof(a)

static int event(int s, int events, int ms)
{
	struct pollfd p = { .fd = s, .events = events };
	int n = rpoll(&p, 1, ms);
	return n == 1 ? p.revents : n;
}

static int option(int s, int level, int name)
{
	int value = -1;
	socklen_t len = sizeof value;
	IS(rgetsockopt(s, level, name, &value, &len), 0);
	return value;
}

static void wrong(void)
{
	struct sockaddr_in a = at("10.0.0.1", PORT), nowhere = at("10.9.9.9", PORT), any = at("0.0.0.0", 0);
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	socklen_t len = sizeof a;
	char buf[8];
	FAILS(rsocket(AF_INET, SOCK_DGRAM, IPPROTO_TCP), EPROTONOSUPPORT);
	int s = rsocket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, IPPROTO_UDP);
	IS(s >= 0, 1);
	IS(option(s, SOL_SOCKET, SO_TYPE), SOCK_DGRAM);
	IS(option(s, SOL_SOCKET, SO_ERROR), 0);
	IS(rfcntl(s, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	/* What only streams have. */
	FAILS(rlisten(s, 1), EOPNOTSUPP);
	FAILS(raccept(s, NULL, NULL), EOPNOTSUPP);
	FAILS(rshutdown(s, SHUT_RDWR), EOPNOTSUPP);
	FAILS(riomap(s, buf, sizeof buf, PROT_WRITE, 0, -1), EOPNOTSUPP);
	/* No peer, no address. */
	FAILS(rsend(s, buf, sizeof buf, 0), EDESTADDRREQ);
	FAILS(rrecv(s, buf, sizeof buf, 0), EAGAIN);
	FAILS(rgetpeername(s, (struct sockaddr *)&a, &len), ENOTCONN);
	FAILS(rsendto(s, buf, sizeof buf, 0, (struct sockaddr *)&a, 3), EINVAL);
	FAILS(rsendto(s, buf, sizeof buf, 0, ADDR(six)), EAFNOSUPPORT);
	FAILS(rconnect(s, ADDR(six)), EAFNOSUPPORT);
	FAILS(rbind(s, ADDR(six)), EAFNOSUPPORT);
	FAILS(rbind(s, ADDR(nowhere)), EADDRNOTAVAIL);
	FAILS(rbind(s, NULL, 0), EINVAL);
	FAILS(rsend(s, NULL, 5, 0), EFAULT);
	FAILS(rrecv(s, NULL, 5, 0), EFAULT);
	IS(rbind(s, ADDR(a)), 0);
	FAILS(rbind(s, ADDR(a)), EINVAL);
	FAILS(rsendto(s, buf, sizeof buf, MSG_OOB, ADDR(a)), EOPNOTSUPP);
	int t = rsocket(AF_INET, SOCK_DGRAM, 0);
	FAILS(rbind(t, ADDR(a)), EADDRINUSE);
	IS(rbind(t, ADDR(any)), 0);
	IS(rclose(t), 0);
	FAILS(rclose(t), EBADF);
	IS(rclose(s), 0);
	FAILS(rsend(s, buf, sizeof buf, 0), EBADF);
}

/* Datagrams both ways: the first by way of the kernel, all others by the cards. */
static void right(void)
{
	struct sockaddr_in a = at("10.0.0.1", PORT), b = at("10.0.0.2", PORT + 1), from = {0};
	socklen_t len = sizeof from;
	char buf[4096], sent[4096], big[4096] = {0};
	int s = rsocket(AF_INET, SOCK_DGRAM, 0), t = rsocket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	IS(rbind(s, ADDR(a)), 0);
	IS(rbind(t, ADDR(b)), 0);
	IS(rgetsockname(t, (struct sockaddr *)&from, &len), 0);
	IS(memcmp(&from, &b, sizeof b), 0);
	IS(rconnect(t, ADDR(a)), 0);
	IS(rgetpeername(t, (struct sockaddr *)&from, &len), 0);
	IS(memcmp(&from, &a, sizeof a), 0);
	IS(event(s, POLLIN, 0), 0);
	IS(event(s, POLLOUT, 0), POLLOUT);
	/* A packet's payload is 4096 bytes, of which 8 are the header's. */
	FAILS(rsend(t, big, 4089, 0), EMSGSIZE);
	for (int i = 0; i < MANY; i++) {
		int n = i * 7 % 4089;
		for (int k = 0; k < n; k++)
			sent[k] = i + k * 3;
		struct iovec parts[] = { { sent, n / 3 }, { sent + n / 3, n - n / 3 } };
		struct msghdr msg = { .msg_iov = parts, .msg_iovlen = 2 };
		IS(i % 2 ? rsend(t, sent, n, 0) : rsendmsg(t, &msg, 0), n);
		IS(event(s, POLLIN, 5000), POLLIN);
		IS(rrecvfrom(s, buf, sizeof buf, MSG_PEEK, NULL, NULL), n);
		len = sizeof from;
		IS(rrecvfrom(s, buf, sizeof buf, 0, (struct sockaddr *)&from, &len), n);
		IS(memcmp(&from, &b, sizeof b) || len != sizeof b, 0);
		IS(memcmp(buf, sent, n), 0);
		/* Back, and into less room than it wants. */
		IS(rsendto(s, sent, n, 0, ADDR(from)), n);
		IS(event(t, POLLIN, 5000), POLLIN);
		struct iovec room[] = { { buf, 10 }, { buf + 10, 1000 } };
		struct sockaddr_in name;
		struct msghdr got = { .msg_iov = room, .msg_iovlen = 2, .msg_name = &name, .msg_namelen = sizeof name };
		IS(rrecvmsg(t, &got, 0), n < 1010 ? n : 1010);
		IS(got.msg_flags, n > 1010 ? MSG_TRUNC : 0);
		IS(memcmp(&name, &a, sizeof a), 0);
		IS(memcmp(buf, sent, n < 1010 ? n : 1010), 0);
		FAILS(rrecv(t, buf, sizeof buf, 0), EAGAIN);
	}
	/* One that is no peer of a connected socket is not heard. */
	int u = rsocket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in c = at("10.0.0.1", 0);
	IS(rbind(u, ADDR(c)), 0);
	IS(rsendto(u, "no", 2, 0, ADDR(b)), 2);
	IS(event(t, POLLIN, 100), 0);
	IS(rsendto(u, "yes", 3, 0, ADDR(a)), 3);
	IS(rrecv(s, buf, sizeof buf, 0), 3);
	/* More than anybody takes: some are lost, nothing else. */
	for (int i = 0; i < MANY; i++)
		IS(rsendto(s, sent, 100, 0, ADDR(b)), 100);
	int came = 0;
	while (event(t, POLLIN, 200) == POLLIN) {
		IS(rrecv(t, buf, sizeof buf, 0), 100);
		came++;
	}
	IS(came > 0 && came <= MANY, 1);
	IS(rsendto(s, "end", 3, 0, ADDR(b)), 3);
	IS(event(t, POLLIN, 5000), POLLIN);
	IS(rrecv(t, buf, sizeof buf, 0), 3);
	IS(rclose(u), 0);
	IS(rclose(s), 0);
	IS(rclose(t), 0);
}

/* What is no rsocket's is passed over. */
static void strangers(void)
{
	struct sockaddr_in a = at("10.0.0.1", PORT + 2);
	int s = rsocket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0), udp = socket(AF_INET, SOCK_DGRAM, 0);
	static unsigned char bytes[1000] = { 0x55, 0x55, 0x55, 0x55, 4, 0, 16, 0, 0xff, 0xff, 0xff, 0xff, 10, 0, 0, 1 };
	char buf[8];
	IS(rbind(s, ADDR(a)), 0);
	for (int n = 0; n < 16; n++)
		IS(sendto(udp, bytes, n, 0, ADDR(a)), n);
	for (int k = 0; k < 8; k++) {
		bytes[k] ^= 0x80;
		IS(sendto(udp, bytes, sizeof bytes, 0, ADDR(a)), sizeof bytes);
		bytes[k] ^= 0x80;
	}
	/* The eighth byte means nothing: that one is taken. Its sender has no such queue pair, and is no machine whose card answers. */
	IS(event(s, POLLIN, 5000), POLLIN);
	IS(rrecv(s, buf, sizeof buf, 0), sizeof buf);
	FAILS(rrecv(s, buf, sizeof buf, 0), EAGAIN);
	IS(rclose(s), 0);
	close(udp);
}

int main(void)
{
	wrong();
	right();
	strangers();
	printf("all as it should be\n");
	return 0;
}
