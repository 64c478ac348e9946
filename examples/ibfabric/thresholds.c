/* SPDX-License-Identifier: BSD-2-Clause */

/* From which values on the error counters of a port are a fault. */

#include "ibfabric.h"

#include <ctype.h>
#include <errno.h>

/*
 * The totals are those that ibqueryerrors comes with. Switches count relayed multicast packets
 * that return to their source as rcv_switch_relay_errors, so that a total tells nothing.
 */
struct threshold thresholds[THRESHOLD_COUNT] = {
	{MAD_COUNTER_LINK_DOWNED, GROUP_DOWNED, 10, 0},
	{MAD_COUNTER_SYMBOL_ERRORS, GROUP_PHYSICAL, 10, 0},
	{MAD_COUNTER_LINK_RECOVERIES, GROUP_PHYSICAL, 10, 0},
	{MAD_COUNTER_RCV_ERRORS, GROUP_PHYSICAL, 10, 0},
	{MAD_COUNTER_LOCAL_LINK_INTEGRITY_ERRORS, GROUP_PHYSICAL, 10, 0},
	{MAD_COUNTER_FEC_UNCORRECTABLE_BLOCKS, GROUP_PHYSICAL, 10, 0},
	{MAD_COUNTER_XMIT_DISCARDS, GROUP_DISCARDS, 100, 0},
	{MAD_COUNTER_RCV_REMOTE_PHYSICAL_ERRORS, GROUP_REMOTE, 100, 100},
	{MAD_COUNTER_RCV_SWITCH_RELAY_ERRORS, GROUP_ROUTING, UINT64_MAX, 100},
	{MAD_COUNTER_XMIT_CONSTRAINT_ERRORS, GROUP_PARTITION, 100, 0},
	{MAD_COUNTER_RCV_CONSTRAINT_ERRORS, GROUP_PARTITION, 100, 0},
	{MAD_COUNTER_EXCESSIVE_BUFFER_OVERRUN_ERRORS, GROUP_BUFFERS, 10, 0},
	{MAD_COUNTER_VL15_DROPPED, GROUP_MADS, 100, 100},
	{MAD_COUNTER_QP1_DROPPED, GROUP_MADS, 100, 100},
};

unsigned find_counter(const char *name, size_t length)
{
	unsigned begins = MAD_COUNTER_COUNT, count = 0;

	for (unsigned i = 0; length && i < MAD_COUNTER_COUNT; i++) {
		const struct mad_counter_info *info = mad_counters_info(i);

		if ((strlen(info->name) == length &&
		     strncasecmp(info->name, name, length) == 0) ||
		    (strlen(info->field) == length &&
		     strncasecmp(info->field, name, length) == 0))
			return i;
		if (strncasecmp(info->name, name, length) == 0) {
			begins = i;
			count++;
		}
	}
	return count == 1 ? begins : MAD_COUNTER_COUNT;
}

/* A number, or "off". */
static bool read_limit(const char *text, uint64_t *limit)
{
	char *end;

	if (strcmp(text, "off") == 0) {
		*limit = UINT64_MAX;
		return true;
	}
	errno = 0;
	*limit = strtoull(text, &end, 0);
	return isdigit((unsigned char)*text) && !*end && !errno;
}

/* NAME=LIMIT or NAME.rise=LIMIT. Counters that are not errors, such as ibqueryerrors'
 * PortXmitWait, are no faults: the line is skipped. */
static bool read_line(char *line)
{
	char *equals = strchr(line, '=');
	size_t length;
	bool rise;
	uint64_t limit;
	unsigned counter;

	if (!equals || !read_limit(equals + 1, &limit))
		return false;
	length = (size_t)(equals - line);
	rise = length > 5 && strncmp(equals - 5, ".rise", 5) == 0;
	counter = find_counter(line, rise ? length - 5 : length);
	for (unsigned i = 0; i < THRESHOLD_COUNT; i++)
		if (thresholds[i].counter == counter)
			*(rise ? &thresholds[i].rise : &thresholds[i].total) = limit;
	return counter < MAD_COUNTER_COUNT;
}

void load_thresholds(const char *path)
{
	FILE *file = fopen(path, "re");
	char line[256];
	unsigned number = 0;

	if (!file)
		die("%s: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), file)) {
		size_t used = 0;

		number++;
		/* the line without its comment and its blanks */
		for (size_t i = 0; line[i] && line[i] != '#'; i++)
			if (!isspace((unsigned char)line[i]))
				line[used++] = line[i];
		line[used] = 0;
		if (used && !read_line(line))
			die("%s: line %u is not COUNTER=NUMBER", path, number);
	}
	if (ferror(file))
		die("%s: %s", path, strerror(errno));
	fclose(file);
}
