/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * With the real libnl-3; the test has the kernel's responses. nl_connect() and nl_recv() of
 * this program replace libnl's functions.
 */

#define _GNU_SOURCE /* RTLD_NEXT */

#include "fake.h"
#include "netlink.h"
#include "test.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <netlink/errno.h>
#include <netlink/handlers.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <rdma/rdma_netlink.h>
#include <sys/resource.h>

void __real_free(void *memory);

/* libnl's own function. */
#define REAL(function) ((__typeof__(&function))dlsym(RTLD_NEXT, #function))

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
static int connect_error, send_error[2];

/* The sent requests, and the flags of the socket's descriptor. */
static struct {
	unsigned char bytes[64];
	size_t size;
	int flags;
} sent[2];

/* A GET_CHARDEV request. */
struct get_chardev {
	struct nlmsghdr header;
	struct nlattr type;
	char umad[8];
	struct nlattr index;
	uint32_t dev;
	struct nlattr port;
	uint32_t number;
};

static int note_request(struct nl_sock *sock, struct nl_msg *msg)
{
	const struct nlmsghdr *header = nlmsg_hdr(msg);

	if (send_error[requests])
		return -send_error[requests];
	assert_true(requests < 2 && header->nlmsg_len <= sizeof(sent[0].bytes));
	memcpy(sent[requests].bytes, header, header->nlmsg_len);
	sent[requests].size = header->nlmsg_len;
	sent[requests++].flags = fcntl(nl_socket_get_fd(sock), F_GETFL);
	return (int)header->nlmsg_len;
}

/* libnl frees what it receives: its own allocator must provide the memory. */
static int give_response(struct nl_sock *sock, struct sockaddr_nl *sender, unsigned char **buf,
			 struct ucred **creds)
{
	int request = requests - 1, size;
	struct nlmsghdr *header;

	(void)creds;
	if (request < 0 || responded[request] == response_count[request])
		return -NLE_AGAIN;
	size = (int)responses[request][responded[request]].size;
	*buf = REAL(malloc)((size_t)size);
	memcpy(*buf, responses[request][responded[request]++].bytes, (size_t)size);
	*sender = (struct sockaddr_nl){.nl_family = AF_NETLINK};
	header = (struct nlmsghdr *)*buf;
	if (nlmsg_ok(header, size)) {
		header->nlmsg_pid = nl_socket_get_local_port(sock);
		/* the sequence number of the last request */
		header->nlmsg_seq = nl_socket_use_seq(sock) - 1;
	}
	return size;
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
	return libnl_fails() ? NULL : REAL(nl_socket_alloc)();
}

struct nl_msg *nlmsg_alloc_simple(int type, int flags)
{
	return libnl_fails() ? NULL : REAL(nlmsg_alloc_simple)(type, flags);
}

int nla_put_string(struct nl_msg *msg, int type, const char *text)
{
	return libnl_fails() ? -NLE_NOMEM : REAL(nla_put_string)(msg, type, text);
}

int nla_put_u32(struct nl_msg *msg, int type, uint32_t value)
{
	return libnl_fails() ? -NLE_NOMEM : REAL(nla_put_u32)(msg, type, value);
}

int nl_socket_set_nonblocking(const struct nl_sock *sock)
{
	return nonblocking_error ? -nonblocking_error : REAL(nl_socket_set_nonblocking)(sock);
}

int nl_socket_add_membership(struct nl_sock *sock, int group)
{
	joined_group = group;
	return membership_error ? -membership_error
				: REAL(nl_socket_add_membership)(sock, group);
}

int nl_connect(struct nl_sock *sock, int protocol)
{
	struct nl_cb *callbacks;

	if (real_kernel)
		return REAL(nl_connect)(sock, protocol);
	connected_to = protocol;
	if (connect_error)
		return -connect_error;
	callbacks = nl_socket_get_cb(sock);
	nl_cb_overwrite_send(callbacks, note_request);
	nl_cb_overwrite_recv(callbacks, give_response);
	nl_cb_put(callbacks);
	nl_socket_disable_seq_check(sock);
	/* any descriptor will do */
	return REAL(nl_connect)(sock, NETLINK_ROUTE);
}

/* --- uevents -------------------------------------------------------------------- */

struct datagram {
	const char *text;
	int length;      /* or libnl's error */
	uint32_t sender; /* with -NLE_NOMEM, the errno */
};
static struct datagram datagrams[3] = {[2] = {.length = -NLE_AGAIN}};
static int datagram_next;

int nl_recv(struct nl_sock *sock, struct sockaddr_nl *sender, unsigned char **buf,
	    struct ucred **creds)
{
	const struct datagram *datagram = &datagrams[datagram_next];
	const unsigned char *text = (const unsigned char *)datagram->text;
	unsigned char *received = NULL;
	int length = datagram->length;

	if (real_kernel) {
		length = REAL(nl_recv)(sock, sender, &received, creds);
		text = received;
	} else {
		datagram_next += datagram_next < 2;
		sender->nl_pid = datagram->sender;
		if (length == -NLE_NOMEM)
			errno = (int)datagram->sender;
	}
	/* memory that libnl allocated is not counted; its owner frees it */
	if (length > 0) {
		*buf = malloc((size_t)length);
		memcpy(*buf, text, (size_t)length);
		__real_free(received);
	}
	return length;
}

/* --- responses ------------------------------------------------------------------ */

static int setup(void)
{
	joined_group = 0;
	memset(response_count, 0, sizeof(response_count));
	memset(send_error, 0, sizeof(send_error));
	real_kernel = false;
	connect_error = nonblocking_error = membership_error = 0;
	libnl_fails_in = 0;
	return fake_setup();
}

FIXTURE(setup, fake_teardown);

/* Appends a message to the last datagram of the response to a request. */
static void respond_along(int request, struct nl_msg *msg)
{
	struct nlmsghdr *header = nlmsg_hdr(msg);
	int i = response_count[request] - 1;

	memcpy(responses[request][i].bytes + responses[request][i].size, header,
	       header->nlmsg_len);
	responses[request][i].size += NLMSG_ALIGN(header->nlmsg_len);
	nlmsg_free(msg);
}

/* Adds a message to the response to a request, as a separate datagram. */
static void respond(int request, struct nl_msg *msg)
{
	responses[request][response_count[request]++].size = 0;
	respond_along(request, msg);
}

/* A device of a list; without an index or a name if its size is 0. */
static struct nl_msg *device_bytes(uint32_t index, int index_size, const char *name,
				   size_t name_size)
{
	struct nl_msg *msg = nlmsg_alloc_simple(GET, NLM_F_MULTI);

	if (index_size)
		nla_put(msg, RDMA_NLDEV_ATTR_DEV_INDEX, index_size, &index);
	if (name_size)
		nla_put(msg, RDMA_NLDEV_ATTR_DEV_NAME, (int)name_size, name);
	return msg;
}

static struct nl_msg *device(uint32_t index, const char *name)
{
	return device_bytes(index, sizeof(index), name, strlen(name) + 1);
}

static struct nl_msg *chardev_bytes(const char *bytes, size_t length)
{
	struct nl_msg *msg = nlmsg_alloc_simple(GET_CHARDEV, 0);

	assert_int_equal(nla_put(msg, RDMA_NLDEV_ATTR_CHARDEV_NAME, (int)length, bytes), 0);
	nla_put_u64(msg, RDMA_NLDEV_ATTR_CHARDEV_ABI, 5);
	nla_put_u64(msg, RDMA_NLDEV_ATTR_CHARDEV, 0xe700);
	return msg;
}

static struct nl_msg *chardev(const char *name)
{
	return chardev_bytes(name, strlen(name) + 1);
}

static struct nl_msg *message(int type, int flags, const void *body, size_t size)
{
	struct nl_msg *msg = nlmsg_alloc_simple(type, flags);

	nlmsg_append(msg, (void *)(uintptr_t)body, size, NLMSG_ALIGNTO);
	return msg;
}

static struct nl_msg *done(void)
{
	return message(NLMSG_DONE, NLM_F_MULTI, &(int){0}, sizeof(int));
}

static struct nl_msg *error(int err)
{
	struct nlmsgerr body = {.error = -err};

	return message(NLMSG_ERROR, 0, &body, sizeof(body));
}

static void respond_devices(void)
{
	memset(response_count, 0, sizeof(response_count));
	respond(0, device(7, "mlx5_0"));
	respond(0, device(9, "mlx5_1"));
	respond(0, done());
}

static void respond_all(void)
{
	respond_devices();
	respond(1, chardev("umad12"));
}

static int open_descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static char name[32];

/*
 * With all responses from the first on, and a buffer of this size for the name. No descriptor
 * is left open, and a call that fails stores no name.
 */
static int find_in(const char *ca_name, size_t size)
{
	const int before = open_descriptors();
	int ret;

	requests = 0;
	memset(responded, 0, sizeof(responded));
	memset(name, 'x', sizeof(name));
	ret = netlink_find_umad(ca_name, 3, name, size);
	assert_int_equal(open_descriptors(), before);
	if (ret)
		assert_memory_equal(name, "xxxxxxxx", 8);
	return ret;
}

static int find(const char *ca_name)
{
	return find_in(ca_name, sizeof(name));
}

/* --- the request for a port's device -------------------------------------------- */

TEST(the_requests_are_these_to_the_byte_and_do_not_wait)
{
	static const char *const others[] = {"mlx5_", "mlx5_00", "MLX5_0", "", "mlx5_2"};
	const struct nlmsghdr *dump = (const struct nlmsghdr *)sent[0].bytes;
	struct get_chardev request = {
		.header = {.nlmsg_len = sizeof(request),
			   .nlmsg_type = GET_CHARDEV,
			   .nlmsg_flags = NLM_F_REQUEST},
		.type = {.nla_len = 9, .nla_type = RDMA_NLDEV_ATTR_CHARDEV_TYPE},
		.umad = "umad",
		.index = {.nla_len = 8, .nla_type = RDMA_NLDEV_ATTR_DEV_INDEX},
		.dev = 9,
		.port = {.nla_len = 8, .nla_type = RDMA_NLDEV_ATTR_PORT_INDEX},
		.number = 3,
	};

	respond_all();
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		assert_int_equal(find(others[i]), -ENODEV);
		assert_int_equal(requests, 1);
	}
	assert_int_equal(find_in("mlx5_1", 6), -ENOENT);
	assert_int_equal(find_in("mlx5_1", 7), 0);
	assert_memory_equal(name, "umad12\0x", 8);
	assert_int_equal(connected_to, NETLINK_RDMA);
	assert_int_equal(joined_group, 0);
	assert_true(sent[0].flags & O_NONBLOCK);
	/* a dump of all devices, without attributes */
	assert_int_equal(sent[0].size, sizeof(*dump));
	assert_int_equal(dump->nlmsg_len, sizeof(*dump));
	assert_int_equal(dump->nlmsg_type, GET);
	assert_int_equal(dump->nlmsg_flags, NLM_F_REQUEST | NLM_F_DUMP);
	assert_int_equal(sent[1].size, sizeof(request));
	request.header.nlmsg_seq = ((const struct nlmsghdr *)sent[1].bytes)->nlmsg_seq;
	request.header.nlmsg_pid = ((const struct nlmsghdr *)sent[1].bytes)->nlmsg_pid;
	assert_memory_equal(sent[1].bytes, &request, sizeof(request));
}

struct wrong_response {
	const char *sentence;
	struct nl_msg *response;
};

/* With the response, alone and before the end of a dump, the call fails. */
static void are_no_response(int request, const struct wrong_response *row, size_t count)
{
	for (; count; row++, count--) {
		memset(response_count, 0, sizeof(response_count));
		if (request)
			respond_devices();
		if (row->response)
			respond(request, row->response);
		for (int end = 0; end < 2; end++) {
			int ret = find("mlx5_0");

			if (ret != (request ? -ENOENT : -ENODEV) || requests != request + 1)
				fail_msg("%s: %d", row->sentence, ret);
			respond(request, done());
		}
	}
}

TEST(what_does_not_name_a_device_is_no_response)
{
	const struct wrong_response devices[] = {
		{"a device without an index", device_bytes(1, 0, "mlx5_0", 7)},
		{"a device without a name", device_bytes(1, 4, NULL, 0)},
		{"an index of 16 bits", device_bytes(2, 2, "mlx5_0", 7)},
		{"a name without a NUL", device_bytes(3, 4, "mlx5_0", 6)},
	};
	const struct wrong_response names[] = {
		{"no name", nlmsg_alloc_simple(GET_CHARDEV, 0)},
		{"an empty name with bytes after it", chardev_bytes("\0umad", 6)},
		{"a name longer than the buffer", chardev("umad5678901234567890123456789012")},
		{"a name without a NUL", chardev_bytes("umad12", 6)},
		{"an attribute without bytes", chardev_bytes("", 0)},
	};

	for (int request = 0; request < 2; request++) {
		const struct wrong_response either[] = {
			{"no response", NULL},
			{"a rejected request", error(EINVAL)},
			{"an acknowledgement", error(0)},
			{"an overrun", nlmsg_alloc_simple(NLMSG_OVERRUN, 0)},
			{"an end without its body", nlmsg_alloc_simple(NLMSG_DONE, 0)},
			{"an error without its body", nlmsg_alloc_simple(NLMSG_ERROR, 0)},
		};
		are_no_response(request, either, sizeof(either) / sizeof(*either));
	}
	are_no_response(0, devices, sizeof(devices) / sizeof(*devices));
	are_no_response(1, names, sizeof(names) / sizeof(*names));
}

TEST(a_dump_may_come_in_one_piece_or_many_but_whole)
{
	const char *const names[] = {"mlx5_0", "mlx5_1", "mlx5_2"};

	for (int piece = 0; piece < 2; piece++) {
		memset(response_count, 0, sizeof(response_count));
		respond(0, device(7, names[0]));
		respond_along(0, device(8, names[1]));
		(piece ? respond : respond_along)(0, device(9, names[2]));
		respond_along(0, done());
		respond(1, chardev("umad12"));
		for (uint32_t i = 0; i < 3; i++) {
			assert_int_equal(find(names[i]), 0);
			assert_int_equal(((const struct get_chardev *)sent[1].bytes)->dev,
					 7 + i);
		}
	}
	response_count[0] = 0;
	respond(0, device(7, "mlx5_0"));
	respond(0, error(ENOMEM));
	assert_int_equal(find("mlx5_0"), -ENODEV);
	assert_int_equal(requests, 1);
}

/* A socket, two requests, three attributes. */
TEST(every_allocation_of_libnls_may_fail)
{
	respond_all();
	for (unsigned n = 1; n <= 7; n++) {
		libnl_fails_in = n;
		assert_int_equal(find("mlx5_0"), n < 7 ? -ENOMEM : 0);
	}
	assert_int_equal(libnl_fails_in, 1);
}

TEST(a_socket_that_cannot_be_had_is_told)
{
	static const struct {
		int *fault, nl_error, found, opened; /* by the request, and for uevents */
	} rows[] = {
		{&connect_error, NLE_NOMEM, -ENOMEM, -ENOMEM},
		{&connect_error, NLE_PERM, -EPERM, -EPERM},
		{&connect_error, NLE_PROTO_MISMATCH, -EOPNOTSUPP, -EOPNOTSUPP},
		{&nonblocking_error, NLE_BAD_SOCK, -EOPNOTSUPP, -EOPNOTSUPP},
		{&nonblocking_error, NLE_NOMEM, -ENOMEM, -ENOMEM},
		{&membership_error, NLE_PERM, 0, -EPERM},
		{&membership_error, NLE_NOMEM, 0, -ENOMEM},
		{&send_error[0], NLE_FAILURE, -EIO, 0},
		{&send_error[1], NLE_FAILURE, -EIO, 0},
	};
	const int before = open_descriptors();
	struct nl_sock *sock;

	respond_all();
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		*rows[i].fault = rows[i].nl_error;
		assert_int_equal(find("mlx5_0"), rows[i].found);
		assert_int_equal(uevent_open(&sock), rows[i].opened);
		if (!rows[i].opened)
			uevent_close(sock);
		assert_int_equal(open_descriptors(), before);
		*rows[i].fault = 0;
	}
	libnl_fails_in = 1;
	assert_int_equal(uevent_open(&sock), -ENOMEM);
	/* that of uevents is in the kernel's group */
	assert_int_equal(uevent_open(&sock), 0);
	assert_int_equal(connected_to, NETLINK_KOBJECT_UEVENT);
	assert_int_equal(joined_group, 1);
	assert_true(fcntl(uevent_fd(sock), F_GETFL) & O_NONBLOCK);
	uevent_close(sock);
}

/* --- uevents -------------------------------------------------------------------- */

/* Each is received before another uevent; -EAGAIN if it is dropped. */
TEST(uevents_are_the_kernels_and_terminated)
{
	static const struct {
		const char *sentence;
		struct datagram datagram;
		int result;
	} rows[] = {
		{"a uevent", {"add@/devices/x\0ACTION=add", 26, 0}, 26},
		{"a NUL alone", {"", 1, 0}, 1},
		{"a process sends", {"add@/forged\0", 12, 4711}, -EAGAIN},
		{"the highest number sends", {"add@/forged\0", 12, UINT32_MAX}, -EAGAIN},
		{"there is no NUL", {"add@/cut", 8, 0}, -EAGAIN},
		{"a byte alone", {"x", 1, 0}, -EAGAIN},
		{"the kernel had no memory", {NULL, -NLE_NOMEM, ENOBUFS}, -ENOBUFS},
		{"libnl had no memory, and lost nothing", {NULL, -NLE_NOMEM, ENOMEM}, -ENOMEM},
		{"a failure", {NULL, -NLE_FAILURE, 0}, -EIO},
	};
	const struct datagram next = {"remove@/a", 10, 0};
	char *text;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		int ret;

		datagrams[0] = rows[i].datagram;
		datagrams[1] = next;
		datagram_next = 0;
		if (rows[i].result != -EAGAIN) {
			ret = uevent_receive(NULL, &text);
			if (ret != rows[i].result)
				fail_msg("%s: %d", rows[i].sentence, ret);
			if (ret > 0) {
				assert_memory_equal(text, datagrams[0].text, (size_t)ret);
				free(text);
			}
		}
		ret = uevent_receive(NULL, &text);
		if (ret != 10 || strcmp(text, next.text) != 0)
			fail_msg("after \"%s\": %d", rows[i].sentence, ret);
		free(text);
		assert_int_equal(uevent_receive(NULL, &text), -EAGAIN);
	}
	datagrams[0] = (struct datagram){NULL, 0, 0};
	datagram_next = 0;
	assert_int_equal(uevent_receive(NULL, &text), -EAGAIN);
}

TEST(the_real_kernel_knows_no_such_device_and_its_uevents_can_be_listened_to)
{
	struct rlimit before, none;
	struct nl_sock *sock;
	int opened, asked, ret;
	char *text;

	real_kernel = true;
	assert_true(find("no_such_device") < 0);
	/* libnl has no error number for a lack of descriptors */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	opened = uevent_open(&sock);
	asked = netlink_find_umad("mlx5_0", 1, name, sizeof(name));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(opened, -EMFILE);
	/* a kernel without RDMA reports this first */
	assert_true(asked == -EMFILE || asked == -EOPNOTSUPP);
	ret = uevent_open(&sock);
	if (ret) {
		print_message("skipped: the kernel says %s\n", strerror(-ret));
		skip();
	}
	assert_true(fcntl(uevent_fd(sock), F_GETFL) & O_NONBLOCK);
	/* on a running machine an event may arrive at any time */
	ret = uevent_receive(sock, &text);
	assert_true(ret > 0 || ret == -EAGAIN);
	if (ret > 0) {
		assert_non_null(memchr(text, '@', (size_t)ret));
		assert_int_equal(text[ret - 1], '\0');
		free(text);
	}
	uevent_close(sock);
}
