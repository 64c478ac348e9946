/* SPDX-License-Identifier: BSD-2-Clause */

/* A transaction and its events, without a device and with a separate clock. */

#include "engine/transaction.h"
#include "fake_device.h"
#include "late_responses.h"
#include "mad/layout.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#define MS           INT64_C(1000)
#define TIMEOUT_MS   1000
#define BUDGET       (TIMEOUT_MS * MS)
/* A response is late after this time before the first response is known, the SA's after that.
 */
#define LATE         (100 * MS)
#define LATE_SA      (500 * MS)
#define LOOK         (2 * MS) /* that time is looked at again so often */
#define REPORT_AFTER ((20 + TIMEOUT_MS / 7) * MS)
#define TID          0x1234
#define VENDOR_CLASS 0x0a
#define LONG         600
#define LONG_MS      60000
/* The slots of the second transmission and the third one, while the first is in flight. */
#define SECOND       2
#define THIRD        1

#define IN_FLIGHT(slot) (1u << (slot))

/* What flow control was told of the latest response; the linker wraps the call. */
static struct {
	uint32_t rtt_us;
	bool lost;
} told;

void __real_flow_response(struct flow_control *flow, struct flow_account *account,
			  uint32_t rtt_us, bool lost, int64_t now);
void __wrap_flow_response(struct flow_control *flow, struct flow_account *account,
			  uint32_t rtt_us, bool lost, int64_t now);

void __wrap_flow_response(struct flow_control *flow, struct flow_account *account,
			  uint32_t rtt_us, bool lost, int64_t now)
{
	told.rtt_us = rtt_us;
	told.lost = lost;
	__real_flow_response(flow, account, rtt_us, lost, now);
}

static struct transactions all;
static struct transaction request;
static struct flow_path node; /* its destination */
static struct packet packet;
static int64_t now;

/* The bytes of the request's buffer, and the first 36 bytes of a response. */
#define REQUEST_BYTE  0x11
#define RESPONSE_BYTE 0x77

static void make(struct transaction *transaction, uint8_t mgmt_class, uint8_t method,
		 int length, int attempts)
{
	uint8_t *mad;

	memset(transaction, 0, sizeof(*transaction));
	transaction->length = length;
	if (length > IB_MAD_SIZE)
		transaction->heap = calloc(1, umad_size() + (size_t)length);
	transaction->header_size = (uint8_t)umad_size();
	mad = transaction_mad(transaction);
	memset(mad + 24, REQUEST_BYTE, (size_t)length - 24);
	mad[1] = mgmt_class;
	mad[3] = method;
	put32(mad, TID_OFFS, TID);
	transaction_init(transaction, TIMEOUT_MS, attempts);
	if (transaction == &request)
		transaction->account.path = &node;
}

/* A request that is retransmitted when its response is late. */
static void make_get(int attempts)
{
	make(&request, IB_PERFORMANCE_CLASS, IB_MAD_METHOD_GET, IB_MAD_SIZE, attempts);
}

/* A request that is retransmitted only in the next attempt. */
static void make_set(int attempts)
{
	make(&request, IB_PERFORMANCE_CLASS, IB_MAD_METHOD_SET, IB_MAD_SIZE, attempts);
}

static void make_long(void)
{
	make(&request, IB_SA_CLASS, IB_MAD_METHOD_GET_TABLE, LONG, 3);
}

static int setup(void **state)
{
	(void)state;
	set_late_after(0);
	memset(&all, 0, sizeof(all));
	transactions_init(&all);
	outstanding_init(&all.outstanding);
	flow_path_init(&node);
	now = 5000 * BUDGET;
	memset(&packet, 0, sizeof(packet));
	make_get(3);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	device_fail_malloc(0);
	transaction_fini(&request);
	table_free(&all.outstanding.table);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* --- events --------------------------------------------------------------------- */

#define assert_action(call, action) assert_int_equal(call, TRANSACTION_##action)

static enum transaction_action start(void)
{
	request.news = 0;
	return transaction_start(&all, &request, &packet, now);
}

static enum transaction_action written(int error)
{
	request.news = 0;
	return transaction_written(&all, &request, &packet, error, now);
}

static enum transaction_action timer_at(int64_t at)
{
	now = at;
	request.news = 0;
	return transaction_timer(&all, &request, now);
}

static enum transaction_action cancel(void)
{
	return transaction_cancel(&all, &request, ECANCELED);
}

static struct transmission *live(unsigned slot)
{
	return &request.transmissions.live[slot];
}

static enum transaction_action kernel_times_out(unsigned slot)
{
	assert_true(request.transmissions.expected & IN_FLIGHT(slot));
	request.news = 0;
	return transaction_kernel_timeout(&all, &request, live(slot), now);
}

static uint8_t umad_of_response[PACKET_SIZE];

/* The response to the transmission with that slot. */
static uint8_t *response(unsigned slot, uint16_t status)
{
	uint8_t *mad = umad_get_mad(umad_of_response);

	memset(umad_of_response, RESPONSE_BYTE, sizeof(umad_of_response));
	mad[1] = request.transmissions.mgmt_class;
	mad[3] = IB_MAD_METHOD_GET_RESPONSE;
	put16(mad, STATUS_OFFS, status);
	put32(mad, TID_OFFS, live(slot)->tid);
	return umad_of_response;
}

static enum transaction_action come(unsigned slot, uint8_t *umad, int length)
{
	bool taken = false;
	enum transaction_action action;

	assert_true(request.transmissions.expected & IN_FLIGHT(slot));
	request.news = 0;
	action = transaction_response(&all, &request, live(slot), umad, length, &taken, now);
	assert_false(taken);
	return action;
}

static enum transaction_action respond(unsigned slot, uint16_t status)
{
	return come(slot, response(slot, status), IB_MAD_SIZE);
}

/* The same in a buffer that the transaction may take over. */
static enum transaction_action respond_allocated(unsigned slot, uint8_t **umad)
{
	enum transaction_action action;
	bool taken = true;

	*umad = malloc(PACKET_SIZE);
	memcpy(*umad, response(slot, 0), PACKET_SIZE);
	action = transaction_response(&all, &request, live(slot), *umad, IB_MAD_SIZE, &taken,
				      now);
	assert_true(taken);
	return action;
}

static enum transaction_action redirect_to(unsigned slot, int lid, uint8_t gid)
{
	uint8_t *umad = response(slot, IB_MAD_STS_REDIRECT), gids[16] = {gid};
	uint8_t *info = (uint8_t *)umad_get_mad(umad) + IB_PC_DATA_OFFS;

	memset(info, 0, IB_MAD_SIZE - IB_PC_DATA_OFFS);
	mad_set_field(info, 0, IB_CPI_REDIRECT_LID_F, (uint32_t)lid);
	mad_set_array(info, 0, IB_CPI_REDIRECT_GID_F, gids);
	return come(slot, umad, IB_MAD_SIZE);
}

static void transmit(void)
{
	assert_action(start(), SEND);
	assert_action(written(0), WAIT);
}

/* Time passes until it is to be sent again. Otherwise it waits for the end of the attempt. */
static enum transaction_action be_late(void)
{
	enum transaction_action action;

	do {
		action = timer_at(request.timer.at);
	} while (action == TRANSACTION_WAIT && request.timer.at < request.end);
	return action;
}

/* It must be retransmitted so long after its latest transmission, not before. */
static void assert_again_after(int64_t us)
{
	int64_t sent = now;

	while (timer_at(request.timer.at) != TRANSACTION_AGAIN)
		assert_true(request.timer.at > now && now < sent + us);
	assert_true(now == sent + us);
}

/* The first response is late, and the retransmission is being written. */
static void transmit_and_begin_again(void)
{
	transmit();
	assert_action(be_late(), AGAIN);
	assert_action(start(), SEND);
}

static void transmit_twice(void)
{
	transmit_and_begin_again();
	assert_action(written(0), WAIT);
}

/* --- the visible state ---------------------------------------------------------- */

static void assert_in_flight(unsigned slots)
{
	unsigned count = 0;

	assert_int_equal(request.transmissions.expected, slots);
	for (unsigned i = 0; i < LIVE_TRANSMISSIONS; i++) {
		if (!(slots & 1u << i))
			continue;
		assert_ptr_equal(transmission_find(&all.outstanding, live(i)->tid,
						   request.transmissions.mgmt_class),
				 live(i));
		count++;
	}
	assert_int_equal(all.outstanding.table.count, count);
}

static void assert_waits_until(int64_t at)
{
	assert_int_equal(request.state, TRANSACTION_IN_FLIGHT);
	assert_true(request.timer.at == at);
}

/* So many requests are in flight in its window. */
static unsigned in_window(void)
{
	return all.flow.windows[flow_window_of(&request.account)].in_flight;
}

/* It counts as in flight so often: in its window, and at its destination. */
static void assert_counted(unsigned window, unsigned at_node)
{
	assert_int_equal(in_window(), window);
	assert_int_equal(node.in_flight, at_node);
}

static void assert_done(int error)
{
	assert_int_equal(request.state, TRANSACTION_DONE);
	assert_int_equal(request.error, error);
	assert_in_flight(0);
	assert_counted(0, 0);
}

/* A response to the next request is late after this time. */
static uint32_t late_after(void)
{
	return flow_late_after(&all.flow, &request.account);
}

static uint32_t written_tid(void)
{
	return get32(umad_get_mad(packet.umad), TID_OFFS);
}

static void assert_buffer_is(uint8_t byte)
{
	assert_int_equal(transaction_mad(&request)[30], byte);
}

/* --- a new transaction ---------------------------------------------------------- */

static bool is_repeatable(uint8_t mgmt_class, uint8_t method, int length)
{
	transaction_fini(&request);
	make(&request, mgmt_class, method, length, 1);
	return request.repeatable;
}

static void gets_of_known_classes_alone_are_repeatable(void **state)
{
	(void)state;
	assert_true(is_repeatable(IB_SMI_CLASS, IB_MAD_METHOD_GET, IB_MAD_SIZE));
	assert_true(is_repeatable(IB_SMI_DIRECT_CLASS, IB_MAD_METHOD_GET, IB_MAD_SIZE));
	assert_true(is_repeatable(IB_SA_CLASS, IB_MAD_METHOD_GET, IB_MAD_SIZE));
	assert_true(is_repeatable(IB_PERFORMANCE_CLASS, IB_MAD_METHOD_GET, IB_MAD_SIZE));
	assert_true(is_repeatable(IB_CC_CLASS, IB_MAD_METHOD_GET, IB_MAD_SIZE));
	assert_false(is_repeatable(IB_SMI_CLASS, IB_MAD_METHOD_SET, IB_MAD_SIZE));
	assert_false(is_repeatable(VENDOR_CLASS, IB_MAD_METHOD_GET, IB_MAD_SIZE));
	assert_false(is_repeatable(IB_SA_CLASS, IB_MAD_METHOD_GET, LONG));
}

static void a_negative_timeout_is_half_of_the_longest(void **state)
{
	(void)state;
	transaction_init(&request, -1, INT_MAX);
	assert_int_equal(request.timeout_ms, INT_MAX / 2);
	assert_int_equal(request.left, UINT16_MAX);
	transmit();
	assert_true(request.end == now + INT_MAX / 2 * MS);
}

/* The scheduler queues it by its class. */
static void the_class_of_a_request_is_known_before_it_is_sent(void **state)
{
	(void)state;
	assert_int_equal(request.transmissions.mgmt_class, IB_PERFORMANCE_CLASS);
}

static void memory_is_freed_once(void **state)
{
	(void)state;
	make_long();
	assert_action(start(), SEND);
	assert_action(respond(0, 0), NONE);
	assert_action(written(0), COMPLETE);
	transaction_fini(&request);
	transaction_fini(&request);
	make_get(1);
	transmit();
	assert_action(redirect_to(0, 77, 0), AGAIN);
	assert_non_null(request.detour);
	transaction_fini(&request);
	transaction_fini(&request);
}

/* --- start ---------------------------------------------------------------------- */

static void the_first_packet_has_the_own_id_and_the_whole_timeout(void **state)
{
	(void)state;
	assert_action(start(), SEND);
	assert_int_equal(request.state, TRANSACTION_IN_FLIGHT);
	assert_true(request.writing);
	assert_int_equal(request.news, NEWS_TRANSMITTED);
	assert_ptr_equal(packet.transmission, live(0));
	assert_ptr_equal(packet.umad, transaction_buffer(&request));
	assert_int_equal(packet.length, IB_MAD_SIZE);
	assert_int_equal(packet.kernel_ms, TIMEOUT_MS);
	assert_int_equal(packet.attempts_left, 0);
	assert_int_equal(written_tid(), TID);
	assert_in_flight(IN_FLIGHT(0));
}

static void the_kernel_waits_a_millisecond_at_least(void **state)
{
	(void)state;
	transaction_init(&request, 0, 1);
	assert_action(start(), SEND);
	assert_int_equal(packet.kernel_ms, 1);
}

static void an_id_in_flight_is_replaced_in_the_same_class_alone(void **state)
{
	struct transaction smp, other;

	(void)state;
	transmit();
	make(&smp, IB_SMI_CLASS, IB_MAD_METHOD_GET, IB_MAD_SIZE, 1);
	assert_action(transaction_start(&all, &smp, &packet, now), SEND);
	assert_int_equal(written_tid(), TID);
	make(&other, IB_PERFORMANCE_CLASS, IB_MAD_METHOD_GET, IB_MAD_SIZE, 1);
	assert_action(transaction_start(&all, &other, &packet, now), SEND);
	assert_int_not_equal(written_tid(), TID);
	assert_ptr_equal(transmission_find(&all.outstanding, TID, IB_PERFORMANCE_CLASS),
			 live(0));
}

static void a_new_id_is_no_id_in_flight(void **state)
{
	struct transaction other;

	(void)state;
	transmit();
	make(&other, IB_PERFORMANCE_CLASS, IB_MAD_METHOD_GET, IB_MAD_SIZE, 1);
	transmissions_init(&other.transmissions, (uint32_t)mad_trid() + 1,
			   IB_PERFORMANCE_CLASS);
	assert_action(transaction_start(&all, &other, &packet, now), SEND);
	assert_action(be_late(), AGAIN);
	assert_action(start(), SEND);
	assert_int_not_equal(live(SECOND)->tid, other.transmissions.live[0].tid);
}

static uint32_t id_of_another(void)
{
	struct transaction other;
	uint32_t tid;

	make(&other, IB_PERFORMANCE_CLASS, IB_MAD_METHOD_GET, IB_MAD_SIZE, 1);
	assert_action(transaction_start(&all, &other, &packet, now), SEND);
	tid = written_tid();
	transaction_written(&all, &other, &packet, EIO, now);
	return tid;
}

static void a_chosen_id_that_was_given_up_is_withheld(void **state)
{
	(void)state;
	request.transmissions.chosen = true;
	transmit();
	assert_action(cancel(), COMPLETE);
	assert_int_not_equal(id_of_another(), TID);
}

static void each_of_several_chosen_ids_is_withheld(void **state)
{
	(void)state;
	for (uint32_t tid = TID + 2; tid >= TID; tid--) {
		make_get(1);
		transmissions_init(&request.transmissions, tid, IB_PERFORMANCE_CLASS);
		request.transmissions.chosen = true;
		transmit();
		assert_action(cancel(), COMPLETE);
	}
	assert_int_not_equal(id_of_another(), TID);
}

static void an_id_is_withheld_until_so_many_others_were(void **state)
{
	(void)state;
	for (uint32_t i = 0; i <= WITHHELD_TIDS; i++) {
		assert_int_equal(i && id_of_another() == TID, 0);
		make_get(1);
		transmissions_init(&request.transmissions, TID + i, IB_PERFORMANCE_CLASS);
		request.transmissions.chosen = true;
		transmit();
		assert_action(cancel(), COMPLETE);
	}
	assert_int_equal(id_of_another(), TID);
}

static void an_id_that_nobody_chose_is_not_withheld(void **state)
{
	(void)state;
	transmit();
	assert_action(cancel(), COMPLETE);
	assert_int_equal(id_of_another(), TID);
}

static void a_chosen_id_with_a_response_is_not_withheld(void **state)
{
	(void)state;
	request.transmissions.chosen = true;
	transmit();
	assert_action(respond(0, 0), COMPLETE);
	assert_int_equal(id_of_another(), TID);
}

static void a_chosen_id_with_a_late_response_is_withheld(void **state)
{
	(void)state;
	request.transmissions.chosen = true;
	transmit();
	assert_action(kernel_times_out(0), NONE);
	assert_action(cancel(), COMPLETE);
	assert_int_not_equal(id_of_another(), TID);
}

static void a_chosen_id_is_withheld_from_others_between_attempts(void **state)
{
	(void)state;
	request.transmissions.chosen = true;
	transmit();
	assert_action(kernel_times_out(0), NONE);
	assert_int_not_equal(id_of_another(), TID);
	assert_action(be_late(), AGAIN);
	assert_action(start(), SEND);
	assert_int_equal(written_tid(), TID);
}

static void a_chosen_id_that_the_kernel_holds_after_busy_is_withheld(void **state)
{
	(void)state;
	request.transmissions.chosen = true;
	transmit_twice();
	assert_action(respond(SECOND, IB_MAD_STS_BUSY), WAIT);
	assert_in_flight(0);
	assert_int_not_equal(id_of_another(), TID);
}

static void the_count_of_transmissions_does_not_overflow(void **state)
{
	(void)state;
	request.transmissions.count = UINT16_MAX;
	assert_action(start(), SEND);
	assert_int_equal(request.transmissions.count, UINT16_MAX);
}

/* An attempt that ends before its packet could be sent counts as used. */

static void a_packet_whose_attempt_is_over_is_not_sent(void **state)
{
	(void)state;
	transmit();
	assert_action(be_late(), AGAIN);
	now = request.end + MS;
	assert_action(start(), WAIT);
	assert_true(request.timer.at > now);
	assert_int_equal(request.transmissions.count, 1);
}

static void nor_is_one_sent_after_the_last_attempt(void **state)
{
	(void)state;
	make_get(1);
	transmit();
	assert_action(respond(0, IB_MAD_STS_BUSY), WAIT);
	assert_action(timer_at(request.timer.at), AGAIN);
	now = request.end;
	assert_action(start(), COMPLETE);
	assert_done(ETIMEDOUT);
}

/* --- written -------------------------------------------------------------------- */

static void a_get_waits_for_twice_the_time_of_a_late_response(void **state)
{
	int64_t sent = now;

	(void)state;
	assert_action(start(), SEND);
	assert_action(written(0), WAIT);
	assert_false(request.writing);
	assert_int_equal(request.news, 0);
	assert_waits_until(sent + LATE);
	assert_counted(1, 1);
	assert_action(timer_at(request.timer.at), WAIT);
	assert_int_equal(request.news, NEWS_PLACE);
	assert_int_equal(in_window(), 0);
	assert_waits_until(sent + 2 * LATE);
	assert_action(timer_at(request.timer.at), AGAIN);
}

/* Lost is more likely than dead or slow. */
static void to_a_node_that_has_responded_a_late_get_is_sent_again_at_once(void **state)
{
	(void)state;
	make_get(1);
	transmit();
	now += 20 * MS;
	assert_action(respond(0, 0), COMPLETE);
	make_get(3);
	transmit();
	assert_again_after(60 * MS);
	transmit();
	assert_again_after(200 * MS);
}

static void a_response_is_late_at_the_end_of_the_attempt(void **state)
{
	(void)state;
	make(&request, IB_PERFORMANCE_CLASS, IB_MAD_METHOD_GET, IB_MAD_SIZE, 1);
	request.timeout_ms = 50;
	transmit();
	assert_waits_until(now + 50 * MS);
	assert_true(request.end == now + 50 * MS);
}

static void the_sa_has_more_time_than_others(void **state)
{
	(void)state;
	make(&request, IB_SA_CLASS, IB_MAD_METHOD_GET, IB_MAD_SIZE, 1);
	transmit();
	assert_waits_until(now + LATE_SA);
	now += MS;
	assert_action(respond(0, 0), COMPLETE);
	make(&request, IB_SA_CLASS, IB_MAD_METHOD_GET, IB_MAD_SIZE, 1);
	transmit();
	assert_waits_until(now + 50 * MS);
}

static void smps_have_their_own_time(void **state)
{
	(void)state;
	transmit();
	now += 7 * MS;
	assert_action(respond(0, 0), COMPLETE);
	assert_int_equal(late_after(), 21 * MS);
	flow_path_init(&node);
	make(&request, IB_SMI_CLASS, IB_MAD_METHOD_GET, IB_MAD_SIZE, 1);
	transmit();
	assert_waits_until(now + LATE);
}

static void a_write_error_completes_it(void **state)
{
	(void)state;
	assert_action(start(), SEND);
	assert_action(written(EIO), COMPLETE);
	assert_done(EIO);
}

static void a_destination_that_is_not_found_is_tried_again_in_the_next_attempt(void **state)
{
	int64_t end = now + BUDGET;

	(void)state;
	assert_action(start(), SEND);
	now += BUDGET / 2;
	assert_action(written(ETIMEDOUT), WAIT);
	assert_int_equal(request.news, NEWS_PLACE);
	assert_in_flight(0);
	assert_waits_until(end);
	assert_action(timer_at(end), AGAIN);
	assert_action(start(), SEND);
	assert_int_equal(written_tid(), TID);
	assert_int_equal(packet.attempts_left, 2);
	assert_action(written(0), WAIT);
	assert_action(respond(0, 0), COMPLETE);
	assert_done(0);
}

static void a_destination_that_is_never_found_times_out_with_the_last_attempt(void **state)
{
	(void)state;
	for (int attempts = 3; attempts > 1; attempts--) {
		assert_action(start(), SEND);
		assert_action(written(ETIMEDOUT), WAIT);
		assert_action(timer_at(request.end), AGAIN);
	}
	assert_action(start(), SEND);
	assert_action(written(ETIMEDOUT), COMPLETE);
	assert_done(ETIMEDOUT);
}

static void a_set_to_a_destination_that_is_not_found_has_all_its_attempts(void **state)
{
	(void)state;
	make_set(2);
	assert_action(start(), SEND);
	assert_action(written(ETIMEDOUT), WAIT);
	assert_action(timer_at(request.end), AGAIN);
	transmit();
	assert_in_flight(IN_FLIGHT(0));
}

static void attempts_that_pass_while_a_destination_is_not_found_are_over(void **state)
{
	(void)state;
	assert_action(start(), SEND);
	now += 2 * BUDGET + BUDGET / 2;
	assert_action(written(ETIMEDOUT), WAIT);
	assert_action(timer_at(now), AGAIN);
	assert_action(start(), SEND);
	assert_int_equal(packet.attempts_left, 1);
}

static void a_destination_that_is_not_found_is_not_tried_early(void **state)
{
	(void)state;
	assert_action(start(), SEND);
	assert_action(written(ETIMEDOUT), WAIT);
	assert_action(timer_at(request.end), AGAIN);
	transmit();
	while (request.state == TRANSACTION_IN_FLIGHT && request.timer.at < request.end)
		assert_action(timer_at(request.timer.at), WAIT);
}

static void a_refused_id_is_replaced_at_once(void **state)
{
	(void)state;
	assert_action(start(), SEND);
	now += 10 * MS;
	assert_action(written(EINVAL), SEND);
	assert_true(request.news & NEWS_TRANSMITTED);
	assert_int_equal(request.account.copies, 0);
	assert_int_not_equal(written_tid(), TID);
	assert_int_equal(packet.kernel_ms, TIMEOUT_MS - 10);
	assert_in_flight(IN_FLIGHT(0));
	assert_action(written(0), WAIT);
}

static void an_id_that_is_refused_in_a_later_attempt_is_replaced_again(void **state)
{
	(void)state;
	make_set(3);
	assert_action(start(), SEND);
	assert_action(written(EINVAL), SEND);
	assert_action(written(0), WAIT);
	assert_action(kernel_times_out(0), AGAIN);
	assert_action(start(), SEND);
	assert_action(written(EINVAL), SEND);
	assert_action(written(0), WAIT);
	assert_in_flight(IN_FLIGHT(0));
}

static void a_packet_that_is_refused_twice_completes_it(void **state)
{
	(void)state;
	assert_action(start(), SEND);
	assert_action(written(EINVAL), SEND);
	assert_action(written(EINVAL), COMPLETE);
	assert_done(EINVAL);
}

static void a_write_error_of_a_retransmission_leaves_the_first_in_flight(void **state)
{
	(void)state;
	transmit_and_begin_again();
	assert_action(written(ENOMEM), WAIT);
	assert_in_flight(IN_FLIGHT(0));
	assert_waits_until(now + LATE);
	assert_action(respond(0, 0), COMPLETE);
	assert_done(0);
}

static void a_refused_retransmission_waits_for_the_response_to_the_first(void **state)
{
	(void)state;
	transmit_and_begin_again();
	assert_action(written(EINVAL), WAIT);
	assert_in_flight(IN_FLIGHT(0));
}

static void a_device_that_is_gone_completes_it(void **state)
{
	(void)state;
	transmit_and_begin_again();
	assert_action(written(ENODEV), COMPLETE);
	assert_done(ENODEV);
}

/* --- timer ---------------------------------------------------------------------- */

static void a_late_get_is_retransmitted_with_a_new_id(void **state)
{
	(void)state;
	transmit();
	assert_action(be_late(), AGAIN);
	assert_int_equal(request.state, TRANSACTION_READY);
	assert_int_equal(request.news, NEWS_PLACE);
	assert_in_flight(IN_FLIGHT(0));
	assert_action(start(), SEND);
	assert_int_equal(request.news, NEWS_TRANSMITTED);
	assert_ptr_equal(packet.transmission, live(SECOND));
	assert_int_not_equal(written_tid(), TID);
	assert_int_equal(packet.attempts_left, 0);
	assert_in_flight(IN_FLIGHT(0) | IN_FLIGHT(SECOND));
}

/* The round trips of other requests become known. */
static void what_becomes_known_meanwhile_shortens_the_time(void **state)
{
	struct transaction other;
	struct packet others;
	int64_t sent = now;
	bool taken = false;

	(void)state;
	make(&other, IB_PERFORMANCE_CLASS, IB_MAD_METHOD_GET, IB_MAD_SIZE, 1);
	assert_action(transaction_start(&all, &other, &others, now), SEND);
	assert_action(transaction_written(&all, &other, &others, 0, now), WAIT);
	transmit();
	assert_waits_until(sent + LOOK);
	assert_action(timer_at(request.timer.at), WAIT);
	assert_int_equal(request.news, 0);
	assert_waits_until(sent + 2 * LOOK);
	now = sent + 3 * MS;
	assert_action(transaction_response(&all, &other, others.transmission, response(0, 0),
					   IB_MAD_SIZE, &taken, now),
		      COMPLETE);
	assert_action(timer_at(request.timer.at), WAIT);
	assert_int_equal(request.news, 0);
	assert_waits_until(sent + 9 * MS);
	assert_action(timer_at(request.timer.at), WAIT);
	assert_int_equal(request.news, NEWS_PLACE);
	assert_waits_until(sent + 18 * MS);
	assert_action(timer_at(request.timer.at), AGAIN);
}

/* The node has responded once, after this time. Others respond after 1 ms. */
static void measure(int64_t us)
{
	struct flow_path other;

	flow_path_init(&other);
	for (unsigned i = 0; i < 10; i++) {
		make_get(1);
		request.account.path = &other;
		transmit();
		now += MS;
		assert_action(respond(0, 0), COMPLETE);
	}
	make_get(1);
	transmit();
	now += us;
	assert_action(respond(0, 0), COMPLETE);
	make_get(3);
}

static void a_destination_that_is_slower_than_others_has_its_time(void **state)
{
	(void)state;
	measure(50 * MS);
	transmit();
	assert_again_after(150 * MS);
}

static void one_slow_node_does_not_make_all_others_slow(void **state)
{
	(void)state;
	measure(500 * MS);
	request.account.path = NULL;
	assert_in_range(late_after(), 3 * MS, 6 * MS);
}

static void intervals_grow_ten_times_up_to_a_fifth_of_a_second_and_then_double(void **state)
{
	const int64_t intervals[] = {8, 80, 200, 400, 800, 1600};

	(void)state;
	set_late_after(4 * MS);
	make_get(6);
	request.timeout_ms = LONG_MS;
	for (unsigned i = 0; i < 6; i++) {
		transmit();
		assert_again_after(intervals[i] * MS);
	}
	transmit();
	assert_action(be_late(), WAIT);
	assert_waits_until(request.end);
}

static void an_interval_of_more_than_a_fifth_of_a_second_is_doubled(void **state)
{
	(void)state;
	set_late_after(150 * MS);
	transmit();
	assert_again_after(300 * MS);
	transmit();
	assert_again_after(600 * MS);
	transmit();
	/* 1200 ms are longer than the attempt */
	assert_waits_until(request.end);
}

static void what_is_late_is_told_before_it_is_retransmitted(void **state)
{
	int64_t sent;

	(void)state;
	set_late_after(4 * MS);
	transmit();
	assert_again_after(8 * MS);
	transmit();
	sent = now;
	assert_counted(1, 1);
	assert_action(timer_at(request.timer.at), WAIT);
	assert_int_equal(request.news, NEWS_PLACE);
	assert_int_equal(in_window(), 0);
	assert_true(now == sent + 4 * MS);
	assert_waits_until(sent + 80 * MS);
}

/* Then at most so many requests are at the node, whatever it does. */
static void with_a_fixed_limit_a_late_request_keeps_its_place(void **state)
{
	(void)state;
	all.flow.path_limit = 1;
	transmit();
	assert_action(be_late(), AGAIN);
	assert_counted(0, 1);
	transmit();
	assert_counted(1, 1);
	assert_action(timer_at(request.end), WAIT);
	assert_counted(0, 1);
	assert_action(kernel_times_out(0), AGAIN);
	assert_counted(0, 1);
	transmit();
	assert_counted(1, 1);
	assert_action(respond(0, 0), COMPLETE);
	assert_done(0);
}

/*
 * The number of transmissions if no response ever comes, with the kernel's reports or without.
 */
static unsigned transmissions_to_nobody(int attempts, uint32_t late_us, bool reports)
{
	enum transaction_action action = TRANSACTION_AGAIN;
	unsigned count;

	setup(NULL);
	make_get(attempts);
	set_late_after(late_us);
	while (action != TRANSACTION_COMPLETE) {
		if (action == TRANSACTION_AGAIN)
			transmit();
		if (reports && request.timer.at > request.end &&
		    request.transmissions.expected & IN_FLIGHT(0))
			action = kernel_times_out(0);
		else
			action = timer_at(request.timer.at);
	}
	assert_done(ETIMEDOUT);
	count = request.transmissions.count;
	table_free(&all.outstanding.table);
	return count;
}

/* 0: as flow control says. */
static const uint32_t times_us[] = {1, 4 * MS, 0, 400 * MS, 2000 * MS};
#define TIMES (sizeof(times_us) / sizeof(times_us[0]))

static void one_attempt_is_one_transmission(void **state)
{
	(void)state;
	for (unsigned i = 0; i < TIMES; i++)
		for (int reports = 0; reports < 2; reports++)
			assert_int_equal(transmissions_to_nobody(1, times_us[i], reports), 1);
}

static void attempts_are_twice_as_many_transmissions_at_most(void **state)
{
	(void)state;
	for (int attempts = 2; attempts < 12; attempts++)
		for (unsigned i = 0; i < TIMES; i++)
			for (int reports = 0; reports < 2; reports++)
				assert_in_range(
					transmissions_to_nobody(attempts, times_us[i], reports),
					attempts, 2 * attempts);
	/* early ones are all used up where nodes respond quickly */
	assert_int_equal(transmissions_to_nobody(3, 4 * MS, false), 6);
	assert_int_equal(transmissions_to_nobody(3, 2000 * MS, false), 3);
}

static void the_interval_stops_growing_before_it_overflows(void **state)
{
	int64_t sent, interval = 0;

	(void)state;
	make_get(40);
	request.timeout_ms = INT_MAX / 2;
	for (unsigned i = 0; i < 40; i++) {
		transmit();
		sent = now;
		assert_action(be_late(), AGAIN);
		assert_true(now - sent >= interval);
		interval = now - sent;
	}
	assert_in_range(interval, UINT32_MAX / 4, UINT32_MAX);
}

static void the_kernel_waits_four_intervals_for_a_retransmission(void **state)
{
	(void)state;
	transmit();
	assert_again_after(200 * MS);
	assert_action(start(), SEND);
	assert_int_equal(packet.kernel_ms, 801);
}

static void the_kernel_waits_a_tenth_of_a_second_at_least(void **state)
{
	(void)state;
	set_late_after(4 * MS);
	transmit();
	assert_action(be_late(), AGAIN);
	assert_action(start(), SEND);
	assert_int_equal(packet.kernel_ms, 100);
}

static void the_kernel_waits_no_longer_than_the_request(void **state)
{
	(void)state;
	set_late_after(450 * MS);
	make_get(2);
	transmit();
	assert_action(timer_at(request.end - 50 * MS), AGAIN);
	assert_action(start(), SEND);
	assert_int_equal(packet.kernel_ms, 50 + TIMEOUT_MS);
}

static void the_oldest_retransmission_is_replaced(void **state)
{
	uint32_t tid;

	(void)state;
	set_late_after(4 * MS);
	transmit_twice();
	tid = live(SECOND)->tid;
	assert_action(be_late(), AGAIN);
	transmit();
	assert_in_flight(IN_FLIGHT(0) | IN_FLIGHT(SECOND) | IN_FLIGHT(THIRD));
	assert_int_equal(live(SECOND)->tid, tid);
	assert_action(be_late(), AGAIN);
	transmit();
	assert_in_flight(IN_FLIGHT(0) | IN_FLIGHT(SECOND) | IN_FLIGHT(THIRD));
	assert_null(transmission_find(&all.outstanding, tid, IB_PERFORMANCE_CLASS));
}

static void a_late_set_waits_for_the_end_of_the_attempt(void **state)
{
	int64_t began = now;

	(void)state;
	make_set(3);
	transmit();
	assert_waits_until(began + LATE);
	assert_action(timer_at(request.timer.at), WAIT);
	assert_int_equal(request.news, NEWS_PLACE);
	assert_counted(0, 0);
	assert_waits_until(began + BUDGET);
}

static void after_an_attempt_it_awaits_the_kernels_report(void **state)
{
	(void)state;
	transmit();
	assert_action(timer_at(request.end), WAIT);
	assert_int_equal(request.news, NEWS_PLACE);
	assert_waits_until(now + REPORT_AFTER);
}

static void a_report_that_is_due_has_another_millisecond(void **state)
{
	(void)state;
	transmit();
	assert_action(timer_at(request.end + REPORT_AFTER), WAIT);
	assert_waits_until(now + MS);
}

static void with_the_report_the_next_attempt_has_the_own_id(void **state)
{
	(void)state;
	transmit();
	assert_action(timer_at(request.end), WAIT);
	now += MS;
	assert_action(kernel_times_out(0), AGAIN);
	assert_int_equal(request.left, 2);
	assert_in_flight(0);
	assert_action(start(), SEND);
	assert_int_equal(written_tid(), TID);
	assert_int_equal(packet.kernel_ms, TIMEOUT_MS);
	assert_int_equal(packet.attempts_left, 2);
	assert_true(request.end == now + BUDGET);
	assert_action(written(0), WAIT);
	assert_again_after(2 * LATE);
}

static void without_a_report_the_next_attempt_has_a_new_id(void **state)
{
	(void)state;
	transmit();
	assert_action(timer_at(request.end), WAIT);
	assert_action(timer_at(request.timer.at), AGAIN);
	assert_int_equal(request.left, 2);
	assert_action(start(), SEND);
	assert_int_not_equal(written_tid(), TID);
	assert_in_flight(IN_FLIGHT(0) | IN_FLIGHT(SECOND));
}

static void a_retransmission_in_the_next_attempt_is_no_new_attempt(void **state)
{
	(void)state;
	transmit();
	assert_action(kernel_times_out(0), NONE);
	assert_action(timer_at(request.end), AGAIN);
	assert_action(start(), SEND);
	assert_int_equal(packet.attempts_left, 2);
	assert_action(written(0), WAIT);
	assert_again_after(2 * LATE);
	assert_action(start(), SEND);
	assert_int_equal(packet.attempts_left, 0);
}

static void the_next_attempt_awaits_the_report_too(void **state)
{
	(void)state;
	transmit();
	assert_action(timer_at(request.end), WAIT);
	assert_action(timer_at(request.timer.at), AGAIN);
	transmit();
	assert_action(timer_at(request.end), WAIT);
	assert_waits_until(request.end + REPORT_AFTER);
}

static void a_get_does_not_wait_after_its_last_attempt(void **state)
{
	(void)state;
	make_get(1);
	transmit();
	assert_action(timer_at(request.end), COMPLETE);
	assert_done(ETIMEDOUT);
}

static void a_get_waits_before_its_last_attempt(void **state)
{
	(void)state;
	make_get(2);
	transmit();
	assert_action(timer_at(request.end), WAIT);
	assert_waits_until(request.end + REPORT_AFTER);
}

static void a_set_awaits_the_report_after_its_last_attempt(void **state)
{
	(void)state;
	make_set(1);
	transmit();
	assert_action(timer_at(request.end), WAIT);
	assert_in_flight(IN_FLIGHT(0));
	assert_action(timer_at(request.timer.at), COMPLETE);
	assert_done(ETIMEDOUT);
}

static void a_timer_during_a_write_is_due_again_in_a_millisecond(void **state)
{
	(void)state;
	assert_action(start(), SEND);
	assert_action(timer_at(request.end), WAIT);
	assert_int_equal(request.news, NEWS_PLACE);
	assert_waits_until(now + MS);
	assert_true(request.writing);
}

static void a_timer_means_nothing_unless_it_is_in_flight(void **state)
{
	(void)state;
	assert_action(timer_at(now), NONE);
	transmit();
	assert_action(cancel(), COMPLETE);
	assert_action(timer_at(now + BUDGET), NONE);
	assert_done(ECANCELED);
}

/* --- the kernel's timeout ------------------------------------------------------- */

static void a_sets_attempt_ends_with_the_kernels_timeout(void **state)
{
	(void)state;
	make_set(2);
	transmit();
	now = request.end - MS;
	assert_action(kernel_times_out(0), AGAIN);
	assert_int_equal(request.news, NEWS_PLACE);
	assert_int_equal(request.left, 1);
	transmit();
	assert_action(kernel_times_out(0), COMPLETE);
	assert_done(ETIMEDOUT);
}

static void a_get_goes_on_with_its_timer_after_the_kernels_timeout(void **state)
{
	(void)state;
	transmit();
	assert_action(kernel_times_out(0), NONE);
	assert_in_flight(0);
	assert_action(be_late(), AGAIN);
	assert_action(start(), SEND);
	assert_int_equal(written_tid(), TID);
	assert_int_equal(packet.kernel_ms, TIMEOUT_MS - 2 * LATE / MS);
}

static void a_get_goes_on_at_once_if_the_kernels_timeout_ends_its_attempt(void **state)
{
	(void)state;
	transmit();
	now = request.end - 1;
	assert_action(transaction_kernel_timeout(&all, &request, live(0), now), NONE);
	make_get(3);
	table_free(&all.outstanding.table);
	transmit();
	now = request.end;
	assert_action(kernel_times_out(0), AGAIN);
	assert_int_equal(request.left, 2);
}

static void the_kernels_timeout_of_a_retransmission_changes_nothing(void **state)
{
	(void)state;
	transmit_twice();
	now = request.end + MS;
	assert_action(kernel_times_out(SECOND), NONE);
	assert_in_flight(IN_FLIGHT(0));
	assert_int_equal(request.left, 3);
}

static void a_set_goes_on_after_the_kernels_timeout_of_an_earlier_attempt(void **state)
{
	(void)state;
	make_set(3);
	transmit();
	assert_action(timer_at(request.end), WAIT);
	assert_action(timer_at(request.timer.at), AGAIN);
	transmit();
	assert_in_flight(IN_FLIGHT(0) | IN_FLIGHT(SECOND));
	assert_action(kernel_times_out(0), NONE);
	assert_in_flight(IN_FLIGHT(SECOND));
	assert_action(kernel_times_out(SECOND), AGAIN);
}

static void the_kernels_timeout_during_a_write_waits_for_the_write(void **state)
{
	(void)state;
	make_set(2);
	assert_action(start(), SEND);
	now += BUDGET;
	assert_action(kernel_times_out(0), WAIT);
	assert_waits_until(now);
	assert_action(written(0), WAIT);
	assert_waits_until(now);
	assert_action(timer_at(now), AGAIN);
	assert_int_equal(request.left, 1);
}

static void the_kernels_timeout_leaves_what_is_ready(void **state)
{
	(void)state;
	transmit();
	assert_action(be_late(), AGAIN);
	assert_action(kernel_times_out(0), NONE);
	assert_int_equal(request.state, TRANSACTION_READY);
	assert_in_flight(0);
}

/* --- responses ------------------------------------------------------------------ */

static void a_response_completes_it(void **state)
{
	(void)state;
	transmit();
	now += 30 * MS;
	assert_action(respond(0, 0), COMPLETE);
	assert_done(0);
	assert_int_equal(request.news, NEWS_PLACE);
	assert_true(request.responded);
	assert_int_equal(request.length, IB_MAD_SIZE);
	assert_int_equal(request.status, 0);
	assert_int_equal(request.transmissions.rtt_us, 30 * MS);
	assert_int_equal(told.rtt_us, 30 * MS);
	assert_int_equal(late_after(), 90 * MS);
	assert_buffer_is(RESPONSE_BYTE);
}

static void a_short_response_is_followed_by_zeros(void **state)
{
	(void)state;
	transmit();
	assert_action(come(0, response(0, 0), 36), COMPLETE);
	assert_int_equal(request.length, 36);
	assert_int_equal(transaction_mad(&request)[35], RESPONSE_BYTE);
	for (int i = 36; i < IB_MAD_SIZE; i++)
		assert_int_equal(transaction_mad(&request)[i], 0);
}

static void an_allocated_response_is_kept(void **state)
{
	uint8_t *umad;

	(void)state;
	transmit();
	assert_action(respond_allocated(0, &umad), COMPLETE);
	assert_ptr_equal(transaction_buffer(&request), umad);
}

static void an_allocated_busy_response_is_not_taken(void **state)
{
	bool taken = true;

	(void)state;
	transmit();
	assert_action(transaction_response(&all, &request, live(0),
					   response(0, IB_MAD_STS_BUSY), IB_MAD_SIZE, &taken,
					   now),
		      WAIT);
	assert_false(taken);
}

static void a_response_with_a_status_is_an_error(void **state)
{
	(void)state;
	transmit();
	assert_action(respond(0, 0x1c), COMPLETE);
	assert_done(EIO);
	assert_int_equal(request.status, 0x1c);
	assert_true(request.responded);
}

static void the_direction_is_no_status(void **state)
{
	(void)state;
	make(&request, IB_SMI_DIRECT_CLASS, IB_MAD_METHOD_GET, IB_MAD_SIZE, 1);
	transmit();
	assert_action(respond(0, 0x8000), COMPLETE);
	assert_done(0);
}

static void the_status_of_a_redirection_is_an_error_of_an_smp(void **state)
{
	(void)state;
	make(&request, IB_SMI_CLASS, IB_MAD_METHOD_GET, IB_MAD_SIZE, 1);
	transmit();
	assert_action(respond(0, IB_MAD_STS_REDIRECT), COMPLETE);
	assert_done(EIO);
}

static void a_response_to_a_retransmission_tells_of_a_loss(void **state)
{
	(void)state;
	transmit_twice();
	assert_action(respond(SECOND, 0), COMPLETE);
	assert_true(told.lost);
	assert_done(0);
}

static void a_response_to_the_first_tells_of_no_loss(void **state)
{
	(void)state;
	transmit_twice();
	assert_action(respond(0, 0), COMPLETE);
	assert_false(told.lost);
	assert_done(0);
}

static void no_time_is_measured_if_an_id_was_sent_twice(void **state)
{
	(void)state;
	transmit();
	assert_action(kernel_times_out(0), NONE);
	assert_action(be_late(), AGAIN);
	transmit();
	now += MS;
	assert_action(respond(0, 0), COMPLETE);
	assert_int_equal(request.transmissions.rtt_us, MS);
	assert_int_equal(told.rtt_us, 0);
}

static void the_time_of_the_first_is_measured_after_the_timeout_of_a_retransmission(
	void **state)
{
	(void)state;
	transmit_twice();
	assert_action(kernel_times_out(SECOND), NONE);
	assert_action(respond(0, 0), COMPLETE);
	assert_int_equal(told.rtt_us, 2 * LATE);
}

static void the_time_is_measured_if_a_new_id_was_sent_once(void **state)
{
	(void)state;
	make_set(2);
	transmit();
	assert_action(kernel_times_out(0), AGAIN);
	assert_action(start(), SEND);
	assert_action(written(EINVAL), SEND);
	assert_int_not_equal(written_tid(), TID);
	assert_action(written(0), WAIT);
	now += MS;
	assert_action(respond(0, 0), COMPLETE);
	assert_int_equal(told.rtt_us, MS);
	assert_int_equal(request.transmissions.rtt_us, MS);
}

static void a_round_trip_within_a_microsecond_is_known(void **state)
{
	(void)state;
	transmit();
	assert_action(respond(0, 0), COMPLETE);
	assert_int_equal(told.rtt_us, 1);
}

static void a_response_completes_what_is_to_be_retransmitted(void **state)
{
	(void)state;
	transmit();
	assert_action(be_late(), AGAIN);
	assert_action(respond(0, 0), COMPLETE);
	assert_done(0);
}

static void a_response_completes_what_awaits_the_kernels_report(void **state)
{
	(void)state;
	transmit();
	assert_action(timer_at(request.end), WAIT);
	assert_action(respond(0, 0), COMPLETE);
	assert_done(0);
}

/* --- responses while a thread writes -------------------------------------------- */

static void a_response_during_a_write_leaves_the_packet_alone(void **state)
{
	(void)state;
	assert_action(start(), SEND);
	assert_action(respond(0, 0), NONE);
	assert_done(0);
	assert_int_equal(((uint8_t *)umad_get_mad(packet.umad))[30], REQUEST_BYTE);
	assert_action(written(0), COMPLETE);
	assert_buffer_is(RESPONSE_BYTE);
}

static void an_allocated_response_during_a_write_is_kept(void **state)
{
	uint8_t *umad;

	(void)state;
	assert_action(start(), SEND);
	assert_action(respond_allocated(0, &umad), NONE);
	assert_ptr_not_equal(packet.umad, umad);
	assert_action(written(0), COMPLETE);
	assert_ptr_equal(transaction_buffer(&request), umad);
}

static void without_memory_a_response_during_a_write_is_lost(void **state)
{
	(void)state;
	assert_action(start(), SEND);
	device_fail_malloc(1);
	assert_action(respond(0, 0), NONE);
	assert_int_equal(request.state, TRANSACTION_IN_FLIGHT);
	assert_in_flight(0);
	assert_action(written(0), WAIT);
	assert_action(be_late(), AGAIN);
}

static void the_buffer_of_an_overtaken_long_request_stays(void **state)
{
	uint8_t *written_umad;

	(void)state;
	make_long();
	assert_action(start(), SEND);
	written_umad = packet.umad;
	assert_action(respond(0, 0), NONE);
	assert_int_equal(((uint8_t *)umad_get_mad(written_umad))[LONG - 1], REQUEST_BYTE);
	assert_action(written(0), COMPLETE);
	assert_done(0);
	assert_buffer_is(RESPONSE_BYTE);
	assert_int_equal(request.length, IB_MAD_SIZE);
}

static void a_response_takes_the_place_of_a_long_request(void **state)
{
	(void)state;
	make_long();
	transmit();
	assert_action(respond(0, 0), COMPLETE);
	assert_null(request.heap);
	assert_buffer_is(RESPONSE_BYTE);
}

static void a_response_to_a_refused_packet_is_anothers(void **state)
{
	(void)state;
	assert_action(start(), SEND);
	assert_action(respond(0, 0x1c), NONE);
	assert_action(written(EINVAL), SEND);
	assert_int_equal(request.state, TRANSACTION_IN_FLIGHT);
	assert_int_equal(request.length, IB_MAD_SIZE);
	assert_false(request.responded);
	assert_int_equal(request.status, 0);
	assert_buffer_is(REQUEST_BYTE);
	assert_int_not_equal(written_tid(), TID);
	assert_in_flight(IN_FLIGHT(0));
}

static void a_short_response_to_a_refused_packet_leaves_its_length(void **state)
{
	(void)state;
	assert_action(start(), SEND);
	assert_action(come(0, response(0, 0), 60), NONE);
	assert_action(written(EINVAL), SEND);
	assert_int_equal(packet.length, IB_MAD_SIZE);
	assert_buffer_is(REQUEST_BYTE);
}

static void a_packet_with_another_write_error_has_no_response(void **state)
{
	(void)state;
	assert_action(start(), SEND);
	assert_action(respond(0, 0), NONE);
	assert_action(written(EIO), COMPLETE);
	assert_done(EIO);
	assert_false(request.responded);
}

static void a_long_request_that_never_left_has_no_response(void **state)
{
	(void)state;
	make_long();
	assert_action(start(), SEND);
	assert_action(respond(0, 0), NONE);
	assert_action(written(EINVAL), COMPLETE);
	assert_done(EINVAL);
	assert_false(request.responded);
}

static void a_refused_long_request_keeps_its_buffer_for_the_next_id(void **state)
{
	const uint8_t *buffer;

	(void)state;
	make_long();
	buffer = request.heap;
	assert_action(start(), SEND);
	assert_action(written(EINVAL), SEND);
	assert_ptr_equal(packet.umad, buffer);
	assert_int_equal(packet.length, LONG);
	assert_int_not_equal(written_tid(), TID);
}

static void a_response_to_the_first_outlives_a_write_error_of_the_second(void **state)
{
	(void)state;
	transmit_and_begin_again();
	assert_action(respond(0, 0), NONE);
	assert_action(written(ENOMEM), COMPLETE);
	assert_done(0);
	assert_buffer_is(RESPONSE_BYTE);
}

/* --- BUSY ----------------------------------------------------------------------- */

#define PAUSE (10 * MS) /* the first one */

static void assert_pauses(int64_t pause)
{
	assert_int_equal(request.state, TRANSACTION_IN_FLIGHT);
	assert_true(request.timer.at >= now + pause);
	assert_true(request.timer.at < now + pause + pause / 2);
}

static void after_busy_it_pauses(void **state)
{
	(void)state;
	transmit();
	assert_action(respond(0, IB_MAD_STS_BUSY), WAIT);
	assert_int_equal(request.news, NEWS_BUSY | NEWS_PLACE);
	assert_in_flight(0);
	assert_pauses(PAUSE);
	assert_action(timer_at(request.timer.at), AGAIN);
	assert_action(start(), SEND);
	assert_int_equal(written_tid(), TID);
	assert_int_equal(packet.attempts_left, 0);
}

/* So that many requests do not come back at once. */
static void the_pause_is_up_to_half_as_long_again(void **state)
{
	int64_t pause, shortest = INT64_MAX, longest = 0;

	(void)state;
	for (unsigned i = 0; i < 16; i++) {
		make_get(3);
		transmit();
		assert_action(respond(0, IB_MAD_STS_BUSY), WAIT);
		pause = request.timer.at - now;
		shortest = pause < shortest ? pause : shortest;
		longest = pause > longest ? pause : longest;
	}
	assert_int_equal(shortest, PAUSE);
	assert_int_equal(longest, PAUSE + PAUSE * 15 / 32);
}

static void each_pause_is_twice_as_long_as_the_one_before(void **state)
{
	(void)state;
	transmit();
	for (int64_t pause = PAUSE; pause < 100 * MS; pause *= 2) {
		assert_action(respond(0, IB_MAD_STS_BUSY), WAIT);
		assert_pauses(pause);
		assert_action(timer_at(request.timer.at), AGAIN);
		transmit();
	}
}

static void the_pauses_stop_growing(void **state)
{
	(void)state;
	transaction_init(&request, INT_MAX / 2, 1);
	transmit();
	for (unsigned i = 0; i < 20; i++) {
		assert_action(respond(0, IB_MAD_STS_BUSY), WAIT);
		assert_pauses(PAUSE << (i < 12 ? i : 12));
		assert_action(timer_at(request.timer.at), AGAIN);
		transmit();
	}
}

static void after_each_busy_response_the_first_interval_returns(void **state)
{
	(void)state;
	set_late_after(4 * MS);
	make_get(6);
	for (unsigned i = 0; i < 3; i++) {
		transmit();
		assert_again_after(i ? 4 * MS : 8 * MS);
		transmit();
		assert_action(respond(SECOND, IB_MAD_STS_BUSY), WAIT);
		assert_pauses(PAUSE << i);
		assert_action(timer_at(request.timer.at), AGAIN);
	}
}

static void after_busy_the_kernel_holds_the_own_id_still(void **state)
{
	(void)state;
	transmit_twice();
	assert_action(respond(SECOND, IB_MAD_STS_BUSY), WAIT);
	assert_in_flight(0);
	assert_action(timer_at(request.timer.at), AGAIN);
	transmit();
	assert_int_not_equal(live(0)->tid, TID);
	assert_in_flight(IN_FLIGHT(0));
}

static void after_busy_no_response_to_a_retransmission_is_expected(void **state)
{
	(void)state;
	transmit_twice();
	assert_action(respond(0, IB_MAD_STS_BUSY), WAIT);
	assert_in_flight(0);
}

static void busy_without_time_for_a_pause_is_an_error(void **state)
{
	(void)state;
	make_get(1);
	transmit();
	now = request.end - PAUSE;
	assert_action(respond(0, IB_MAD_STS_BUSY), COMPLETE);
	assert_done(EIO);
	assert_int_equal(request.news, NEWS_BUSY | NEWS_PLACE);
	assert_int_equal(request.status, IB_MAD_STS_BUSY);
}

static void a_pause_ends_before_the_last_attempt(void **state)
{
	int64_t pause;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		make_get(1);
		transmit();
		pause = PAUSE + PAUSE * (int64_t)((mad_trid() + 1) % 16) / 32;
		now = request.end - pause - i;
		if (i)
			assert_action(respond(0, IB_MAD_STS_BUSY), WAIT);
		else
			assert_action(respond(0, IB_MAD_STS_BUSY), COMPLETE);
	}
	assert_waits_until(request.end - 1);
}

static void a_set_is_repeated_once_after_busy(void **state)
{
	int64_t end;

	(void)state;
	make_set(2);
	transmit();
	end = request.end;
	assert_action(respond(0, IB_MAD_STS_BUSY), WAIT);
	assert_action(timer_at(request.timer.at), AGAIN);
	transmit();
	assert_action(be_late(), WAIT);
	assert_waits_until(end);
}

static void a_pause_uses_attempts_up(void **state)
{
	(void)state;
	transmit();
	assert_action(respond(0, IB_MAD_STS_BUSY), WAIT);
	assert_action(timer_at(request.end + BUDGET), AGAIN);
	assert_int_equal(request.left, 1);
	assert_action(start(), SEND);
	assert_int_equal(packet.attempts_left, 1);
}

static void a_pause_that_uses_all_attempts_up_ends_the_request(void **state)
{
	(void)state;
	transmit();
	assert_action(respond(0, IB_MAD_STS_BUSY), WAIT);
	assert_action(timer_at(request.end + 2 * BUDGET), COMPLETE);
	assert_done(ETIMEDOUT);
}

static void busy_before_the_next_attempt_is_followed_by_a_pause(void **state)
{
	(void)state;
	transmit_twice();
	assert_action(timer_at(request.end), WAIT);
	now += MS;
	assert_action(kernel_times_out(0), AGAIN);
	assert_action(respond(SECOND, IB_MAD_STS_BUSY), WAIT);
	assert_int_equal(request.news, NEWS_BUSY | NEWS_PLACE);
	assert_int_equal(request.left, 2);
	assert_true(request.end == now + BUDGET); /* the next attempt begins now */
	assert_pauses(PAUSE);
	assert_action(timer_at(request.timer.at), AGAIN);
	assert_action(start(), SEND);
	assert_int_equal(packet.attempts_left, 2);
}

static void after_busy_a_request_awaits_the_report_of_the_new_attempt(void **state)
{
	(void)state;
	make_set(3);
	transmit();
	assert_action(timer_at(request.end), WAIT);
	assert_action(timer_at(request.timer.at), AGAIN);
	assert_action(respond(0, IB_MAD_STS_BUSY), WAIT);
	assert_action(timer_at(request.timer.at), AGAIN);
	transmit();
	assert_action(timer_at(request.end), WAIT);
	assert_waits_until(request.end + REPORT_AFTER);
}

static void busy_after_the_kernels_timeout_during_a_write_is_followed_by_a_pause(void **state)
{
	(void)state;
	make_set(3);
	transmit();
	assert_action(timer_at(request.end), WAIT);
	assert_action(timer_at(request.timer.at), AGAIN);
	assert_action(start(), SEND);
	assert_action(kernel_times_out(SECOND), WAIT);
	assert_action(respond(0, IB_MAD_STS_BUSY), WAIT);
	assert_true(request.end == now); /* an attempt has just ended */
	assert_pauses(PAUSE);
	assert_action(written(0), WAIT);
	assert_action(timer_at(request.timer.at), AGAIN);
	assert_int_equal(request.left, 1);
}

static void busy_during_a_write_is_followed_by_a_pause(void **state)
{
	int64_t pause_ends;

	(void)state;
	assert_action(start(), SEND);
	assert_action(respond(0, IB_MAD_STS_BUSY), WAIT);
	pause_ends = request.timer.at;
	assert_action(written(0), WAIT);
	assert_waits_until(pause_ends);
}

static void busy_during_a_write_that_fails_is_followed_by_a_pause(void **state)
{
	int64_t pause_ends;

	(void)state;
	transmit_and_begin_again();
	assert_action(respond(0, IB_MAD_STS_BUSY), WAIT);
	pause_ends = request.timer.at;
	assert_action(written(ENOMEM), WAIT);
	assert_waits_until(pause_ends);
	assert_action(timer_at(pause_ends), AGAIN);
}

static void a_refused_packet_does_not_end_a_pause(void **state)
{
	(void)state;
	set_late_after(4 * MS);
	transmit_twice();
	assert_action(be_late(), AGAIN);
	assert_action(start(), SEND);
	assert_action(respond(SECOND, IB_MAD_STS_BUSY), WAIT);
	assert_action(written(EINVAL), WAIT);
	assert_pauses(PAUSE);
}

static void busy_for_a_refused_packet_is_anothers(void **state)
{
	(void)state;
	make_set(2);
	assert_action(start(), SEND);
	assert_action(respond(0, IB_MAD_STS_BUSY), WAIT);
	assert_action(written(EINVAL), SEND);
	assert_action(written(0), WAIT);
	/* it is not retransmitted within the attempt */
	assert_action(be_late(), WAIT);
	assert_waits_until(request.end);
}

/* --- redirection ---------------------------------------------------------------- */

static int lid_of_packet(void)
{
	return be16toh(umad_get_mad_addr(packet.umad)->lid);
}

static void a_redirected_request_goes_to_the_other_lid(void **state)
{
	ib_portid_t portid = {.lid = 1};

	(void)state;
	transmit();
	redirect_report(request.detour, &portid);
	assert_int_equal(portid.lid, 1);
	assert_action(redirect_to(0, 77, 0), AGAIN);
	assert_false(told.lost);
	assert_int_equal(request.state, TRANSACTION_READY);
	assert_true(request.fresh);
	assert_in_flight(0);
	redirect_report(request.detour, &portid);
	assert_int_equal(portid.lid, 77);
	assert_action(start(), SEND);
	assert_int_equal(request.news, NEWS_TRANSMITTED);
	assert_int_equal(lid_of_packet(), 77);
	assert_int_equal(written_tid(), TID);
}

static void a_loss_before_a_redirection_is_forgotten(void **state)
{
	(void)state;
	transmit_twice();
	assert_action(redirect_to(SECOND, 77, 0), AGAIN);
	assert_true(told.lost);
	transmit();
	assert_action(respond(0, 0), COMPLETE);
	assert_false(told.lost);
}

static void a_redirected_set_has_a_whole_attempt(void **state)
{
	(void)state;
	make_set(2);
	transmit();
	now = request.end - MS;
	assert_action(redirect_to(0, 77, 0), AGAIN);
	now += 10 * BUDGET; /* queued for the other node */
	assert_action(start(), SEND);
	assert_int_equal(packet.kernel_ms, TIMEOUT_MS);
	assert_int_equal(packet.attempts_left, 0);
	assert_true(request.end == now + BUDGET);
}

static void a_redirection_after_the_last_attempt_comes_too_late(void **state)
{
	(void)state;
	make_get(1);
	transmit();
	now = request.end;
	assert_action(redirect_to(0, 77, 0), COMPLETE);
	assert_done(ETIMEDOUT);
}

static void a_redirection_before_the_next_attempt_is_followed(void **state)
{
	(void)state;
	transmit_twice();
	assert_action(timer_at(request.end), WAIT);
	now += MS;
	assert_action(kernel_times_out(0), AGAIN);
	assert_action(redirect_to(SECOND, 77, 0), AGAIN);
	assert_int_equal(request.left, 2);
	assert_action(start(), SEND);
	assert_int_equal(lid_of_packet(), 77);
}

/* The node that redirected sends no more. The kernel still holds the ID. */
static void a_redirected_request_awaits_no_response_to_what_was_sent_before(void **state)
{
	(void)state;
	transmit_twice();
	assert_in_flight(IN_FLIGHT(0) | IN_FLIGHT(SECOND));
	assert_action(redirect_to(SECOND, 77, 0), AGAIN);
	assert_in_flight(0);
	assert_action(start(), SEND);
	assert_int_not_equal(written_tid(), TID);
}

static void a_redirection_during_a_write_is_kept(void **state)
{
	(void)state;
	assert_action(start(), SEND);
	assert_action(redirect_to(0, 77, 0), NONE);
	assert_int_equal(lid_of_packet(), 0);
	assert_int_equal(request.state, TRANSACTION_IN_FLIGHT);
	assert_action(timer_at(now + BUDGET / 2), WAIT);
	assert_action(written(0), AGAIN);
	assert_action(start(), SEND);
	assert_int_equal(lid_of_packet(), 77);
	/* it is followed once */
	assert_action(written(0), WAIT);
}

static void a_short_redirection_during_a_write_leads_nowhere(void **state)
{
	(void)state;
	assert_action(start(), SEND);
	assert_action(come(0, response(0, IB_MAD_STS_REDIRECT), 36), NONE);
	assert_action(written(0), AGAIN);
	assert_action(start(), ASK_PATH);
}

static void a_redirection_outlives_a_write_error_of_the_retransmission(void **state)
{
	(void)state;
	transmit_and_begin_again();
	assert_action(redirect_to(0, 77, 0), NONE);
	assert_action(written(ENOMEM), AGAIN);
	assert_action(start(), SEND);
	assert_int_equal(lid_of_packet(), 77);
}

static void a_redirection_outlives_a_refused_retransmission(void **state)
{
	(void)state;
	set_late_after(4 * MS);
	transmit_twice();
	assert_action(be_late(), AGAIN);
	assert_action(start(), SEND);
	assert_action(redirect_to(SECOND, 77, 0), NONE);
	assert_action(written(EINVAL), AGAIN);
	assert_action(start(), SEND);
	assert_int_equal(lid_of_packet(), 77);
}

static void a_redirection_of_a_refused_packet_is_anothers(void **state)
{
	(void)state;
	assert_action(start(), SEND);
	assert_action(redirect_to(0, 77, 0), NONE);
	assert_action(written(EINVAL), SEND);
	assert_int_equal(lid_of_packet(), 0);
	assert_action(written(0), WAIT);
}

static void a_cancelled_request_with_a_kept_redirection_is_not_sent_again(void **state)
{
	(void)state;
	assert_action(start(), SEND);
	assert_action(redirect_to(0, 77, 0), NONE);
	assert_action(cancel(), NONE);
	assert_action(written(EINVAL), COMPLETE);
	assert_done(ECANCELED);
}

static void a_redirection_that_cannot_be_kept_completes_it(void **state)
{
	(void)state;
	assert_action(start(), SEND);
	device_fail_malloc(1);
	assert_action(redirect_to(0, 77, 0), NONE);
	assert_action(written(0), COMPLETE);
	assert_done(ENOMEM);
}

static void a_redirection_without_memory_completes_it(void **state)
{
	(void)state;
	transmit();
	device_fail_malloc(1);
	assert_action(redirect_to(0, 77, 0), COMPLETE);
	assert_done(ENOMEM);
}

static void a_long_request_is_not_redirected(void **state)
{
	(void)state;
	make_long();
	transmit();
	assert_action(respond(0, IB_MAD_STS_REDIRECT), COMPLETE);
	assert_done(EOPNOTSUPP);
}

static void nor_is_a_long_request_that_is_being_written(void **state)
{
	(void)state;
	make_long();
	assert_action(start(), SEND);
	assert_action(respond(0, IB_MAD_STS_REDIRECT), NONE);
	assert_action(written(0), COMPLETE);
	assert_done(EOPNOTSUPP);
}

static void the_fifth_redirection_is_not_followed(void **state)
{
	(void)state;
	make_set(1);
	for (int i = 0; i < 4; i++) {
		transmit();
		assert_action(redirect_to(0, 77, 0), AGAIN);
	}
	transmit();
	assert_action(redirect_to(0, 77, 0), COMPLETE);
	assert_done(ELOOP);
}

/* --- a path --------------------------------------------------------------------- */

/* The effect of redirect_ask_path(), whose own tests have a device. */
static enum transaction_action path_asked(int error)
{
	struct detour *detour = request.detour;
	uint8_t *mad = umad_get_mad(request.packet);

	detour->needs_path = false;
	if (!error) {
		memcpy(detour->request, request.packet, PACKET_SIZE);
		memset(request.packet, 0, PACKET_SIZE);
		mad[1] = IB_SA_CLASS;
		mad[3] = IB_MAD_METHOD_GET;
		detour->awaits_path = true;
	}
	request.news = 0;
	return transaction_path_asked(&all, &request, &packet, error, now);
}

static void ask_for_path(void)
{
	transmit();
	assert_action(redirect_to(0, 0, 5), AGAIN);
	assert_action(start(), ASK_PATH);
	assert_true(request.writing);
	assert_in_flight(0);
}

static enum transaction_action respond_with_path(uint16_t status, uint32_t lid)
{
	uint8_t *umad = response(0, status);
	uint8_t *record = (uint8_t *)umad_get_mad(umad) + IB_SA_DATA_OFFS;

	mad_set_field(record, 0, IB_SA_PR_DLID_F, lid);
	return come(0, umad, IB_MAD_SIZE);
}

static void the_request_for_a_path_has_an_id_of_its_own(void **state)
{
	uint32_t latest;

	(void)state;
	ask_for_path();
	latest = (uint32_t)mad_trid();
	assert_action(path_asked(0), SEND);
	assert_int_equal(request.news, NEWS_TRANSMITTED);
	assert_int_equal(written_tid(), latest + 1);
	assert_int_equal(request.transmissions.mgmt_class, IB_SA_CLASS);
	assert_in_flight(IN_FLIGHT(0));
	assert_action(written(0), WAIT);
}

static void with_the_path_the_request_is_sent_with_its_own_id(void **state)
{
	(void)state;
	ask_for_path();
	assert_action(path_asked(0), SEND);
	assert_action(written(0), WAIT);
	assert_action(respond_with_path(0, 88), AGAIN);
	assert_true(request.fresh);
	assert_action(start(), SEND);
	assert_int_equal(lid_of_packet(), 88);
	assert_int_equal(written_tid(), TID);
	assert_buffer_is(REQUEST_BYTE);
}

static void a_path_that_comes_during_the_write_is_kept(void **state)
{
	(void)state;
	ask_for_path();
	assert_action(path_asked(0), SEND);
	assert_action(respond_with_path(0, 88), NONE);
	assert_action(written(0), AGAIN);
	assert_action(start(), SEND);
	assert_int_equal(lid_of_packet(), 88);
}

static void without_a_path_it_is_not_reached(void **state)
{
	(void)state;
	ask_for_path();
	assert_action(path_asked(0), SEND);
	assert_action(written(0), WAIT);
	assert_action(respond_with_path(0x300, 88), COMPLETE);
	assert_done(EHOSTUNREACH);
}

static void a_path_without_a_lid_is_none(void **state)
{
	(void)state;
	ask_for_path();
	assert_action(path_asked(0), SEND);
	assert_action(written(0), WAIT);
	assert_action(respond_with_path(0, 0), COMPLETE);
	assert_done(EHOSTUNREACH);
}

static void busy_is_no_path_and_the_sa_is_asked_again(void **state)
{
	(void)state;
	ask_for_path();
	assert_action(path_asked(0), SEND);
	assert_action(written(0), WAIT);
	assert_action(respond_with_path(IB_MAD_STS_BUSY, 88), WAIT);
	assert_action(timer_at(request.timer.at), AGAIN);
	assert_action(start(), SEND);
	assert_int_equal(((uint8_t *)umad_get_mad(packet.umad))[1], IB_SA_CLASS);
}

static void an_error_in_asking_completes_it(void **state)
{
	(void)state;
	ask_for_path();
	assert_action(path_asked(EHOSTUNREACH), COMPLETE);
	assert_done(EHOSTUNREACH);
}

static void a_request_cancelled_in_asking_completes_when_that_is_over(void **state)
{
	(void)state;
	ask_for_path();
	assert_action(timer_at(now + MS), WAIT);
	assert_action(cancel(), NONE);
	assert_action(path_asked(0), COMPLETE);
	assert_done(ECANCELED);
}

/* --- cancel --------------------------------------------------------------------- */

static void what_was_not_sent_is_cancelled_at_once(void **state)
{
	(void)state;
	assert_action(cancel(), COMPLETE);
	assert_done(ECANCELED);
}

static void what_is_in_flight_is_cancelled_at_once(void **state)
{
	(void)state;
	transmit_twice();
	assert_action(cancel(), COMPLETE);
	assert_done(ECANCELED);
}

static void what_pauses_is_cancelled_at_once(void **state)
{
	(void)state;
	transmit();
	assert_action(respond(0, IB_MAD_STS_BUSY), WAIT);
	assert_action(cancel(), COMPLETE);
	assert_done(ECANCELED);
}

static void what_is_being_written_is_cancelled_after_that(void **state)
{
	(void)state;
	assert_action(start(), SEND);
	assert_action(cancel(), NONE);
	assert_done(ECANCELED);
	assert_action(timer_at(now + BUDGET), NONE);
	assert_action(written(EINVAL), COMPLETE);
	assert_done(ECANCELED);
}

static void what_is_complete_cannot_be_cancelled(void **state)
{
	(void)state;
	transmit();
	assert_action(respond(0, 0), COMPLETE);
	assert_action(cancel(), NONE);
	assert_done(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(gets_of_known_classes_alone_are_repeatable),
		TEST(a_negative_timeout_is_half_of_the_longest),
		TEST(the_class_of_a_request_is_known_before_it_is_sent),
		TEST(memory_is_freed_once),
		TEST(the_first_packet_has_the_own_id_and_the_whole_timeout),
		TEST(the_kernel_waits_a_millisecond_at_least),
		TEST(an_id_in_flight_is_replaced_in_the_same_class_alone),
		TEST(a_new_id_is_no_id_in_flight),
		TEST(a_chosen_id_that_was_given_up_is_withheld),
		TEST(each_of_several_chosen_ids_is_withheld),
		TEST(an_id_is_withheld_until_so_many_others_were),
		TEST(an_id_that_nobody_chose_is_not_withheld),
		TEST(a_chosen_id_with_a_response_is_not_withheld),
		TEST(a_chosen_id_with_a_late_response_is_withheld),
		TEST(a_chosen_id_is_withheld_from_others_between_attempts),
		TEST(a_chosen_id_that_the_kernel_holds_after_busy_is_withheld),
		TEST(the_count_of_transmissions_does_not_overflow),
		TEST(a_packet_whose_attempt_is_over_is_not_sent),
		TEST(nor_is_one_sent_after_the_last_attempt),
		TEST(a_get_waits_for_twice_the_time_of_a_late_response),
		TEST(to_a_node_that_has_responded_a_late_get_is_sent_again_at_once),
		TEST(a_response_is_late_at_the_end_of_the_attempt),
		TEST(the_sa_has_more_time_than_others),
		TEST(smps_have_their_own_time),
		TEST(a_write_error_completes_it),
		TEST(a_destination_that_is_not_found_is_tried_again_in_the_next_attempt),
		TEST(a_destination_that_is_never_found_times_out_with_the_last_attempt),
		TEST(a_set_to_a_destination_that_is_not_found_has_all_its_attempts),
		TEST(attempts_that_pass_while_a_destination_is_not_found_are_over),
		TEST(a_destination_that_is_not_found_is_not_tried_early),
		TEST(a_refused_id_is_replaced_at_once),
		TEST(an_id_that_is_refused_in_a_later_attempt_is_replaced_again),
		TEST(a_packet_that_is_refused_twice_completes_it),
		TEST(a_write_error_of_a_retransmission_leaves_the_first_in_flight),
		TEST(a_refused_retransmission_waits_for_the_response_to_the_first),
		TEST(a_device_that_is_gone_completes_it),
		TEST(a_late_get_is_retransmitted_with_a_new_id),
		TEST(what_becomes_known_meanwhile_shortens_the_time),
		TEST(a_destination_that_is_slower_than_others_has_its_time),
		TEST(one_slow_node_does_not_make_all_others_slow),
		TEST(intervals_grow_ten_times_up_to_a_fifth_of_a_second_and_then_double),
		TEST(an_interval_of_more_than_a_fifth_of_a_second_is_doubled),
		TEST(what_is_late_is_told_before_it_is_retransmitted),
		TEST(with_a_fixed_limit_a_late_request_keeps_its_place),
		TEST(one_attempt_is_one_transmission),
		TEST(attempts_are_twice_as_many_transmissions_at_most),
		TEST(the_interval_stops_growing_before_it_overflows),
		TEST(the_kernel_waits_four_intervals_for_a_retransmission),
		TEST(the_kernel_waits_a_tenth_of_a_second_at_least),
		TEST(the_kernel_waits_no_longer_than_the_request),
		TEST(the_oldest_retransmission_is_replaced),
		TEST(a_late_set_waits_for_the_end_of_the_attempt),
		TEST(after_an_attempt_it_awaits_the_kernels_report),
		TEST(a_report_that_is_due_has_another_millisecond),
		TEST(with_the_report_the_next_attempt_has_the_own_id),
		TEST(without_a_report_the_next_attempt_has_a_new_id),
		TEST(a_retransmission_in_the_next_attempt_is_no_new_attempt),
		TEST(the_next_attempt_awaits_the_report_too),
		TEST(a_get_does_not_wait_after_its_last_attempt),
		TEST(a_get_waits_before_its_last_attempt),
		TEST(a_set_awaits_the_report_after_its_last_attempt),
		TEST(a_timer_during_a_write_is_due_again_in_a_millisecond),
		TEST(a_timer_means_nothing_unless_it_is_in_flight),
		TEST(a_sets_attempt_ends_with_the_kernels_timeout),
		TEST(a_get_goes_on_with_its_timer_after_the_kernels_timeout),
		TEST(a_get_goes_on_at_once_if_the_kernels_timeout_ends_its_attempt),
		TEST(the_kernels_timeout_of_a_retransmission_changes_nothing),
		TEST(a_set_goes_on_after_the_kernels_timeout_of_an_earlier_attempt),
		TEST(the_kernels_timeout_during_a_write_waits_for_the_write),
		TEST(the_kernels_timeout_leaves_what_is_ready),
		TEST(a_response_completes_it),
		TEST(a_short_response_is_followed_by_zeros),
		TEST(an_allocated_response_is_kept),
		TEST(an_allocated_busy_response_is_not_taken),
		TEST(a_response_with_a_status_is_an_error),
		TEST(the_direction_is_no_status),
		TEST(the_status_of_a_redirection_is_an_error_of_an_smp),
		TEST(a_response_to_a_retransmission_tells_of_a_loss),
		TEST(a_response_to_the_first_tells_of_no_loss),
		TEST(no_time_is_measured_if_an_id_was_sent_twice),
		TEST(the_time_of_the_first_is_measured_after_the_timeout_of_a_retransmission),
		TEST(the_time_is_measured_if_a_new_id_was_sent_once),
		TEST(a_round_trip_within_a_microsecond_is_known),
		TEST(a_response_completes_what_is_to_be_retransmitted),
		TEST(a_response_completes_what_awaits_the_kernels_report),
		TEST(a_response_during_a_write_leaves_the_packet_alone),
		TEST(an_allocated_response_during_a_write_is_kept),
		TEST(without_memory_a_response_during_a_write_is_lost),
		TEST(the_buffer_of_an_overtaken_long_request_stays),
		TEST(a_response_takes_the_place_of_a_long_request),
		TEST(a_response_to_a_refused_packet_is_anothers),
		TEST(a_short_response_to_a_refused_packet_leaves_its_length),
		TEST(a_packet_with_another_write_error_has_no_response),
		TEST(a_long_request_that_never_left_has_no_response),
		TEST(a_refused_long_request_keeps_its_buffer_for_the_next_id),
		TEST(a_response_to_the_first_outlives_a_write_error_of_the_second),
		TEST(after_busy_it_pauses),
		TEST(the_pause_is_up_to_half_as_long_again),
		TEST(each_pause_is_twice_as_long_as_the_one_before),
		TEST(the_pauses_stop_growing),
		TEST(after_each_busy_response_the_first_interval_returns),
		TEST(after_busy_the_kernel_holds_the_own_id_still),
		TEST(after_busy_no_response_to_a_retransmission_is_expected),
		TEST(busy_without_time_for_a_pause_is_an_error),
		TEST(a_pause_ends_before_the_last_attempt),
		TEST(a_set_is_repeated_once_after_busy),
		TEST(a_pause_uses_attempts_up),
		TEST(a_pause_that_uses_all_attempts_up_ends_the_request),
		TEST(busy_before_the_next_attempt_is_followed_by_a_pause),
		TEST(after_busy_a_request_awaits_the_report_of_the_new_attempt),
		TEST(busy_after_the_kernels_timeout_during_a_write_is_followed_by_a_pause),
		TEST(busy_during_a_write_is_followed_by_a_pause),
		TEST(busy_during_a_write_that_fails_is_followed_by_a_pause),
		TEST(a_refused_packet_does_not_end_a_pause),
		TEST(busy_for_a_refused_packet_is_anothers),
		TEST(a_redirected_request_goes_to_the_other_lid),
		TEST(a_loss_before_a_redirection_is_forgotten),
		TEST(a_redirected_set_has_a_whole_attempt),
		TEST(a_redirection_after_the_last_attempt_comes_too_late),
		TEST(a_redirection_before_the_next_attempt_is_followed),
		TEST(a_redirected_request_awaits_no_response_to_what_was_sent_before),
		TEST(a_redirection_during_a_write_is_kept),
		TEST(a_short_redirection_during_a_write_leads_nowhere),
		TEST(a_redirection_outlives_a_write_error_of_the_retransmission),
		TEST(a_redirection_outlives_a_refused_retransmission),
		TEST(a_redirection_of_a_refused_packet_is_anothers),
		TEST(a_cancelled_request_with_a_kept_redirection_is_not_sent_again),
		TEST(a_redirection_that_cannot_be_kept_completes_it),
		TEST(a_redirection_without_memory_completes_it),
		TEST(a_long_request_is_not_redirected),
		TEST(nor_is_a_long_request_that_is_being_written),
		TEST(the_fifth_redirection_is_not_followed),
		TEST(the_request_for_a_path_has_an_id_of_its_own),
		TEST(with_the_path_the_request_is_sent_with_its_own_id),
		TEST(a_path_that_comes_during_the_write_is_kept),
		TEST(without_a_path_it_is_not_reached),
		TEST(a_path_without_a_lid_is_none),
		TEST(busy_is_no_path_and_the_sa_is_asked_again),
		TEST(an_error_in_asking_completes_it),
		TEST(a_request_cancelled_in_asking_completes_when_that_is_over),
		TEST(what_was_not_sent_is_cancelled_at_once),
		TEST(what_is_in_flight_is_cancelled_at_once),
		TEST(what_pauses_is_cancelled_at_once),
		TEST(what_is_being_written_is_cancelled_after_that),
		TEST(what_is_complete_cannot_be_cancelled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
