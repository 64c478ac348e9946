/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * libnl-3 is the real one; what the kernel would answer comes from here. nl_connect() and
 * nl_recv() stand before the library's own when this program is linked.
 */

#define _GNU_SOURCE /* RTLD_NEXT */

#include "fake.h"
#include "netlink.h"

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

#define GET         RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET)
#define GET_CHARDEV RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET_CHARDEV)

/* --- the kernel ----------------------------------------------------------------------------
 */

/* What answers the n-th request: one datagram after the other; none is EAGAIN. */
static struct {
	unsigned char bytes[4096];
	size_t size;
} answers[2][8];
static int answer_count[2], answered[2];
static int requests;
static bool real_kernel;
static int connect_error, send_error;

/* The last GET_CHARDEV request. */
static char asked_type[32];
static uint32_t asked_index, asked_port;

static int note_request(struct nl_sock *sock, struct nl_msg *msg)
{
	struct nlmsghdr *header = nlmsg_hdr(msg);
	struct nlattr *attrs[RDMA_NLDEV_ATTR_MAX];

	(void)sock;
	if (send_error)
		return -send_error;
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

/* libnl frees what it receives: the memory is its own allocator's. */
static int give_answer(struct nl_sock *sock, struct sockaddr_nl *sender, unsigned char **buf,
		       struct ucred **creds)
{
	void *(*real_malloc)(size_t) = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
	int request = requests - 1, size;
	struct nlmsghdr *header;

	(void)creds;
	if (request < 0 || answered[request] == answer_count[request])
		return -NLE_AGAIN;
	size = (int)answers[request][answered[request]].size;
	*buf = real_malloc((size_t)size);
	memcpy(*buf, answers[request][answered[request]++].bytes, (size_t)size);
	*sender = (struct sockaddr_nl){.nl_family = AF_NETLINK};
	for (header = (struct nlmsghdr *)*buf; nlmsg_ok(header, size);
	     header = nlmsg_next(header, &size)) {
		header->nlmsg_pid = nl_socket_get_local_port(sock);
		/* the sequence number of the request that was sent last */
		header->nlmsg_seq = nl_socket_use_seq(sock) - 1;
		break;
	}
	return (int)answers[request][answered[request] - 1].size;
}

int nl_connect(struct nl_sock *sock, int protocol)
{
	int (*real)(struct nl_sock *, int) =
		(int (*)(struct nl_sock *, int))dlsym(RTLD_NEXT, "nl_connect");
	struct nl_cb *callbacks;

	if (real_kernel)
		return real(sock, protocol);
	if (connect_error)
		return -connect_error;
	callbacks = nl_socket_get_cb(sock);
	nl_cb_overwrite_send(callbacks, note_request);
	nl_cb_overwrite_recv(callbacks, give_answer);
	nl_cb_put(callbacks);
	nl_socket_disable_seq_check(sock);
	/* any descriptor will do */
	return real(sock, NETLINK_ROUTE);
}

/* --- uevents ---------------------------------------------------------------------------------
 */

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
	int length;

	if (real_kernel)
		return real(sock, sender, buf, creds);
	if (datagram_next == datagram_count)
		return -NLE_AGAIN;
	length = datagrams[datagram_next].length;
	sender->nl_pid = datagrams[datagram_next].sender;
	if (length > 0) {
		*buf = malloc((size_t)length);
		memcpy(*buf, datagrams[datagram_next].text, (size_t)length);
	}
	datagram_next++;
	return length;
}

static void datagram(const char *text, int length, uint32_t sender)
{
	datagrams[datagram_count].text = text;
	datagrams[datagram_count].length = length;
	datagrams[datagram_count++].sender = sender;
}

/* --- answers
 * ---------------------------------------------------------------------------------- */

static int setup(void **state)
{
	memset(answer_count, 0, sizeof(answer_count));
	memset(answered, 0, sizeof(answered));
	requests = 0;
	real_kernel = false;
	connect_error = send_error = 0;
	datagram_count = datagram_next = 0;
	asked_type[0] = '\0';
	return fake_setup(state);
}

/* Appends a message to the answers to a request, as a datagram of its own. */
static void answer(int request, struct nl_msg *msg)
{
	struct nlmsghdr *header = nlmsg_hdr(msg);
	int i = answer_count[request]++;

	memcpy(answers[request][i].bytes, header, header->nlmsg_len);
	answers[request][i].size = header->nlmsg_len;
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

static void answer_devices(void)
{
	answer(0, device(7, "mlx5_0"));
	answer(0, device(9, "mlx5_1"));
	answer(0, done());
}

static char name[32];

static int find(const char *ca_name)
{
	memset(name, 0, sizeof(name));
	return netlink_find_umad(ca_name, 3, name, sizeof(name));
}

/* --- the question for a port's device
 * --------------------------------------------------------- */

static void a_device_is_asked_for_by_index_and_port(void **state)
{
	(void)state;
	answer_devices();
	answer(1, chardev("umad12"));
	assert_int_equal(find("mlx5_1"), 0);
	assert_string_equal(name, "umad12");
	assert_string_equal(asked_type, "umad");
	assert_int_equal(asked_index, 9);
	assert_int_equal(asked_port, 3);
	assert_int_equal(requests, 2);
}

static void a_device_that_the_kernel_does_not_list_is_no_device(void **state)
{
	(void)state;
	answer_devices();
	assert_int_equal(find("mlx5_2"), -ENODEV);
	assert_int_equal(requests, 1);
}

static void a_kernel_that_does_not_answer_has_no_answer(void **state)
{
	(void)state;
	assert_int_equal(find("mlx5_0"), -ENODEV);
	assert_int_equal(setup(state), 0);
	answer_devices();
	assert_int_equal(find("mlx5_0"), -ENOENT);
	assert_string_equal(name, "");
}

static void a_kernel_that_refuses_has_no_answer(void **state)
{
	static const int errors[] = {EINVAL, EOPNOTSUPP, EPERM, ENODEV};
	size_t i;

	for (i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
		answer(0, error(errors[i]));
		assert_int_equal(find("mlx5_0"), -ENODEV);
		assert_int_equal(fake_teardown(state), 0);
		assert_int_equal(setup(state), 0);
		answer_devices();
		answer(1, error(errors[i]));
		assert_int_equal(find("mlx5_0"), -ENOENT);
		assert_int_equal(fake_teardown(state), 0);
		assert_int_equal(setup(state), 0);
	}
}

static void devices_without_index_or_name_are_passed_over(void **state)
{
	struct nl_msg *msg;

	(void)state;
	msg = nlmsg_alloc_simple(GET, NLM_F_MULTI);
	nla_put_string(msg, RDMA_NLDEV_ATTR_DEV_NAME, "mlx5_0");
	answer(0, msg);
	msg = nlmsg_alloc_simple(GET, NLM_F_MULTI);
	nla_put_u32(msg, RDMA_NLDEV_ATTR_DEV_INDEX, 1);
	answer(0, msg);
	msg = nlmsg_alloc_simple(GET, NLM_F_MULTI);
	nla_put_string(msg, RDMA_NLDEV_ATTR_DEV_NAME, "mlx5_0");
	nla_put_u16(msg, RDMA_NLDEV_ATTR_DEV_INDEX, 2);
	answer(0, msg);
	/* a name that is not terminated */
	msg = nlmsg_alloc_simple(GET, NLM_F_MULTI);
	nla_put(msg, RDMA_NLDEV_ATTR_DEV_NAME, 6, "mlx5_0");
	nla_put_u32(msg, RDMA_NLDEV_ATTR_DEV_INDEX, 3);
	answer(0, msg);
	answer(0, done());
	assert_int_equal(find("mlx5_0"), -ENODEV);
}

static void a_name_that_makes_no_sense_is_no_answer(void **state)
{
	char longer[64];

	(void)state;
	answer_devices();
	answer(1, chardev(""));
	assert_int_equal(find("mlx5_0"), -ENOENT);

	assert_int_equal(fake_teardown(state), 0);
	assert_int_equal(setup(state), 0);
	memset(longer, 'u', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	answer_devices();
	answer(1, chardev(longer));
	assert_int_equal(find("mlx5_0"), -ENOENT);
	assert_string_equal(name, "");

	assert_int_equal(fake_teardown(state), 0);
	assert_int_equal(setup(state), 0);
	answer_devices();
	answer(1, nlmsg_alloc_simple(GET_CHARDEV, 0));
	assert_int_equal(find("mlx5_0"), -ENOENT);
}

static void random_answers_do_no_harm(void **state)
{
	const char *seed_text = getenv("TEST_SEED");
	unsigned seed =
		seed_text ? (unsigned)strtoul(seed_text, NULL, 0) : (unsigned)time(NULL);
	int i, j, k, ret;

	print_message("TEST_SEED=%u\n", seed);
	srand(seed);
	for (i = 0; i < 300; i++) {
		answer_devices();
		answer(1, chardev("umad12"));
		for (j = 0; j < 2; j++) {
			for (k = rand() % 5; k > 0; k--)
				answers[j][0].bytes[(size_t)rand() % answers[j][0].size] =
					(unsigned char)rand();
			if (rand() % 2)
				answers[j][0].size = 1 + (size_t)rand() % answers[j][0].size;
		}
		ret = find("mlx5_0");
		assert_true(ret == 0 || ret == -ENODEV || ret == -ENOENT);
		assert_true(ret || strlen(name) < sizeof(name));
		assert_int_equal(fake_teardown(state), 0);
		assert_int_equal(setup(state), 0);
	}
}

static void a_socket_that_cannot_be_had_is_told(void **state)
{
	(void)state;
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

/* --- uevents
 * ----------------------------------------------------------------------------------- */

static void uevents_are_the_kernels_and_terminated(void **state)
{
	char *text;

	(void)state;
	datagram("add@/forged\0", 12, 4711);
	datagram("add@/cut", 8, 0);
	datagram("add@/devices/x\0ACTION=add", 26, 0);
	assert_int_equal(uevent_receive(NULL, &text), 26);
	assert_memory_equal(text, "add@/devices/x\0ACTION=add", 26);
	free(text);
	assert_int_equal(uevent_receive(NULL, &text), -EAGAIN);
}

static void errors_of_the_uevent_socket_are_told_apart(void **state)
{
	char *text;

	(void)state;
	datagram(NULL, -NLE_NOMEM, 0);
	datagram(NULL, -NLE_BAD_SOCK, 0);
	datagram(NULL, 0, 0);
	assert_int_equal(uevent_receive(NULL, &text), -ENOBUFS);
	assert_int_equal(uevent_receive(NULL, &text), -EIO);
	assert_int_equal(uevent_receive(NULL, &text), -EAGAIN);
}

static void the_real_kernels_uevents_can_be_listened_to(void **state)
{
	struct pollfd pollfd = {.events = POLLIN};
	struct nl_sock *sock;
	char *text;
	int ret;

	(void)state;
	real_kernel = true;
	ret = uevent_open(&sock);
	if (ret) {
		print_message("skipped: the kernel says %s\n", strerror(-ret));
		skip();
	}
	pollfd.fd = uevent_fd(sock);
	assert_true(fcntl(pollfd.fd, F_GETFL) & O_NONBLOCK);
	assert_true(poll(&pollfd, 1, 0) >= 0);
	/* what comes on a machine that is alive is not ours to say */
	if (!pollfd.revents)
		assert_int_equal(uevent_receive(sock, &text), -EAGAIN);
	uevent_close(sock);
}

static void the_real_kernel_knows_no_device_of_that_name(void **state)
{
	(void)state;
	real_kernel = true;
	assert_true(find("no_such_device") < 0);
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fake_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_device_is_asked_for_by_index_and_port),
		TEST(a_device_that_the_kernel_does_not_list_is_no_device),
		TEST(a_kernel_that_does_not_answer_has_no_answer),
		TEST(a_kernel_that_refuses_has_no_answer),
		TEST(devices_without_index_or_name_are_passed_over),
		TEST(a_name_that_makes_no_sense_is_no_answer),
		TEST(random_answers_do_no_harm),
		TEST(a_socket_that_cannot_be_had_is_told),
		TEST(uevents_are_the_kernels_and_terminated),
		TEST(errors_of_the_uevent_socket_are_told_apart),
		TEST(the_real_kernels_uevents_can_be_listened_to),
		TEST(the_real_kernel_knows_no_device_of_that_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
