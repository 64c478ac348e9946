/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * soak OPTION ... PART ...: sends requests until it is stopped, and writes the process's memory
 * and descriptors.
 *
 *   --folder FOLDER   the folder of NAME.lines and of the control files (below)
 *   --name NAME       name of the process
 *   --seed NUMBER     seed of its random numbers
 *   --device CA       by default the first one
 *   --rate NUMBER     requests a second, of all parts
 *   --timeout MS      timeout of an attempt; by default 200
 *   --lids NUMBER     nodes have the LIDs 1 .. NUMBER; 0: no SMPs and no SA
 *   --server LID|GID  address of a server; may be given several times
 *   --steady          ports, engines and servers stay open; otherwise parts open and close them
 *                     at random
 *
 * A PART is engine, blocking, server, notices, monitor, hook or forks. Each has one or more
 * threads.
 *
 * The process rests when the file FOLDER/rest-N exists (N is 1, 2, ...): its parts end, and
 * close all except what --steady keeps. It writes a line just before the rest and a line at
 * rest. It continues when FOLDER/go-N exists, and ends if FOLDER/end exists. Exits with 1 if a
 * request did not complete exactly once, or completed with the data of another request.
 */
#include "soak.h"

#include <infiniband/umad_ext.h>

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <time.h>

#define MOST_PARTS 16

struct soak_options options;

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool stopping;
} parts_state = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- random numbers ------------------------------------------------------------- */

uint64_t random_next(uint64_t *state)
{
	uint64_t value = *state += UINT64_C(0x9e3779b97f4a7c15);

	value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
	return value ^ value >> 31;
}

unsigned random_below(uint64_t *state, unsigned limit)
{
	return (unsigned)(random_next(state) >> 32) % limit;
}

/* --- parts ---------------------------------------------------------------------- */

bool stopping(void)
{
	bool is;

	pthread_mutex_lock(&parts_state.lock);
	is = parts_state.stopping;
	pthread_mutex_unlock(&parts_state.lock);
	return is;
}

void sleep_ms(unsigned ms)
{
	uint64_t until = now_ms() + ms;
	struct timespec time = {.tv_sec = (time_t)(until / 1000),
				.tv_nsec = (long)(until % 1000 * 1000000)};
	int error = 0;

	pthread_mutex_lock(&parts_state.lock);
	while (!parts_state.stopping && error != ETIMEDOUT)
		error = pthread_cond_timedwait(&parts_state.changed, &parts_state.lock, &time);
	pthread_mutex_unlock(&parts_state.lock);
}

static void close_part(struct part *part)
{
	part->kind->close(part);
	part->is_open = false;
	counts.restarts++;
}

static void *run_part(void *arg)
{
	struct part *part = arg;
	bool there;

	while (!stopping()) {
		if (!part->is_open && !part->kind->open(part)) {
			sleep_ms(200);
			continue;
		}
		part->is_open = true;
		there = part->kind->work(
			part,
			options.steady ? 1000000000 : 500 + random_below(&part->random, 10000));
		if (!there || !options.steady)
			close_part(part);
	}
	if (part->is_open)
		part->kind->drain(part);
	return NULL;
}

void parts_start(struct part *parts, unsigned count)
{
	parts_state.stopping = false;
	for (unsigned i = 0; i < count; i++)
		if (pthread_create(&parts[i].thread, NULL, run_part, &parts[i])) {
			perror("pthread_create");
			exit(2);
		}
}

void parts_stop(struct part *parts, unsigned count)
{
	pthread_mutex_lock(&parts_state.lock);
	parts_state.stopping = true;
	pthread_cond_broadcast(&parts_state.changed);
	pthread_mutex_unlock(&parts_state.lock);
	for (unsigned i = 0; i < count; i++)
		pthread_join(parts[i].thread, NULL);
}

void parts_close(struct part *parts, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (parts[i].is_open)
			close_part(&parts[i]);
}

struct ibmad_port *open_port(void)
{
	int classes[] = {IB_SMI_CLASS, IB_SMI_DIRECT_CLASS, IB_SA_CLASS, IB_PERFORMANCE_CLASS};
	struct ibmad_port *port = mad_rpc_open_port(options.device, options.device ? 1 : 0,
						    classes, options.lids ? 4 : 0);

	if (port && mad_register_client_via(CLASS, 1, port) < 0) {
		mad_rpc_close_port(port);
		return NULL;
	}
	if (port) {
		mad_rpc_set_timeout(port, (int)options.timeout_ms);
		mad_rpc_set_retries(port, ATTEMPTS);
	}
	return port;
}

/* --- the process ---------------------------------------------------------------- */

static bool is_told(const char *what, unsigned number)
{
	char path[4096];

	if (number)
		snprintf(path, sizeof(path), "%s/%s-%u", options.folder, what, number);
	else
		snprintf(path, sizeof(path), "%s/%s", options.folder, what);
	return !access(path, F_OK);
}

static void quiet(enum umad_log_level level, const char *text, void *user)
{
	(void)level;
	(void)text;
	(void)user;
}

/* Works and rests until the end. */
static void live(struct part *parts, unsigned count)
{
	const struct timespec pause = {.tv_nsec = 100000000};

	for (unsigned rest = 1;; rest++) {
		parts_start(parts, count);
		while (!is_told("rest", rest))
			nanosleep(&pause, NULL);
		record_line(rest, false);
		parts_stop(parts, count);
		record_line(rest, true);
		while (!is_told("go", rest) && !is_told("end", 0))
			nanosleep(&pause, NULL);
		if (is_told("end", 0))
			break;
	}
	parts_close(parts, count);
}

static void add_server(const char *text)
{
	ib_portid_t *server = &options.servers[options.server_count];

	if (options.server_count == MOST_SERVERS)
		return;
	server->qp = 1;
	server->qkey = IB_DEFAULT_QP1_QKEY;
	if (inet_pton(AF_INET6, text, server->gid) == 1)
		server->grh_present = 1;
	else
		server->lid = (int)strtol(text, NULL, 0);
	options.server_count++;
}

static const struct part_kind *kind_named(const char *name)
{
	static const struct part_kind *const kinds[] = {
		&engine_part,  &blocking_part, &server_part, &notices_part,
		&monitor_part, &hook_part,     &forks_part,
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i]->name, name))
			return kinds[i];
	fprintf(stderr, "soak: no such part: %s\n", name);
	exit(2);
}

static void read_options(int argc, char **argv)
{
	static const struct option names[] = {
		{"folder", required_argument, NULL, 'f'},
		{"name", required_argument, NULL, 'n'},
		{"seed", required_argument, NULL, 's'},
		{"device", required_argument, NULL, 'd'},
		{"rate", required_argument, NULL, 'r'},
		{"lids", required_argument, NULL, 'l'},
		{"timeout", required_argument, NULL, 't'},
		{"server", required_argument, NULL, 'S'},
		{"steady", no_argument, NULL, 'p'},
		{NULL, 0, NULL, 0},
	};
	int option;

	options = (struct soak_options){
		.folder = ".", .name = "soak", .rate = 100, .timeout_ms = 200};
	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (option) {
		case 'f':
			options.folder = optarg;
			break;
		case 'n':
			options.name = optarg;
			break;
		case 's':
			options.seed = strtoull(optarg, NULL, 0);
			break;
		case 'd':
			options.device = optarg;
			break;
		case 'r':
			options.rate = (unsigned)strtoul(optarg, NULL, 0);
			break;
		case 'l':
			options.lids = (unsigned)strtoul(optarg, NULL, 0);
			break;
		case 't':
			options.timeout_ms = (unsigned)strtoul(optarg, NULL, 0);
			break;
		case 'S':
			add_server(optarg);
			break;
		case 'p':
			options.steady = true;
			break;
		default:
			exit(2);
		}
	}
	if (!options.server_count)
		add_server("1");
}

int main(int argc, char **argv)
{
	struct part parts[MOST_PARTS];
	pthread_condattr_t clock;
	unsigned count = 0;

	read_options(argc, argv);
	for (int i = optind; i < argc && count < MOST_PARTS; i++) {
		parts[count] =
			(struct part){.kind = kind_named(argv[i]),
				      .random = options.seed + count * UINT64_C(1000003)};
		count++;
	}
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&parts_state.changed, &clock);
	umad_set_log_hook(quiet, NULL); /* most faults cause messages */
	record_open_file();
	live(parts, count);
	return record_close() ? 0 : 1;
}
