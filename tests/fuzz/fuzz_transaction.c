/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Several transactions that share one table, and a list of events for them: a packet is written
 * or rejected, a response arrives, the kernel reports a timeout, a timer expires, a request is
 * cancelled, an allocation fails. The kernel and the nodes are plain data: the written packets,
 * and the transaction IDs that the kernel holds. The clock is a number. After each event the
 * target checks the conditions that hold for every request.
 */
#include "fuzz.h"

#include "engine/transaction.h"
#include "mad/layout.h"

#include <errno.h>

#define REQUESTS 6
#define RECORDS  64
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
struct request {
	struct transaction transaction;
	unsigned serial;   /* 0: the slot is free */
	unsigned attempts; /* the number of attempts allowed */
	int64_t budget;    /* time of one attempt, in microseconds */
	uint32_t floor_us; /* the earliest time for an early retransmission */
	unsigned early;    /* the number of early retransmissions */
	bool long_request, late_ids;
	bool queued; /* it is READY */
	bool waits;  /* its timer is set */
	bool writing, asking;
	bool own_response; /* a response to this request has arrived */
	int cancelled;     /* the errno of the cancel */
	int error;         /* the error of the write or of the path */
	unsigned completions, sends, busy, moved, refused;
	struct packet packet;
	uint8_t written[64 + LONGEST]; /* the bytes that a thread is writing */
	int64_t sent_at;
	int64_t written_at; /* the time of the latest packet */
};

/* A packet that the kernel accepted. */
struct record {
	unsigned serial; /* the serial of its request; 0: unknown */
	uint32_t tid;
	uint8_t mgmt_class, method;
	bool there;    /* a response to it may arrive */
	bool held;     /* the kernel holds its transaction ID */
	bool late_ids; /* the library will also choose this ID itself */
	unsigned withheld;
};

static struct {
	struct transactions all;
	struct request requests[REQUESTS];
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
static unsigned allowed(const struct request *request)
{
	unsigned count = request->attempts + request->busy + request->moved + request->refused;

	if (request->transaction.repeatable && request->attempts > 1)
		count += request->attempts;
	return count;
}

/*
 * A retransmission before the end of an attempt is sent after a response is late, not before.
 */
static void check_early(struct request *request)
{
	unsigned early = request->transaction.early;

	check(early <= request->attempts);
	check(early == 0 || (request->attempts > 1 && request->transaction.repeatable));
	if (early > request->early)
		check(run.now - request->written_at >=
		      request->floor_us * (run.node.smoothed_us ? 1 : 2));
	request->early = early;
}

/* The table has exactly the transmissions in flight; each is found by its ID and class. */
static void check_table(void)
{
	unsigned count = 0;

	for (struct request *request = run.requests; request < run.requests + REQUESTS;
	     request++) {
		struct transmissions *transmissions = &request->transaction.transmissions;

		if (!request->serial)
			continue;
		check(request->completions == 0);
		check(!transmissions->expected ||
		      request->transaction.state != TRANSACTION_DONE);
		for (unsigned i = 0; i < LIVE_TRANSMISSIONS; i++) {
			struct transmission *live = &transmissions->live[i];

			if (!(transmissions->expected & 1u << i))
				continue;
			count++;
			check(live->tid != 0);
			/* so no other transmission has them */
			check(transmission_find(&run.all.outstanding, live->tid,
						transmissions->mgmt_class) == live);
		}
	}
	check(run.all.outstanding.table.count == count);
}

/* Each request counts at most once in a window and at the node, and not before it is sent. */
static void check_counts(void)
{
	unsigned windows[FLOW_WINDOWS] = {0}, at_node = 0;

	for (const struct request *request = run.requests; request < run.requests + REQUESTS;
	     request++) {
		const struct flow_account *account = &request->transaction.account;

		if (!request->serial)
			continue;
		check(request->sends || !(account->in_window || account->at_node));
		check(account->at_node || !account->path || !account->in_window);
		windows[flow_window_of(account)] += account->in_window;
		at_node += account->at_node;
	}
	for (unsigned i = 0; i < FLOW_WINDOWS; i++)
		check(run.all.flow.windows[i].in_flight == windows[i]);
	check(run.node.in_flight == at_node);
}

/* A thread is writing it: the memory that the thread reads must not change. */
static void check_written(const struct request *request)
{
	if (request->writing)
		check(!memcmp(request->written, request->packet.umad,
			      umad_size() + (size_t)request->packet.length));
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
				  .held = true,
				  .withheld = run.all.outstanding.next_withheld};
	return record;
}

static struct request *request_of(struct transmission *transmission)
{
	return list_entry(transaction_of(transmission), struct request, transaction);
}

/* --- actions -------------------------------------------------------------------- */

static void complete(struct request *request)
{
	struct transaction *transaction = &request->transaction;

	check(transaction->state == TRANSACTION_DONE && !transaction->writing);
	check(!request->writing && !request->asking);
	check(!transaction->transmissions.expected);
	check(transaction->error != 0 || transaction->responded);
	/* the message that completes the request is a response to it */
	check(!transaction->responded || request->own_response);
	check(!request->cancelled || transaction->error == request->cancelled);
	check(++request->completions == 1);
	check(!transaction->account.in_window && !transaction->account.at_node);
	transaction_fini(transaction);
	request->serial = 0;
}

/* The kernel accepts or rejects a packet; the thread that writes gets the result later. */
static void begin_write(struct request *request, struct input *input)
{
	static const int errors[] = {EINVAL, ENOMEM, EIO, ENODEV, ETIMEDOUT};
	struct packet *packet = &request->packet;
	uint8_t *mad = umad_get_mad(packet->umad);
	uint8_t how = (uint8_t)take(input, 1);
	size_t size = umad_size() + (size_t)packet->length;
	uint32_t tid = get32(mad, TID_OFFS);

	request->sends++;
	check(request->sends <= allowed(request));
	check(packet->kernel_ms > 0);
	check(packet->attempts_left < request->attempts);
	check(packet->length == request->transaction.length);
	check(packet->transmission->tid == tid && tid != 0);
	check(transaction_of(packet->transmission) == &request->transaction);
	check(!request->cancelled);
	memcpy(request->written, packet->umad, size);
	request->writing = true;
	request->sent_at = request->written_at = run.now;
	request->error = 0;
	if (holder(tid, mad[1]))
		request->error = EINVAL;
	else if (how & 0x80)
		request->error = errors[how % 5];
	if (!request->error)
		record(request->serial, tid, mad)->late_ids = request->late_ids;
	if (request->error == EINVAL)
		request->refused++;
}

static void begin_asking(struct request *request, struct input *input)
{
	request->asking = true;
	request->sent_at = run.now;
	request->error = take(input, 1) & 0x80 ? EHOSTUNREACH : 0;
}

/* Whether the event may send a packet; "since": no timer set before is due earlier. */
static void act(struct request *request, enum transaction_action action, bool may_send,
		int64_t since, struct input *input)
{
	struct transaction *transaction = &request->transaction;

	check(transaction->writing == (action == TRANSACTION_SEND ||
				       action == TRANSACTION_ASK_PATH || request->writing ||
				       request->asking));
	transaction->news = 0;
	switch (action) {
	case TRANSACTION_NONE:
		if (transaction->state == TRANSACTION_DONE)
			check(request->writing || request->asking);
		break;
	case TRANSACTION_WAIT:
		check(transaction->state == TRANSACTION_IN_FLIGHT);
		check(transaction->timer.at >= since && transaction->timer.at < NEVER);
		request->waits = true;
		break;
	case TRANSACTION_AGAIN:
		check(transaction->state == TRANSACTION_READY);
		check(!request->writing && !request->asking);
		check_early(request);
		request->waits = false;
		request->queued = true;
		/* as the scheduler does for a request that was redirected */
		if (transaction->fresh)
			flow_ended(&run.all.flow, &transaction->account);
		break;
	case TRANSACTION_SEND:
		check(may_send && transaction->state == TRANSACTION_IN_FLIGHT);
		begin_write(request, input);
		break;
	case TRANSACTION_ASK_PATH:
		check(may_send && transaction->state == TRANSACTION_IN_FLIGHT);
		begin_asking(request, input);
		break;
	case TRANSACTION_COMPLETE:
		complete(request);
		break;
	}
	if (transaction->state == TRANSACTION_DONE)
		request->waits = request->queued = false;
}

/* --- events --------------------------------------------------------------------- */

static void start(struct request *request, struct input *input)
{
	if (!request->serial || !request->queued)
		return;
	request->queued = false;
	act(request,
	    transaction_start(&run.all, &request->transaction, &request->packet, run.now), true,
	    run.now, input);
}

static void written(struct request *request, struct input *input)
{
	if (!request->serial || !request->writing)
		return;
	request->writing = false;
	/* a response to a packet that was never sent belongs to another request */
	if (request->error && request->transaction.transmissions.count == 1)
		request->own_response = false;
	act(request,
	    transaction_written(&run.all, &request->transaction, &request->packet,
				request->error, run.now),
	    true, request->sent_at, input);
}

/* The effect of redirect_ask_path(). */
static void ask_path(struct detour *detour, uint8_t *packet)
{
	uint8_t *mad = umad_get_mad(packet);

	detour->needs_path = false;
	memcpy(detour->request, packet, PACKET_SIZE);
	memset(packet, 0, PACKET_SIZE);
	mad[1] = IB_SA_CLASS;
	mad[3] = IB_MAD_METHOD_GET;
	detour->awaits_path = true;
}

static void path_asked(struct request *request, struct input *input)
{
	if (!request->serial || !request->asking)
		return;
	request->asking = false;
	if (!request->error)
		ask_path(request->transaction.detour, request->transaction.packet);
	act(request,
	    transaction_path_asked(&run.all, &request->transaction, &request->packet,
				   request->error, run.now),
	    true, run.now, input);
}

/* Whether the request may later use this ID as its own. */
static bool has_own(const struct request *request, uint32_t tid, uint8_t mgmt_class)
{
	const struct transmissions *transmissions = &request->transaction.transmissions;
	const struct detour *detour = request->transaction.detour;

	return (transmissions->live[0].tid == tid && transmissions->mgmt_class == mgmt_class) ||
	       (detour && detour->tid == tid);
}

static bool is_own_of_another(const struct request *than, uint32_t tid, uint8_t mgmt_class)
{
	for (const struct request *request = run.requests; request < run.requests + REQUESTS;
	     request++)
		if (request != than && request->serial && has_own(request, tid, mgmt_class))
			return true;
	return false;
}

static void submit(struct request *request, struct input *input)
{
	uint8_t shape = (uint8_t)take(input, 1), more = (uint8_t)take(input, 1);
	const struct kind *kind = &kinds[shape & 7];
	struct transaction *transaction = &request->transaction;
	uint32_t tid = (uint32_t)mad_trid();
	uint8_t *mad;

	if (request->serial)
		return;
	memset(request, 0, sizeof(*request));
	request->serial = ++run.serials;
	request->attempts = 1 + (shape >> 3 & 3);
	transaction->length = IB_MAD_SIZE;
	if (shape & 0x80) {
		transaction->length = 600;
		transaction->heap = __real_calloc(1, umad_size() + 600);
	}
	transaction->header_size = (uint8_t)umad_size();
	mad = transaction_mad(transaction);
	mad[1] = kind->mgmt_class;
	mad[3] = kind->method;
	if (shape & 0x40)
		tid = 1 + (more & 3);
	request->late_ids = (shape & 0x60) == 0x20;
	if (request->late_ids)
		tid += 1 + (more & 3);
	put32(mad, TID_OFFS, tid);
	request->budget = timeouts_ms[more >> 2 & 7] * INT64_C(1000);
	transaction_init(transaction, timeouts_ms[more >> 2 & 7], (int)request->attempts);
	if (request->budget < 0)
		request->budget = transaction->timeout_ms * INT64_C(1000);
	transaction->transmissions.chosen = shape & 0x60;
	if (run.one_node)
		transaction->account.path = &run.node;
	request->floor_us = kind->mgmt_class == IB_SA_CLASS ? 50000 : 1000;
	check(transaction->repeatable == (kind->repeatable && !(shape & 0x80)));
	/* the kernel holds the ID of a request of an earlier program, which had no response */
	if (more & 0x80 && !request->late_ids && !is_own_of_another(request, tid, mad[1]) &&
	    !holder(tid, mad[1]))
		record(0, tid, mad);
	request->queued = true;
	if (more & 0x40 || request->late_ids)
		start(request, input);
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
static void count_response(struct request *request, enum flavour flavour)
{
	const struct detour *detour = request->transaction.detour;

	if (flavour == BUSY)
		request->busy++;
	else if (flavour >= TO_LID || (detour && detour->awaits_path))
		request->moved++;
	request->own_response = true;
}

/*
 * The kernel delivers a response if it holds the ID. The response completes only its own
 * request. While the kernel rejects an ID, a response may be mistaken for a short time.
 */
static void check_addressee(const struct request *request, const struct record *of,
			    struct transmission *found)
{
	if (!of->serial) {
		check(request->writing && request->error == EINVAL &&
		      transmission_is_own(found) &&
		      request->transaction.transmissions.count == 1);
		return;
	}
	if (of->late_ids || request->late_ids ||
	    run.all.outstanding.next_withheld - of->withheld >= WITHHELD_TIDS)
		return; /* the ID was withheld for the longest time */
	check(request->serial == of->serial);
}

/* A request has at most one response or timeout. */
static void check_is_gone(struct transmission *transmission)
{
	check(!(transmissions_of(transmission)->expected & 1u << transmission->slot));
}

static void respond(struct input *input)
{
	struct record *of = &run.records[take(input, 1) % RECORDS], *held;
	uint8_t shape = (uint8_t)take(input, 1);
	enum flavour flavour = (enum flavour)((shape & 7) % 6);
	struct transmission *found;
	struct request *request;
	uint8_t mad[LONGEST] = {0}, *umad;
	int length = shape & 8 ? 36 + (int)take(input, 2) % (LONGEST - 36) : IB_MAD_SIZE;
	bool allocated = shape & 16 || length > IB_MAD_SIZE, taken = allocated;

	held = holder(of->tid, of->mgmt_class);
	if (!of->there || !held)
		return;
	/* a program that ended has no late responses */
	if (!of->serial && held != of)
		return;
	of->there = held->held = false;
	found = transmission_find(&run.all.outstanding, of->tid, of->mgmt_class);
	if (!found)
		return;
	request = request_of(found);
	check_addressee(request, of, found);
	build_response(mad, of, flavour);
	if (of->serial)
		count_response(request, flavour);
	request->queued = false;
	umad = __real_calloc(1, umad_size() + (size_t)length);
	memcpy(umad_get_mad(umad), mad, (size_t)length);
	run.no_memory = shape & 0x80;
	act(request,
	    transaction_response(&run.all, &request->transaction, found, umad, length, &taken,
				 run.now),
	    false, run.now, input);
	run.no_memory = false;
	check_is_gone(found);
	check(allocated || !taken);
	if (!taken)
		free(umad);
}

static void kernel_timeout(struct input *input)
{
	struct record *record = &run.records[take(input, 1) % RECORDS];
	struct transmission *found;
	struct request *request;

	if (!record->held)
		return;
	record->held = false;
	found = transmission_find(&run.all.outstanding, record->tid, record->mgmt_class);
	/* the earlier program got the report of its request */
	if (!found || !record->serial)
		return;
	request = request_of(found);
	act(request,
	    transaction_kernel_timeout(&run.all, &request->transaction, found, run.now), false,
	    run.now, input);
	check_is_gone(found);
}

static struct request *next_due(void)
{
	struct request *next = NULL;

	for (struct request *request = run.requests; request < run.requests + REQUESTS;
	     request++)
		if (request->serial && request->waits &&
		    (!next || request->transaction.timer.at < next->transaction.timer.at))
			next = request;
	return next;
}

/* The clock advances to the next timer. */
static bool timer(struct input *input)
{
	struct request *request = next_due();

	if (!request)
		return false;
	if (request->transaction.timer.at > run.now)
		run.now = request->transaction.timer.at;
	act(request, transaction_timer(&run.all, &request->transaction, run.now), false,
	    run.now + 1, input);
	return true;
}

static void cancel(struct request *request, int error, struct input *input)
{
	struct transaction *transaction = &request->transaction;

	if (!request->serial)
		return;
	if (transaction->state != TRANSACTION_DONE)
		request->cancelled = error;
	act(request, transaction_cancel(&run.all, transaction, error), false, run.now, input);
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
	struct request *request;
	uint8_t what = (uint8_t)take(input, 1);

	request = &run.requests[(what >> 4) % REQUESTS];
	switch (what & 15) {
	case 0:
	case 1:
		submit(request, input);
		break;
	case 2:
	case 3:
		start(request, input);
		break;
	case 4:
	case 5:
		written(request, input);
		break;
	case 6:
		path_asked(request, input);
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
		cancel(request, ECANCELED, input);
		break;
	default:
		cancel(request, ENODEV, input);
	}
	for (unsigned i = 0; i < REQUESTS; i++)
		check_written(&run.requests[i]);
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
			start(&run.requests[i], input);
			path_asked(&run.requests[i], input);
			written(&run.requests[i], input);
			busy = busy || run.requests[i].serial;
		}
		check_table();
		check_counts();
	}
}

/*
 * The device is removed. A response to a packet that the kernel rejects may have made a request
 * DONE for a moment: then the request is cancelled after that.
 */
static void cancel_all(struct input *input)
{
	struct transmission *transmission;

	while ((transmission = table_any(&run.all.outstanding.table)))
		cancel(request_of(transmission), ENODEV, input);
	for (unsigned i = 0; i < REQUESTS; i++) {
		struct request *request = &run.requests[i];

		for (int rounds = 0; request->serial; rounds++) {
			check(rounds < 3);
			cancel(request, ENODEV, input);
			path_asked(request, input);
			written(request, input);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	uint8_t how = (uint8_t)take(&input, 1);
	bool to_the_end = how & 1;

	memset(&run, 0, sizeof(run));
	run.now = INT64_C(1000000000);
	transactions_init(&run.all);
	outstanding_init(&run.all.outstanding);
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
		check(!run.requests[i].serial);
	check(run.all.outstanding.table.count == 0);
	check_counts();
	table_free(&run.all.outstanding.table);
	return 0;
}
