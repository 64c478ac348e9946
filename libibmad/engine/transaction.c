/* SPDX-License-Identifier: BSD-2-Clause */

#include "engine/transaction.h"

#include "mad/layout.h"
#include "mad/probe.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

/*
 * How late the kernel reports a timeout at most. The granularity of the kernel's timers grows
 * with their time: it is up to 8/63 of the time.
 */
#define KERNEL_LATE_MS(ms) (20 + (ms) / 7)
/* The kernel waits for the response to a retransmission within an attempt so long at least. */
#define KERNEL_HOLDS_MS    100
/* early_most has no more bits. */
#define EARLY_MAX          0xfff
/* After the first BUSY response; the pause doubles each time. */
#define BUSY_PAUSE_US      10000
#define BUSY_PAUSES_GROW   12 /* so often the pause is doubled, at most */
/* The interval between retransmissions grows this many times up to a time, and then twice. */
#define INTERVAL_GROWS     10
#define INTERVAL_US        200000
/* While no round trip is known, the time after which a response is late is computed again. */
#define LOOK_US            2000

void transactions_init(struct transactions *transactions)
{
	outstanding_init(&transactions->outstanding);
	flow_init(&transactions->flow);
}

/* Whether it is a Get of a class whose Gets change nothing: asking again does no harm. */
static bool changes_nothing(const uint8_t *mad)
{
	return mad[3] == IB_MAD_METHOD_GET &&
	       (is_smp_class(mad[1]) || mad[1] == IB_SA_CLASS ||
		mad[1] == IB_PERFORMANCE_CLASS || mad[1] == IB_CC_CLASS);
}

void transaction_init(struct transaction *transaction, int timeout_ms, int attempts)
{
	const uint8_t *mad = transaction_mad(transaction);

	transmissions_init(&transaction->transmissions, get32(mad, TID_OFFS), mad[1]);
	transaction->timeout_ms = timeout_ms < 0 ? INT_MAX / 2 : timeout_ms;
	transaction->left = attempts < UINT16_MAX ? (uint16_t)attempts : UINT16_MAX;
	transaction->repeatable = transaction->length == IB_MAD_SIZE && changes_nothing(mad);
	if (transaction->repeatable && attempts > 1)
		transaction->early_most =
			(attempts < EARLY_MAX ? (unsigned)attempts : EARLY_MAX) & EARLY_MAX;
	transaction->account.smp = is_smp_class(mad[1]);
	transaction->account.sa = mad[1] == IB_SA_CLASS;
	transaction->fresh = true;
}

void transaction_fini(struct transaction *transaction)
{
	free(transaction->detour);
	transaction->detour = NULL;
	if (transaction->overtaken)
		free(transaction->written);
	transaction->overtaken = false;
	free(transaction->heap);
	transaction->heap = NULL;
}

static enum transaction_action wait_until(struct transaction *transaction, int64_t at)
{
	transaction->timer.at = at;
	return TRANSACTION_WAIT;
}

/* When the last of its attempts is over. */
static int64_t end_of_all(const struct transaction *transaction)
{
	return transaction->end +
	       (transaction->left - 1) * (transaction->timeout_ms * INT64_C(1000));
}

/* --- completion ----------------------------------------------------------------- */

/* It is not in flight any more. */
static void leave_flow(struct transactions *all, struct transaction *transaction)
{
	flow_ended(&all->flow, &transaction->account);
	transaction->news |= NEWS_PLACE;
}

static enum transaction_action finish(struct transactions *all, struct transaction *transaction,
				      int error)
{
	transmissions_give_up(&all->outstanding, &transaction->transmissions);
	leave_flow(all, transaction);
	transaction->state = TRANSACTION_DONE;
	transaction->error = (uint16_t)error;
	probe_request_completed(transaction, transaction_buffer(transaction),
				transaction_mad(transaction), error,
				transaction->transmissions.count);
	return transaction->writing ? TRANSACTION_NONE : TRANSACTION_COMPLETE;
}

enum transaction_action transaction_cancel(struct transactions *all,
					   struct transaction *transaction, int error)
{
	if (transaction->state == TRANSACTION_DONE)
		return TRANSACTION_NONE;
	return finish(all, transaction, error);
}

/* --- transmission --------------------------------------------------------------- */

static enum transaction_action proceed(struct transactions *all,
				       struct transaction *transaction, int64_t now);

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
	return ms_until(end_of_all(transaction), now, kernel_ms);
}

/* When the response to the latest packet is late, as far as is known now. */
static int64_t late_at(struct transactions *all, const struct transaction *transaction)
{
	return transaction->account.sent + flow_late_after(&all->flow, &transaction->account);
}

/* When to look at it again, if nothing comes before. */
static int64_t look_at(struct transactions *all, const struct transaction *transaction,
		       int64_t now)
{
	int64_t look =
		flow_looks_again(&all->flow, &transaction->account) ? now + LOOK_US : INT64_MAX;

	return earlier(earlier(late_at(all, transaction), look), transaction->end);
}

/* Sets the timer for a transmission. Returns how long the kernel is to wait for the response.
 */
static int schedule(struct transactions *all, struct transaction *transaction,
		    const struct transmission *transmission, int64_t now)
{
	int64_t budget = transaction->timeout_ms * INT64_C(1000);
	int kernel_ms = transaction->timeout_ms;

	if (transaction->transmissions.count == 1)
		transaction->elapsed_ms = (uint32_t)(now / 1000);
	if (!transaction->end || transaction->end == INT64_MAX) {
		transaction->end = now + budget;
		transaction->overtime = false;
	} else if (transmission_is_own(transmission)) {
		kernel_ms = ms_until(transaction->end, now, kernel_ms);
	} else {
		kernel_ms = retransmission_ms(transaction, now);
	}
	if (!transaction->account.first)
		transaction->account.may_copy = transaction->early < transaction->early_most;
	flow_sent(&all->flow, &transaction->account, now);
	transaction->timer.at = look_at(all, transaction, now);
	return kernel_ms ? kernel_ms : 1;
}

static enum transaction_action transmit(struct transactions *all,
					struct transaction *transaction, struct packet *packet,
					int64_t now)
{
	struct transmission *transmission;

	if (transaction->end && now >= transaction->end)
		return proceed(all, transaction, now);
	transmission = transmission_begin(&all->outstanding, &transaction->transmissions,
					  transaction_mad(transaction), now);
	*packet = (struct packet){
		.transmission = transmission,
		.umad = transaction_buffer(transaction),
		.length = transaction->length,
		.kernel_ms = schedule(all, transaction, transmission, now),
		.attempts_left = transaction->new_attempt ? transaction->left : 0,
	};
	transaction->new_attempt = false;
	transaction->writing = true;
	transaction->news |= NEWS_TRANSMITTED;
	transaction->fresh = false;
	probe_request_transmitted(transaction, packet->umad, transaction_mad(transaction),
				  transaction->transmissions.count);
	return TRANSACTION_SEND;
}

enum transaction_action transaction_start(struct transactions *all,
					  struct transaction *transaction,
					  struct packet *packet, int64_t now)
{
	transaction->state = TRANSACTION_IN_FLIGHT;
	transaction->timer = (struct deadline){.at = now};
	if (!redirect_needs_path(transaction->detour))
		return transmit(all, transaction, packet, now);
	transaction->writing = true;
	return TRANSACTION_ASK_PATH;
}

enum transaction_action transaction_path_asked(struct transactions *all,
					       struct transaction *transaction,
					       struct packet *packet, int error, int64_t now)
{
	transaction->writing = false;
	if (transaction->state == TRANSACTION_DONE)
		return TRANSACTION_COMPLETE;
	if (error)
		return finish(all, transaction, error);
	return transmit(all, transaction, packet, now);
}

/* --- late responses and timeouts ------------------------------------------------ */

/*
 * Whether the transaction waits for the kernel's report of an attempt's timeout: the kernel
 * refuses the request's ID until then. A Get does not wait after its last attempt.
 */
static bool awaits_report(const struct transaction *transaction)
{
	return !transaction->overtime && transaction->end &&
	       transmissions_hold_own(&transaction->transmissions) &&
	       (transaction->left > 1 || !transaction->repeatable);
}

/* Waits 1 ms even if it is too late already: the report may be queued and not read yet. */
static enum transaction_action await_report(struct transaction *transaction, int64_t now)
{
	int64_t at = transaction->end + KERNEL_LATE_MS(transaction->timeout_ms) * INT64_C(1000);

	transaction->overtime = true;
	return wait_until(transaction, at > now ? at : now + 1000);
}

/* A response is late, or does not come any more. */
static void note_late(struct transactions *all, struct transaction *transaction, int64_t now)
{
	flow_late(&all->flow, &transaction->account, now);
	transaction->news |= NEWS_PLACE;
}

static enum transaction_action again(struct transaction *transaction)
{
	transaction->state = TRANSACTION_READY;
	return TRANSACTION_AGAIN;
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

/*
 * How long after the latest packet the request is retransmitted. A node that has never
 * responded may be slow or dead. A second loss is less likely than a slow node.
 */
static uint32_t next_interval(struct transactions *all, const struct transaction *transaction)
{
	const struct flow_path *path = transaction->account.path;
	uint32_t us = transaction->interval;

	if (!us)
		return (path && path->smoothed_us ? 1 : 2) *
		       flow_late_after(&all->flow, &transaction->account);
	if (us <= INTERVAL_US / INTERVAL_GROWS)
		return us * INTERVAL_GROWS;
	return us <= INTERVAL_US / 2 ? INTERVAL_US : us < UINT32_MAX / 2 ? 2 * us : us;
}

/* An attempt is over. */
static enum transaction_action next_attempt(struct transactions *all,
					    struct transaction *transaction, int64_t now)
{
	if (transaction->recalled)
		skip_attempts(transaction, now);
	transaction->end = 0;
	probe_attempt_timed_out(transaction, transaction_buffer(transaction),
				transaction_mad(transaction), transaction->timeout_ms,
				transaction->left - 1U);
	if (transaction->left <= 1)
		return finish(all, transaction, ETIMEDOUT);
	transaction->left--;
	transaction->recalled = false;
	transaction->new_attempt = true;
	return again(transaction);
}

/* There is something to do, and no thread writes. */
static enum transaction_action proceed(struct transactions *all,
				       struct transaction *transaction, int64_t now)
{
	uint32_t interval;
	int64_t due;

	note_late(all, transaction, now);
	if (now >= transaction->end) {
		if (awaits_report(transaction))
			return await_report(transaction, now);
		return next_attempt(all, transaction, now);
	}
	if (transaction->recalled) {
		transaction->recalled = false;
		return again(transaction);
	}
	if (transaction->early >= transaction->early_most)
		return wait_until(transaction, transaction->end);
	interval = next_interval(all, transaction);
	due = transaction->account.sent + interval;
	if (now < due)
		return wait_until(transaction, earlier(due, transaction->end));
	transaction->late = true;
	transaction->early++;
	transaction->interval = interval;
	return again(transaction);
}

enum transaction_action transaction_timer(struct transactions *all,
					  struct transaction *transaction, int64_t now)
{
	if (transaction->state != TRANSACTION_IN_FLIGHT)
		return TRANSACTION_NONE;
	if (transaction->writing) {
		if (now >= late_at(all, transaction))
			note_late(all, transaction, now);
		return wait_until(transaction, now + 1000);
	}
	if (!transaction->recalled && now < transaction->end && now < late_at(all, transaction))
		return wait_until(transaction, look_at(all, transaction, now));
	return proceed(all, transaction, now);
}

enum transaction_action transaction_kernel_timeout(struct transactions *all,
						   struct transaction *transaction,
						   struct transmission *transmission,
						   int64_t now)
{
	bool own = transmission_is_own(transmission);
	bool latest = transmission->tid == get32(transaction_mad(transaction), TID_OFFS);

	transmission_timed_out(&all->outstanding, transmission);
	if (transaction->state != TRANSACTION_IN_FLIGHT)
		return TRANSACTION_NONE;
	if (!transaction->repeatable && latest)
		transaction->end = 0;
	else if (!own || now < transaction->end)
		return TRANSACTION_NONE; /* its timer will be due */
	/* the next attempt begins when the thread that writes has finished */
	return transaction->writing ? wait_until(transaction, now)
				    : proceed(all, transaction, now);
}

/* --- responses ------------------------------------------------------------------ */

static uint16_t status_of(const uint8_t *mad)
{
	uint16_t status = get16(mad, STATUS_OFFS);

	return mad[1] == IB_SMI_DIRECT_CLASS ? (uint16_t)(status & ~DIRECTION) : status;
}

/* SMPs have no such status (IBA 14.2.1). */
static bool is_redirection(const uint8_t *mad, uint16_t status)
{
	return status == IB_MAD_STS_REDIRECT && !is_smp_class(mad[1]);
}

/*
 * The pause after a BUSY response doubles. It is up to half as long again: those who asked at
 * once should not ask again at once.
 */
static int64_t next_pause(struct transaction *transaction)
{
	int64_t pause = (int64_t)BUSY_PAUSE_US << transaction->pauses;

	if (transaction->pauses < BUSY_PAUSES_GROW)
		transaction->pauses++;
	return pause + pause * (int64_t)(mad_trid() % 16) / 32;
}

/*
 * Pauses after a BUSY response; false if there is no time for it. BUSY says that nothing was
 * done (IBA 13.4.7): a request of any method may be sent again.
 */
static bool pause_for(struct transactions *all, struct transaction *transaction, int64_t now)
{
	int64_t pause = next_pause(transaction);

	if (now + pause >= end_of_all(transaction))
		return false;
	transmissions_renew(&all->outstanding, &transaction->transmissions);
	transaction->recalled = true;
	transaction->late = false;
	transaction->interval = 0;
	transaction->timer.at = now + pause;
	return true;
}

/* A message of one MAD, and zeros to the end of the buffer. */
static void copy_message(uint8_t *copy, const uint8_t *umad, size_t size)
{
	memcpy(copy, umad, size);
	memset(copy + size, 0, PACKET_SIZE - size);
}

/*
 * Puts the response in the place of the request. A thread may be writing the request. Returns
 * false without memory.
 */
static bool take_response(struct transaction *transaction, uint8_t *umad, int length,
			  bool allocated)
{
	uint8_t *response = allocated ? umad : NULL, *request = transaction->heap;

	if (!allocated && transaction->writing) {
		response = malloc(PACKET_SIZE);
		if (!response)
			return false;
	}
	if (!allocated)
		copy_message(response ? response : transaction->packet, umad,
			     transaction->header_size + (size_t)length);
	/* in this order: a child of fork() frees what it finds */
	transaction->heap = response;
	if (transaction->writing && request) {
		transaction->overtaken = true;
		transaction->written = request;
	} else {
		free(request);
	}
	transaction->length = length;
	transaction->responded = true;
	return true;
}

/* Follows a response that redirects, or that has the path for a redirection. */
static enum transaction_action follow(struct transactions *all, struct transaction *transaction,
				      const uint8_t *mad, int length, int64_t now)
{
	int ret = transaction->heap
			  ? -EOPNOTSUPP
			  : redirect(&transaction->detour, transaction->packet,
				     &transaction->transmissions.live[0].tid, mad, length);

	if (ret < 0)
		return finish(all, transaction, -ret);
	if (!transaction->repeatable)
		transaction->end = INT64_MAX;
	transaction->recalled = true;
	transaction->late = false;
	transaction->interval = 0;
	transaction->fresh = true;
	return proceed(all, transaction, now);
}

/* A response that redirects. While a thread writes the request, the response is kept. */
static enum transaction_action redirected(struct transactions *all,
					  struct transaction *transaction, const uint8_t *umad,
					  int length, int64_t now)
{
	transmissions_renew(&all->outstanding, &transaction->transmissions);
	if (!transaction->writing || transaction->heap)
		return follow(all, transaction, umad + transaction->header_size, length, now);
	transaction->heap = malloc(PACKET_SIZE);
	if (!transaction->heap)
		return finish(all, transaction, ENOMEM);
	copy_message(transaction->heap, umad,
		     transaction->header_size +
			     (size_t)(length < IB_MAD_SIZE ? length : IB_MAD_SIZE));
	transaction->redirects = true;
	return TRANSACTION_NONE;
}

/*
 * A response to an earlier attempt has come between two attempts. If the request is READY, its
 * next attempt begins now; otherwise a thread writes, and an attempt has just ended.
 */
static void set_end(struct transaction *transaction, int64_t now)
{
	bool ready = transaction->state == TRANSACTION_READY;

	transaction->end = now + (ready ? transaction->timeout_ms * INT64_C(1000) : 0);
	transaction->overtime = false;
}

enum transaction_action transaction_response(struct transactions *all,
					     struct transaction *transaction,
					     struct transmission *transmission, uint8_t *umad,
					     int length, bool *taken, int64_t now)
{
	bool own = transmission_is_own(transmission), allocated = *taken, measured;
	const uint8_t *mad = umad + transaction->header_size;
	uint16_t status = status_of(mad);
	uint32_t rtt_us = 0;
	bool redirects =
		is_redirection(mad, status) || redirect_awaits_path(transaction->detour);

	*taken = false;
	transmission_forget(&all->outstanding, transmission);
	if (!transaction->end)
		set_end(transaction, now);
	measured = transmission_measure(transmission, now);
	if (measured)
		rtt_us = transaction->transmissions.rtt_us ? transaction->transmissions.rtt_us
							   : 1;
	probe_response_received(umad, mad, status, rtt_us);
	/* a response to a retransmission shows that the fabric lost a MAD */
	flow_response(&all->flow, &transaction->account, rtt_us, transaction->late && !own,
		      now);
	transaction->news |= NEWS_PLACE;
	if (status & IB_MAD_STS_BUSY) {
		transaction->news |= NEWS_BUSY;
		if (pause_for(all, transaction, now)) {
			transaction->state = TRANSACTION_IN_FLIGHT;
			return TRANSACTION_WAIT;
		}
	}
	if (redirects)
		return redirected(all, transaction, umad, length, now);
	if (!take_response(transaction, umad, length, allocated))
		return TRANSACTION_NONE;
	*taken = allocated;
	transaction->status = status;
	return finish(all, transaction, status ? EIO : 0);
}

/* --- after writing -------------------------------------------------------------- */

/*
 * A request that never left has no response: a response that came meanwhile belongs to another
 * request. The transaction is as it was before, unless the response took the place of a long
 * request.
 */
static void disown_response(struct transaction *transaction, int error)
{
	transaction->recalled = false;
	if (!transaction->responded && !transaction->redirects)
		return;
	if (transaction->overtaken) {
		transaction->error = (uint16_t)error;
	} else {
		free(transaction->heap);
		transaction->heap = NULL;
		transaction->length = IB_MAD_SIZE;
		/* a redirection did not complete it: it is DONE only if it was cancelled */
		if (transaction->responded)
			transaction->state = TRANSACTION_IN_FLIGHT;
	}
	transaction->responded = false;
	transaction->redirects = false;
	transaction->status = 0;
}

/* The response that redirects came while the packet was being written. */
static enum transaction_action follow_kept(struct transactions *all,
					   struct transaction *transaction, int64_t now)
{
	uint8_t *response = transaction->heap;
	enum transaction_action action;

	transaction->redirects = false;
	transaction->heap = NULL;
	action =
		follow(all, transaction, response + transaction->header_size, IB_MAD_SIZE, now);
	free(response);
	return action;
}

/*
 * The kernel may still hold an ID that the caller chose, but not a new ID: whether the request
 * may be sent with a new one.
 */
static bool may_have_new_id(struct transaction *transaction, int error)
{
	if (error != EINVAL || transaction->transmissions.live[0].tid || transaction->refused ||
	    transaction->redirects || transaction->recalled ||
	    transaction->state == TRANSACTION_DONE)
		return false;
	transaction->refused = true;
	return true;
}

/*
 * The kernel has looked for the port of a GID, and found none: as if the attempt had no
 * response. The port may be there in the next attempt. That took a second of the thread that
 * writes, and may have taken several attempts.
 */
static enum transaction_action nobody_found(struct transactions *all,
					    struct transaction *transaction, int64_t now)
{
	note_late(all, transaction, now);
	transaction->early_most = (unsigned)transaction->early & EARLY_MAX;
	skip_attempts(transaction, now);
	if (transaction->left <= 1)
		return next_attempt(all, transaction, now);
	return wait_until(transaction, transaction->end);
}

enum transaction_action transaction_written(struct transactions *all,
					    struct transaction *transaction,
					    struct packet *packet, int error, int64_t now)
{
	transaction->writing = false;
	if (error == ETIMEDOUT)
		transmission_forget(&all->outstanding, packet->transmission);
	else if (error)
		transmission_refused(&all->outstanding, packet->transmission);
	if (error) {
		if (transaction->transmissions.count == 1)
			disown_response(transaction, error);
		if (may_have_new_id(transaction, error)) {
			leave_flow(all, transaction);
			return transmit(all, transaction, packet, now);
		}
	}
	transaction->refused = false;
	if (transaction->state == TRANSACTION_DONE)
		return TRANSACTION_COMPLETE;
	/* a response to an earlier transmission may still come, or has come */
	if (error && (error == ENODEV || (!transaction->transmissions.expected &&
					  !transaction->recalled && !transaction->redirects)))
		return error == ETIMEDOUT ? nobody_found(all, transaction, now)
					  : finish(all, transaction, error);
	if (transaction->redirects)
		return follow_kept(all, transaction, now);
	return TRANSACTION_WAIT;
}
