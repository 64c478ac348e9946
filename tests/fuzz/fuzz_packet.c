/* SPDX-License-Identifier: BSD-2-Clause */

/* Packets of any request, destination and RMPP header, into a buffer of exactly one MAD. */

#include "fuzz.h"

#include <infiniband/mad.h>
#include <infiniband/umad.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	uint8_t *umad = calloc(1, umad_size() + IB_MAD_SIZE), payload[IB_MAD_SIZE];
	ib_rpc_cc_t rpc;
	ib_rmpp_hdr_t rmpp;
	ib_portid_t to;
	int flags, length;

	take_bytes(&input, &rpc, sizeof(rpc));
	take_bytes(&input, &to, sizeof(to));
	take_bytes(&input, &rmpp, sizeof(rmpp));
	take_bytes(&input, payload, sizeof(payload));
	flags = (int)take(&input, 1);
	length = mad_build_pkt(umad, (ib_rpc_t *)&rpc, &to, flags & 1 ? &rmpp : NULL,
			       flags & 2 ? payload : NULL);
	check(length == -1 || length == IB_MAD_SIZE);
	check(length >= 0 || flags & 2 || (rpc.mgtclass & 0xff) == IB_SMI_DIRECT_CLASS);
	check(length < 0 || rpc.trid != 0);
	free(umad);
	return 0;
}
