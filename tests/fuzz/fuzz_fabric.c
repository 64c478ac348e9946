/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The simulated fabric accepts any bytes from a program without a failure: ioctls, written
 * packets, rules for faults, in any order, while time passes. An input is a list of steps.
 */
#include "fault_rules.h"
#include "faults.h"
#include "fuzz.h"
#include "manager.h"
#include "routes.h"
#include "sa_agent.h"
#include "setup.h"
#include "topology.h"
#include "umad_device.h"

#define HANDLES 2
#define LONGEST 2000

static void ignore(struct handle *handle)
{
	(void)handle;
}

static void start(struct fabric *fabric)
{
	struct topology_error error;
	struct graph graph;

	graph_init(&graph);
	check(!topology_generate(&graph, "fat-tree:2,2", &error));
	check(!fabric_init(fabric, &graph, 1) && !timers_init(fabric) && !faults_init(fabric));
	check(!hosts_init(fabric) && !routes_init(fabric, true));
	bring_up(fabric, graph_port(&fabric->graph, graph_find(&fabric->graph, "host-2"), 1));
}

static void do_ioctl(struct handle *handle, struct input *input)
{
	static const uint32_t codes[] = {
		IB_USER_MAD_REGISTER_AGENT, IB_USER_MAD_REGISTER_AGENT2,
		IB_USER_MAD_UNREGISTER_AGENT, IB_USER_MAD_ENABLE_PKEY, 0};
	uint8_t argument[ARGUMENT_BYTES];
	uint32_t code = codes[take(input, 1) % COUNT(codes)];

	take_bytes(input, argument, 48);
	handle_ioctl(handle, code, argument);
}

/* Often a valid packet with a few changed bytes: random bytes rarely pass the first check. */
static void do_write(struct handle *handle, struct input *input)
{
	static uint8_t bytes[LONGEST];
	size_t length = HEADER_BYTES + MAD_BYTES;
	uint8_t *mad = bytes + HEADER_BYTES;
	uint8_t shape = (uint8_t)take(input, 1);

	memset(bytes, 0, sizeof(bytes));
	if (shape & 1) {
		length = take(input, 2) % LONGEST;
		take_bytes(input, bytes, length);
	} else {
		bytes[31] = (shape & 2) ? 2 : 1;
		bytes[23] = shape & 4 ? 1 : 0;
		bytes[24] = 0x80;
		bytes[25] = 0x01;
		bytes[8] = 100;
		take_bytes(input, mad, 56);
		if (shape & 8)
			take_bytes(input, mad + 56, 72);
		take_bytes(input, mad + 128, 4);
	}
	if (check_write(handle->shared, bytes, length) == 0)
		handle_write(handle, bytes, length);
}

static void do_rule(struct fabric *fabric, struct input *input)
{
	char text[64] = "";
	struct rule_error error;

	take_bytes(input, text, sizeof(text) - 1);
	fault_apply(fabric, text, &error);
}

static void read_messages(struct handle *handle)
{
	struct message *message;
	size_t header;

	while ((message = handle_take(handle, &header))) {
		check(message->length <= 1 << 20 && header <= HEADER_BYTES);
		free(message);
	}
}

static void pass_time(struct fabric *fabric, uint64_t milliseconds)
{
	fabric->now += milliseconds * MILLISECOND;
	timers_run(fabric, 2000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct shared shared[HANDLES];
	struct input input = {data, size};
	struct handle *handles[HANDLES];
	struct sa_agent *sa_agent;
	struct fabric fabric;

	start(&fabric);
	sa_agent = sa_agent_start(&fabric);
	for (unsigned int i = 0; i < HANDLES; i++) {
		uint32_t node = graph_find(&fabric.graph, i ? "host-2" : "host-1");

		handles[i] = handle_open(&fabric,
					 host_at(&fabric, graph_port(&fabric.graph, node, 1)));
		memset(&shared[i], 0, sizeof(shared[i]) - sizeof(shared[i].transactions));
		handles[i]->shared = &shared[i];
		handles[i]->readable = ignore;
		handles[i]->removed = ignore;
	}
	while (input.size) {
		uint8_t step = (uint8_t)take(&input, 1);
		struct handle *handle = handles[step >> 7];

		switch (step % 5) {
		case 0:
			do_ioctl(handle, &input);
			break;
		case 1:
		case 2:
			do_write(handle, &input);
			break;
		case 3:
			do_rule(&fabric, &input);
			break;
		default:
			pass_time(&fabric, take(&input, 1));
			read_messages(handle);
		}
	}
	pass_time(&fabric, 60000);
	for (unsigned int i = 0; i < HANDLES; i++)
		handle_close(handles[i]);
	sa_agent_stop(sa_agent);
	hosts_free(&fabric);
	faults_free(&fabric);
	timers_free(&fabric);
	fabric_free(&fabric);
	return 0;
}
