/* SPDX-License-Identifier: BSD-2-Clause */

#include "engine/core.h"

#include "base/report.h"
#include "mad/layout.h"
#include "mad/probe.h"

#include <errno.h>

void core_init(struct core *core, const struct core_hooks *hooks)
{
	core->hooks = hooks;
	options_init(&core->options);
	transactions_init(&core->transactions);
	for (unsigned i = 0; i < FLOW_WINDOWS; i++)
		core->traced_sizes[i] = core->transactions.flow.windows[i].size;
	pthread_mutex_init(&core->lock, NULL);
}

void core_reset(struct core *core)
{
	table_init(&core->transactions.outstanding.table);
	flow_reset(&core->transactions.flow);
	pthread_mutex_init(&core->lock, NULL);
}

void core_free(struct core *core)
{
	table_free(&core->transactions.outstanding.table);
	pthread_mutex_destroy(&core->lock);
}

/* --- windows -------------------------------------------------------------------- */

void core_windows_changed(struct core *core)
{
	unsigned size;

	for (unsigned i = 0; HAS_PROBES && i < FLOW_WINDOWS; i++) {
		size = core->transactions.flow.windows[i].size;
		if (size == core->traced_sizes[i])
			continue;
		probe_window_changed(core->link.fd, i, core->traced_sizes[i], size);
		core->traced_sizes[i] = size;
	}
}

/* It may be written yet when it is DONE, and come here twice. */
static void end_time(struct transaction *transaction, int64_t now)
{
	if (!transaction->timed && transaction->transmissions.count)
		transaction->elapsed_ms = (uint32_t)(now / 1000) - transaction->elapsed_ms;
	transaction->timed = true;
}

static void spread_news(struct core *core, struct transaction *transaction, int64_t now)
{
	if (transaction->news & NEWS_TRANSMITTED)
		pace_sent(&core->pace, now);
	if (transaction->state == TRANSACTION_DONE)
		end_time(transaction, now);
	core_windows_changed(core);
	if (!transaction->news)
		return;
	core->hooks->news(core, transaction);
	if (transaction->owner->ops->news)
		transaction->owner->ops->news(core, transaction);
	transaction->news = 0;
}

static inline void take_news(struct core *core, struct transaction *transaction, int64_t now)
{
	if (transaction->news || transaction->state == TRANSACTION_DONE)
		spread_news(core, transaction, now);
}

/* --- carrying out --------------------------------------------------------------- */

/* *now becomes the time after the write, which may have taken a second, if that matters. */
static enum transaction_action write_packet(struct core *core, struct transaction *transaction,
					    struct packet *packet, int64_t *now)
{
	int error;

	core_unlock(core);
	if (packet->attempts_left)
		report_retry(packet->attempts_left, umad_get_mad(packet->umad));
	error = link_write(&core->link, packet->umad, packet->length, packet->kernel_ms);
	core_lock(core);
	if (error || transaction->redirects)
		*now = clock_us();
	return transaction_written(&core->transactions, transaction, packet, error, *now);
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
		      enum transaction_action action, int64_t now)
{
	const struct owner_ops *ops = transaction->owner->ops;

	take_news(core, transaction, now);
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

void core_transmit(struct core *core, struct transaction *transaction)
{
	enum transaction_action action;
	int64_t now = clock_us();
	struct packet packet;

	if (core->gone) {
		core_cancel(core, transaction, core->gone);
		return;
	}
	action = transaction_start(&core->transactions, transaction, &packet, now);
	if (action == TRANSACTION_ASK_PATH)
		action = ask_path(core, transaction, &packet);
	while (action == TRANSACTION_SEND) {
		take_news(core, transaction, now);
		action = write_packet(core, transaction, &packet, &now);
	}
	carry_out(core, transaction, action, now);
}

void core_timer(struct core *core, struct transaction *transaction, int64_t now)
{
	carry_out(core, transaction, transaction_timer(&core->transactions, transaction, now),
		  now);
}

void core_cancel(struct core *core, struct transaction *transaction, int error)
{
	if (transaction->state == TRANSACTION_DONE)
		return;
	carry_out(core, transaction,
		  transaction_cancel(&core->transactions, transaction, error), clock_us());
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
	int64_t now = clock_us();

	if (transaction->state == TRANSACTION_READY)
		transaction->owner->ops->withdraw(core, transaction);
	action = transaction_response(&core->transactions, transaction, transmission, umad,
				      length, &allocated, now);
	carry_out(core, transaction, action, now);
	return allocated;
}

bool core_receive(struct core *core, uint8_t *umad, int length, bool allocated)
{
	const struct ib_user_mad *header = (const struct ib_user_mad *)(const void *)umad;
	const uint8_t *mad = umad_get_mad(umad);
	struct transmission *transmission = length >= 24 ? find(core, mad) : NULL;
	struct transaction *transaction;
	enum transaction_action action;
	int64_t now;

	if (!header->status && transmission && length >= 36 && is_response(mad))
		return respond(core, transmission, umad, length, allocated);
	if (!header->status || !transmission || is_response(mad)) {
		core->hooks->unclaimed(core, umad, length);
		return false;
	}
	transaction = transaction_of(transmission);
	now = clock_us();
	action =
		transaction_kernel_timeout(&core->transactions, transaction, transmission, now);
	carry_out(core, transaction, action, now);
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
