/* SPDX-License-Identifier: BSD-2-Clause */

#include "jobs.h"

#include "fabric.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>

/* Requests of an engine at a time. */
#define DEPTH       600
#define VENDOR1     IB_VENDOR_RANGE1_START_CLASS
#define VENDOR2     IB_VENDOR_OPENIB_PING_CLASS
#define VENDOR2_OUI 0x001405
/* The ib_rpc_t that a thread uses again, and the IDs that its caller chooses. */
#define REUSED      8
#define CHOSEN      6
#define SHOWN       10

/* What a request asks, and how it ended. */
struct job {
	uint32_t node, modifier;
	uint16_t attribute;
	uint8_t mgmt_class, method;
	bool is_long; /* the request or the response may have more than one MAD */
	bool is_sent; /* by mad_send_via(), so that the response is received */
	atomic_bool cancelled;
	atomic_uchar ends;
	int16_t error;
};

static struct job *jobs; /* by ticket; 0 is not used */
static unsigned job_count;
static struct job_mix mix;
static uint64_t round_seed;
static uint64_t round_mark; /* the upper half of the round's tickets */
static atomic_bool receiving;

/* Of all rounds. */
static atomic_ulong checked, cut, received, wrong, old, stopped;
static unsigned long results[256], impossible;

void must(bool holds, const char *text)
{
	if (holds)
		return;
	printf("%s\n", text);
	fflush(stdout);
	abort();
}

/* --- requests ------------------------------------------------------------------- */

static const struct kind {
	unsigned weight;
	int mgmt_class, method;
	bool is_long;
} kinds[] = {
	{30, IB_SMI_CLASS, IB_MAD_METHOD_GET, false},
	{30, IB_SMI_DIRECT_CLASS, IB_MAD_METHOD_GET, false},
	{10, IB_SMI_CLASS, IB_MAD_METHOD_SET, false},
	{25, IB_PERFORMANCE_CLASS, IB_MAD_METHOD_GET, false},
	{15, IB_PERFORMANCE_CLASS, IB_MAD_METHOD_SET, false},
	{10, IB_SA_CLASS, IB_MAD_METHOD_GET, false},
	{7, IB_SA_CLASS, IB_MAD_METHOD_GET_TABLE, true},
	{2, IB_SA_CLASS, IB_MAD_METHOD_GETMULTI, true},
	{8, VENDOR1, IB_MAD_METHOD_GET, false},
	{8, VENDOR2, IB_MAD_METHOD_GET, false},
};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

static const struct kind *draw_kind(uint64_t *state)
{
	const struct kind *kind = kinds;
	unsigned sum = 0, number;

	for (size_t i = 0; i < KINDS; i++)
		sum += kinds[i].weight;
	number = draw(state, sum);
	while (number >= kind->weight)
		number -= kind++->weight;
	if (kind->mgmt_class == VENDOR2 && !mix.has_vendor2)
		return kinds;
	return kind;
}

static struct job *draw_job(uint64_t *state, unsigned ticket)
{
	const struct kind *kind = draw_kind(state);
	struct job *job = &jobs[ticket];

	must(ticket > 0 && ticket <= job_count, "no such request");
	job->node = 1 + draw(state, mix.nodes);
	job->mgmt_class = (uint8_t)kind->mgmt_class;
	job->method = (uint8_t)kind->method;
	job->is_long = kind->is_long;
	job->attribute = (uint16_t)(0x10 + draw(state, mix.attributes));
	job->modifier = draw(state, 4) ? 0 : draw(state, 4);
	return job;
}

static ib_portid_t target_of(const struct job *job)
{
	ib_portid_t to = {
		.lid = (int)job->node + FIRST_LID - 1, .qp = 1, .qkey = IB_DEFAULT_QP1_QKEY};

	if (job->mgmt_class == IB_SMI_CLASS)
		to.qp = 0;
	if (job->mgmt_class != IB_SMI_DIRECT_CLASS) {
		/* some GMPs have a GRH */
		to.grh_present = to.qp && job->attribute % 4 == 3;
		to.gid[0] = 0xfe;
		to.gid[1] = 0x80;
		memcpy(to.gid + 12, &job->node, sizeof(job->node));
		return to;
	}
	/* by the switch, whose port 1 is the host's */
	return (ib_portid_t){.drpath = {.cnt = 2, .p = {0, 1, (uint8_t)(job->node + 1)}}};
}

/* All but the transaction ID. */
static void fill_rpc(const struct job *job, ib_rpc_t *rpc)
{
	uint64_t trid = rpc->trid;

	*rpc = (ib_rpc_t){
		.mgtclass = job->mgmt_class,
		.method = job->method,
		.attr = {job->attribute, job->modifier},
		.dataoffs = (int)data_offset(job->mgmt_class),
		.datasz = IB_SMP_DATA_SIZE,
		.trid = trid,
		.oui = job->mgmt_class == VENDOR2 ? VENDOR2_OUI : 0,
	};
	/* requests that are retransmitted by themselves may take longer */
	if (job->method == IB_MAD_METHOD_GET && job->attribute & 1)
		rpc->timeout = (int)(2 * mix.timeout_ms);
}

static uint64_t ticket_of(const struct job *job)
{
	return round_mark | (uint64_t)(job - jobs);
}

/* The ticket, and bytes that are not 0. */
static void fill_data(const struct job *job, uint8_t data[IB_SA_DATA_SIZE])
{
	uint64_t ticket = ticket_of(job);

	memset(data, 0x11, IB_SA_DATA_SIZE);
	memcpy(data, &ticket, sizeof(ticket));
}

/* --- responses ------------------------------------------------------------------ */

static void show_stamp(const char *text, const struct stamp *stamp)
{
	printf("\t%s node %#x, class %#x, method %#x, attribute %#x, modifier %u, request %u\n",
	       text, stamp->node, stamp->mgmt_class, stamp->method, stamp->attribute,
	       stamp->modifier, (unsigned)stamp->ticket);
}

/* Whether it is the stamp, of which the end may be zeros in a response that was cut off. */
static bool is_prefix(const struct stamp *wanted, const struct stamp *got)
{
	const uint8_t *a = (const uint8_t *)wanted, *b = (const uint8_t *)got;
	size_t i = 0;

	while (i < sizeof(*got) && a[i] == b[i])
		i++;
	while (i < sizeof(*got) && !b[i])
		i++;
	return i == sizeof(*got);
}

/* Judges the data of a response. */
static void judge(const struct job *job, const uint8_t *data, size_t size)
{
	struct stamp wanted = stamp_of(job->node, job->mgmt_class, job->method, job->attribute,
				       job->modifier, ticket_of(job));
	struct stamp got = {0};
	unsigned long count;

	memcpy(&got, data, size < sizeof(got) ? size : sizeof(got));
	checked++;
	if (may_redirect(job->mgmt_class) && got.node == partner_of(job->node))
		wanted.node = got.node;
	if (!memcmp(&got, &wanted, sizeof(got)))
		return;
	if (is_prefix(&wanted, &got)) {
		cut++;
		return;
	}
	wanted.ticket = got.ticket;
	count = is_prefix(&wanted, &got) ? old++ : wrong++;
	wanted.ticket = ticket_of(job);
	if (count >= SHOWN)
		return;
	printf("wrong data in the round of TEST_SEED=%llu\n", (unsigned long long)round_seed);
	show_stamp("asked", &wanted);
	show_stamp("got  ", &got);
}

static void end_job(struct job *job, int error)
{
	job->error = (int16_t)error;
	job->ends++;
}

static bool may_be(const struct job *job, bool gone)
{
	if (job->cancelled)
		return job->error == ECANCELED;
	switch (job->error) {
	case 0:
	case EIO:
	case ETIMEDOUT:
		return true;
	case ENODEV:
	case ECANCELED:
		return gone;
	case EHOSTUNREACH: /* corrupted into a redirection, or a corrupted redirection */
	case ELOOP:
		return true;
	case EBADMSG: /* truncated */
	case EMSGSIZE:
	case EOPNOTSUPP:
		return job->is_long;
	}
	return false;
}

void jobs_begin(unsigned count, uint64_t seed, const struct job_mix *wanted)
{
	mix = *wanted;
	job_count = count;
	round_seed = seed;
	round_mark = seed << 32;
	jobs = calloc(count + 1UL, sizeof(*jobs));
	must(jobs, "no memory");
	receiving = true;
}

void jobs_end(bool gone)
{
	for (unsigned i = 1; i <= job_count; i++) {
		if (jobs[i].ends == 1 && may_be(&jobs[i], gone)) {
			results[jobs[i].error & 255]++;
			continue;
		}
		must(jobs[i].ends == 1, "a request has not ended once");
		if (impossible++ >= SHOWN)
			continue;
		printf("TEST_SEED=%llu, request %u, class %#x, method %#x: error %d%s\n",
		       (unsigned long long)round_seed, i, jobs[i].mgmt_class, jobs[i].method,
		       jobs[i].error, jobs[i].cancelled ? ", cancelled" : "");
	}
	free(jobs);
}

unsigned long jobs_report(unsigned long least)
{
	for (int error = 0; error < 256; error++)
		if (results[error])
			printf("%9lu %s\n", results[error],
			       error ? strerror(error) : "Success");
	printf("%9lu responses checked, %lu of them cut off, %lu received for mad_send_via()\n",
	       checked, cut, received);
	printf("%9lu waits were stopped\n", stopped);
	printf("%9lu have the data of another node, class, attribute or modifier\n", wrong);
	printf("%9lu have the data of an earlier request for the same\n", old);
	printf("%9lu requests have an impossible error\n", impossible);
	must(checked >= least && results[0] >= least, "more should have succeeded");
	return wrong + old + impossible;
}

/* --- blocking ------------------------------------------------------------------- */

/* What a thread has of its own. */
struct caller {
	struct ibmad_port *port;
	uint64_t random;
	ib_rpc_t reused[REUSED];
	uint64_t chosen; /* the first of its IDs */
	unsigned next, end;
};

static struct caller make_caller(const struct share *share)
{
	/* some threads choose the same IDs */
	return (struct caller){.port = share->port,
			       .random = share->seed | 1,
			       .chosen = 1000 * (1 + share->seed % 3),
			       .next = share->first,
			       .end = share->first + share->count};
}

/* The ib_rpc_t of the next request, with the transaction ID that the caller gives. */
static ib_rpc_t *draw_rpc(struct caller *caller, ib_rpc_t *fresh)
{
	unsigned number = draw(&caller->random, 100);

	*fresh = (ib_rpc_t){0};
	if (number < mix.reused)
		return &caller->reused[draw(&caller->random, REUSED)];
	if (number < mix.reused + mix.chosen)
		fresh->trid = caller->chosen + draw(&caller->random, CHOSEN);
	return fresh;
}

static void send_one(struct caller *caller, ib_rpc_t *rpc)
{
	struct job *job = draw_job(&caller->random, caller->next++);
	uint8_t data[IB_SA_DATA_SIZE];
	ib_portid_t to = target_of(job);

	fill_rpc(job, rpc);
	fill_data(job, data);
	job->is_sent = true;
	errno = 0;
	end_job(job, mad_send_via(rpc, &to, NULL, data, caller->port) ? errno : 0);
	/* the kernel may still have a request with the caller's ID */
	if (job->error == EINVAL)
		job->error = 0;
}

static void get_message(struct caller *caller, struct job *job, ib_rpc_t *rpc, ib_portid_t *to,
			const uint8_t *data, size_t size)
{
	struct mad_message message;
	int ret = mad_rpc_message(caller->port, rpc, to, data, size, &message);

	if (!ret && message.length > (size_t)rpc->dataoffs)
		judge(job, message.mad + rpc->dataoffs, message.length - (size_t)rpc->dataoffs);
	end_job(job, -ret);
	mad_message_free(&message);
}

static void call_one(struct caller *caller, ib_rpc_t *rpc)
{
	struct job *job = draw_job(&caller->random, caller->next++);
	uint8_t data[IB_SA_DATA_SIZE], response[IB_SA_DATA_SIZE];
	ib_portid_t to = target_of(job);
	const void *result = response;

	fill_rpc(job, rpc);
	fill_data(job, data);
	if (job->method == IB_MAD_METHOD_GETMULTI || !draw(&caller->random, 3)) {
		get_message(caller, job, rpc, &to, data,
			    job->method == IB_MAD_METHOD_GETMULTI ? IB_SA_DATA_SIZE
								  : IB_SMP_DATA_SIZE);
		return;
	}
	memcpy(response, data, sizeof(response));
	errno = 0;
	if (job->is_long)
		result = mad_rpc_rmpp(caller->port, rpc, &to, NULL, response);
	else
		result = mad_rpc(caller->port, rpc, &to, data, response);
	must(!result == !!errno, "a result, and an error");
	if (result)
		judge(job, response, IB_SMP_DATA_SIZE);
	end_job(job, errno);
}

static void do_one(struct caller *caller)
{
	unsigned number = draw(&caller->random, 100);
	ib_rpc_t fresh, *rpc = draw_rpc(caller, &fresh);

	if (number < mix.sent) {
		send_one(caller, rpc);
	} else if (number < mix.sent + mix.doubled && caller->end - caller->next > 1) {
		send_one(caller, rpc);
		call_one(caller, rpc);
	} else {
		call_one(caller, rpc);
	}
}

void *do_blocking(void *arg)
{
	struct caller caller = make_caller(arg);

	while (caller.next < caller.end)
		do_one(&caller);
	return NULL;
}

/* --- receiving ------------------------------------------------------------------ */

/* A response to mad_send_via(): its ticket tells the request. */
static void judge_received(void *umad)
{
	const uint8_t *mad = umad_get_mad(umad);
	struct stamp stamp;
	uint64_t number;

	if (umad_status(umad) || !(mad[3] & IB_MAD_RESPONSE) || mad[5] & IB_MAD_STS_REDIRECT)
		return;
	memcpy(&stamp, mad + data_offset(mad[1]), sizeof(stamp));
	number = stamp.ticket ^ round_mark;
	if (!stamp.end_too || number == 0 || number > job_count || !jobs[number].is_sent)
		return;
	received++;
	judge(&jobs[number], mad + data_offset(mad[1]), sizeof(stamp));
}

void *do_receiving(void *arg)
{
	while (receiving) {
		void *umad = mad_receive_via(NULL, 100, arg);

		if (!umad && errno != ETIMEDOUT && errno != EINTR)
			return NULL;
		if (umad)
			judge_received(umad);
		mad_free(umad);
	}
	return NULL;
}

void jobs_stop_receiving(void)
{
	receiving = false;
}

/* --- engines -------------------------------------------------------------------- */

struct engine {
	struct mad_async *async;
	struct caller caller;
	unsigned open;
	uint64_t last_id; /* the ID of the latest submission */
	struct job *last;
};

struct arg {
	struct engine *engine;
	struct job *job;
};

static void called_back(struct mad_async *async, const struct mad_reply *reply, void *arg);

static bool submit_next(struct engine *engine)
{
	struct caller *caller = &engine->caller;
	uint8_t data[IB_SA_DATA_SIZE];
	ib_portid_t to;
	ib_rpc_t rpc = {0};
	struct arg *arg;
	int ret;

	if (caller->next == caller->end)
		return false;
	arg = malloc(sizeof(*arg));
	must(arg, "no memory");
	*arg = (struct arg){engine, draw_job(&caller->random, caller->next++)};
	to = target_of(arg->job);
	fill_rpc(arg->job, &rpc);
	fill_data(arg->job, data);
	engine->last = arg->job;
	engine->open++;
	ret = mad_async_submit(engine->async, &rpc, &to, data,
			       arg->job->method == IB_MAD_METHOD_GETMULTI ? IB_SA_DATA_SIZE
									  : IB_SMP_DATA_SIZE,
			       called_back, arg, &engine->last_id);
	if (ret) {
		must(ret == -ENODEV || ret == -ECANCELED, "a request is refused");
		end_job(arg->job, -ret);
		engine->open--;
		free(arg);
	}
	return true;
}

/* Now and then, stops a wait, or cancels the latest one. */
static void cancel_some(struct engine *engine)
{
	if (!draw(&engine->caller.random, 97))
		mad_async_stop(engine->async);
	if (draw(&engine->caller.random, 97) || engine->last->ends)
		return;
	if (!mad_async_cancel(engine->async, engine->last_id))
		engine->last->cancelled = true;
}

static void called_back(struct mad_async *async, const struct mad_reply *reply, void *context)
{
	struct arg *arg = context;
	struct engine *engine = arg->engine;
	struct caller *caller = &engine->caller;

	must(async == engine->async, "an engine calls back for another one");
	/* a redirection tells where to ask */
	if (reply->data_size && !(reply->status & IB_MAD_STS_REDIRECT))
		judge(arg->job, reply->data, reply->data_size);
	end_job(arg->job, -reply->error);
	engine->open--;
	cancel_some(engine);
	if (caller->end - caller->next > 1 && !draw(&caller->random, 64))
		do_one(caller);
	submit_next(engine);
	free(arg);
}

static void begin(struct engine *engine, const struct share *share)
{
	*engine = (struct engine){.async = mad_async_create(share->port),
				  .caller = make_caller(share)};
	must(engine->async, "no engine");
	for (unsigned i = 0; i < DEPTH; i++)
		submit_next(engine);
}

static bool is_finished(const struct engine *engine)
{
	return !engine->open && engine->caller.next == engine->caller.end;
}

static void end(struct engine *engine)
{
	struct mad_async_stats stats;

	must(!mad_async_get_stats(engine->async, &stats, sizeof(stats)), "no statistics");
	must(stats.submitted == stats.completed && !stats.in_flight && !stats.queued,
	     "the statistics do not add up");
	must(is_finished(engine), "not all are complete");
	mad_async_free(engine->async);
}

void *do_running(void *arg)
{
	struct engine engine;

	begin(&engine, arg);
	/* after the device is removed, a rejected request has no callback */
	do {
		while (mad_async_wait(engine.async, -1) == -EINTR)
			stopped++;
	} while (submit_next(&engine) || engine.open);
	end(&engine);
	return NULL;
}

void *do_event_loop(void *arg)
{
	struct engine engine;
	struct pollfd fd;

	begin(&engine, arg);
	fd = (struct pollfd){.fd = mad_async_poll_fd(engine.async), .events = POLLIN};
	while (!is_finished(&engine)) {
		poll(&fd, 1, -1);
		mad_async_process(engine.async);
	}
	end(&engine);
	return NULL;
}
