/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * With the real libnl-3; the test has the kernel's responses. nl_connect() and nl_recv() of
 * this program replace libnl's functions.
 */

#define _GNU_SOURCE /* RTLD_NEXT */

#include "devices.h"
#include "fake.h"
#include "netlink.h"
#include "test.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <linux/netlink.h>
#include <netlink/errno.h>
#include <netlink/handlers.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <rdma/rdma_netlink.h>
#include <sys/resource.h>

void __real_free(void *memory);

#define GET         RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET)
#define GET_CHARDEV RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET_CHARDEV)

/* --- the kernel ----------------------------------------------------------------- */

/* The response to the n-th request: a list of datagrams; after the last one EAGAIN. */
static struct {
	unsigned char bytes[4096];
	size_t size;
} responses[2][8];
static int response_count[2], responded[2];
static int requests;
static bool real_kernel;
static int connect_error, send_error;
static int send_errors_from; /* the first request whose send fails */

/* The sent requests, and the flags of the socket's descriptor. */
static struct {
	unsigned char bytes[64];
	size_t size;
	int flags;
} sent[2];

/* The last GET_CHARDEV request. */
static char asked_type[32];
static uint32_t asked_index, asked_port;

static int note_request(struct nl_sock *sock, struct nl_msg *msg)
{
	struct nlmsghdr *header = nlmsg_hdr(msg);
	struct nlattr *attrs[RDMA_NLDEV_ATTR_MAX];

	if (send_error && requests >= send_errors_from)
		return -send_error;
	assert_true(requests < 2 && header->nlmsg_len <= sizeof(sent[0].bytes));
	memcpy(sent[requests].bytes, header, header->nlmsg_len);
	sent[requests].size = header->nlmsg_len;
	sent[requests].flags = fcntl(nl_socket_get_fd(sock), F_GETFL);
	if (header->nlmsg_type == GET_CHARDEV) {
		assert_int_equal(nlmsg_parse(header, 0, attrs, RDMA_NLDEV_ATTR_MAX - 1, NULL),
				 0);
		snprintf(asked_type, sizeof(asked_type), "%s",
			 nla_get_string(attrs[RDMA_NLDEV_ATTR_CHARDEV_TYPE]));
		asked_index = nla_get_u32(attrs[RDMA_NLDEV_ATTR_DEV_INDEX]);
		asked_port = nla_get_u32(attrs[RDMA_NLDEV_ATTR_PORT_INDEX]);
		assert_false(header->nlmsg_flags & NLM_F_DUMP);
	} else {
		assert_int_equal(header->nlmsg_type, GET);
		assert_int_equal(header->nlmsg_flags & NLM_F_DUMP, NLM_F_DUMP);
	}
	assert_true(header->nlmsg_flags & NLM_F_REQUEST);
	requests++;
	return (int)header->nlmsg_len;
}

/* libnl frees what it receives: its own allocator must provide the memory. */
static int give_response(struct nl_sock *sock, struct sockaddr_nl *sender, unsigned char **buf,
			 struct ucred **creds)
{
	void *(*real_malloc)(size_t) = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
	int request = requests - 1, size;
	struct nlmsghdr *header;

	(void)creds;
	if (request < 0 || responded[request] == response_count[request])
		return -NLE_AGAIN;
	size = (int)responses[request][responded[request]].size;
	*buf = real_malloc((size_t)size);
	memcpy(*buf, responses[request][responded[request]++].bytes, (size_t)size);
	*sender = (struct sockaddr_nl){.nl_family = AF_NETLINK};
	for (header = (struct nlmsghdr *)*buf; nlmsg_ok(header, size);
	     header = nlmsg_next(header, &size)) {
		header->nlmsg_pid = nl_socket_get_local_port(sock);
		/* the sequence number of the last request */
		header->nlmsg_seq = nl_socket_use_seq(sock) - 1;
		break;
	}
	return (int)responses[request][responded[request] - 1].size;
}

/* --- faults of libnl itself ----------------------------------------------------- */

static unsigned libnl_fails_in; /* the n-th call from now on fails, 0 none */
static int nonblocking_error, membership_error;
static int joined_group, connected_to;

static bool libnl_fails(void)
{
	return libnl_fails_in && !--libnl_fails_in;
}

struct nl_sock *nl_socket_alloc(void)
{
	struct nl_sock *(*real)(void) =
		(struct nl_sock * (*)(void)) dlsym(RTLD_NEXT, "nl_socket_alloc");

	return libnl_fails() ? NULL : real();
}

struct nl_msg *nlmsg_alloc_simple(int type, int flags)
{
	struct nl_msg *(*real)(int, int) =
		(struct nl_msg * (*)(int, int)) dlsym(RTLD_NEXT, "nlmsg_alloc_simple");

	return libnl_fails() ? NULL : real(type, flags);
}

int nla_put_string(struct nl_msg *msg, int type, const char *text)
{
	int (*real)(struct nl_msg *, int, const char *) =
		(int (*)(struct nl_msg *, int, const char *))dlsym(RTLD_NEXT, "nla_put_string");

	return libnl_fails() ? -NLE_NOMEM : real(msg, type, text);
}

int nla_put_u32(struct nl_msg *msg, int type, uint32_t value)
{
	int (*real)(struct nl_msg *, int, uint32_t) =
		(int (*)(struct nl_msg *, int, uint32_t))dlsym(RTLD_NEXT, "nla_put_u32");

	return libnl_fails() ? -NLE_NOMEM : real(msg, type, value);
}

int nl_socket_set_nonblocking(const struct nl_sock *sock)
{
	int (*real)(const struct nl_sock *) =
		(int (*)(const struct nl_sock *))dlsym(RTLD_NEXT, "nl_socket_set_nonblocking");

	return nonblocking_error ? -nonblocking_error : real(sock);
}

int nl_socket_add_membership(struct nl_sock *sock, int group)
{
	int (*real)(struct nl_sock *, int) =
		(int (*)(struct nl_sock *, int))dlsym(RTLD_NEXT, "nl_socket_add_membership");

	joined_group = group;
	return membership_error ? -membership_error : real(sock, group);
}

int nl_connect(struct nl_sock *sock, int protocol)
{
	int (*real)(struct nl_sock *, int) =
		(int (*)(struct nl_sock *, int))dlsym(RTLD_NEXT, "nl_connect");
	struct nl_cb *callbacks;

	if (real_kernel)
		return real(sock, protocol);
	connected_to = protocol;
	if (connect_error)
		return -connect_error;
	callbacks = nl_socket_get_cb(sock);
	nl_cb_overwrite_send(callbacks, note_request);
	nl_cb_overwrite_recv(callbacks, give_response);
	nl_cb_put(callbacks);
	nl_socket_disable_seq_check(sock);
	/* any descriptor will do */
	return real(sock, NETLINK_ROUTE);
}

/* --- uevents -------------------------------------------------------------------- */

static struct {
	const char *text;
	int length; /* or libnl's error */
	uint32_t sender;
} datagrams[8];
static int datagram_count, datagram_next;

int nl_recv(struct nl_sock *sock, struct sockaddr_nl *sender, unsigned char **buf,
	    struct ucred **creds)
{
	int (*real)(struct nl_sock *, struct sockaddr_nl *, unsigned char **, struct ucred **) =
		(int (*)(struct nl_sock *, struct sockaddr_nl *, unsigned char **,
			 struct ucred **))dlsym(RTLD_NEXT, "nl_recv");
	unsigned char *received = NULL;
	int length;

	if (real_kernel) {
		/* memory that libnl allocated is not counted; its owner frees it */
		length = real(sock, sender, &received, creds);
		if (length > 0) {
			*buf = malloc((size_t)length);
			memcpy(*buf, received, (size_t)length);
			__real_free(received);
		}
		return length;
	}
	if (datagram_next == datagram_count)
		return -NLE_AGAIN;
	length = datagrams[datagram_next].length;
	sender->nl_pid = datagrams[datagram_next].sender;
	if (length > 0) {
		*buf = malloc((size_t)length);
		memcpy(*buf, datagrams[datagram_next].text, (size_t)length);
	} else if (length == -NLE_NOMEM)
		errno = (int)datagrams[datagram_next].sender;
	datagram_next++;
	return length;
}

/* With a length of -NLE_NOMEM, the sender is the errno. */
static void datagram(const char *text, int length, uint32_t sender)
{
	datagrams[datagram_count].text = text;
	datagrams[datagram_count].length = length;
	datagrams[datagram_count++].sender = sender;
}

/* --- responses ------------------------------------------------------------------ */

static int setup(void)
{
	memset(response_count, 0, sizeof(response_count));
	memset(responded, 0, sizeof(responded));
	requests = 0;
	real_kernel = false;
	connect_error = send_error = send_errors_from = 0;
	nonblocking_error = membership_error = 0;
	libnl_fails_in = 0;
	datagram_count = datagram_next = 0;
	asked_type[0] = '\0';
	return fake_setup();
}

FIXTURE(setup, fake_teardown);

/* Adds a message to the responses to a request, as a separate datagram. */
static void respond(int request, struct nl_msg *msg)
{
	struct nlmsghdr *header = nlmsg_hdr(msg);
	int i = response_count[request]++;

	memcpy(responses[request][i].bytes, header, header->nlmsg_len);
	responses[request][i].size = header->nlmsg_len;
	nlmsg_free(msg);
}

static struct nl_msg *device(uint32_t index, const char *name)
{
	struct nl_msg *msg = nlmsg_alloc_simple(GET, NLM_F_MULTI);

	nla_put_u32(msg, RDMA_NLDEV_ATTR_DEV_INDEX, index);
	nla_put_string(msg, RDMA_NLDEV_ATTR_DEV_NAME, name);
	return msg;
}

static struct nl_msg *done(void)
{
	int status = 0;
	struct nl_msg *msg = nlmsg_alloc_simple(NLMSG_DONE, NLM_F_MULTI);

	nlmsg_append(msg, &status, sizeof(status), NLMSG_ALIGNTO);
	return msg;
}

static struct nl_msg *chardev(const char *name)
{
	struct nl_msg *msg = nlmsg_alloc_simple(GET_CHARDEV, 0);

	nla_put_string(msg, RDMA_NLDEV_ATTR_CHARDEV_NAME, name);
	nla_put_u64(msg, RDMA_NLDEV_ATTR_CHARDEV_ABI, 5);
	nla_put_u64(msg, RDMA_NLDEV_ATTR_CHARDEV, 0xe700);
	return msg;
}

static struct nl_msg *error(int err)
{
	struct nlmsgerr body = {.error = -err};
	struct nl_msg *msg = nlmsg_alloc_simple(NLMSG_ERROR, 0);

	nlmsg_append(msg, &body, sizeof(body), NLMSG_ALIGNTO);
	return msg;
}

static void respond_devices(void)
{
	respond(0, device(7, "mlx5_0"));
	respond(0, device(9, "mlx5_1"));
	respond(0, done());
}

static char name[32];

static int find(const char *ca_name)
{
	memset(name, 0, sizeof(name));
	return netlink_find_umad(ca_name, 3, name, sizeof(name));
}

/* --- the request for a port's device -------------------------------------------- */

TEST(a_device_is_asked_for_by_index_and_port)
{
	respond_devices();
	respond(1, chardev("umad12"));
	assert_int_equal(find("mlx5_1"), 0);
	assert_string_equal(name, "umad12");
	assert_string_equal(asked_type, "umad");
	assert_int_equal(asked_index, 9);
	assert_int_equal(asked_port, 3);
	assert_int_equal(requests, 2);
}

TEST(a_device_that_the_kernel_does_not_list_is_no_device)
{
	respond_devices();
	assert_int_equal(find("mlx5_2"), -ENODEV);
	assert_int_equal(requests, 1);
}

TEST(a_kernel_that_does_not_respond_gives_no_device)
{
	assert_int_equal(find("mlx5_0"), -ENODEV);
	assert_int_equal(fake_teardown(), 0);
	assert_int_equal(setup(), 0);
	respond_devices();
	assert_int_equal(find("mlx5_0"), -ENOENT);
	assert_string_equal(name, "");
}

TEST(a_kernel_that_rejects_the_request_gives_no_device)
{
	static const int errors[] = {EINVAL, EOPNOTSUPP, EPERM, ENODEV};
	size_t i;

	for (i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
		respond(0, error(errors[i]));
		assert_int_equal(find("mlx5_0"), -ENODEV);
		assert_int_equal(fake_teardown(), 0);
		assert_int_equal(setup(), 0);
		respond_devices();
		respond(1, error(errors[i]));
		assert_int_equal(find("mlx5_0"), -ENOENT);
		assert_int_equal(fake_teardown(), 0);
		assert_int_equal(setup(), 0);
	}
}

TEST(devices_without_index_or_name_are_passed_over)
{
	struct nl_msg *msg;

	msg = nlmsg_alloc_simple(GET, NLM_F_MULTI);
	nla_put_string(msg, RDMA_NLDEV_ATTR_DEV_NAME, "mlx5_0");
	respond(0, msg);
	msg = nlmsg_alloc_simple(GET, NLM_F_MULTI);
	nla_put_u32(msg, RDMA_NLDEV_ATTR_DEV_INDEX, 1);
	respond(0, msg);
	msg = nlmsg_alloc_simple(GET, NLM_F_MULTI);
	nla_put_string(msg, RDMA_NLDEV_ATTR_DEV_NAME, "mlx5_0");
	nla_put_u16(msg, RDMA_NLDEV_ATTR_DEV_INDEX, 2);
	respond(0, msg);
	/* a name without a NUL */
	msg = nlmsg_alloc_simple(GET, NLM_F_MULTI);
	nla_put(msg, RDMA_NLDEV_ATTR_DEV_NAME, 6, "mlx5_0");
	nla_put_u32(msg, RDMA_NLDEV_ATTR_DEV_INDEX, 3);
	respond(0, msg);
	respond(0, done());
	assert_int_equal(find("mlx5_0"), -ENODEV);
}

TEST(a_name_that_makes_no_sense_is_no_response)
{
	struct nl_msg *msg;
	char longer[64];

	respond_devices();
	respond(1, chardev(""));
	assert_int_equal(find("mlx5_0"), -ENOENT);

	/* an empty name with bytes behind it */
	assert_int_equal(fake_teardown(), 0);
	assert_int_equal(setup(), 0);
	respond_devices();
	msg = nlmsg_alloc_simple(GET_CHARDEV, 0);
	nla_put(msg, RDMA_NLDEV_ATTR_CHARDEV_NAME, 6, "\0umad");
	respond(1, msg);
	assert_int_equal(find("mlx5_0"), -ENOENT);

	assert_int_equal(fake_teardown(), 0);
	assert_int_equal(setup(), 0);
	memset(longer, 'u', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	respond_devices();
	respond(1, chardev(longer));
	assert_int_equal(find("mlx5_0"), -ENOENT);
	assert_string_equal(name, "");

	assert_int_equal(fake_teardown(), 0);
	assert_int_equal(setup(), 0);
	respond_devices();
	respond(1, nlmsg_alloc_simple(GET_CHARDEV, 0));
	assert_int_equal(find("mlx5_0"), -ENOENT);
}

TEST(random_responses_do_no_harm)
{
	int i, j, k, ret;

	srand(test_seed());
	for (i = 0; i < 300; i++) {
		respond_devices();
		respond(1, chardev("umad12"));
		for (j = 0; j < 2; j++) {
			for (k = rand() % 5; k > 0; k--)
				responses[j][0].bytes[(size_t)rand() % responses[j][0].size] =
					(unsigned char)rand();
			if (rand() % 2)
				responses[j][0].size =
					1 + (size_t)rand() % responses[j][0].size;
		}
		ret = find("mlx5_0");
		assert_true(ret == 0 || ret == -ENODEV || ret == -ENOENT);
		assert_true(ret || strlen(name) < sizeof(name));
		assert_int_equal(fake_teardown(), 0);
		assert_int_equal(setup(), 0);
	}
}

TEST(a_socket_that_cannot_be_had_is_told)
{
	connect_error = NLE_PROTO_MISMATCH;
	assert_int_equal(find("mlx5_0"), -EOPNOTSUPP);
	connect_error = NLE_NOMEM;
	assert_int_equal(find("mlx5_0"), -ENOMEM);
	connect_error = NLE_PERM;
	assert_int_equal(find("mlx5_0"), -EPERM);
	connect_error = 0;
	send_error = NLE_FAILURE;
	assert_int_equal(find("mlx5_0"), -EIO);
}

/* --- uevents -------------------------------------------------------------------- */

TEST(uevents_are_the_kernels_and_terminated)
{
	char *text;

	datagram("add@/forged\0", 12, 4711);
	datagram("add@/cut", 8, 0);
	datagram("add@/devices/x\0ACTION=add", 26, 0);
	assert_int_equal(uevent_receive(NULL, &text), 26);
	assert_memory_equal(text, "add@/devices/x\0ACTION=add", 26);
	free(text);
	assert_int_equal(uevent_receive(NULL, &text), -EAGAIN);
}

TEST(errors_of_the_uevent_socket_are_told_apart)
{
	char *text;

	datagram(NULL, -NLE_NOMEM, ENOBUFS);
	datagram(NULL, -NLE_NOMEM, ENOMEM);
	datagram(NULL, -NLE_BAD_SOCK, 0);
	datagram(NULL, 0, 0);
	assert_int_equal(uevent_receive(NULL, &text), -ENOBUFS);
	/* a lack of memory in libnl loses no message */
	assert_int_equal(uevent_receive(NULL, &text), -ENOMEM);
	assert_int_equal(uevent_receive(NULL, &text), -EIO);
	assert_int_equal(uevent_receive(NULL, &text), -EAGAIN);
}

TEST(the_real_kernels_uevents_can_be_listened_to)
{
	struct pollfd pollfd = {.events = POLLIN};
	struct nl_sock *sock;
	char *text;
	int ret;

	real_kernel = true;
	ret = uevent_open(&sock);
	if (ret) {
		print_message("skipped: the kernel says %s\n", strerror(-ret));
		skip();
	}
	pollfd.fd = uevent_fd(sock);
	assert_true(fcntl(pollfd.fd, F_GETFL) & O_NONBLOCK);
	assert_true(poll(&pollfd, 1, 0) >= 0);
	/* on a running machine an event may arrive at any time */
	ret = uevent_receive(sock, &text);
	if (ret > 0) {
		assert_non_null(memchr(text, '@', (size_t)ret));
		assert_int_equal(text[ret - 1], '\0');
		free(text);
	} else {
		assert_int_equal(ret, -EAGAIN);
	}
	uevent_close(sock);
}

TEST(the_real_kernel_knows_no_device_of_that_name)
{
	real_kernel = true;
	assert_true(find("no_such_device") < 0);
}

/* --- the request, in detail ----------------------------------------------------- */

static int open_descriptors(void)
{
	int fd, count = 0;

	for (fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* Sends the request again: with all responses, and a buffer of this size for the name. */
static int find_again(const char *ca_name, size_t size)
{
	requests = 0;
	memset(responded, 0, sizeof(responded));
	memset(name, 'x', sizeof(name));
	return netlink_find_umad(ca_name, 1, name, size);
}

static void no_responses(void)
{
	memset(response_count, 0, sizeof(response_count));
}

/* Appends a message to the last one in the same datagram. */
static void respond_along(int request, struct nl_msg *msg)
{
	struct nlmsghdr *header = nlmsg_hdr(msg);
	int i = response_count[request] - 1;

	memcpy(responses[request][i].bytes + responses[request][i].size, header,
	       header->nlmsg_len);
	responses[request][i].size += NLMSG_ALIGN(header->nlmsg_len);
	nlmsg_free(msg);
}

/* A response whose only attribute has this content. */
static struct nl_msg *chardev_bytes(const char *bytes, int length)
{
	struct nl_msg *msg = nlmsg_alloc_simple(GET_CHARDEV, 0);

	assert_int_equal(nla_put(msg, RDMA_NLDEV_ATTR_CHARDEV_NAME, length, bytes), 0);
	return msg;
}

TEST(the_requests_are_these_to_the_byte)
{
	const struct {
		struct nlmsghdr header;
		struct nlattr type;
		char umad[8];
		struct nlattr index;
		uint32_t dev;
		struct nlattr port;
		uint32_t number;
	} get_chardev = {
		.header = {.nlmsg_type = GET_CHARDEV, .nlmsg_flags = NLM_F_REQUEST},
		.type = {.nla_len = 9, .nla_type = RDMA_NLDEV_ATTR_CHARDEV_TYPE},
		.umad = "umad",
		.index = {.nla_len = 8, .nla_type = RDMA_NLDEV_ATTR_DEV_INDEX},
		.dev = 9,
		.port = {.nla_len = 8, .nla_type = RDMA_NLDEV_ATTR_PORT_INDEX},
		.number = 3,
	};
	const struct nlmsghdr *header;
	const size_t body = sizeof(*header);

	respond_devices();
	respond(1, chardev("umad12"));
	assert_int_equal(find("mlx5_1"), 0);
	assert_int_equal(connected_to, NETLINK_RDMA);
	/* a dump of all devices, without attributes */
	header = (const struct nlmsghdr *)sent[0].bytes;
	assert_int_equal(sent[0].size, body);
	assert_int_equal(header->nlmsg_len, body);
	assert_int_equal(header->nlmsg_type, GET);
	assert_int_equal(header->nlmsg_flags, NLM_F_REQUEST | NLM_F_DUMP);
	header = (const struct nlmsghdr *)sent[1].bytes;
	assert_int_equal(sent[1].size, sizeof(get_chardev));
	assert_int_equal(header->nlmsg_len, sizeof(get_chardev));
	assert_int_equal(header->nlmsg_type, GET_CHARDEV);
	assert_int_equal(header->nlmsg_flags, NLM_F_REQUEST);
	assert_memory_equal(sent[1].bytes + body, (const unsigned char *)&get_chardev + body,
			    sizeof(get_chardev) - body);
}

TEST(the_request_does_not_wait_and_joins_no_group)
{
	joined_group = 0;
	respond_devices();
	respond(1, chardev("umad0"));
	assert_int_equal(find("mlx5_0"), 0);
	assert_true(sent[0].flags & O_NONBLOCK);
	assert_int_equal(joined_group, 0);
}

TEST(a_dump_may_come_in_one_piece_or_many)
{
	respond(0, device(7, "mlx5_0"));
	respond_along(0, device(8, "mlx5_1"));
	respond_along(0, device(9, "mlx5_2"));
	respond_along(0, done());
	respond(1, chardev("umad12"));
	assert_int_equal(find("mlx5_1"), 0);
	assert_int_equal(asked_index, 8);
	assert_int_equal(find_again("mlx5_2", sizeof(name)), 0);
	assert_int_equal(asked_index, 9);
	no_responses();
	respond(0, device(7, "mlx5_0"));
	respond_along(0, device(8, "mlx5_1"));
	respond(0, device(9, "mlx5_2"));
	respond_along(0, done());
	respond(1, chardev("umad12"));
	assert_int_equal(find_again("mlx5_0", sizeof(name)), 0);
	assert_int_equal(asked_index, 7);
	assert_int_equal(find_again("mlx5_2", sizeof(name)), 0);
	assert_int_equal(asked_index, 9);
}

TEST(only_the_whole_name_is_the_device)
{
	respond_devices();
	respond(1, chardev("umad12"));
	assert_int_equal(find_again("mlx5_", sizeof(name)), -ENODEV);
	assert_int_equal(find_again("mlx5_00", sizeof(name)), -ENODEV);
	assert_int_equal(find_again("MLX5_0", sizeof(name)), -ENODEV);
	assert_int_equal(find_again("", sizeof(name)), -ENODEV);
	assert_int_equal(find_again("mlx5_0", sizeof(name)), 0);
}

TEST(a_list_without_devices_is_no_device)
{
	respond(0, done());
	assert_int_equal(find("mlx5_0"), -ENODEV);
	assert_int_equal(requests, 1);
}

TEST(a_name_is_stored_where_it_fits_with_its_end)
{
	respond_devices();
	respond(1, chardev("umad12"));
	assert_int_equal(find_again("mlx5_0", 7), 0);
	assert_memory_equal(name, "umad12\0x", 8);
	assert_int_equal(find_again("mlx5_0", 6), -ENOENT);
	assert_memory_equal(name, "xxxxxxxx", 8);
	assert_int_equal(find_again("mlx5_0", 1), -ENOENT);
	assert_memory_equal(name, "xxxxxxxx", 8);
}

TEST(a_name_without_an_end_is_no_response)
{
	respond_devices();
	respond(1, chardev_bytes("umad12", 6));
	assert_int_equal(find_again("mlx5_0", sizeof(name)), -ENOENT);
	no_responses();
	respond_devices();
	respond(1, chardev_bytes("u", 1));
	assert_int_equal(find_again("mlx5_0", sizeof(name)), -ENOENT);
	no_responses();
	respond_devices();
	respond(1, chardev_bytes("", 0));
	assert_int_equal(find_again("mlx5_0", sizeof(name)), -ENOENT);
	assert_memory_equal(name, "xxxxxxxx", 8);
}

TEST(a_refusal_changes_nothing_of_the_callers)
{
	respond_devices();
	respond(1, error(EINVAL));
	assert_int_equal(find_again("mlx5_0", sizeof(name)), -ENOENT);
	assert_memory_equal(name, "xxxxxxxx", 8);
}

TEST(an_acknowledgement_alone_is_no_response)
{
	respond(0, error(0));
	assert_int_equal(find_again("mlx5_0", sizeof(name)), -ENODEV);
	no_responses();
	respond_devices();
	respond(1, error(0));
	assert_int_equal(find_again("mlx5_0", sizeof(name)), -ENOENT);
}

TEST(messages_without_attributes_are_no_response)
{
	static const int types[] = {NLMSG_NOOP, NLMSG_OVERRUN, NLMSG_DONE, NLMSG_ERROR};
	size_t i;

	for (i = 0; i < sizeof(types) / sizeof(*types); i++) {
		no_responses();
		/* without the body of an error message */
		respond(0, nlmsg_alloc_simple(types[i], 0));
		assert_int_equal(find_again("mlx5_0", sizeof(name)), -ENODEV);
		no_responses();
		respond_devices();
		respond(1, nlmsg_alloc_simple(types[i], 0));
		assert_int_equal(find_again("mlx5_0", sizeof(name)), -ENOENT);
	}
}

TEST(an_incomplete_dump_is_no_response)
{
	respond(0, device(7, "mlx5_0"));
	respond(0, error(ENOMEM));
	assert_int_equal(find_again("mlx5_0", sizeof(name)), -ENODEV);
	assert_int_equal(requests, 1);
}

TEST(datagrams_cut_at_any_length_are_no_response)
{
	size_t whole, length;

	respond_devices();
	respond(1, chardev("umad12"));
	whole = responses[0][0].size;
	for (length = 1; length < whole; length++) {
		responses[0][0].size = length;
		assert_int_equal(find_again("mlx5_0", sizeof(name)), -ENODEV);
	}
	responses[0][0].size = whole;
	whole = responses[1][0].size;
	for (length = 1; length < whole; length++) {
		responses[1][0].size = length;
		assert_int_equal(find_again("mlx5_0", sizeof(name)), -ENOENT);
	}
	responses[1][0].size = whole;
	assert_int_equal(find_again("mlx5_0", sizeof(name)), 0);
	assert_string_equal(name, "umad12");
}

/* Truncates the only message of a response to this length. */
static void shorten(int request, size_t length)
{
	struct nlmsghdr *header = (struct nlmsghdr *)responses[request][0].bytes;

	header->nlmsg_len = (uint32_t)length;
	responses[request][0].size = length;
}

TEST(truncated_messages_give_the_attributes_that_they_have)
{
	/* the index, then the name with its NUL; the name of the umad device */
	const size_t listed = NLMSG_HDRLEN + 8 + sizeof(struct nlattr) + sizeof("mlx5_0");
	const size_t named = NLMSG_HDRLEN + sizeof(struct nlattr) + sizeof("umad12");
	size_t whole, length;

	respond_devices();
	respond(1, chardev("umad12"));
	whole = responses[0][0].size;
	assert_true(whole >= listed);
	for (length = NLMSG_HDRLEN; length <= whole; length++) {
		shorten(0, length);
		assert_int_equal(find_again("mlx5_0", sizeof(name)),
				 length < listed ? -ENODEV : 0);
	}
	whole = responses[1][0].size;
	assert_true(whole > named);
	for (length = NLMSG_HDRLEN; length <= whole; length++) {
		shorten(1, length);
		assert_int_equal(find_again("mlx5_0", sizeof(name)),
				 length < named ? -ENOENT : 0);
	}
}

TEST(garbage_of_any_length_does_no_harm)
{
	size_t length, i;
	int request, ret;

	srand(test_seed());
	for (length = 1; length < 300; length++) {
		for (request = 0; request < 2; request++) {
			no_responses();
			respond_devices();
			respond(1, chardev("umad12"));
			/* the second time with a correct header, so that it is parsed */
			for (i = rand() % 2 && length > NLMSG_HDRLEN ? NLMSG_HDRLEN : 0;
			     i < length; i++)
				responses[request][0].bytes[i] = (unsigned char)(rand() >> 8);
			if (i > NLMSG_HDRLEN && rand() % 2)
				shorten(request, length);
			responses[request][0].size = length;
			ret = find_again("mlx5_0", sizeof(name));
			assert_true(ret == 0 || ret == -ENODEV || ret == -ENOENT);
			if (request)
				assert_int_not_equal(ret, -ENODEV);
			assert_true(ret || memchr(name, '\0', sizeof(name)));
		}
	}
}

TEST(every_allocation_of_libnls_may_fail)
{
	const int before = open_descriptors();
	unsigned n;
	int ret;

	respond_devices();
	respond(1, chardev("umad12"));
	for (n = 1;; n++) {
		libnl_fails_in = n;
		ret = find_again("mlx5_0", sizeof(name));
		if (libnl_fails_in)
			break;
		assert_int_equal(ret, -ENOMEM);
		assert_memory_equal(name, "xxxxxxxx", 8);
		assert_int_equal(open_descriptors(), before);
	}
	libnl_fails_in = 0;
	assert_int_equal(ret, 0);
	/* a socket, two requests, three attributes */
	assert_int_equal(n, 7);
}

TEST(no_response_leaves_a_socket_open)
{
	const int before = open_descriptors();

	assert_int_equal(find_again("mlx5_0", sizeof(name)), -ENODEV);
	assert_int_equal(open_descriptors(), before);
	respond_devices();
	assert_int_equal(find_again("mlx5_0", sizeof(name)), -ENOENT);
	assert_int_equal(open_descriptors(), before);
	respond(1, chardev("umad12"));
	assert_int_equal(find_again("mlx5_0", sizeof(name)), 0);
	assert_int_equal(open_descriptors(), before);
	send_error = NLE_FAILURE;
	assert_int_equal(find_again("mlx5_0", sizeof(name)), -EIO);
	assert_int_equal(open_descriptors(), before);
	send_error = 0;
	nonblocking_error = NLE_BAD_SOCK;
	assert_int_equal(find_again("mlx5_0", sizeof(name)), -EOPNOTSUPP);
	assert_int_equal(open_descriptors(), before);
}

TEST(a_second_request_that_cannot_be_sent_is_an_error)
{
	send_errors_from = 1;
	send_error = NLE_FAILURE;
	respond_devices();
	respond(1, chardev("umad12"));
	assert_int_equal(find_again("mlx5_0", sizeof(name)), -EIO);
	assert_int_equal(requests, 1);
	assert_memory_equal(name, "xxxxxxxx", 8);
}

/* --- the uevents' socket -------------------------------------------------------- */

TEST(the_uevents_socket_is_in_the_kernels_group_and_does_not_wait)
{
	const int before = open_descriptors();
	struct nl_sock *sock;

	joined_group = 0;
	assert_int_equal(uevent_open(&sock), 0);
	assert_int_equal(connected_to, NETLINK_KOBJECT_UEVENT);
	assert_int_equal(joined_group, 1);
	assert_true(uevent_fd(sock) >= 0);
	assert_true(fcntl(uevent_fd(sock), F_GETFL) & O_NONBLOCK);
	assert_int_equal(open_descriptors(), before + 1);
	uevent_close(sock);
	assert_int_equal(open_descriptors(), before);
}

TEST(a_uevents_socket_that_cannot_be_had_is_told)
{
	static const struct {
		int *fault, nl_error, expected;
	} cases[] = {
		{&connect_error, NLE_NOMEM, -ENOMEM},
		{&connect_error, NLE_PERM, -EPERM},
		{&connect_error, NLE_PROTO_MISMATCH, -EOPNOTSUPP},
		{&connect_error, NLE_AF_NOSUPPORT, -EOPNOTSUPP},
		{&connect_error, NLE_OPNOTSUPP, -EOPNOTSUPP},
		{&nonblocking_error, NLE_NOMEM, -ENOMEM},
		{&membership_error, NLE_PERM, -EPERM},
		{&membership_error, NLE_NOMEM, -ENOMEM},
	};
	const int before = open_descriptors();
	struct nl_sock *sock;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		*cases[i].fault = cases[i].nl_error;
		assert_int_equal(uevent_open(&sock), cases[i].expected);
		assert_int_equal(open_descriptors(), before);
		*cases[i].fault = 0;
	}
	libnl_fails_in = 1;
	assert_int_equal(uevent_open(&sock), -ENOMEM);
	assert_int_equal(libnl_fails_in, 0);
}

TEST(what_is_not_the_kernels_is_dropped_for_good)
{
	char *text;

	datagram("add@/forged", 12, 1);
	datagram("add@/forged", 12, UINT32_MAX);
	datagram("x", 1, 0);
	assert_int_equal(uevent_receive(NULL, &text), -EAGAIN);
	assert_int_equal(datagram_next, 3);
	/* an error after them is reported, too */
	datagram("add@/forged", 12, 1);
	datagram(NULL, -NLE_NOMEM, ENOBUFS);
	assert_int_equal(uevent_receive(NULL, &text), -ENOBUFS);
}

TEST(uevents_come_one_by_one_in_their_order)
{
	char *text;

	datagram("add@/a", 7, 0);
	datagram("", 1, 0);
	datagram("remove@/a", 10, 0);
	assert_int_equal(uevent_receive(NULL, &text), 7);
	assert_string_equal(text, "add@/a");
	free(text);
	assert_int_equal(uevent_receive(NULL, &text), 1);
	assert_string_equal(text, "");
	free(text);
	assert_int_equal(uevent_receive(NULL, &text), 10);
	assert_string_equal(text, "remove@/a");
	free(text);
	assert_int_equal(uevent_receive(NULL, &text), -EAGAIN);
}

TEST(other_errors_of_the_uevents_socket_are_eio)
{
	static const int errors[] = {NLE_FAILURE, NLE_BAD_SOCK, NLE_NOADDR, NLE_INTR};
	char *text;
	size_t i;

	for (i = 0; i < sizeof(errors) / sizeof(*errors); i++)
		datagram(NULL, -errors[i], 0);
	for (i = 0; i < sizeof(errors) / sizeof(*errors); i++)
		assert_int_equal(uevent_receive(NULL, &text), -EIO);
	assert_int_equal(uevent_receive(NULL, &text), -EAGAIN);
}

/* libnl has no error number for this. */
TEST(a_socket_without_a_descriptor_is_told_with_the_cause)
{
	char node[CDEV_NAME_LEN];
	struct rlimit before, none;
	struct nl_sock *sock;
	int opened, asked;

	real_kernel = true;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	opened = uevent_open(&sock);
	asked = netlink_find_umad("mlx5_0", 1, node, sizeof(node));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(opened, -EMFILE);
	/* a kernel without RDMA reports this first */
	assert_true(asked == -EMFILE || asked == -EOPNOTSUPP);
}
