/* SPDX-License-Identifier: BSD-2-Clause */

#include "transaction.h"

#include "async.h"
#include "flow.h"
#include "mgmt_class.h"
#include "redirect.h"
#include "report.h"
#include "requests.h"
#include "wait.h"

#include <errno.h>
#include <limits.h>

/* The kernel reports a time-out late, by so much at most: before that it is not ours to. */
#define KERNEL_LATE_MS(ms) (20 + (ms) / 16)
/* A sending that is to be repeated occupies a slot of the kernel's so long at least. */
#define KERNEL_HOLDS_MS    100
/* After an answer that says BUSY, and twice that the next time. */
#define BUSY_PAUSE_US      10000

/* --- the request ---------------------------------------------------------------- */

static struct ib_user_mad *header_of(struct transaction *transaction)
{
	return (struct ib_user_mad *)(void *)transaction_buffer(transaction);
}

static uint8_t *mad_of(struct transaction *transaction)
{
	return umad_get_mad(transaction_buffer(transaction));
}

static uint32_t get32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return be32toh(value);
}

static uint16_t get16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
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
	mad[24] = RMPP_VERSION;
	mad[25] = IB_RMPP_TYPE_DATA;
	mad[26] = RMPP_RESP_TIME_NONE << 3 | IB_RMPP_FLAG_ACTIVE;
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
		memcpy(mad_of(transaction) + rpc->dataoffs, payload, size);
	if (transaction->length > IB_MAD_SIZE)
		mark_for_rmpp(mad_of(transaction));
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

static struct rtt *rtt_of(struct ibmad_port *port, struct transaction *transaction)
{
	if (mad_of(transaction)[1] == IB_SA_CLASS)
		return &port->rtts[SA_RTT];
	return &port->rtts[transaction_window(transaction)];
}

static void count(struct ibmad_port *port, struct transaction *transaction)
{
	transaction->counted = true;
	port->windows[transaction_window(transaction)].under_way++;
}

static void uncount(struct ibmad_port *port, struct transaction *transaction)
{
	if (!transaction->counted)
		return;
	transaction->counted = false;
	port->windows[transaction_window(transaction)].under_way--;
}

static void set_timer(struct ibmad_port *port, struct transaction *transaction, int64_t at)
{
	if (!transaction->asynchronous) {
		transaction->timer.at = at;
		return;
	}
	deadline_set(&port->deadlines, &transaction->timer, at);
	engine_timer_set(transaction->owner.engine, at);
}

/* Its timer is due now, and another thread may have to see to it. */
static void hasten(struct ibmad_port *port, struct transaction *transaction)
{
	set_timer(port, transaction, 0);
	if (!transaction->asynchronous)
		waiter_wake(transaction->owner.waiter);
}

/* --- sending -------------------------------------------------------------------- */

static void forget_attempt(struct ibmad_port *port, struct attempt *attempt)
{
	if (!attempt->tid)
		return;
	table_remove(&port->table, attempt);
	attempt->tid = 0;
}

static void forget_attempts(struct ibmad_port *port, struct transaction *transaction)
{
	for (unsigned i = 0; i < LIVE_ATTEMPTS; i++)
		forget_attempt(port, &transaction->attempts[i]);
}

/* Its answer may come yet. Callers know the first sending's id, and may use it again. */
static void give_up_attempts(struct ibmad_port *port, struct transaction *transaction)
{
	if (transaction->attempts[0].tid && !transaction->asynchronous)
		port->given_up[port->next_given_up++ % GIVEN_UP] = transaction->attempts[0].tid;
	forget_attempts(port, transaction);
}

static struct attempt *find_attempt(struct ibmad_port *port, const uint8_t *mad)
{
	struct attempt *attempt = table_find(&port->table, get32(mad + 12));

	while (attempt && mad_of(transaction_of(attempt))[1] != mad[1])
		attempt = table_find_next(attempt);
	return attempt;
}

/* Whether an answer with that id would be, or could be, another request's. */
static bool is_taken(struct ibmad_port *port, const uint8_t *mad)
{
	uint32_t tid = get32(mad + 12);

	for (unsigned i = 0; i < GIVEN_UP; i++)
		if (port->given_up[i] == tid)
			return true;
	return find_attempt(port, mad);
}

/* The first sending's answer may take all the time there is; of the others, the latest do. */
static struct attempt *free_attempt(struct transaction *transaction)
{
	unsigned others = LIVE_ATTEMPTS - 1, sendings = transaction->sendings;

	return &transaction->attempts[sendings ? 1 + (sendings - 1) % others : 0];
}

/* The id of the first sending is the request's own, if it can be; those of others are new. */
static void name_attempt(struct ibmad_port *port, struct transaction *transaction, int64_t now)
{
	struct attempt *attempt = free_attempt(transaction);
	uint8_t *tid = mad_of(transaction) + 12;
	uint32_t value = get32(tid);

	forget_attempt(port, attempt);
	if (transaction->sendings || !value || is_taken(port, mad_of(transaction))) {
		value = (uint32_t)mad_trid();
		memcpy(tid, &(uint32_t){htobe32(value)}, sizeof(value));
	}
	attempt->sent = (uint32_t)now & 0x3fffffff;
	table_add(&port->table, attempt, value);
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Sets the timer for a sending, and says how long the kernel is to wait for the answer. */
static int schedule(struct ibmad_port *port, struct transaction *transaction, int64_t now)
{
	int64_t budget = transaction->timeout_ms * INT64_C(1000);
	int kernel_ms;

	if (!transaction->sendings)
		transaction->interval = rtt_timeout(rtt_of(port, transaction));
	if (transaction->interval > budget)
		transaction->interval = (uint32_t)budget;
	if (!transaction->repeatable) {
		kernel_ms = transaction->timeout_ms;
		transaction->end = now + budget + KERNEL_LATE_MS(kernel_ms) * INT64_C(1000);
	} else {
		if (!transaction->sendings)
			transaction->end = now + budget * transaction->left;
		kernel_ms = (int)(transaction->interval / 250) + 1;
		if (kernel_ms < KERNEL_HOLDS_MS)
			kernel_ms = KERNEL_HOLDS_MS;
		/* no later one has the time for an answer that takes as long as it may */
		if (!transaction->sendings && transaction->left == 1)
			kernel_ms = transaction->timeout_ms;
		kernel_ms = ms_until(transaction->end, now, kernel_ms);
	}
	set_timer(port, transaction, earlier(now + transaction->interval, transaction->end));
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
	int64_t now = clock_us();
	int kernel_ms, length = transaction->length, error;

	name_attempt(port, transaction, now);
	kernel_ms = schedule(port, transaction, now);
	/* what was lost once may be with a dead node: it is not to hold up the others */
	if (!transaction->sendings)
		count(port, transaction);
	if (transaction->asynchronous)
		engine_count_sent(transaction->owner.engine, transaction);
	if (transaction->sendings < UINT16_MAX)
		transaction->sendings++;
	transaction->sending = true;
	port_unlock(port);
	error = write_packet(port, umad, length, kernel_ms);
	port_lock(port);
	transaction->sending = false;
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

/* Follows an answer that redirects, or gives the path for that. */
static void follow(struct ibmad_port *port, struct transaction *transaction, const uint8_t *mad,
		   int length)
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
	hasten(port, transaction);
}

/* What has come while it was being written. */
static void follow_late(struct ibmad_port *port, struct transaction *transaction)
{
	uint8_t *answer = transaction->heap;

	transaction->redirects = false;
	transaction->heap = NULL;
	follow(port, transaction, umad_get_mad(answer), IB_MAD_SIZE);
	free(answer);
}

/* A request that never left has no answer: what has come meanwhile is another's. */
static void disown_answer(struct ibmad_port *port, struct transaction *transaction, int error)
{
	forget_attempts(port, transaction);
	if (transaction->redirects) {
		free(transaction->heap);
		transaction->heap = NULL;
		transaction->redirects = false;
	}
	if (transaction->answered) {
		transaction->answered = false;
		transaction->status = 0;
		transaction->error = error;
	}
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
		error = send_attempt(port, transaction);
	if (error && transaction->sendings == 1)
		disown_answer(port, transaction, error);
	/* the kernel may still hold an id of the caller's: it does not hold one of our own */
	if (error == EINVAL && transaction->sendings == 1 &&
	    transaction->state != TRANSACTION_DONE)
		error = send_attempt(port, transaction);

	if (transaction->state == TRANSACTION_DONE)
		deliver(transaction); /* what finished it left that to us */
	else if (error)
		transaction_finish(port, transaction, error);
	else if (transaction->redirects)
		follow_late(port, transaction);
}

/* --- time-outs ------------------------------------------------------------------ */

/* An attempt has had its time. */
static void next_attempt(struct ibmad_port *port, struct transaction *transaction)
{
	if (transaction->left > 1) {
		transaction->left--;
		report_retry(transaction->left, mad_of(transaction));
		transaction_send(port, transaction);
	} else {
		transaction_finish(port, transaction, ETIMEDOUT);
	}
}

void transaction_expired(struct ibmad_port *port, struct transaction *transaction, int64_t now)
{
	uncount(port, transaction);
	if (transaction->sending) {
		/* somebody is about to: when he is done is soon enough */
		set_timer(port, transaction, now + 1000);
	} else if (!transaction->repeatable && !transaction->recalled) {
		if (now >= transaction->end)
			next_attempt(port, transaction);
		else
			set_timer(port, transaction, transaction->end);
	} else if (now >= transaction->end) {
		transaction_finish(port, transaction, ETIMEDOUT);
	} else {
		if (transaction->interval < UINT32_MAX / 2)
			transaction->interval *= 2;
		transaction->overdue |= !transaction->recalled;
		transaction->recalled = false;
		transaction_send(port, transaction);
	}
}

/* The kernel has given a sending up. */
static void attempt_timed_out(struct ibmad_port *port, struct transaction *transaction,
			      struct attempt *attempt)
{
	bool latest = attempt->tid == get32(mad_of(transaction) + 12);

	forget_attempt(port, attempt);
	if (transaction->repeatable || !latest)
		return; /* its timer knows */
	transaction->end = 0;
	hasten(port, transaction);
}

/* --- the end -------------------------------------------------------------------- */

void transaction_finish(struct ibmad_port *port, struct transaction *transaction, int error)
{
	if (transaction->state == TRANSACTION_DONE)
		return;
	if (transaction->answered)
		forget_attempts(port, transaction);
	else
		give_up_attempts(port, transaction);
	if (transaction->asynchronous)
		deadline_clear(&port->deadlines, &transaction->timer);
	uncount(port, transaction);
	flow_leave(port, transaction);
	transaction->state = TRANSACTION_DONE;
	transaction->error = error;
	if (!transaction->sending)
		deliver(transaction);
}

/* --- answers -------------------------------------------------------------------- */

static bool is_response(const uint8_t *mad)
{
	/* a BMMAD says so in its attribute modifier, too (IBA 16.2.2) */
	return mad[3] & IB_MAD_RESPONSE || mad[3] == IB_MAD_METHOD_TRAP_REPRESS ||
	       (mad[1] == IB_BOARD_MGMT_CLASS && mad[23] & 1);
}

static uint16_t status_of(const uint8_t *mad)
{
	uint16_t status = get16(mad + 4);

	return mad[1] == IB_SMI_DIRECT_CLASS ? (uint16_t)(status & ~DIRECTION) : status;
}

/* Answered BUSY: asks again after a pause, if there is time for one. */
static bool come_back_later(struct ibmad_port *port, struct transaction *transaction,
			    int64_t now)
{
	int64_t pause;

	if (!transaction->repeatable)
		return false;
	if (transaction->interval < BUSY_PAUSE_US)
		transaction->interval = BUSY_PAUSE_US;
	/* up to half as long again: those who ask at once should not come back at once */
	pause = transaction->interval + transaction->interval * (int64_t)(mad_trid() % 16) / 32;
	if (now + pause >= transaction->end)
		return false;
	forget_attempts(port, transaction);
	uncount(port, transaction);
	window_lost(&port->windows[transaction_window(transaction)]);
	transaction->recalled = true;
	transaction->overdue = false;
	set_timer(port, transaction, now + pause);
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
		follow(port, transaction, umad_get_mad(umad), length);
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

/* Returns whether it has kept umad. */
static bool answered(struct ibmad_port *port, struct transaction *transaction,
		     const struct attempt *attempt, uint8_t *umad, int length, bool heap)
{
	uint16_t status = status_of(umad_get_mad(umad));
	bool redirects = status == IB_MAD_STS_REDIRECT || redirect_awaits_path(transaction);
	int64_t now = clock_us();

	if (transaction->asynchronous && status & IB_MAD_STS_BUSY)
		engine_count_busy(transaction->owner.engine);
	if (status & IB_MAD_STS_BUSY && come_back_later(port, transaction, now))
		return false;
	transaction->rtt = ((uint32_t)now - attempt->sent) & 0x3fffffff;
	rtt_sample(rtt_of(port, transaction), transaction->rtt);
	judge_loss(port, transaction, attempt);
	uncount(port, transaction);
	if (redirects) {
		forget_attempts(port, transaction);
		redirected(port, transaction, umad, length);
		return false;
	}
	if (take_answer(transaction, umad, length, heap))
		return false;
	transaction->status = status;
	transaction_finish(port, transaction, status ? EIO : 0);
	return heap;
}

bool transaction_receive(struct ibmad_port *port, uint8_t *umad, int length, bool heap)
{
	const struct ib_user_mad *header = (const struct ib_user_mad *)(const void *)umad;
	const uint8_t *mad = umad_get_mad(umad);
	struct attempt *attempt = length >= 24 ? find_attempt(port, mad) : NULL;

	if (!header->status && attempt && length >= 36 && is_response(mad))
		return answered(port, transaction_of(attempt), attempt, umad, length, heap);
	if (header->status && attempt && !is_response(mad))
		attempt_timed_out(port, transaction_of(attempt), attempt);
	else
		request_receive(port, umad, length);
	return false;
}

void transaction_receive_failed(struct ibmad_port *port, const uint8_t *umad, int error)
{
	const uint8_t *mad = umad + umad_size();
	struct attempt *attempt = find_attempt(port, mad);

	if (attempt && is_response(mad))
		transaction_finish(port, transaction_of(attempt), error);
	else
		port->dropped++;
}
