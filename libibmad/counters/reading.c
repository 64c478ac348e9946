/* SPDX-License-Identifier: BSD-2-Clause */

/* Selects the attributes a reading needs, and parses their responses. */

#include "counters/reading.h"

#include "base/export.h"
#include "base/report.h"
#include "base/reserved.h"
#include "engine/timers.h"

#include <infiniband/mad_fields.h>
#include <errno.h>
#include <stdlib.h>

/* Invalid-request codes in a MAD's status (IBA 13.4.7). */
enum {
	STATUS_CODE_SHIFT = 2,
	STATUS_CODE_MASK = 7,
	BAD_VERSION = 1,
	BAD_METHOD = 2,
	BAD_ATTRIBUTE = 3
};

/* --- nodes ---------------------------------------------------------------------- */

EXPORT struct mad_counters_node *mad_counters_node_create(void)
{
	struct mad_counters_node *node = calloc(1, sizeof(*node));

	if (!node) {
		failure_refuse_call(MAD_FAILURE_OTHER, 0, ENOMEM);
		return NULL;
	}
	node->users = 1;
	return node;
}

EXPORT void mad_counters_node_free(struct mad_counters_node *node)
{
	node_release(node);
}

void node_hold(struct mad_counters_node *node)
{
	if (node)
		node->users++;
}

void node_release(struct mad_counters_node *node)
{
	if (node && !--node->users)
		free(node);
}

bool node_recall(struct mad_counters_node *node, struct abilities *abilities)
{
	bool known = node && node->known;

	if (node)
		*abilities = (struct abilities){
			.capability_mask = (uint32_t)(node->capabilities >> 32),
			.capability_mask2 = (uint32_t)node->capabilities,
			.refused = node->refused,
		};
	return known;
}

void node_learn(struct mad_counters_node *node, const struct abilities *abilities)
{
	if (!node)
		return;
	node->capabilities =
		(uint64_t)abilities->capability_mask << 32 | abilities->capability_mask2;
	node->refused |= abilities->refused;
	node->known = true;
}

/* --- readings ------------------------------------------------------------------- */

#define DETAIL_GROUPS (SOURCE_CLASS_PORT_INFO - COUNTER_SOURCES)

static bool are_valid(const struct mad_counters_options *options)
{
	if (!is_reserved(options->reserved))
		return false;
	if (options->details >> DETAIL_GROUPS || (options->details && !options->details_to))
		return false;
	return options->timeout_ms >= 0 &&
	       (!options->counters || options->counters & MAD_COUNTERS_ALL);
}

bool reading_is_valid(const ib_portid_t *dport, unsigned port_number,
		      const struct mad_counters_options *options)
{
	return dport && IB_LID_VALID(dport->lid) && port_number <= UINT8_MAX &&
	       (!options || are_valid(options));
}

/* Copies details from or to the program's structure, whose size may differ. */
static void copy_details(const struct mad_counters_options *options,
			 struct mad_counters_details *details, bool to_program)
{
	size_t size = options->details_size < sizeof(*details) ? options->details_size
							       : sizeof(*details);

	if (to_program)
		memcpy(options->details_to, details, size);
	else
		memcpy(details, options->details_to, size);
}

void reading_init(struct reading *reading, unsigned port_number,
		  const struct mad_counters_options *options, bool resets)
{
	*reading = (struct reading){
		.resets = resets,
		.counters = {.size = sizeof(reading->counters), .port = (uint8_t)port_number},
	};
	if (options)
		reading->options = *options;
	options = &reading->options;
	if (!options->counters && !options->details)
		reading->options.counters = MAD_COUNTERS_DEFAULT;
	if (resets)
		reading->options.details = 0;
	if (options->details && options->details_to) {
		struct mad_counters_details details = {.port = (uint8_t)port_number};

		memset(options->details_to, 0, options->details_size);
		copy_details(options, &details, true);
	}
}

/* Requested counters that only this or a later attribute has. */
static uint64_t wanted_counters(const struct reading *reading, enum counter_source source)
{
	const struct abilities *abilities = &reading->abilities;

	if ((reading->asked | abilities->refused) >> source & 1 ||
	    (reading->options.basic && source == SOURCE_EXTENDED))
		return 0;
	return counter_source_offers(source, abilities->capability_mask,
				     abilities->capability_mask2) &
	       reading->options.counters & ~reading->counters.present;
}

enum counter_source reading_next(struct reading *reading, int *error)
{
	const struct mad_counters_options *options = &reading->options;
	const struct abilities *abilities = &reading->abilities;
	bool is_of_all_ports = reading->counters.port == MAD_COUNTERS_ALL_PORTS;
	bool needs_class_port_info = (options->counters && !options->basic) || is_of_all_ports;
	unsigned groups = options->details << COUNTER_SOURCES, left;

	*error = 0;
	if (!reading->asked)
		reading->is_known = node_recall(options->node, &reading->abilities);
	if (needs_class_port_info && !reading->is_known)
		return SOURCE_CLASS_PORT_INFO;
	if (is_of_all_ports && !(abilities->capability_mask & MAD_PMA_ALL_PORT_SELECT)) {
		*error = -EOPNOTSUPP;
		return SOURCE_NONE;
	}
	for (unsigned source = 0; source < COUNTER_SOURCES; source++)
		if (wanted_counters(reading, source))
			return source;
	left = groups & ~(unsigned)(reading->asked | abilities->refused);
	if (left)
		return (unsigned)__builtin_ctz(left);
	if (!reading->counters.present && !(groups & ~(unsigned)abilities->refused))
		*error = -EOPNOTSUPP;
	return SOURCE_NONE;
}

static void set_select(uint8_t *data, enum counter_source source, uint64_t select)
{
	if (source == SOURCE_SPEEDS) {
		mad_set_field64(data, 0, IB_PESC_COUNTER_SELECT_F, select);
		return;
	}
	mad_set_field(data, 0, IB_PC_COUNTER_SELECT_F, select & UINT16_MAX);
	if (source == SOURCE_EXTENDED)
		mad_set_field(data, 0, IB_PC_EXT_COUNTER_SELECT2_F, (uint32_t)(select >> 16));
	else if (source == SOURCE_BASIC)
		mad_set_field(data, 0, IB_PC_COUNTER_SELECT2_F, (uint32_t)(select >> 16));
}

ib_rpc_t reading_request(const struct reading *reading, enum counter_source source,
			 uint8_t *data)
{
	ib_rpc_t rpc = {
		.mgtclass = IB_PERFORMANCE_CLASS,
		.method = IB_MAD_METHOD_GET,
		.attr.id = counter_source_attribute(source),
		.dataoffs = IB_PC_DATA_OFFS,
		.datasz = IB_PC_DATA_SZ,
		.timeout = reading->options.timeout_ms,
	};

	memset(data, 0, IB_PC_DATA_SZ);
	if (source == SOURCE_CLASS_PORT_INFO)
		return rpc;
	mad_set_field(data, 0, IB_PC_PORT_SELECT_F, reading->counters.port);
	if (reading->resets) {
		uint64_t wanted = wanted_counters(reading, source);

		rpc.method = IB_MAD_METHOD_SET;
		set_select(data, source, counter_source_select(source, wanted));
	}
	return rpc;
}

/* Whether a failed request means that the node lacks the attribute. */
static bool is_refused(enum counter_source source, const struct mad_failure *failure)
{
	unsigned code = failure->status >> STATUS_CODE_SHIFT & STATUS_CODE_MASK;

	/* every node has PortCounters: the error has another cause */
	return source != SOURCE_BASIC && failure->error == -EIO &&
	       (code == BAD_VERSION || code == BAD_METHOD || code == BAD_ATTRIBUTE);
}

static void take_refusal(struct reading *reading, enum counter_source source)
{
	struct mad_counters_node *node = reading->options.node;

	if (source == SOURCE_CLASS_PORT_INFO) {
		/* the node only has PortCounters */
		reading->is_known = true;
		node_learn(node, &reading->abilities);
		return;
	}
	reading->abilities.refused |= (uint16_t)(1U << source);
	if (node)
		node->refused |= (uint16_t)(1U << source);
}

int reading_take(struct reading *reading, enum counter_source source, int error,
		 const uint8_t *data, size_t size)
{
	struct mad_counters *counters = &reading->counters;
	uint64_t wanted = source < COUNTER_SOURCES ? wanted_counters(reading, source) : 0;
	struct mad_counters_details details = {0};

	reading->asked |= (uint16_t)(1U << source);
	if (error) {
		reading->failure = *mad_last_failure();
		if (is_refused(source, &reading->failure)) {
			take_refusal(reading, source);
			return 0;
		}
		counters->status = error == -EIO ? reading->failure.status : 0;
		return error;
	}
	if (reading->resets && source != SOURCE_CLASS_PORT_INFO) {
		counters->present |= wanted;
		return 0;
	}
	if (size < IB_PC_DATA_SZ)
		return -EBADMSG;
	if (source == SOURCE_CLASS_PORT_INFO) {
		reading->abilities.capability_mask =
			(uint32_t)mad_read_field(data, 0, IB_CPI_CAPMASK_F);
		reading->abilities.capability_mask2 =
			(uint32_t)mad_read_field(data, 0, IB_CPI_CAPMASK2_F);
		reading->is_known = true;
		node_learn(reading->options.node, &reading->abilities);
	} else if (source >= COUNTER_SOURCES) {
		copy_details(&reading->options, &details, false);
		details_read(source, data, &details);
		details.time_us = (uint64_t)clock_us();
		copy_details(&reading->options, &details, true);
	} else {
		counters->time_us = (uint64_t)clock_us();
		counters->response_us[source] = counters->time_us;
		if (mad_read_field(data, 0, IB_PC_PORT_SELECT_F) != counters->port)
			counters->odd |= MAD_COUNTERS_ODD_PORT;
		counter_source_read(source, data, wanted, counters);
	}
	return 0;
}

void reading_complete(struct reading *reading)
{
	reading->counters.capability_mask = reading->abilities.capability_mask;
	reading->counters.capability_mask2 = reading->abilities.capability_mask2;
	/* ClassPortInfo promised the attribute */
	if (reading->abilities.refused & 1U << SOURCE_EXTENDED)
		reading->counters.odd |= MAD_COUNTERS_ODD_CAPABILITY;
}

/* --- failures ------------------------------------------------------------------- */

int counters_fail(int error)
{
	if (error < 0)
		failure_store(&(struct mad_failure){.error = error,
						    .mgmt_class = IB_PERFORMANCE_CLASS,
						    .kind = error == -EPROTONOSUPPORT
								    ? MAD_FAILURE_REQUEST
								    : MAD_FAILURE_OTHER});
	return error;
}

int reading_fail(const struct reading *reading, int error)
{
	if (!error || reading->failure.error != error)
		return counters_fail(error);
	failure_store(&reading->failure);
	return error;
}
