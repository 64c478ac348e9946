/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Several requests that share one table, and a list of events for them: a packet is written or
 * rejected, a response arrives, the kernel reports a timeout, a timer expires, a request is
 * cancelled, an allocation fails. The kernel and the nodes are plain data: the written packets,
 * and the transaction IDs that the kernel holds. The clock is a number. After each event the
 * target checks the conditions that hold for every request. The target reads the members that
 * request.h shows to the owner of a request.
 */
#include "fuzz.h"

#include "request/request.h"
#include "mad/layout.h"

#include <errno.h>

#define REQUESTS 6
#define RECORDS  64
#define LONG     600
#define LONGEST  1500

static const struct kind {
	uint8_t mgmt_class;
	uint8_t method;
	bool repeatable;
} kinds[] = {
	{IB_SMI_CLASS, IB_MAD_METHOD_GET, true},
	{IB_SMI_DIRECT_CLASS, IB_MAD_METHOD_SET, false},
	{IB_SMI_DIRECT_CLASS, IB_MAD_METHOD_GET, true},
	{IB_PERFORMANCE_CLASS, IB_MAD_METHOD_GET, true},
	{IB_PERFORMANCE_CLASS, IB_MAD_METHOD_SET, false},
	{IB_SA_CLASS, IB_MAD_METHOD_GET_TABLE, false},
	{IB_SA_CLASS, IB_MAD_METHOD_GET, true},
	{IB_BOARD_MGMT_CLASS, IB_MAD_METHOD_GET, false},
};

static const int timeouts_ms[] = {1, 3, 10, 50, 200, 1000, 60000, -1};

/* A request, as its owner sees it. */
struct job {
	struct request request;
	unsigned serial;           /* 0: the slot is free */
	unsigned attempts;         /* the number of attempts allowed */
	uint32_t floor_us;         /* the earliest time for an early retransmission */
	unsigned copies;           /* the number of early retransmissions */
	bool repeatable, late_ids; /* the library will also choose its ID itself */
	bool queued;               /* it is QUEUED */
	bool waits;                /* its timer is set */
	bool timed; /* it was QUEUED by its timer, within an attempt or after that */
	bool late;  /* ... and then its response was late */
	bool writing, asking;
	bool own_response;   /* a response to this request has arrived, */
	bool kept, kept_own; /* or it takes effect when the packet is written */
	uint32_t kept_tid;
	int cancelled; /* the errno of the cancel */
	int error;     /* the error of the write or of the path */
	unsigned sends, busy, moved, refused;
	struct packet {
		uint8_t *umad;
		int length, kernel_ms;
		unsigned attempts_left;
	} packet;
	uint8_t written[64 + LONGEST]; /* the bytes that a thread is writing */
	int64_t sent_at;               /* the time of the latest packet */
};

/* A packet that the kernel accepted. */
struct record {
	unsigned serial; /* the serial of its request; 0: unknown */
	uint32_t tid;
	uint8_t mgmt_class, method;
	bool there; /* a response to it may arrive */
	bool held;  /* the kernel holds its transaction ID */
};

static struct {
	struct requests all;
	struct job jobs[REQUESTS];
	struct record records[RECORDS];
	unsigned next_record, serials;
	struct flow_path node; /* the destination of all requests, or none */
	int64_t now;
	bool one_node;
	bool no_memory;
} run;

/* --- memory --------------------------------------------------------------------- */

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_malloc(size_t size)
{
	return run.no_memory ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return run.no_memory ? NULL : __real_calloc(count, size);
}

/* --- conditions ----------------------------------------------------------------- */

/*
 * The largest number of packets of a request: one for each attempt; before the end of attempts,
 * as many again, if a Get has more than one attempt; one for each BUSY, redirection or path
 * that it received; one for each packet that the kernel rejected.
 */
static unsigned allowed(const struct job *job)
{
	unsigned count = job->attempts + job->busy + job->moved + job->refused;

	if (job->repeatable && job->attempts > 1)
		count += job->attempts;
	return count;
}

/*
 * A packet that the timer caused and that begins no attempt is an early retransmission. It is
 * sent after a response is late, not before.
 */
static void check_copy(struct job *job)
{
	if (!job->timed || job->packet.attempts_left)
		return;
	check(job->attempts > 1 && job->repeatable && job->late);
	check(++job->copies <= job->attempts);
}

static struct job *job_of(struct transmission *transmission)
{
	struct request *request = request_of(transmission);

	for (unsigned i = 0; i < REQUESTS; i++)
		if (&run.jobs[i].request == request && run.jobs[i].serial)
			return &run.jobs[i];
	abort();
}

/* The table has exactly the transmissions in flight; each is found by its ID and class. */
static void check_table(void)
{
	struct tids *tids = &run.all.tids;
	unsigned count = 0, expecting = 0;

	for (unsigned i = 0; i < tids->bucket_count; i++)
		for (struct transmission *live = tids->buckets[i]; live; live = live->next) {
			check(job_of(live)->request.phase != REQUEST_DONE);
			check(live->tid != 0 && live->expected);
			/* so no other transmission has them */
			check(tids_find(tids, live->tid, transmissions_of(live)->mgmt_class) ==
			      live);
			count++;
		}
	check(tids->count == count);
	for (struct job *job = run.jobs; job < run.jobs + REQUESTS; job++)
		for (unsigned i = 0; job->serial && i < TIDS_LIVE; i++)
			expecting += job->request.transmissions.live[i].expected;
	check(expecting == count);
}

/* Each request counts at most once in a window and at the node, and not before it is sent. */
static void check_counts(void)
{
	unsigned windows[FLOW_WINDOWS] = {0}, at_node = 0;

	for (const struct job *job = run.jobs; job < run.jobs + REQUESTS; job++) {
		const struct flow_account *account = &job->request.account;

		if (!job->serial)
			continue;
		check(job->sends || !(account->in_window || account->at_node));
		check(account->at_node || !account->path || !account->in_window);
		if (job->request.phase == REQUEST_PAUSED)
			check(!account->in_window && !account->at_node);
		windows[flow_window_of(account)] += account->in_window;
		at_node += account->at_node;
	}
	for (unsigned i = 0; i < FLOW_WINDOWS; i++)
		check(run.all.flow.windows[i].in_flight == windows[i]);
	check(run.node.in_flight == at_node);
}

/* A thread is writing it: the memory that the thread reads must not change. */
static void check_written(const struct job *job)
{
	if (job->writing)
		check(!memcmp(job->written, job->packet.umad,
			      umad_size() + (size_t)job->packet.length));
}

/* --- the kernel and the nodes --------------------------------------------------- */

static struct record *holder(uint32_t tid, uint8_t mgmt_class)
{
	for (unsigned i = 0; i < RECORDS; i++)
		if (run.records[i].held && run.records[i].tid == tid &&
		    run.records[i].mgmt_class == mgmt_class)
			return &run.records[i];
	return NULL;
}

static struct record *record(unsigned serial, uint32_t tid, const uint8_t *mad)
{
	struct record *record = &run.records[run.next_record++ % RECORDS];

	*record = (struct record){.serial = serial,
				  .tid = tid,
				  .mgmt_class = mad[1],
				  .method = mad[3],
				  .there = true,
				  .held = true};
	return record;
}

/* --- actions -------------------------------------------------------------------- */

static void complete(struct job *job)
{
	struct request *request = &job->request;
	ib_portid_t dport = {.lid = 2};

	check(!job->writing && !job->asking);
	check(!transmissions_expect(&request->transmissions));
	check(request->error != 0 || request_has_response(request));
	/* the message that completes the request is a response to it */
	check(!request_has_response(request) || job->own_response);
	check(!job->cancelled || request->error == job->cancelled);
	check(!request->account.in_window && !request->account.at_node);
	redirect_report(request->redirect, &dport);
	check(dport.lid == 2 || job->moved);
	check(request->elapsed_ms == 0 || job->sends);
	request_fini(request);
	job->serial = 0;
}

/* The kernel accepts or rejects a packet; the thread that writes gets the result later. */
static void begin_write(struct job *job, const struct packet *packet, struct input *input)
{
	static const int errors[] = {EINVAL, ENOMEM, EIO, ENODEV, ETIMEDOUT};
	uint8_t *mad = umad_get_mad(packet->umad);
	uint8_t how = (uint8_t)take(input, 1);
	uint32_t tid = get32(mad, TID_OFFS);
	struct transmission *found = tids_find(&run.all.tids, tid, mad[1]);

	job->packet = *packet;
	job->sends++;
	check(job->sends <= allowed(job));
	check(packet->kernel_ms > 0);
	check(packet->attempts_left < job->attempts);
	check(packet->length == job->request.length);
	check(tid != 0 && found && job_of(found) == job);
	check(!job->cancelled);
	memcpy(job->written, packet->umad, umad_size() + (size_t)packet->length);
	job->writing = true;
	job->sent_at = run.now;
	job->error = 0;
	if (holder(tid, mad[1]))
		job->error = EINVAL;
	else if (how & 0x80)
		job->error = errors[how % 5];
	if (!job->error)
		record(job->serial, tid, mad);
	if (job->error == EINVAL)
		job->refused++;
}

static void begin_asking(struct job *job, struct input *input)
{
	job->asking = true;
	job->error = take(input, 1) & 0x80 ? EHOSTUNREACH : 0;
}

/* Whether the response was late when the timer was due. */
static bool is_late(const struct job *job)
{
	return run.now - job->sent_at >= job->floor_us * (run.node.smoothed_us ? 1 : 2);
}

/* "since": no timer that the event sets is due earlier. */
static void handle(struct job *job, struct request_event *event, int64_t since,
		   struct input *input)
{
	struct request *request = &job->request;
	enum request_phase before = request->phase;
	enum request_action action;

	event->now = run.now;
	action = request_handle(&run.all, request, event);
	if (event->kind == EVENT_WRITTEN || event->kind == EVENT_ASKED)
		check(action != ACTION_NONE && (!job->cancelled || action == ACTION_COMPLETE));
	if (action != ACTION_NONE)
		job->waits = job->queued = false;
	switch (action) {
	case ACTION_NONE:
		check(request->phase == before);
		break;
	case ACTION_SET_TIMER:
		check(request->phase == REQUEST_WAITING || request->phase == REQUEST_PAUSED ||
		      request->phase == REQUEST_AWAITING_REPORT);
		check(request->timer_at >= since && request->timer_at < INT64_MAX / 2);
		job->waits = true;
		break;
	case ACTION_READDRESS:
		/* as the queue does */
		flow_ended(&run.all.flow, &request->account);
		/* fall through */
	case ACTION_QUEUE:
		check(request->phase == REQUEST_QUEUED);
		check(!job->writing && !job->asking);
		job->timed = before == REQUEST_WAITING && event->kind == EVENT_TIMER;
		job->late = is_late(job);
		job->queued = true;
		/* the end of all attempts */
		job->waits = request->timer_at < INT64_MAX / 2;
		break;
	case ACTION_WRITE:
		check(request->phase == REQUEST_WRITING);
		check(event->kind == EVENT_SEND || event->kind == EVENT_WRITTEN ||
		      event->kind == EVENT_ASKED);
		begin_write(job,
			    &(struct packet){
				    .umad = request_buffer(request),
				    .length = request->length,
				    .kernel_ms = event->kernel_ms,
				    .attempts_left = event->attempts_left,
			    },
			    input);
		if (event->kind == EVENT_SEND)
			check_copy(job);
		break;
	case ACTION_ASK_PATH:
		check(request->phase == REQUEST_ASKING_PATH && event->kind == EVENT_SEND);
		begin_asking(job, input);
		break;
	case ACTION_COMPLETE:
		check(request->phase == REQUEST_DONE);
		complete(job);
		break;
	}
	check(!job->serial || request_is_ended(request) == (job->cancelled != 0));
}

/* --- events --------------------------------------------------------------------- */

static void start(struct job *job, struct input *input)
{
	struct request_event event = {.kind = EVENT_SEND};

	if (!job->serial || !job->queued)
		return;
	/* as the port does */
	tids_reserve(&run.all.tids, run.all.tids.count + 1);
	handle(job, &event, run.now, input);
}

static void written(struct job *job, struct input *input)
{
	struct request_event event = {.kind = EVENT_WRITTEN, .error = job->error};

	if (!job->serial || !job->writing)
		return;
	job->writing = false;
	/* a response to a packet that was never sent belongs to another request */
	if (job->kept &&
	    !(job->error && job->kept_tid == get32(umad_get_mad(job->packet.umad), TID_OFFS)))
		job->own_response |= job->kept_own;
	job->kept = false;
	handle(job, &event, job->sent_at, input);
}

static void asked(struct job *job, struct input *input)
{
	static const struct path_source source = {.sa = {.lid = 3, .qp = 1}, .agent = 1};
	struct request_event event = {.kind = EVENT_ASKED, .error = job->error};

	if (!job->serial || !job->asking)
		return;
	job->asking = false;
	if (!job->error)
		redirect_ask_path(job->request.redirect, job->request.packet, &source);
	handle(job, &event, run.now, input);
}

/* Whether the request may later use this ID as its own. */
static bool has_own(const struct job *job, uint32_t tid, uint8_t mgmt_class)
{
	const struct transmissions *transmissions = &job->request.transmissions;
	const struct redirect_state *redirected = job->request.redirect;

	return (transmissions->live[0].tid == tid && transmissions->mgmt_class == mgmt_class) ||
	       (redirected && redirected->tid == tid);
}

static bool is_own_of_another(const struct job *than, uint32_t tid, uint8_t mgmt_class)
{
	for (const struct job *job = run.jobs; job < run.jobs + REQUESTS; job++)
		if (job != than && job->serial && has_own(job, tid, mgmt_class))
			return true;
	return false;
}

static void make(struct job *job, const struct kind *kind, uint32_t tid, bool is_long,
		 const struct request_settings *settings)
{
	ib_portid_t dport = {.lid = 2};
	uint8_t data[LONG] = {0};
	ib_rpc_t rpc = {
		.mgtclass = kind->mgmt_class,
		.method = kind->method,
		.dataoffs = kind->mgmt_class == IB_SA_CLASS ? IB_SA_DATA_OFFS : IB_PC_DATA_OFFS,
	};

	check(!request_make(&job->request, settings, &rpc, tid, &dport, NULL, data,
			    is_long ? (size_t)(LONG - rpc.dataoffs) : 0));
	check(job->request.phase == REQUEST_QUEUED);
}

static void submit(struct job *job, struct input *input)
{
	uint8_t shape = (uint8_t)take(input, 1), more = (uint8_t)take(input, 1);
	const struct kind *kind = &kinds[shape & 7];
	uint32_t tid = (uint32_t)mad_trid();
	struct request_settings settings = {.rmpp = true};

	if (job->serial)
		return;
	memset(job, 0, sizeof(*job));
	job->serial = ++run.serials;
	job->attempts = 1 + (shape >> 3 & 3);
	if (shape & 0x40)
		tid = 1 + (more & 3);
	job->late_ids = (shape & 0x60) == 0x20;
	if (job->late_ids)
		tid += 1 + (more & 3);
	settings.timeout_ms = timeouts_ms[more >> 2 & 7];
	settings.attempts = (int)job->attempts;
	make(job, kind, tid, shape & 0x80, &settings);
	job->request.transmissions.chosen = shape & 0x60;
	if (run.one_node)
		job->request.account.path = &run.node;
	job->floor_us = kind->mgmt_class == IB_SA_CLASS ? 50000 : 1000;
	job->repeatable = kind->repeatable && !(shape & 0x80);
	/* the kernel holds the ID of a request of an earlier program, which had no response */
	if (more & 0x80 && !job->late_ids && !is_own_of_another(job, tid, kind->mgmt_class) &&
	    !holder(tid, kind->mgmt_class))
		record(0, tid, request_mad(&job->request));
	job->queued = true;
	if (more & 0x40 || job->late_ids)
		start(job, input);
}

enum flavour {
	PLAIN,
	FAILED,
	BUSY,
	TO_LID,
	TO_GID,
	TO_BOTH
};

static void build_response(uint8_t *mad, const struct record *record, enum flavour flavour)
{
	static const uint16_t statuses[] = {0,
					    0x1c,
					    IB_MAD_STS_BUSY,
					    IB_MAD_STS_REDIRECT,
					    IB_MAD_STS_REDIRECT,
					    IB_MAD_STS_REDIRECT};
	uint8_t info[128] = {0}, gid[16] = {0xfe, 0x80};
	size_t data = record->mgmt_class == IB_SA_CLASS ? IB_SA_DATA_OFFS : IB_PC_DATA_OFFS;

	mad[0] = mad[2] = 1;
	mad[1] = record->mgmt_class;
	mad[3] = record->method | IB_MAD_RESPONSE;
	put16(mad, STATUS_OFFS, statuses[flavour]);
	put32(mad, TID_OFFS, record->tid);
	if (flavour == TO_LID || flavour == TO_BOTH)
		mad_set_field(info, 0, IB_CPI_REDIRECT_LID_F, 7);
	if (flavour == TO_GID || flavour == TO_BOTH)
		mad_set_array(info, 0, IB_CPI_REDIRECT_GID_F, gid);
	if (flavour == PLAIN && record->mgmt_class == IB_SA_CLASS)
		mad_set_field(info, 0, IB_SA_PR_DLID_F, 9);
	memcpy(mad + data, info, sizeof(info));
}

/* Counts the packet that the request may send because of this. */
static void count_response(struct job *job, const struct record *of, enum flavour flavour)
{
	bool own = of->serial != 0;

	if (own && flavour == BUSY)
		job->busy++;
	else if (own && (flavour >= TO_LID || redirect_awaits_path(job->request.redirect)))
		job->moved++;
	if (!job->writing) {
		job->own_response |= own;
	} else if (!job->kept) {
		job->kept = true;
		job->kept_own = own;
		job->kept_tid = of->tid;
	}
}

/*
 * The kernel delivers a response if it holds the ID. The response completes only its own
 * request. While the kernel rejects an ID, a response may be mistaken for a short time.
 */
static void check_addressee(const struct job *job, const struct record *of,
			    const struct transmission *found)
{
	if (!of->serial) {
		check(job->writing && job->error == EINVAL && transmission_is_own(found) &&
		      job->request.transmissions.count == 1);
		return;
	}
	check(job->serial == of->serial);
}

static void respond(struct input *input)
{
	struct record *of = &run.records[take(input, 1) % RECORDS], *held;
	uint8_t shape = (uint8_t)take(input, 1);
	enum flavour flavour = (enum flavour)((shape & 7) % 6);
	struct request_event event = {.kind = EVENT_RESPONSE};
	struct transmission *found;
	struct job *job;
	uint8_t mad[LONGEST] = {0}, *umad;
	int length = shape & 8 ? 36 + (int)take(input, 2) % (LONGEST - 36) : IB_MAD_SIZE;
	bool allocated = shape & 16 || length > IB_MAD_SIZE;

	held = holder(of->tid, of->mgmt_class);
	if (!of->there || !held)
		return;
	/* a program that ended has no late responses */
	if (!of->serial && held != of)
		return;
	of->there = held->held = false;
	found = tids_find(&run.all.tids, of->tid, of->mgmt_class);
	if (!found)
		return;
	job = job_of(found);
	check_addressee(job, of, found);
	build_response(mad, of, flavour);
	umad = __real_calloc(1, umad_size() + (size_t)length);
	memcpy(umad_get_mad(umad), mad, (size_t)length);
	run.no_memory = shape & 0x80;
	/* without memory, the next response is the first one */
	if (!job->writing || allocated || !run.no_memory)
		count_response(job, of, flavour);
	event.transmission = found;
	event.umad = umad;
	event.length = length;
	event.allocated = allocated;
	handle(job, &event, run.now, input);
	run.no_memory = false;
	/* a request has at most one response or timeout */
	check(!found->expected || job->writing);
	check(allocated || !event.allocated);
	if (!allocated || event.allocated)
		free(umad);
}

static void kernel_timeout(struct input *input)
{
	struct record *record = &run.records[take(input, 1) % RECORDS];
	struct request_event event = {.kind = EVENT_REPORT};

	if (!record->held)
		return;
	record->held = false;
	event.transmission = tids_find(&run.all.tids, record->tid, record->mgmt_class);
	/* the earlier program got the report of its request */
	if (!event.transmission || !record->serial)
		return;
	handle(job_of(event.transmission), &event, run.now, input);
	check(!event.transmission->expected);
}

static struct job *next_due(void)
{
	struct job *next = NULL;

	for (struct job *job = run.jobs; job < run.jobs + REQUESTS; job++)
		if (job->serial && job->waits &&
		    (!next || job->request.timer_at < next->request.timer_at))
			next = job;
	return next;
}

/* The clock advances to the next timer. */
static bool timer(struct input *input)
{
	struct request_event event = {.kind = EVENT_TIMER};
	struct job *job = next_due();

	if (!job)
		return false;
	if (job->request.timer_at > run.now)
		run.now = job->request.timer_at;
	handle(job, &event, run.now + 1, input);
	return true;
}

static void cancel(struct job *job, int error, struct input *input)
{
	struct request_event event = {.kind = EVENT_CANCEL, .error = error};

	if (!job->serial)
		return;
	job->cancelled = error;
	handle(job, &event, run.now, input);
}

static void pass_time(uint8_t how)
{
	static const int64_t units[] = {
		1, 100, 1000, 10000, 100000, 1000000, 60000000, INT64_C(3600000000),
	};

	run.now += units[how & 7] * (1 + (how >> 3));
}

static void step(struct input *input)
{
	uint8_t what = (uint8_t)take(input, 1);
	struct job *job = &run.jobs[(what >> 4) % REQUESTS];

	switch (what & 15) {
	case 0:
	case 1:
		submit(job, input);
		break;
	case 2:
	case 3:
		start(job, input);
		break;
	case 4:
	case 5:
		written(job, input);
		break;
	case 6:
		asked(job, input);
		break;
	case 7:
	case 8:
	case 9:
		respond(input);
		break;
	case 10:
		kernel_timeout(input);
		break;
	case 11:
	case 12:
		timer(input);
		break;
	case 13:
		pass_time((uint8_t)take(input, 1));
		break;
	case 14:
		cancel(job, ECANCELED, input);
		break;
	default:
		cancel(job, ENODEV, input);
	}
	for (unsigned i = 0; i < REQUESTS; i++)
		check_written(&run.jobs[i]);
	check_table();
	check_counts();
}

/* No more messages come from the device: each request times out. */
static void run_out(struct input *input)
{
	bool busy = true;

	for (unsigned rounds = 0; busy; rounds++) {
		check(rounds < 100000);
		busy = timer(input);
		for (unsigned i = 0; i < REQUESTS; i++) {
			start(&run.jobs[i], input);
			asked(&run.jobs[i], input);
			written(&run.jobs[i], input);
			busy = busy || run.jobs[i].serial;
		}
		check_table();
		check_counts();
	}
}

/* The device is removed: each request completes when no thread uses its packet. */
static void cancel_all(struct input *input)
{
	for (struct job *job = run.jobs; job < run.jobs + REQUESTS; job++) {
		cancel(job, ENODEV, input);
		asked(job, input);
		written(job, input);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	uint8_t how = (uint8_t)take(&input, 1);
	bool to_the_end = how & 1;

	memset(&run, 0, sizeof(run));
	run.now = INT64_C(1000000000);
	requests_init(&run.all);
	flow_path_init(&run.node);
	/* 0: the limit of the node adapts, and late requests give their places up */
	run.all.flow.path_limit = how >> 1 & 3;
	run.one_node = how & 16;
	/* the pause after BUSY depends on it: the same input gives the same result */
	while (mad_trid() % 16)
		;
	for (int steps = 0; input.size && steps < 400; steps++)
		step(&input);
	if (to_the_end)
		run_out(&input);
	else
		cancel_all(&input);
	for (unsigned i = 0; i < REQUESTS; i++)
		check(!run.jobs[i].serial);
	check(run.all.tids.count == 0);
	check_counts();
	tids_free(&run.all.tids);
	return 0;
}
