/* SPDX-License-Identifier: BSD-2-Clause */

#include "jobs.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>

/* Requests of an engine at a time. */
#define DEPTH        600
#define DATA_SIZE    100
#define LONG_REQUEST 1000

enum kind {
	GET,
	SET,
	TABLE,
	LONG,
	KINDS
};

static struct job {
	atomic_uchar ends;
	atomic_bool cancelled;
	bool wrong_data;
	int16_t error;
} * jobs;

static uint64_t salt;

void must(bool holds, const char *text)
{
	if (holds)
		return;
	printf("%s\n", text);
	fflush(stdout);
	abort();
}

void jobs_start(unsigned count, uint64_t seed)
{
	salt = seed;
	jobs = calloc(count, sizeof(*jobs));
	must(jobs, "no memory");
}

void jobs_end(void)
{
	free(jobs);
}

/* --- requests ------------------------------------------------------------------- */

static enum kind kind_of(unsigned number)
{
	unsigned die = (number * 2654435761u) >> 16 & 63;

	return die < 40 ? GET : die < 55 ? SET : die < 62 ? TABLE : LONG;
}

static ib_rpc_t request_of(unsigned number)
{
	static const ib_rpc_t requests[KINDS] = {
		[GET] = {.mgtclass = IB_SMI_CLASS,
			 .method = IB_MAD_METHOD_GET,
			 .dataoffs = IB_SMP_DATA_OFFS},
		[SET] = {.mgtclass = IB_PERFORMANCE_CLASS,
			 .method = IB_MAD_METHOD_SET,
			 .dataoffs = IB_PC_DATA_OFFS},
		[TABLE] = {.mgtclass = IB_SA_CLASS,
			   .method = IB_MAD_METHOD_GET_TABLE,
			   .dataoffs = IB_SA_DATA_OFFS},
		[LONG] = {.mgtclass = IB_SA_CLASS,
			  .method = IB_MAD_METHOD_GETMULTI,
			  .dataoffs = IB_SA_DATA_OFFS},
	};
	ib_rpc_t rpc = requests[kind_of(number)];

	rpc.datasz = DATA_SIZE;
	/* requests with automatic retransmission may take longer */
	if (kind_of(number) == GET)
		rpc.timeout = 2000;
	return rpc;
}

static ib_portid_t target_of(unsigned number)
{
	return (ib_portid_t){
		.lid = 1 + (int)(number % 1000), .qp = 1, .qkey = IB_DEFAULT_QP1_QKEY};
}

/* Bytes that no other transaction has, and none of them 0. */
static void fill(unsigned number, uint8_t *data, size_t size)
{
	uint64_t state = salt ^ (number + 1) * UINT64_C(0x9e3779b97f4a7c15);

	for (size_t i = 0; i < size; i++) {
		state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
		data[i] = (uint8_t)(state >> 56) | 1;
	}
}

/* Whether it has the data of the request, as far as it was received; zeros may follow. */
static bool is_right(unsigned number, const uint8_t *data, size_t size)
{
	uint8_t expected[DATA_SIZE];
	size_t i = 0;

	if (size > DATA_SIZE)
		size = DATA_SIZE;
	fill(number, expected, sizeof(expected));
	while (i < size && data[i] == expected[i])
		i++;
	while (i < size && data[i] == 0)
		i++;
	return i == size;
}

/* --- results -------------------------------------------------------------------- */

static void end_job(unsigned number, int error, const uint8_t *data, size_t size)
{
	jobs[number].error = (int16_t)error;
	if (!error)
		jobs[number].wrong_data = !is_right(number, data, size);
	jobs[number].ends++;
}

static bool may_be(unsigned number, int error, bool gone)
{
	if (jobs[number].cancelled)
		return error == ECANCELED;
	switch (error) {
	case 0:
	case EIO:
	case ETIMEDOUT:
		return true;
	case ENODEV:
		return gone;
	case EHOSTUNREACH: /* corrupted into a redirection, or a corrupted redirection */
	case ELOOP:
		return true;
	case EMSGSIZE:
		return kind_of(number) == TABLE;
	case EOPNOTSUPP:
		return kind_of(number) == LONG;
	}
	return false;
}

void jobs_judge(unsigned first, unsigned count, bool gone)
{
	unsigned counts[256] = {0};

	for (unsigned i = first; i < first + count; i++) {
		if (jobs[i].ends == 1 && !jobs[i].wrong_data &&
		    may_be(i, jobs[i].error, gone)) {
			counts[jobs[i].error & 255]++;
			continue;
		}
		printf("transaction %u, kind %d, ended %d times, error %d%s%s\n", i, kind_of(i),
		       jobs[i].ends, jobs[i].error, jobs[i].cancelled ? ", cancelled" : "",
		       jobs[i].wrong_data ? ", wrong data" : "");
		must(false, "that cannot be");
	}
	for (int error = 0; error < 256; error++)
		if (counts[error])
			printf("%9u %s\n", counts[error], error ? strerror(error) : "Success");
	must(gone || counts[0] > count / 2, "more should have succeeded");
}

/* --- blocking ------------------------------------------------------------------- */

static void do_one(struct ibmad_port *port, unsigned number)
{
	uint8_t data[LONG_REQUEST] = {0};
	ib_portid_t to = target_of(number);
	ib_rpc_t rpc = request_of(number);
	struct mad_message message;
	int ret;

	fill(number, data, DATA_SIZE);
	if (kind_of(number) == LONG || number & 1) {
		ret = mad_rpc_message(port, &rpc, &to, data,
				      kind_of(number) == LONG ? LONG_REQUEST : DATA_SIZE,
				      &message);
		if (!ret && message.length < (size_t)rpc.dataoffs)
			end_job(number, 0, NULL, 0);
		else
			end_job(number, -ret, ret ? NULL : message.mad + rpc.dataoffs,
				message.length - (size_t)rpc.dataoffs);
		mad_message_free(&message);
	} else {
		errno = 0;
		if (kind_of(number) == TABLE)
			mad_rpc_rmpp(port, &rpc, &to, NULL, data);
		else
			mad_rpc(port, &rpc, &to, data, data);
		end_job(number, errno, data, DATA_SIZE);
	}
}

void *do_blocking(void *arg)
{
	struct share *share = arg;

	for (unsigned i = 0; i < share->count; i++)
		do_one(share->port, share->first + i);
	return NULL;
}

/* --- engines -------------------------------------------------------------------- */

struct engine {
	struct mad_async *async;
	struct share share;
	unsigned submitted, ended;
	uint64_t last_id; /* the ID of the latest submission */
	unsigned last;
};

struct arg {
	struct engine *engine;
	unsigned number;
};

static void called_back(struct mad_async *async, const struct mad_reply *reply, void *arg);

static bool submit_next(struct engine *engine)
{
	unsigned number = engine->share.first + engine->submitted;
	struct arg *arg = malloc(sizeof(*arg));
	uint8_t data[LONG_REQUEST] = {0};
	ib_portid_t to = target_of(number);
	ib_rpc_t rpc = request_of(number);
	size_t size = kind_of(number) == LONG ? LONG_REQUEST : DATA_SIZE;
	int ret;

	if (engine->submitted == engine->share.count) {
		free(arg);
		return false;
	}
	*arg = (struct arg){engine, number};
	fill(number, data, DATA_SIZE);
	engine->submitted++;
	ret = mad_async_submit(engine->async, &rpc, &to, data, size, called_back, arg,
			       &engine->last_id);
	engine->last = number;
	if (ret) {
		must(ret == -ENODEV, "a request is refused");
		end_job(number, -ret, NULL, 0);
		engine->ended++;
		free(arg);
	}
	return true;
}

/* Now and then, cancels the latest one. */
static void cancel_some(struct engine *engine, unsigned number)
{
	if (number % 97 || jobs[engine->last].ends)
		return;
	if (!mad_async_cancel(engine->async, engine->last_id))
		jobs[engine->last].cancelled = true;
}

static void called_back(struct mad_async *async, const struct mad_reply *reply, void *context)
{
	struct arg *arg = context;
	struct engine *engine = arg->engine;

	must(async == engine->async, "an engine calls back for another one");
	end_job(arg->number, -reply->error, reply->data, reply->data_size);
	engine->ended++;
	cancel_some(engine, arg->number);
	submit_next(engine);
	free(arg);
}

static void begin(struct engine *engine, struct share *share)
{
	*engine = (struct engine){.async = mad_async_create(share->port), .share = *share};
	must(engine->async, "no engine");
	for (unsigned i = 0; i < DEPTH; i++)
		submit_next(engine);
}

static void end(struct engine *engine)
{
	struct mad_async_stats stats;

	must(!mad_async_get_stats(engine->async, &stats, sizeof(stats)), "no statistics");
	must(stats.submitted == stats.completed && !stats.in_flight && !stats.queued,
	     "the statistics do not add up");
	must(engine->ended == engine->share.count, "not all are complete");
	mad_async_destroy(engine->async);
}

void *do_running(void *arg)
{
	struct engine engine;

	begin(&engine, arg);
	/* after the device is removed, a rejected request has no callback */
	do {
		mad_async_run(engine.async);
	} while (submit_next(&engine));
	mad_async_run(engine.async);
	end(&engine);
	return NULL;
}

void *do_event_loop(void *arg)
{
	struct engine engine;
	struct pollfd fds[2];

	begin(&engine, arg);
	fds[0] = (struct pollfd){.fd = mad_async_port_fd(engine.async), .events = POLLIN};
	fds[1] = (struct pollfd){.fd = mad_async_wake_fd(engine.async), .events = POLLIN};
	while (engine.ended < engine.share.count) {
		poll(fds, 2, mad_async_timeout_ms(engine.async));
		mad_async_process(engine.async);
	}
	end(&engine);
	return NULL;
}
