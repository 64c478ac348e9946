/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Calls report a shortage (no descriptor, no memory, a signal) and a lack of rights as such:
 * -EIO with the cause in errno, or -ENOMEM. No call reports "no such device" for them.
 */

#include "fake.h"
#include "test.h"

#include <infiniband/umad_ext.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

/* --- every call that reads sysfs or opens a device --------------------------- */

/* The ports of the second device. */
static int ports;

/* Two devices; the second has the only Active port: to choose, a call reads both. */
static int setup(void)
{
	int ret = fake_setup();

	fake_ca("mlx5_0");
	fake_port("mlx5_0", 1, 1);
	fake_file("/sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n");
	fake_umad(0, "mlx5_0", 1);
	fake_ca("mlx5_1");
	fake_port("mlx5_1", 1, 2);
	fake_port("mlx5_1", 2, 3);
	fake_umad(1, "mlx5_1", 1);
	fake_umad(2, "mlx5_1", 2);
	ports = 2;
	return ret;
}

FIXTURE(setup, fake_teardown);

enum number {
	NAMES,
	DEVICE_LIST,
	GET_CA,
	GET_PORT,
	GET_GUIDS,
	OPEN_PORT,
	OPEN_SMI_PORT,
	ISSM_PATH,
	OPEN_ISSM,
	PAIRS,
	PAIR
};

/* Each is made with the name of the second device, and without a name. */
static const struct call {
	const char *behaviour;
	enum number number;
	bool reads, opens;
} calls[] = {
	{"umad_get_cas_names", NAMES, false, false},
	{"umad_get_ca_device_list", DEVICE_LIST, false, false},
	{"umad_get_ca", GET_CA, true, false},
	{"umad_get_port", GET_PORT, true, false},
	{"umad_get_ca_portguids", GET_GUIDS, true, false},
	{"umad_open_port", OPEN_PORT, false, true},
	{"umad_open_smi_port", OPEN_SMI_PORT, false, true},
	{"umad_get_issm_path", ISSM_PATH, false, false},
	{"umad_open_issm", OPEN_ISSM, false, false},
	{"umad_get_smi_gsi_pairs", PAIRS, false, false},
	{"umad_get_smi_gsi_pair_by_ca_name", PAIR, false, false},
};

#define CALLS (sizeof(calls) / sizeof(*calls))

static const char *const ca_names[] = {NULL, "mlx5_1"};

/* Returns the result of the call. What a success gives is complete. */
static int make(const struct call *call, const char *ca_name)
{
	char cas[4][UMAD_CA_NAME_LEN], path[64];
	struct umad_device_node *list;
	struct umad_ca_pair pairs[4];
	umad_port_t port;
	__be64 guids[4];
	umad_ca_t ca;
	int ret;

	switch (call->number) {
	case NAMES:
		ret = umad_get_cas_names(cas, 4);
		assert_true(ret < 0 || ret == 2);
		return ret;
	case DEVICE_LIST:
		list = umad_get_ca_device_list();
		assert_true(!list || list->next);
		umad_free_ca_device_list(list);
		return list ? 0 : -EIO;
	case GET_CA:
		ret = umad_get_ca(ca_name, &ca);
		for (int i = 0; i < UMAD_CA_MAX_PORTS; i++)
			assert_int_equal(ca.ports[i] ? ca.ports[i]->pkeys_size : 0,
					 !ret && i && i <= ports ? 2 : 0);
		assert_true(ret || !strcmp(ca.ca_name, "mlx5_1"));
		umad_release_ca(&ca);
		return ret;
	case GET_PORT:
		ret = umad_get_port(ca_name, 0, &port);
		assert_int_equal(port.pkeys_size, ret ? 0 : 2);
		assert_true(ret || (!strcmp(port.ca_name, "mlx5_1") && port.portnum == 1));
		umad_release_port(&port);
		return ret;
	case GET_GUIDS:
		ret = umad_get_ca_portguids(ca_name, guids, 4);
		assert_true(ret < 0 || ret == ports + 1);
		return ret;
	case OPEN_PORT:
		ret = umad_open_port(ca_name, 0);
		return ret < 0 ? ret : umad_close_port(ret);
	case OPEN_SMI_PORT:
		ret = umad_open_smi_port(ca_name, 0);
		return ret < 0 ? ret : umad_close_port(ret);
	case ISSM_PATH:
		ret = umad_get_issm_path(ca_name, 0, path, sizeof(path));
		assert_string_equal(path, ret ? "" : "/dev/infiniband/issm1");
		return ret;
	case OPEN_ISSM:
		ret = umad_open_issm(ca_name, 0, UMAD_ISSM_NONBLOCK);
		return ret < 0 ? ret : umad_close_issm(ret);
	case PAIRS:
		ret = umad_get_smi_gsi_pairs(pairs, 4);
		assert_true(ret < 0 || ret == 2);
		return ret;
	default:
		ret = umad_get_smi_gsi_pair_by_ca_name(ca_name, 0, pairs, 1);
		assert_string_equal(pairs[0].gsi_name, ret ? "" : "mlx5_1");
		return ret;
	}
}

/* all but one return -ENOMEM unchanged; umad_open_issm() returns the error of open(2) */
static void tells_the_cause(const struct call *call, int ret, int cause)
{
	bool as_it_is = cause == ENOMEM || call->number == OPEN_ISSM;

	if (errno != cause || (ret != -EIO && (!as_it_is || ret != -cause)))
		fail_msg("%d with errno %d (%s) for %s", ret, errno, strerror(errno),
			 strerror(cause));
}

/*
 * Makes the n-th system call fail with this cause, for n = 1, 2 and so on until the call needs
 * no more; with cause 0 the n-th allocation. Returns n. After a failure, check() gets the
 * result.
 */
static unsigned fail_each(const struct call *call, const char *ca_name, int cause,
			  void (*check)(const struct call *call, int ret, int cause))
{
	int ret;

	for (unsigned n = 1;; n++) {
		fake_fail_call(cause ? n : 0, cause);
		fake_fail_malloc(cause ? 0 : n);
		errno = 0;
		ret = make(call, ca_name);
		if (!fake_failed()) {
			assert_true(ret >= 0);
			fake_fail_call(0, 0);
			fake_fail_malloc(0);
			return n;
		}
		check(call, ret, cause);
	}
}

static void check_shortage(const struct call *call, int ret, int cause)
{
	/* a call that succeeds needs nothing of what failed */
	assert_true(ret < 0 || (cause && !call->opens));
	if (!cause)
		assert_int_equal(ret, call->number == DEVICE_LIST ? -EIO : -ENOMEM);
	if (ret < 0)
		tells_the_cause(call, ret, cause ? cause : ENOMEM);
}

static void meets_shortages(const struct call *call)
{
	static const int causes[] = {EMFILE, ENFILE, ENOMEM, EINTR, 0}; /* 0: an allocation */

	for (int i = 0; i < 2; i++)
		for (size_t j = 0; j < sizeof(causes) / sizeof(*causes); j++)
			assert_true(fail_each(call, ca_names[i], causes[j], check_shortage) >
				    (causes[j] ? 3 : 0));
}

TEST_ROWS(meets_shortages, calls);

static void check_rights(const struct call *call, int ret, int cause)
{
	/* the type of the device cannot be read */
	if (call->reads && ret == -ENODEV && errno == ENODEV)
		return;
	/* EOPNOTSUPP: abi_version cannot be read, as umad_open_port() describes */
	if (ret < 0 && ret != -EOPNOTSUPP)
		tells_the_cause(call, ret, cause);
}

/*
 * A list leaves out a device without permission. If no other device is usable, the permission
 * is the cause.
 */
TEST(a_lack_of_rights_is_told_where_nothing_else_is_usable)
{
	fake_remove("/sys/class/infiniband/mlx5_0");
	fake_remove("/sys/class/infiniband/mlx5_1/ports/2");
	ports = 1;
	for (size_t i = 0; i < 2 * CALLS; i++) {
		const struct call *call = &calls[i / 2];

		if (call->reads || call->opens || call->number == ISSM_PATH)
			fail_each(call, ca_names[i % 2], EACCES, check_rights);
	}
}

/* --- the process's limit of descriptors -------------------------------------- */

/* The limit of descriptors with which so many are free. */
static rlim_t limit_for(int left)
{
	int fd = -1;

	do
		left -= fcntl(++fd, F_GETFD) < 0;
	while (left >= 0);
	return (rlim_t)fd;
}

TEST(few_descriptors_left_are_enough_or_told)
{
	struct rlimit before, limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = before;
	for (int left = 0; left <= 3; left++) {
		limit.rlim_cur = limit_for(left);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
		for (size_t i = 0; i < 2 * CALLS; i++) {
			int ret;

			errno = 0;
			ret = make(&calls[i / 2], ca_names[i % 2]);
			if (ret < 0)
				tells_the_cause(&calls[i / 2], ret, EMFILE);
			/* at most a folder and one of its files are open at once */
			assert_true(left > 0 || ret < 0);
			assert_true(left < 2 || ret >= 0);
		}
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	}
}
