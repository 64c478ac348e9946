/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * storm [OPTION ...] TRANSACTIONS
 *
 * Transactions of libibmad between the first two umad ports, both ways at once: 8 threads make
 * blocking calls, 2 engines have 16 requests open each, and a server on each port responds. The
 * data of a request and of its response depend on the transaction's number. Each transaction
 * completes once, with its own data or an error, within the time that the caller gave it.
 *
 *   -m N     of 1,000 transactions, N have messages by RMPP (20)
 *   -l N     the longest message has N bytes (1 MB)
 *   -L N     so many messages and their responses have this length, the others any (2)
 *   -t MS    timeout of an attempt, of MADs (4,000)
 *   -w MS    timeout of an attempt, for each window of 64 segments of a message (2,000)
 *   -a N     attempts (4)
 *   -W N     the window of GMPs has N requests (it adapts)
 *   -e NAME  errors that may be: none, messages (that time out), timeouts, any (none)
 *   -g       the device goes meanwhile: all open transactions fail, and the program ends
 *
 * SIGTERM ends it early: no transaction begins any more.
 *
 * Prints "ready" when the ports are open and some transactions were made, and then one line:
 * transactions, right ones, retransmissions, late ones, the latest by how many milliseconds,
 * seconds, and errors by errno. "Late" is a transaction that took longer than attempts x
 * timeout. Such a transaction fails the test if it took longer than libibmad waits for the
 * kernel's report of a timeout (a seventh of the time), SLACK_MS, the time for which the
 * machine itself stood still, and the time of slow writes meanwhile: an engine writes one
 * request after the other.
 */
#include "check.h"
#include "rpc.h"
#include "../heap_in_use.h"

#include <infiniband/mad_async.h>
#include <infiniband/mad_server.h>
#include <infiniband/umad_ext.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BLOCKING_THREADS 8
#define DIRECTIONS       2
#define DEPTH            16
#define WINDOW           64 /* segments that the kernel sends before it waits */
#define SLACK_MS         5000
#define PULSE_MS         50
#define PAUSE_MS         100
#define SLOW_WRITE_MS    500   /* a longer write is reported */
#define HANG_MS          60000 /* without a completion: longer than any transaction may take */
#define LEAK_BYTES       16384
#define LIMIT            1024 /* of requests in flight to a destination, and at a server */

enum errors {
	NO_ERRORS,
	MESSAGES_TIME_OUT,
	TIMEOUTS,
	ANY_ERROR
};

static const char *const error_words[] = {"none", "messages", "timeouts", "any"};

static struct {
	unsigned count, share, largest_count, attempts, window;
	size_t largest;
	int timeout, window_timeout;
	enum errors errors;
	bool goes;
} options = {
	.share = 20,
	.largest = 1 << 20,
	.largest_count = 2,
	.timeout = 4000,
	.window_timeout = 2000,
	.attempts = 4,
};

enum state {
	FRESH,
	OPEN,
	ENDED
};

static struct transaction {
	_Atomic uint8_t state;
	_Atomic uint8_t ends;
	bool wrong;
	int error;
	int64_t began, stalled;
	unsigned took;    /* milliseconds, without those in which the machine stood still */
	unsigned blocked; /* milliseconds of slow writes of all threads meanwhile */
} * transactions;

static struct direction {
	const struct port *from, *to;
	ib_portid_t address;
	struct ibmad_port *port;
	struct mad_async *served;
	struct mad_server *server;
	pthread_t serving;
} directions[DIRECTIONS];

static atomic_uint next, ended;
static atomic_uint sent; /* MADs that are requests */
static atomic_uint wrong_requests, failed_responses, longest_write;
static atomic_bool gone, over, told_to_end;
static bool warm;               /* transactions were made, which do not count */
static _Atomic int64_t stalled; /* milliseconds that the machine stood still */
static atomic_uint blocked;     /* milliseconds of slow writes */

/* --- what a transaction is -------------------------------------------------------- */

static uint64_t hash(uint64_t number)
{
	number = (number ^ number >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	number = (number ^ number >> 27) * UINT64_C(0x94d049bb133111eb);
	return number ^ number >> 31;
}

/* The largest messages come first, because they take the longest time. */
static bool is_largest(unsigned number)
{
	return number < options.largest_count;
}

static bool is_message(unsigned number)
{
	return is_largest(number) || hash(number + 1) % 1000 < options.share;
}

/* From 1 byte to the longest; each number of bits is equally likely. */
static size_t any_size(uint64_t random)
{
	size_t below = 2;

	for (unsigned bits = (unsigned)(random % 21); bits && below <= options.largest / 2;
	     bits--)
		below *= 2;
	return 1 + (size_t)(random >> 8) % (below - 1);
}

static size_t request_size(unsigned number)
{
	if (is_largest(number))
		return options.largest;
	return is_message(number) ? any_size(hash(number + UINT64_C(0x100000000))) : SEGMENT;
}

static size_t response_size(unsigned number)
{
	if (is_largest(number))
		return options.largest;
	return is_message(number) ? any_size(hash(number + UINT64_C(0x200000000))) : SEGMENT;
}

static int timeout_of_message(size_t segments)
{
	return options.timeout + options.window_timeout * (int)(segments / WINDOW + 2);
}

static int timeout_of(unsigned number)
{
	size_t segments = request_size(number) / SEGMENT + response_size(number) / SEGMENT;

	return is_message(number) ? timeout_of_message(segments) : options.timeout;
}

static int longest_timeout(void)
{
	return timeout_of_message(2 * (options.largest / SEGMENT));
}

static uint64_t word_of(unsigned number, bool response, size_t index)
{
	return (index + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ hash(2 * number + response + 1);
}

static void fill_data(unsigned number, bool response, uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
		uint64_t word = word_of(number, response, i);

		memcpy(data + i, &word, size - i < sizeof(word) ? size - i : sizeof(word));
	}
}

/* A MAD has zeros behind the data; a message of several MADs ends with the data. */
static bool is_right(unsigned number, bool response, const uint8_t *data, size_t size)
{
	size_t expected = response ? response_size(number) : request_size(number);

	if (size < expected || (size > expected && size > SEGMENT))
		return false;
	for (size_t i = 0; i < expected; i += sizeof(uint64_t)) {
		uint64_t word = word_of(number, response, i);

		if (memcmp(data + i, &word,
			   expected - i < sizeof(word) ? expected - i : sizeof(word)) != 0)
			return false;
	}
	for (size_t i = expected; i < size; i++)
		if (data[i])
			return false;
	return true;
}

static ib_rpc_t rpc_of(unsigned number)
{
	ib_rpc_t rpc = request_of(METHOD_ANY, 1, timeout_of(number));

	rpc.attr.mod = number;
	return rpc;
}

/* --- results ---------------------------------------------------------------------- */

/* The number of the next transaction; false: there is none. */
static bool begin(unsigned *number)
{
	if (gone || told_to_end)
		return false;
	*number = atomic_fetch_add(&next, 1);
	if (*number >= options.count)
		return false;
	transactions[*number].began = now_ms();
	transactions[*number].stalled = stalled;
	transactions[*number].blocked = blocked;
	transactions[*number].state = OPEN;
	return true;
}

static void end(unsigned number, int error, const uint8_t *data, size_t size)
{
	struct transaction *transaction = &transactions[number];
	int64_t took = now_ms() - transaction->began - (stalled - transaction->stalled);

	transaction->error = error;
	transaction->wrong = !error && !is_right(number, true, data, size);
	transaction->took = took > 0 ? (unsigned)took : 0;
	transaction->blocked = blocked - transaction->blocked;
	transaction->ends++;
	transaction->state = ENDED;
	if (error == ENODEV)
		gone = true;
	atomic_fetch_add(&ended, 1);
	/*
	 * a request that cannot be sent fails at once: a pause, so that not all fail in one
	 * second
	 */
	if (error && error != ETIMEDOUT && error != ENODEV)
		pause_ms(PAUSE_MS);
}

/* --- the servers ------------------------------------------------------------------ */

static void respond(struct mad_server *server, struct mad_request *request, int error,
		    void *arg)
{
	unsigned number = request ? request->modifier : 0;
	uint8_t *data;

	(void)server;
	(void)arg;
	if (!request) { /* the last callback */
		expect(!error || (options.goes && error == -ENODEV));
		return;
	}
	if (number >= options.count ||
	    !is_right(number, false, request->data, request->data_size)) {
		atomic_fetch_add(&wrong_requests, 1);
		mad_request_free(request);
		return;
	}
	data = allocate(response_size(number));
	fill_data(number, true, data, response_size(number));
	if (mad_request_respond(request, 0, data, response_size(number))) {
		atomic_fetch_add(&failed_responses, 1);
		mad_request_free(request);
	}
	free(data);
}

static void *serve(void *arg)
{
	struct direction *direction = arg;

	mad_async_wait(direction->served, -1);
	return NULL;
}

static void start_server_of(struct direction *direction, struct ibmad_port *port)
{
	struct mad_server_options served = {
		.mgmt_class = CLASS,
		.oui = OUI,
		.methods = {MAD_SERVER_METHOD(METHOD_ANY)},
		.rmpp_version = 1,
		.limit = LIMIT,
	};

	direction->served = mad_async_create(port);
	expect(direction->served);
	expect_equal(
		mad_server_start(direction->served, &served, respond, NULL, &direction->server),
		0);
	expect_equal(pthread_create(&direction->serving, NULL, serve, direction), 0);
}

static void stop_server_of(struct direction *direction)
{
	mad_server_stop(direction->server);
	expect_equal(pthread_join(direction->serving, NULL), 0);
	mad_async_free(direction->served);
}

/* --- blocking calls --------------------------------------------------------------- */

/* A request of one MAD without RMPP, with such a response. */
static int call_for_mad(struct direction *direction, unsigned number)
{
	ib_rpc_t rpc = rpc_of(number);
	ib_portid_t to = direction->address;
	uint8_t data[SEGMENT];

	fill_data(number, false, data, sizeof(data));
	if (!mad_rpc(direction->port, &rpc, &to, data, data))
		return errno;
	end(number, 0, data, sizeof(data));
	return 0;
}

/* A request of one segment by RMPP. */
static int call_by_segment(struct direction *direction, unsigned number)
{
	size_t size = response_size(number) > SEGMENT ? response_size(number) : SEGMENT;
	ib_rmpp_hdr_t rmpp = {.type = IB_RMPP_TYPE_DATA, .flags = IB_RMPP_FLAG_ACTIVE};
	uint8_t *data = allocate(size);
	ib_portid_t to = direction->address;
	ib_rpc_t rpc = rpc_of(number);
	int error = 0;

	rpc.datasz = (int)size;
	fill_data(number, false, data, request_size(number));
	if (mad_rpc_rmpp(direction->port, &rpc, &to, &rmpp, data))
		end(number, 0, data, size);
	else
		error = errno;
	free(data);
	return error;
}

static int call_by_message(struct direction *direction, unsigned number)
{
	uint8_t *data = allocate(request_size(number));
	ib_portid_t to = direction->address;
	ib_rpc_t rpc = rpc_of(number);
	struct mad_message message;
	int error;

	fill_data(number, false, data, request_size(number));
	error = -mad_rpc_message(direction->port, &rpc, &to, data, request_size(number),
				 &message);
	if (!error)
		end(number, 0, message.mad + DATA, message.length - DATA);
	mad_message_free(&message);
	free(data);
	return error;
}

static void *call(void *arg)
{
	unsigned number;
	int error;

	while (begin(&number)) {
		if (!is_message(number) && number % 2)
			error = call_for_mad(arg, number);
		else if (is_message(number) && request_size(number) <= SEGMENT)
			error = call_by_segment(arg, number);
		else
			error = call_by_message(arg, number);
		if (error)
			end(number, error, NULL, 0);
	}
	return NULL;
}

/* --- engines ---------------------------------------------------------------------- */

struct context {
	struct direction *direction;
	unsigned number;
};

static void submit(struct mad_async *async, struct context *context);

static void came(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	struct context *context = arg;

	end(context->number, -reply->error, reply->data, reply->data_size);
	submit(async, context);
}

static void submit(struct mad_async *async, struct context *context)
{
	uint8_t *data;
	ib_rpc_t rpc;
	int ret;

	while (begin(&context->number)) {
		rpc = rpc_of(context->number);
		data = allocate(request_size(context->number));
		fill_data(context->number, false, data, request_size(context->number));
		ret = mad_async_submit(async, &rpc, &context->direction->address, data,
				       request_size(context->number), came, context, NULL);
		free(data);
		if (!ret)
			return;
		end(context->number, -ret, NULL, 0);
	}
}

static void *run_engine(void *arg)
{
	struct context contexts[DEPTH];
	struct direction *direction = arg;
	struct mad_async *async = mad_async_create(direction->port);

	expect(async);
	for (unsigned i = 0; i < DEPTH; i++) {
		contexts[i].direction = direction;
		submit(async, &contexts[i]);
	}
	mad_async_wait(async, -1);
	mad_async_free(async);
	return NULL;
}

/* --- the program ------------------------------------------------------------------ */

/* Counts the failures. */
static void be_quiet(enum umad_log_level level, const char *text, void *user)
{
	(void)level;
	(void)text;
	(void)user;
}

static void count_packet(const struct umad_packet_info *packet, void *user)
{
	const uint8_t *mad = packet->mad;
	struct timespec now;
	int64_t took;

	(void)user;
	if (packet->direction != UMAD_PACKET_SENT)
		return;
	if (!(mad[3] & RESPONSE))
		atomic_fetch_add(&sent, 1);
	clock_gettime(CLOCK_REALTIME, &now);
	took = (now.tv_sec * INT64_C(1000000000) + now.tv_nsec - packet->time) / 1000000;
	if (took > longest_write)
		longest_write = (unsigned)took;
	if (took > SLOW_WRITE_MS)
		atomic_fetch_add(&blocked, (unsigned)took);
}

/* The delay of a thread that only sleeps is the time for which the machine stood still. */
static void *feel_pulse(void *arg)
{
	int64_t before = now_ms(), now;

	(void)arg;
	while (!over) {
		pause_ms(PULSE_MS);
		now = now_ms();
		if (now - before > 2 * PULSE_MS)
			stalled += now - before - PULSE_MS;
		before = now;
	}
	return NULL;
}

static void print_state(void)
{
	char command[64];

	for (unsigned i = 0; i < options.count; i++)
		if (transactions[i].state == OPEN)
			printf("open: transaction %u, request %zu, response %zu bytes, for "
			       "%lld ms; it may take %u x %d ms\n",
			       i, request_size(i), response_size(i),
			       (long long)(now_ms() - transactions[i].began), options.attempts,
			       timeout_of(i));
	fflush(stdout);
	snprintf(command, sizeof(command), "cd /proc/%d/task && cat */stack */syscall",
		 getpid());
	expect(system(command) != -1);
}

/* Ends the program if no transaction completes for longer than any may take. */
static void *watch(void *arg)
{
	int64_t since = now_ms(), most = longest_timeout() * (int64_t)options.attempts;
	unsigned before = 0;

	(void)arg;
	while (!over) {
		pause_ms(PULSE_MS);
		if (ended != before)
			since = now_ms();
		before = ended;
		if (now_ms() - since > most + HANG_MS) {
			puts("it hangs:");
			print_state();
			_exit(3);
		}
	}
	return NULL;
}

static void open_direction(struct direction *direction, const struct port *from,
			   const struct port *to)
{
	*direction = (struct direction){.from = from, .to = to, .address = address_of(to)};
	direction->port = open_mad_port(from);
	mad_rpc_set_retries(direction->port, (int)options.attempts);
	mad_port_set(direction->port, MAD_PORT_DESTINATION_LIMIT, LIMIT);
	mad_port_set(direction->port, MAD_PORT_GMP_WINDOW, options.window);
}

/* The threads of clients and servers, from the first to the last transaction. */
static void run_all(void)
{
	pthread_t callers[BLOCKING_THREADS], engines[DIRECTIONS], pulse, watching;

	open_direction(&directions[0], &here, &there);
	open_direction(&directions[1], &there, &here);
	if (warm)
		puts("ready");
	fflush(stdout);
	over = false;
	expect_equal(pthread_create(&pulse, NULL, feel_pulse, NULL), 0);
	expect_equal(pthread_create(&watching, NULL, watch, NULL), 0);
	for (unsigned i = 0; i < DIRECTIONS; i++)
		start_server_of(&directions[i], directions[i].port);
	for (unsigned i = 0; i < DIRECTIONS; i++)
		expect_equal(pthread_create(&engines[i], NULL, run_engine, &directions[i]), 0);
	for (unsigned i = 0; i < BLOCKING_THREADS; i++)
		expect_equal(
			pthread_create(&callers[i], NULL, call, &directions[i % DIRECTIONS]),
			0);
	for (unsigned i = 0; i < BLOCKING_THREADS; i++)
		expect_equal(pthread_join(callers[i], NULL), 0);
	for (unsigned i = 0; i < DIRECTIONS; i++)
		expect_equal(pthread_join(engines[i], NULL), 0);
	for (unsigned i = 0; i < DIRECTIONS; i++)
		stop_server_of(&directions[i]);
	over = true;
	expect_equal(pthread_join(pulse, NULL), 0);
	expect_equal(pthread_join(watching, NULL), 0);
	for (unsigned i = 0; i < DIRECTIONS; i++)
		mad_rpc_close_port(directions[i].port);
}

static bool may_be(unsigned number, int error)
{
	if (options.goes && error == ENODEV)
		return true;
	switch (options.errors) {
	case NO_ERRORS:
		return error == 0;
	case MESSAGES_TIME_OUT:
		return error == 0 || (error == ETIMEDOUT && is_message(number));
	case TIMEOUTS:
		return error == 0 || error == ETIMEDOUT;
	case ANY_ERROR:
		return true;
	}
	return false;
}

/* Whether a transaction has the right result. */
static bool judge(unsigned number, unsigned *latest, unsigned *late)
{
	const struct transaction *transaction = &transactions[number];
	unsigned time = options.attempts * (unsigned)timeout_of(number);
	bool in_time = transaction->took <= time + time / 7 + transaction->blocked + SLACK_MS;

	if (transaction->took > time) {
		++*late;
		if (transaction->took - time > *latest)
			*latest = transaction->took - time;
	}
	if (transaction->ends == 1 && !transaction->wrong && in_time &&
	    may_be(number, transaction->error))
		return true;
	printf("transaction %u (%zu bytes, %zu bytes) completed %d times after %u of %u ms: "
	       "%s%s\n",
	       number, request_size(number), response_size(number), transaction->ends,
	       transaction->took, time, strerror(transaction->error),
	       transaction->wrong ? ", wrong data" : "");
	return false;
}

static bool report(int64_t took)
{
	unsigned begun = next < options.count ? next : options.count;
	unsigned right = 0, late = 0, latest = 0, bad = 0, errors[256] = {0};
	int retransmissions = (int)(sent - begun);

	for (unsigned i = 0; i < begun; i++) {
		bad += !judge(i, &latest, &late);
		right += !transactions[i].error && !transactions[i].wrong;
		errors[transactions[i].error & 255]++;
	}
	printf("%7u %7u %7d %5u %6u %5lld.%lld ", begun, right,
	       retransmissions > 0 ? retransmissions : 0, late, latest, (long long)took / 1000,
	       (long long)took % 1000 / 100);
	for (int error = 1; error < 256; error++)
		if (errors[error])
			printf(" %u %s,", errors[error], strerror(error));
	if (longest_write > SLOW_WRITE_MS)
		printf(" (a write of %u ms)", longest_write);
	if (failed_responses)
		printf(" (%u responses failed)", failed_responses);
	if (wrong_requests)
		printf(" (%u wrong requests)", wrong_requests);
	puts("");
	return !bad && !wrong_requests;
}

static int usage(void)
{
	fputs("usage: storm [-m N] [-l N] [-L N] [-t MS] [-w MS] [-a N] [-W N] [-e NAME] [-g] "
	      "TRANSACTIONS\n",
	      stderr);
	return 2;
}

static bool set_option(int letter, const char *text)
{
	unsigned number = text ? (unsigned)strtoul(text, NULL, 0) : 0;

	switch (letter) {
	case 'm':
		options.share = number;
		return true;
	case 'l':
		options.largest = number;
		return number > 0;
	case 'L':
		options.largest_count = number;
		return true;
	case 't':
		options.timeout = (int)number;
		return number > 0;
	case 'w':
		options.window_timeout = (int)number;
		return true;
	case 'a':
		options.attempts = number;
		return number > 0;
	case 'W':
		options.window = number;
		return true;
	case 'g':
		options.goes = true;
		return true;
	case 'e':
		for (unsigned i = 0; i < sizeof(error_words) / sizeof(*error_words); i++)
			if (!strcmp(text, error_words[i])) {
				options.errors = (enum errors)i;
				return true;
			}
	}
	return false;
}

/* The calls of a scenario, once, so that libc and the library have allocated what they keep. */
static void warm_up(void)
{
	unsigned count = options.count, largest = options.largest_count;
	bool goes = options.goes;

	options.count = BLOCKING_THREADS + DIRECTIONS * DEPTH;
	options.largest_count = 0;
	options.goes = false;
	run_all();
	options.count = count;
	options.largest_count = largest;
	options.goes = goes;
	memset(transactions, 0, ended * sizeof(*transactions));
	next = ended = sent = failed_responses = wrong_requests = longest_write = 0;
}

static void end_early(int signal)
{
	(void)signal;
	told_to_end = true;
}

int main(int argc, char **argv)
{
	size_t bytes;
	unsigned descriptors;
	int64_t began;
	bool good;
	int letter;

	while ((letter = getopt(argc, argv, "m:l:L:t:w:a:W:e:g")) != -1)
		if (!set_option(letter, optarg))
			return usage();
	if (optind + 1 != argc)
		return usage();
	options.count = (unsigned)strtoul(argv[optind], NULL, 0);
	find_ports();
	transactions = calloc(options.count + 64, sizeof(*transactions));
	expect(transactions);
	umad_set_log_hook(be_quiet, NULL);
	umad_set_packet_hook(count_packet, NULL);
	warm_up();
	signal(SIGTERM, end_early);
	warm = true;
	descriptors = count_descriptors();
	bytes = heap_in_use();
	began = now_ms();
	run_all();
	began = now_ms() - began;
	good = report(began);
	if (count_descriptors() != descriptors) {
		printf("%u descriptors before, %u after\n", descriptors, count_descriptors());
		good = false;
	}
	if (heap_in_use() > bytes + LEAK_BYTES) {
		printf("%zu bytes before, %zu after\n", bytes, heap_in_use());
		good = false;
	}
	if (options.goes && !gone) {
		puts("the device did not go");
		good = false;
	}
	free(transactions);
	return good ? 0 : 1;
}
