/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * More MADs at once than the queues of a port have: of each queue pair, ib_mad posts 128 sends
 * and 512 receives. A MAD that finds no posted receive is dropped. The notes have the numbers.
 */
#include "bytes.h"
#include "check.h"
#include "mads.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MOST        4000
#define TIMEOUT_MS  2000 /* of an attempt */
#define RETRIES     10
#define HEADER_ONLY 24 /* bytes of the MAD in a timeout report */
#define NODE_INFO   0x11
#define ATTRIBUTE   17 /* the lower byte of the attribute's ID */
#define QUEUED_MOST 200000

static int from, to, requester_agent, responder_agent;
static void *umad;

static void opened(void)
{
	from = open_port(&here);
	to = open_port(&there);
	requester_agent = client(from, 0);
	responder_agent = server(to, METHOD_SEND, 0);
	umad = new_umad(MAD);
}

/* The sizes of bursts. */
static const int *sizes(void)
{
	static const int some[] = {129, 1000, 0};
	static const int all[] = {64, 128, 129, 200, 256, 512, 513, 600, 1000, MOST, 0};

	return environment_is_long() ? all : some;
}

/* A counter of the device, or -1 if the device does not have it. */
static long long counter(const struct port *port, const char *name)
{
	char path[160];
	long long value = -1;
	FILE *file;

	snprintf(path, sizeof(path), SYS_INFINIBAND "/%s/ports/%d/hw_counters/%s",
		 port->ca_name, port->portnum, name);
	file = fopen(path, "r");
	if (!file)
		return -1;
	expect_equal(fscanf(file, "%lld", &value), 1);
	fclose(file);
	return value;
}

static long long dropped_at(const struct port *port)
{
	return counter(port, "rcv_no_buffer");
}

/* --- MADs without a response ------------------------------------------------------ */

static void send_one_way(int fd, int agent, const struct port *target, uint32_t tid)
{
	set_mad(umad, METHOD_SEND, tid);
	set_destination(umad, target);
	send_mad(fd, agent, umad, MAD, 0, 0);
}

/*
 * The MADs that were written before have arrived: another descriptor has a later one. The
 * kernel accepts no second response with a transaction ID while the first may be in its send
 * queue, also if it has arrived.
 */
static void settle(int fd, int agent)
{
	static uint32_t tid = UINT32_MAX;

	set_mad(umad, METHOD_ANY, tid--);
	set_destination(umad, &there);
	send_mad(from, requester_agent, umad, MAD, TIMEOUT_MS, RETRIES);
	receive_mad(fd, umad, MAD, agent);
	make_response(umad);
	send_mad(fd, agent, umad, MAD, 0, 0);
	receive_mad(from, umad, MAD, requester_agent);
}

/*
 * MADs are written at once, and then read: what a port receives has the order in which it was
 * written. The MADs that are missing were dropped.
 */
static void a_burst_is_received_in_the_order_of_writing(void)
{
	int other, agent;

	opened();
	other = open_port(&there);
	agent = server(other, METHOD_ANY, 0);
	if (here.ethernet)
		cannot("MADs may overtake each other on this link layer");
	for (const int *count = sizes(); *count; count++) {
		long long dropped = dropped_at(&there);
		int64_t started = now_ms(), written;
		int received = 0;
		uint32_t next = 0;

		for (int i = 0; i < *count; i++)
			send_one_way(from, requester_agent, &there, (uint32_t)i);
		written = now_ms() - started;
		settle(other, agent);
		dropped = dropped_at(&there) - dropped;
		while (received + dropped < *count) {
			receive_mad(to, umad, MAD, responder_agent);
			expect(tid_of(umad) >= next && tid_of(umad) < (uint32_t)*count);
			next = tid_of(umad) + 1;
			received++;
		}
		note("%d written in %lld ms: %d received, %lld dropped", *count,
		     (long long)written, received, dropped);
	}
}

/* --- requests --------------------------------------------------------------------- */

static void set_get(uint8_t mgmt_class, uint16_t lid, uint8_t attribute, uint32_t tid)
{
	set_mad_of(umad, mgmt_class, METHOD_GET, tid);
	((uint8_t *)umad_get_mad(umad))[ATTRIBUTE] = attribute;
	umad_set_addr(umad, lid, mgmt_class == 1 ? 0 : 1, 0,
		      mgmt_class == 1 ? 0 : (int)0x80010000);
}

static void set_smp(uint32_t tid, uint16_t lid)
{
	set_get(1, lid, NODE_INFO, tid);
}

static void set_perf(uint32_t tid, uint16_t lid)
{
	set_get(4, lid, 1, tid);
}

static void set_request(uint32_t tid, uint16_t lid)
{
	(void)lid;
	set_mad(umad, METHOD_ANY, tid);
	set_destination(umad, &there);
}

/* Each request completes once, with a response or after all retries. */
static void complete_each(const char *what, uint8_t mgmt_class, uint16_t lid,
			  void (*set)(uint32_t tid, uint16_t lid))
{
	from = open_port(&here);
	requester_agent = mgmt_class == CLASS ? client(from, 0)
					      : umad_register(from, mgmt_class, 1, 0, NULL);
	expect(requester_agent >= 0);
	umad = new_umad(MAD);
	for (const int *count = sizes(); *count; count++) {
		long long sent = counter(&here, "sent_pkts"), mine = dropped_at(&here),
			  others = dropped_at(&there);
		bool *complete = allocate((size_t)*count);
		int64_t started = now_ms(), written;
		int responses = 0, in_order = 0, last = -1;

		for (int i = 0; i < *count; i++) {
			set((uint32_t)i, lid);
			send_mad(from, requester_agent, umad, MAD, TIMEOUT_MS, RETRIES);
		}
		written = now_ms() - started;
		for (int i = 0; i < *count; i++) {
			int length = receive_mad(from, umad, MAD, requester_agent),
			    tid = (int)tid_of(umad);

			expect(tid >= 0 && tid < *count && !complete[tid]);
			complete[tid] = true;
			expect_equal(length, umad_status(umad) ? HEADER_ONLY : MAD);
			responses += !umad_status(umad);
			in_order += tid > last;
			last = tid;
		}
		note("%d %s: written in %lld ms, %d responses after %lld ms, %lld "
		     "retransmissions; dropped there %lld, here %lld; %d not in order",
		     *count, what, (long long)written, responses,
		     (long long)(now_ms() - started),
		     sent < 0 ? -1 : counter(&here, "sent_pkts") - sent - *count,
		     dropped_at(&there) - others, dropped_at(&here) - mine, *count - in_order);
		expect_equal(responses, *count);
		free(complete);
	}
}

static uint16_t manager_lid(void)
{
	char text[64];

	read_port_file(&here, "sm_lid", text, sizeof(text));
	return (uint16_t)strtoul(text, NULL, 0);
}

static void smps_to_a_host_complete_each(void)
{
	if (here.ethernet)
		cannot("the ports have no QP0");
	complete_each("SMPs to a host", 1, there.lid, set_smp);
}

static void smps_to_a_node_complete_each(void)
{
	if (here.ethernet)
		cannot("the ports have no QP0");
	complete_each("SMPs to a node", 1, manager_lid(), set_smp);
}

static void gmps_to_a_node_complete_each(void)
{
	if (here.ethernet)
		cannot("the ports have no LID");
	complete_each("GMPs to a node", 4, manager_lid(), set_perf);
}

static void requests_to_a_program_complete_each(void)
{
	start_responder();
	complete_each("requests to a program", CLASS, 0, set_request);
}

/* --- the queue of a descriptor ------------------------------------------------------ */

/* A program that does not read gets the first messages. Later ones are dropped. */
static void a_descriptor_queues_200001_messages(void)
{
	enum {
		STEP = 200 /* fewer than the receives that ib_mad posts */
	};
	uint32_t sent = 0;
	int received = 0, other, agent;

	if (here.ethernet)
		cannot("MADs may overtake each other on this link layer");
	if (!environment_is_long())
		cannot("it takes long");
	opened();
	other = open_port(&there);
	agent = server(other, METHOD_ANY, 0);
	while (sent < QUEUED_MOST + 3 * STEP) {
		for (int i = 0; i < STEP; i++)
			send_one_way(from, requester_agent, &there, sent++);
		settle(other, agent);
		tell_progress();
	}
	while (umad_poll(to, 1000) == 0) {
		receive_mad(to, umad, MAD, responder_agent);
		expect_equal(tid_of(umad), received);
		received++;
	}
	note("of %u messages, %d were queued", sent, received);
	expect(received > QUEUED_MOST && received < (int)sent);
}

int main(int argc, char **argv)
{
	static const struct check checks[] = {
		CHECK(a_burst_is_received_in_the_order_of_writing),
		CHECK(smps_to_a_host_complete_each),
		CHECK(smps_to_a_node_complete_each),
		CHECK(gmps_to_a_node_complete_each),
		CHECK(requests_to_a_program_complete_each),
		CHECK(a_descriptor_queues_200001_messages),
	};

	set_environment(argc, argv);
	find_ports();
	return run_checks(checks, sizeof(checks) / sizeof(checks[0]));
}
