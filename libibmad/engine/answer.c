/* SPDX-License-Identifier: BSD-2-Clause */

#include "engine/answer.h"

#include "calls/async.h"
#include "engine/attempt.h"
#include "mad/mad_wire.h"
#include "mad/mgmt_class.h"
#include "engine/redirect.h"
#include "engine/requests.h"
#include "engine/wait.h"

#include <errno.h>

/* After an answer that says BUSY, and twice that the next time. */
#define BUSY_PAUSE_US 10000

static bool is_response(const uint8_t *mad)
{
	/* a BMMAD says so in its attribute modifier, too (IBA 16.2.2) */
	return mad[3] & IB_MAD_RESPONSE || mad[3] == IB_MAD_METHOD_TRAP_REPRESS ||
	       (mad[1] == IB_BOARD_MGMT_CLASS && mad[23] & 1);
}

static uint16_t status_of(const uint8_t *mad)
{
	uint16_t status = get16(mad, STATUS_OFFS);

	return mad[1] == IB_SMI_DIRECT_CLASS ? (uint16_t)(status & ~DIRECTION) : status;
}

/*
 * After a BUSY response, sends the request again after a pause, if there is time for a pause.
 * BUSY says that nothing was done (IBA 13.4.7): any method may be repeated.
 */
static bool come_back_later(struct ibmad_port *port, struct transaction *transaction,
			    int64_t now)
{
	int64_t pause;

	if (transaction->interval < BUSY_PAUSE_US)
		transaction->interval = BUSY_PAUSE_US;
	/* up to half as long again: those who ask at once should not come back at once */
	pause = transaction->interval + transaction->interval * (int64_t)(mad_trid() % 16) / 32;
	if (now + pause >= transaction_end(transaction))
		return false;
	attempts_renew(port, transaction);
	transaction_uncount(port, transaction);
	window_lost(&port->windows[transaction_window(transaction)]);
	transaction->recalled = true;
	transaction->overdue = false;
	transaction_set_timer(port, transaction, now + pause);
	if (!transaction->asynchronous)
		waiter_wake(transaction->owner.waiter);
	return true;
}

/* A message of one MAD, as if it were all there. */
static void copy_message(uint8_t *copy, const uint8_t *umad, int length)
{
	size_t size = umad_size() + (size_t)length;

	memcpy(copy, umad, size);
	memset(copy + size, 0, PACKET_SIZE - size);
}

/* Puts the answer in the request's place. heap: it may keep umad. 0 or -ENOMEM. */
static int take_answer(struct transaction *transaction, uint8_t *umad, int length, bool heap)
{
	uint8_t *answer = heap ? umad : NULL;

	if (!heap && transaction->sending) {
		answer = malloc(PACKET_SIZE);
		if (!answer)
			return -ENOMEM;
	}
	if (transaction->sending && transaction->heap) {
		transaction->overtaken = true;
		transaction->written = transaction->heap;
	} else {
		free(transaction->heap);
	}
	if (!heap)
		copy_message(answer ? answer : transaction->packet, umad, length);
	transaction->heap = answer;
	transaction->length = length;
	transaction->answered = true;
	return 0;
}

/* Takes an answer that redirects; while the request is being written, it waits for that. */
static void redirected(struct ibmad_port *port, struct transaction *transaction, uint8_t *umad,
		       int length)
{
	if (!transaction->sending || transaction->heap) {
		transaction_follow(port, transaction, umad_get_mad(umad), length);
		return;
	}
	transaction->heap = malloc(PACKET_SIZE);
	if (!transaction->heap) {
		transaction_finish(port, transaction, ENOMEM);
		return;
	}
	copy_message(transaction->heap, umad, length < IB_MAD_SIZE ? length : IB_MAD_SIZE);
	transaction->redirects = true;
}

/*
 * That the one to be answered is a sending after one that was overdue shows that the fabric has
 * lost that. Where there is never an answer, it is the node that is dead.
 */
static void judge_loss(struct ibmad_port *port, const struct transaction *transaction,
		       const struct attempt *attempt)
{
	struct window *window = &port->windows[transaction_window(transaction)];

	if (transaction->overdue && attempt != &transaction->attempts[0])
		window_lost(window);
	else
		window_answered(window);
}

/* SMPs have no such status (IBA 14.2.1). */
static bool is_redirection(const uint8_t *mad)
{
	return status_of(mad) == IB_MAD_STS_REDIRECT && !is_smp_class(mad[1]);
}

/* Returns whether it has kept umad. */
static bool answered(struct ibmad_port *port, struct transaction *transaction,
		     struct attempt *attempt, uint8_t *umad, int length, bool heap)
{
	bool sent_once = !attempt_is_own(attempt) || !transaction->late;
	uint16_t status = status_of(umad_get_mad(umad));
	bool redirects =
		is_redirection(umad_get_mad(umad)) || redirect_awaits_path(transaction);
	int64_t now = clock_us();

	attempt_forget(port, attempt);
	if (transaction->asynchronous && status & IB_MAD_STS_BUSY)
		engine_count_busy(transaction->owner.engine);
	if (status & IB_MAD_STS_BUSY && come_back_later(port, transaction, now))
		return false;
	transaction->rtt = ((uint32_t)now - attempt->sent) & 0x3fffffff;
	/* after a timeout, several transmissions had this ID: any of them may be answered */
	if (sent_once)
		rtt_sample(transaction_rtt(port, transaction), transaction->rtt);
	judge_loss(port, transaction, attempt);
	transaction_uncount(port, transaction);
	if (redirects) {
		attempts_renew(port, transaction);
		redirected(port, transaction, umad, length);
		return false;
	}
	if (take_answer(transaction, umad, length, heap))
		return false;
	transaction->status = status;
	transaction_finish(port, transaction, status ? EIO : 0);
	return heap;
}

/* The kernel has given a sending up. */
static void attempt_timed_out(struct ibmad_port *port, struct transaction *transaction,
			      struct attempt *attempt)
{
	bool latest = attempt->tid == get32(transaction_mad(transaction), TID_OFFS);

	attempt_forget(port, attempt);
	if (attempt_is_own(attempt))
		transaction->late = true;
	if (!transaction->repeatable && latest)
		transaction->end = 0;
	else if (!attempt_is_own(attempt) || clock_us() < transaction->end)
		return; /* its timer knows */
	transaction_hasten(port, transaction);
}

bool answer_receive(struct ibmad_port *port, uint8_t *umad, int length, bool heap)
{
	const struct ib_user_mad *header = (const struct ib_user_mad *)(const void *)umad;
	const uint8_t *mad = umad_get_mad(umad);
	struct attempt *attempt = length >= 24 ? attempt_find(port, mad) : NULL;

	if (!header->status && attempt && length >= 36 && is_response(mad))
		return answered(port, transaction_of(attempt), attempt, umad, length, heap);
	if (header->status && attempt && !is_response(mad))
		attempt_timed_out(port, transaction_of(attempt), attempt);
	else
		request_receive(port, umad, length);
	return false;
}

void answer_failed(struct ibmad_port *port, const uint8_t *umad, int error)
{
	const uint8_t *mad = umad + umad_size();
	struct attempt *attempt = attempt_find(port, mad);

	if (attempt && is_response(mad))
		transaction_finish(port, transaction_of(attempt), error);
	else
		port->dropped++;
}
