/* SPDX-License-Identifier: BSD-2-Clause */

#include "removal_cases.h"
#include "check.h"
#include "rpc.h"
#include "../heap_in_use.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GROWTH 16384 /* bytes */

/* How the device goes, and how it comes back. An environment may have only the first kind. The
 * others take seconds in emulation. */
static const char *const kinds[][2] = {
	{"remove", "add"},
	{"unload_driver", "load_driver"},
	{"kill", "serve"},
};

static struct removal {
	const char *const *verbs;
	unsigned delay_ms, absent_ms, times;
} removal;

static int remover; /* a process; 0 if it has ended */

static void remove_and_add(void *arg)
{
	(void)arg;
	pause_ms(removal.delay_ms);
	for (unsigned i = 0; i < removal.times; i++) {
		if (!environment_asked(removal.verbs[0], there.ca_name)) {
			note("as \"remove\": not possible here");
			removal.verbs = kinds[0];
			expect(environment_asked(removal.verbs[0], there.ca_name));
		}
		pause_ms(removal.absent_ms);
		expect(environment_asked(removal.verbs[1], there.ca_name));
	}
}

void remove_soon(void)
{
	remover = start_child(remove_and_add, NULL);
}

bool over(void)
{
	int status;

	if (remover && waitpid(remover, &status, WNOHANG) == remover) {
		expect_equal(status, 0);
		remover = 0;
	}
	return !remover;
}

void expect_gone(int error)
{
	if (error != ENODEV && error != ETIMEDOUT && error != EIO)
		expect_equal(error, ENODEV);
}

/*
 * mallinfo2() counts the memory that malloc caches for a thread as in use: runs the program
 * again, without these caches.
 */
static void count_memory_exactly(char **argv)
{
	if (getenv("GLIBC_TUNABLES"))
		return;
	setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0", 1);
	expect_equal(execv("/proc/self/exe", argv), 0);
}

static void expect_a_working_device(void)
{
	int child = start_server();
	struct ibmad_port *port = open_mad_port(&here);
	ib_rpc_t rpc = request_of(METHOD_GET, ECHO, 20000);
	ib_portid_t to = address_of(&there);
	uint8_t data[SEGMENT] = {0};

	expect(mad_rpc(port, &rpc, &to, data, data));
	mad_rpc_close_port(port);
	stop_server(child);
}

static void run_case(unsigned seed, const struct phase *phase)
{
	unsigned before;

	tell_progress();
	srand(seed);
	removal.delay_ms = (unsigned)rand() % 100;
	removal.absent_ms = rand() % 2 ? 0 : (unsigned)rand() % 200;
	removal.times = rand() % 4 ? 1 : 2;
	if (rand() % 4) {
		removal.verbs = kinds[0];
	} else {
		removal.verbs = kinds[1 + rand() % 2];
		removal.times = 1;
	}
	note("SEED=%u: %s, after %u ms %s %u times for %u ms", seed, phase->name,
	     removal.delay_ms, removal.verbs[0], removal.times, removal.absent_ms);
	find_ports();
	before = count_descriptors();
	phase->run();
	while (!over())
		pause_ms(1);
	expect_equal(count_descriptors(), before);
	find_ports();
	expect_a_working_device();
}

static const struct phase *phases;
static unsigned phase_count;

static void a_device_may_be_removed_at_any_time(void)
{
	const char *given = getenv("SEED");
	unsigned seed = given ? (unsigned)strtoul(given, NULL, 0) : (unsigned)time(NULL);
	unsigned rounds = environment_is_brief() ? 1 : 2;
	unsigned cases = given ? 1 : rounds * phase_count;
	size_t heap = 0;

	if (!environment_asked("uevents", ""))
		cannot("devices come and go without the kernel's uevents");
	seed -= given ? 0 : seed % phase_count; /* each phase as often as the others */
	for (unsigned i = 0; i < cases; i++) {
		run_case(seed + i, &phases[(seed + i) % phase_count]);
		if (i == phase_count - 1) {
			heap = heap_in_use();
		} else if (i >= phase_count && heap_in_use() > heap) {
			note("%zu bytes more than after a case of each phase",
			     heap_in_use() - heap);
			expect(heap_in_use() <= heap + GROWTH);
		}
	}
}

int run_removals(int argc, char **argv, const struct phase all[], unsigned count)
{
	static const struct check checks[] = {
		CHECK(a_device_may_be_removed_at_any_time),
	};

	phases = all;
	phase_count = count;
	count_memory_exactly(argv);
	set_environment(argc, argv);
	find_ports();
	return run_checks(checks, sizeof(checks) / sizeof(checks[0]));
}
