/* SPDX-License-Identifier: BSD-2-Clause */

#include "engine/transaction.h"

#include "calls/async.h"
#include "engine/attempt.h"
#include "engine/flow.h"
#include "mad/mad_wire.h"
#include "mad/mgmt_class.h"
#include "engine/redirect.h"
#include "base/report.h"
#include "engine/wait.h"

#include <errno.h>
#include <limits.h>

/*
 * How late the kernel reports a timeout at most. The granularity of the kernel's timers grows
 * with their time: it is up to 8/63 of the time.
 */
#define KERNEL_LATE_MS(ms) (20 + (ms) / 7)
/* A sending that is to be repeated occupies a slot of the kernel's so long at least. */
#define KERNEL_HOLDS_MS    100

/* --- the request ---------------------------------------------------------------- */

static struct ib_user_mad *header_of(struct transaction *transaction)
{
	return (struct ib_user_mad *)(void *)transaction_buffer(transaction);
}

/* Gets of these classes change nothing: asking again does no harm. */
static bool is_repeatable(int mgmt_class, int method)
{
	return method == IB_MAD_METHOD_GET &&
	       (is_smp_class(mgmt_class) || mgmt_class == IB_SA_CLASS ||
		mgmt_class == IB_PERFORMANCE_CLASS || mgmt_class == IB_CC_CLASS);
}

/* What does not fit into one MAD: the kernel cuts it into segments (IBA 13.6). */
static void mark_for_rmpp(uint8_t *mad)
{
	mad[RMPP_VERSION_OFFS] = RMPP_VERSION;
	mad[RMPP_TYPE_OFFS] = IB_RMPP_TYPE_DATA;
	mad[RMPP_FLAGS_OFFS] = RMPP_RESP_TIME_NONE << 3 | IB_RMPP_FLAG_ACTIVE;
}

static int write_request(struct transaction *transaction, ib_rpc_t *rpc, ib_portid_t *dport,
			 ib_rmpp_hdr_t *rmpp, const void *payload, size_t size)
{
	int datasz = rpc->datasz, length;

	rpc->datasz = 0;
	length = mad_build_pkt(transaction_buffer(transaction), rpc, dport, rmpp, NULL);
	rpc->datasz = datasz;
	if (length < 0)
		return -errno;
	if (payload)
		memcpy(transaction_mad(transaction) + rpc->dataoffs, payload, size);
	if (transaction->length > IB_MAD_SIZE)
		mark_for_rmpp(transaction_mad(transaction));
	return 0;
}

int transaction_init(struct transaction *transaction, struct ibmad_port *port, ib_rpc_t *rpc,
		     ib_portid_t *dport, ib_rmpp_hdr_t *rmpp, const void *payload, size_t size)
{
	int mgmt_class = rpc->mgtclass & 0xff, retries = mad_get_retries(port), ret;
	int agent = port_agent(port, mgmt_class);
	struct ib_user_mad *header;

	memset(transaction, 0, sizeof(*transaction));
	for (unsigned i = 0; i < LIVE_ATTEMPTS; i++)
		transaction->attempts[i].slot = i & 3;
	if (agent < 0 || !dport || rpc->dataoffs < 0 || rpc->dataoffs > IB_MAD_SIZE)
		return -EINVAL;
	if (!payload)
		size = 0;
	transaction->dataoffs = (uint16_t)rpc->dataoffs;
	transaction->length = IB_MAD_SIZE;
	if (size > (size_t)(IB_MAD_SIZE - rpc->dataoffs)) {
		if (!port->rmpp[mgmt_class] || size > INT_MAX - 2 * PACKET_SIZE)
			return -EMSGSIZE;
		transaction->length = rpc->dataoffs + (int)size;
		transaction->heap = calloc(1, umad_size() + (size_t)transaction->length);
		if (!transaction->heap)
			return -ENOMEM;
	}
	ret = write_request(transaction, rpc, dport, rmpp, payload, size);
	if (ret) {
		transaction_fini(transaction);
		return ret;
	}
	header = header_of(transaction);
	header->agent_id = (uint32_t)agent;
	if (header->addr.grh_present)
		header->addr.gid_index = (uint8_t)port->gid_index;
	transaction->attempts[0].tid = get32(transaction_mad(transaction), TID_OFFS);
	transaction->timeout_ms = mad_get_timeout(port, rpc->timeout);
	if (transaction->timeout_ms < 0)
		transaction->timeout_ms = INT_MAX / 2;
	transaction->left = retries < UINT16_MAX ? (uint16_t)retries : UINT16_MAX;
	transaction->repeatable =
		transaction->length == IB_MAD_SIZE && is_repeatable(mgmt_class, rpc->method);
	return 0;
}

void transaction_fini(struct transaction *transaction)
{
	redirect_fini(transaction);
	if (transaction->overtaken)
		free(transaction->written);
	transaction->overtaken = false;
	free(transaction->heap);
	transaction->heap = NULL;
}

enum mad_window transaction_window(const struct transaction *transaction)
{
	const uint8_t *buffer = transaction->heap ? transaction->heap : transaction->packet;

	return is_smp_class(buffer[umad_size() + 1]) ? MAD_WINDOW_SMP : MAD_WINDOW_GMP;
}

/* --- counting ------------------------------------------------------------------- */

struct rtt *transaction_rtt(struct ibmad_port *port, struct transaction *transaction)
{
	if (transaction_mad(transaction)[1] == IB_SA_CLASS)
		return &port->rtts[SA_RTT];
	return &port->rtts[transaction_window(transaction)];
}

static void count(struct ibmad_port *port, struct transaction *transaction)
{
	transaction->counted = true;
	port->windows[transaction_window(transaction)].under_way++;
}

void transaction_uncount(struct ibmad_port *port, struct transaction *transaction)
{
	if (!transaction->counted)
		return;
	transaction->counted = false;
	port->windows[transaction_window(transaction)].under_way--;
}

void transaction_set_timer(struct ibmad_port *port, struct transaction *transaction, int64_t at)
{
	if (!transaction->asynchronous) {
		transaction->timer.at = at;
		return;
	}
	deadline_set(&port->deadlines, &transaction->timer, at);
	engine_timer_set(transaction->owner.engine, at);
}

void transaction_hasten(struct ibmad_port *port, struct transaction *transaction)
{
	transaction_set_timer(port, transaction, 0);
	if (!transaction->asynchronous)
		waiter_wake(transaction->owner.waiter);
}

/* --- sending -------------------------------------------------------------------- */

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* How long the kernel is to wait for the response to a retransmission within an attempt. */
static int retransmission_ms(const struct transaction *transaction, int64_t now)
{
	int kernel_ms = (int)(transaction->interval / 250) + 1;

	if (kernel_ms < KERNEL_HOLDS_MS)
		kernel_ms = KERNEL_HOLDS_MS;
	return ms_until(transaction_end(transaction), now, kernel_ms);
}

/* Sets the timer for a sending, and says how long the kernel is to wait for the answer. */
static int schedule(struct ibmad_port *port, struct transaction *transaction,
		    const struct attempt *attempt, int64_t now)
{
	int64_t budget = transaction->timeout_ms * INT64_C(1000);
	int kernel_ms = transaction->timeout_ms;

	if (!transaction->sendings)
		transaction->interval = rtt_timeout(transaction_rtt(port, transaction));
	if (transaction->interval > budget)
		transaction->interval = (uint32_t)budget;
	if (!transaction->end || transaction->end == INT64_MAX) {
		transaction->end = now + budget;
		transaction->overtime = false;
	} else if (attempt_is_own(attempt)) {
		kernel_ms = ms_until(transaction->end, now, kernel_ms);
	} else {
		kernel_ms = retransmission_ms(transaction, now);
	}
	transaction_set_timer(port, transaction,
			      earlier(now + transaction->interval, transaction->end));
	return kernel_ms ? kernel_ms : 1;
}

/* Hands it to whoever waits for it. */
static void deliver(struct transaction *transaction)
{
	if (transaction->asynchronous)
		engine_deliver(transaction->owner.engine, transaction);
	else
		waiter_wake(transaction->owner.waiter);
}

/* 0 or an errno. */
static int write_packet(struct ibmad_port *port, uint8_t *umad, int length, int kernel_ms)
{
	int agent = (int)((struct ib_user_mad *)(void *)umad)->agent_id, ret, error;

	report_packet("send\n", umad_get_mad(umad), length);
	do {
		ret = umad_send(port->fd, agent, umad, length, kernel_ms, 0);
	} while (ret == -EIO && errno == EINTR);
	error = ret == -EIO ? errno : -ret;
	if (error == EIO && umad_poll(port->fd, 0) == -EIO && errno != EINTR)
		return ENODEV;
	return error;
}

/* Writes the packet as it is now; the lock is dropped meanwhile. 0 or an errno. */
static int send_attempt(struct ibmad_port *port, struct transaction *transaction)
{
	uint8_t *umad = transaction_buffer(transaction);
	bool retried = transaction->retried;
	unsigned left = transaction->left;
	int64_t now = clock_us();
	int kernel_ms, length = transaction->length, error;
	struct attempt *attempt = attempt_name(port, transaction, now);

	kernel_ms = schedule(port, transaction, attempt, now);
	/* what was lost once may be with a dead node: it is not to hold up the others */
	if (!transaction->sendings)
		count(port, transaction);
	if (transaction->asynchronous)
		engine_count_sent(transaction->owner.engine, transaction);
	if (transaction->sendings < UINT16_MAX)
		transaction->sendings++;
	transaction->retried = false;
	transaction->sending = true;
	port_unlock(port);
	if (retried)
		report_retry(left, umad_get_mad(umad));
	error = write_packet(port, umad, length, kernel_ms);
	port_lock(port);
	transaction->sending = false;
	if (error)
		attempt_refused(port, attempt);
	return error;
}

/* Makes the packet a question for the path, if there must be one. 0 or an errno. */
static int prepare_detour(struct ibmad_port *port, struct transaction *transaction)
{
	int error;

	if (!redirect_needs_path(transaction))
		return 0;
	transaction->sending = true;
	port_unlock(port);
	error = redirect_ask_path(port, transaction);
	port_lock(port);
	transaction->sending = false;
	return error;
}

void transaction_follow(struct ibmad_port *port, struct transaction *transaction,
			const uint8_t *mad, int length)
{
	int ret = redirect(transaction, mad, length);

	if (ret < 0) {
		transaction_finish(port, transaction, -ret);
		return;
	}
	if (!transaction->repeatable)
		transaction->end = INT64_MAX;
	transaction->recalled = true;
	transaction->overdue = false;
	transaction_hasten(port, transaction);
}

/* What has come while it was being written. */
static void follow_late(struct ibmad_port *port, struct transaction *transaction)
{
	uint8_t *answer = transaction->heap;

	transaction->redirects = false;
	transaction->heap = NULL;
	transaction_follow(port, transaction, umad_get_mad(answer), IB_MAD_SIZE);
	free(answer);
}

/*
 * A request that never left has no answer: what has come meanwhile is another's. The request is
 * as it was before, but for a long one that an answer has taken the place of.
 */
static void disown_answer(struct ibmad_port *port, struct transaction *transaction, int error)
{
	attempts_forget(port, transaction);
	if (!transaction->answered && !transaction->redirects)
		return;
	if (transaction->overtaken) {
		transaction->error = error;
	} else {
		free(transaction->heap);
		transaction->heap = NULL;
		transaction->length = IB_MAD_SIZE;
		transaction->state = TRANSACTION_UNDER_WAY;
	}
	transaction->answered = false;
	transaction->redirects = false;
	transaction->status = 0;
}

/* Sends the request, with a new ID if the kernel refuses the first one. 0 or an errno. */
static int send_request(struct ibmad_port *port, struct transaction *transaction)
{
	int error = send_attempt(port, transaction);

	if (error && transaction->sendings == 1)
		disown_answer(port, transaction, error);
	/* the kernel may still hold an ID that the caller chose, but not a new ID */
	if (error == EINVAL && !transaction->attempts[0].tid && !transaction->redirects &&
	    transaction->state != TRANSACTION_DONE)
		error = send_attempt(port, transaction);
	return error;
}

/*
 * Whether a transaction goes on although a transmission failed: an earlier transmission may
 * still be answered. The timer is set already.
 */
static bool outlives(const struct transaction *transaction, int error)
{
	return error != ENODEV && transaction->expected;
}

void transaction_send(struct ibmad_port *port, struct transaction *transaction)
{
	int error;

	if (port->gone) {
		transaction_finish(port, transaction, port->gone);
		return;
	}
	transaction->state = TRANSACTION_UNDER_WAY;
	error = prepare_detour(port, transaction);
	if (!error && transaction->state != TRANSACTION_DONE)
		error = send_request(port, transaction);

	if (transaction->state == TRANSACTION_DONE)
		deliver(transaction); /* what finished it left that to us */
	else if (error && !outlives(transaction, error))
		transaction_finish(port, transaction, error);
	else if (transaction->redirects)
		follow_late(port, transaction);
}

/* --- time-outs ------------------------------------------------------------------ */

/*
 * Whether the transaction waits for the kernel's report of an attempt's timeout: the kernel
 * refuses the request's ID until then. A Get does not wait after its last attempt.
 */
static bool awaits_report(const struct transaction *transaction)
{
	return !transaction->overtime && transaction->end && attempts_hold_own(transaction) &&
	       (transaction->left > 1 || !transaction->repeatable);
}

/* Waits 1 ms even if it is too late already: the report may be queued and not read yet. */
static void await_report(struct ibmad_port *port, struct transaction *transaction, int64_t now)
{
	int64_t at = transaction->end + KERNEL_LATE_MS(transaction->timeout_ms) * INT64_C(1000);

	transaction->overtime = true;
	transaction_set_timer(port, transaction, at > now ? at : now + 1000);
}

/* Skips the attempts whose time has passed in a pause after BUSY. */
static void skip_attempts(struct transaction *transaction, int64_t now)
{
	int64_t budget = transaction->timeout_ms * INT64_C(1000);

	while (transaction->left > 1 && now >= transaction->end + budget) {
		transaction->end += budget;
		transaction->left--;
	}
}

/* The next retransmission comes after twice the time. */
static void back_off(struct transaction *transaction)
{
	if (transaction->interval < UINT32_MAX / 2)
		transaction->interval *= 2;
	transaction->recalled = false;
}

/* An attempt is over. */
static void next_attempt(struct ibmad_port *port, struct transaction *transaction, int64_t now)
{
	if (transaction->recalled)
		skip_attempts(transaction, now);
	transaction->end = 0;
	if (transaction->left > 1) {
		transaction->left--;
		back_off(transaction);
		transaction->retried = true;
		transaction_send(port, transaction);
	} else {
		transaction_finish(port, transaction, ETIMEDOUT);
	}
}

void transaction_expired(struct ibmad_port *port, struct transaction *transaction, int64_t now)
{
	transaction_uncount(port, transaction);
	if (transaction->sending) {
		/* somebody is about to: when he is done is soon enough */
		transaction_set_timer(port, transaction, now + 1000);
	} else if (now >= transaction->end) {
		if (awaits_report(transaction))
			await_report(port, transaction, now);
		else
			next_attempt(port, transaction, now);
	} else if (transaction->repeatable || transaction->recalled) {
		transaction->overdue |= !transaction->recalled;
		back_off(transaction);
		transaction_send(port, transaction);
	} else {
		transaction_set_timer(port, transaction, transaction->end);
	}
}

/* --- the end -------------------------------------------------------------------- */

void transaction_finish(struct ibmad_port *port, struct transaction *transaction, int error)
{
	if (transaction->state == TRANSACTION_DONE)
		return;
	attempts_give_up(port, transaction);
	if (transaction->asynchronous)
		deadline_clear(&port->deadlines, &transaction->timer);
	transaction_uncount(port, transaction);
	flow_leave(port, transaction);
	transaction->state = TRANSACTION_DONE;
	transaction->error = error;
	if (!transaction->sending)
		deliver(transaction);
}
