/* SPDX-License-Identifier: BSD-2-Clause */

#include "engine/core.h"

#include "base/report.h"
#include "mad/mad_wire.h"

#include <errno.h>

/* Where the windows begin, and how far they open. */
#define SMP_WINDOW_START 8
#define GMP_WINDOW_START 16

void core_init(struct core *core, const struct core_hooks *hooks)
{
	core->hooks = hooks;
	options_init(&core->options);
	transactions_init(&core->transactions);
	window_init(&core->windows[MAD_WINDOW_SMP], SMP_WINDOW_START, SMP_WINDOW_MAX);
	window_init(&core->windows[MAD_WINDOW_GMP], GMP_WINDOW_START, GMP_WINDOW_MAX);
	pthread_mutex_init(&core->lock, NULL);
}

void core_reset(struct core *core)
{
	table_init(&core->transactions.outstanding.table);
	for (unsigned i = 0; i < WINDOWS; i++)
		core->windows[i].in_flight = 0;
	pthread_mutex_init(&core->lock, NULL);
}

void core_free(struct core *core)
{
	table_free(&core->transactions.outstanding.table);
	pthread_mutex_destroy(&core->lock);
}

/* --- windows -------------------------------------------------------------------- */

static void count(struct transaction *transaction, struct window *window)
{
	if (transaction->counted)
		return;
	transaction->counted = true;
	window->in_flight++;
}

/* A request whose response is late may wait for a dead node: it should not delay others. */
static void uncount(struct transaction *transaction, struct window *window)
{
	if (!transaction->counted)
		return;
	transaction->counted = false;
	window->in_flight--;
}

static void spread_news(struct core *core, struct transaction *transaction)
{
	struct window *window = &core->windows[core_window(transaction)];
	bool done = transaction->state == TRANSACTION_DONE;
	unsigned news = transaction->news;

	if (news & NEWS_FIRST)
		count(transaction, window);
	if (news & NEWS_LOST)
		window_lost(window);
	if (news & NEWS_RESPONSE)
		window_response(window);
	if (done || news & (NEWS_LATE | NEWS_RESPONSE | NEWS_LOST))
		uncount(transaction, window);
	if (news && transaction->owner->ops->news)
		transaction->owner->ops->news(core, transaction);
	transaction->news = 0;
}

static inline void take_news(struct core *core, struct transaction *transaction)
{
	if (transaction->news || transaction->state == TRANSACTION_DONE)
		spread_news(core, transaction);
}

/* --- carrying out --------------------------------------------------------------- */

static enum transaction_action write_packet(struct core *core, struct transaction *transaction,
					    struct packet *packet)
{
	int64_t now = 0;
	int error;

	core_unlock(core);
	if (packet->attempts_left)
		report_retry(packet->attempts_left, umad_get_mad(packet->umad));
	error = link_write(&core->link, packet->umad, packet->length, packet->kernel_ms);
	core_lock(core);
	if (error || transaction->redirects)
		now = clock_us();
	return transaction_written(&core->transactions, transaction, packet, error, now);
}

static enum transaction_action ask_path(struct core *core, struct transaction *transaction,
					struct packet *packet)
{
	int error;

	core_unlock(core);
	error = redirect_ask_path(transaction->detour, transaction->packet, &core->link,
				  core->options.sa_key);
	core_lock(core);
	return transaction_path_asked(&core->transactions, transaction, packet, error,
				      clock_us());
}

/* What is to be done after an event that sends nothing itself. */
static void carry_out(struct core *core, struct transaction *transaction,
		      enum transaction_action action)
{
	const struct owner_ops *ops = transaction->owner->ops;

	take_news(core, transaction);
	switch (action) {
	case TRANSACTION_WAIT:
		ops->timer_changed(core, transaction);
		break;
	case TRANSACTION_AGAIN:
		ops->again(core, transaction);
		break;
	case TRANSACTION_COMPLETE:
		ops->withdraw(core, transaction);
		ops->completed(core, transaction);
		break;
	default: /* it may be DONE, and be completed when a thread has written it */
		if (transaction->state == TRANSACTION_DONE)
			ops->withdraw(core, transaction);
	}
}

int64_t core_transmit(struct core *core, struct transaction *transaction)
{
	enum transaction_action action;
	int64_t now = clock_us();
	struct packet packet;

	if (core->gone) {
		core_cancel(core, transaction, core->gone);
		return now;
	}
	action = transaction_start(&core->transactions, transaction, &packet, now);
	if (action == TRANSACTION_ASK_PATH)
		action = ask_path(core, transaction, &packet);
	while (action == TRANSACTION_SEND) {
		take_news(core, transaction);
		action = write_packet(core, transaction, &packet);
	}
	carry_out(core, transaction, action);
	return now;
}

void core_timer(struct core *core, struct transaction *transaction, int64_t now)
{
	carry_out(core, transaction, transaction_timer(&core->transactions, transaction, now));
}

void core_cancel(struct core *core, struct transaction *transaction, int error)
{
	if (transaction->state == TRANSACTION_DONE)
		return;
	if (transaction->state == TRANSACTION_READY)
		transaction->owner->ops->withdraw(core, transaction);
	carry_out(core, transaction,
		  transaction_cancel(&core->transactions, transaction, error));
}

void core_fail(struct core *core, int error)
{
	struct transmission *transmission;

	if (!core->gone)
		core->gone = error;
	while ((transmission = table_any(&core->transactions.outstanding.table)))
		core_cancel(core, transaction_of(transmission), core->gone);
	core->hooks->failed(core);
}

/* --- messages ------------------------------------------------------------------- */

static bool is_response(const uint8_t *mad)
{
	/* a BMMAD says so in its attribute modifier, too (IBA 16.2.2) */
	return mad[3] & IB_MAD_RESPONSE || mad[3] == IB_MAD_METHOD_TRAP_REPRESS ||
	       (mad[1] == IB_BOARD_MGMT_CLASS && mad[23] & 1);
}

static struct transmission *find(struct core *core, const uint8_t *mad)
{
	return transmission_find(&core->transactions.outstanding, get32(mad, TID_OFFS), mad[1]);
}

static bool respond(struct core *core, struct transmission *transmission, uint8_t *umad,
		    int length, bool allocated)
{
	struct transaction *transaction = transaction_of(transmission);
	enum transaction_action action;

	if (transaction->state == TRANSACTION_READY)
		transaction->owner->ops->withdraw(core, transaction);
	action = transaction_response(&core->transactions, transaction, transmission, umad,
				      length, &allocated, clock_us());
	carry_out(core, transaction, action);
	return allocated;
}

bool core_receive(struct core *core, uint8_t *umad, int length, bool allocated)
{
	const struct ib_user_mad *header = (const struct ib_user_mad *)(const void *)umad;
	const uint8_t *mad = umad_get_mad(umad);
	struct transmission *transmission = length >= 24 ? find(core, mad) : NULL;
	struct transaction *transaction;

	if (!header->status && transmission && length >= 36 && is_response(mad))
		return respond(core, transmission, umad, length, allocated);
	if (!header->status || !transmission || is_response(mad)) {
		core->hooks->unclaimed(core, umad, length);
		return false;
	}
	transaction = transaction_of(transmission);
	carry_out(core, transaction,
		  transaction_kernel_timeout(&core->transactions, transaction, transmission,
					     clock_us()));
	return false;
}

void core_receive_failed(struct core *core, const uint8_t *umad, int error)
{
	/* umad_get_mad() takes no const */
	const uint8_t *mad = umad + umad_size();
	struct transmission *transmission = find(core, mad);

	if (transmission && is_response(mad))
		core_cancel(core, transaction_of(transmission), error);
	else
		core->dropped++;
}
