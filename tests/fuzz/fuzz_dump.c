/* SPDX-License-Identifier: BSD-2-Clause */

/* Every printer on any value, into a buffer of any size. */

#include "fuzz.h"

#include <infiniband/mad_fields.h>

static ib_mad_dump_fn *const printers[] = {
	mad_dump_int,
	mad_dump_uint,
	mad_dump_hex,
	mad_dump_rhex,
	mad_dump_bitfield,
	mad_dump_array,
	mad_dump_string,
	mad_dump_linkwidth,
	mad_dump_linkwidthsup,
	mad_dump_linkwidthen,
	mad_dump_linkdowndefstate,
	mad_dump_linkspeed,
	mad_dump_linkspeedsup,
	mad_dump_linkspeeden,
	mad_dump_linkspeedext,
	mad_dump_linkspeedextsup,
	mad_dump_linkspeedexten,
	mad_dump_linkspeedext2,
	mad_dump_linkspeedextsup2,
	mad_dump_linkspeedexten2,
	mad_dump_portstate,
	mad_dump_portstates,
	mad_dump_physportstate,
	mad_dump_portcapmask,
	mad_dump_portcapmask2,
	mad_dump_mtu,
	mad_dump_vlcap,
	mad_dump_opervls,
	mad_dump_node_type,
	mad_dump_sltovl,
	mad_dump_vlarbitration,
	mad_dump_nodedesc,
	mad_dump_nodeinfo,
	mad_dump_portinfo,
	mad_dump_switchinfo,
	mad_dump_perfcounters,
	mad_dump_perfcounters_ext,
	mad_dump_portsamples_control,
	mad_dump_port_ext_speeds_counters_rsfec_active,
	mad_dump_classportinfo,
	mad_dump_portinfo_ext,
	mad_dump_cc_switchcongestionsetting,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	size_t printer = take(&input, 1) % COUNT(printers);
	int bufsz = (int)(take(&input, 2) % 4096), valsz = (int)(int8_t)take(&input, 1);
	enum MAD_FIELDS field = (enum MAD_FIELDS)(take(&input, 2) % 700);
	int start = (int)(take(&input, 2) % 700), end = (int)(take(&input, 2) % 700);
	char *text = malloc(bufsz ? (size_t)bufsz : 1);
	uint64_t value[64] = {0};

	take_bytes(&input, value, sizeof(value));
	printers[printer](text, bufsz, value, valsz);
	check(!bufsz || strnlen(text, (size_t)bufsz) < (size_t)bufsz);
	if (mad_dump_val(field, text, bufsz, value))
		check(!bufsz || strnlen(text, (size_t)bufsz) < (size_t)bufsz);
	if (mad_dump_field(field, text, bufsz, value))
		check(strnlen(text, (size_t)bufsz) < (size_t)bufsz);
	mad_dump_fields(text, bufsz, value, sizeof(value), start, end);
	check(!bufsz || strnlen(text, (size_t)bufsz) < (size_t)bufsz);
	free(text);
	return 0;
}
