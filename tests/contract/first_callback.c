/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A callback reads the data of a response without a cast. It compiles in C and in C++ with all
 * warnings.
 */

#include <infiniband/mad_async.h>
#include <infiniband/mad_fields.h>

#include <inttypes.h>
#include <stdio.h>

static void node_info_came(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	char description[65];
	ibmad_gid_t guid;

	(void)async;
	(void)arg;
	if (reply->error || reply->data_size < IB_SMP_DATA_SIZE)
		return;
	mad_read_array(reply->data, 0, IB_NODE_GUID_F, guid);
	mad_read_text(reply->data, 0, IB_NODE_DESC_F, description, sizeof(description));
	printf("%s 0x%016" PRIx64 ", %u ports, GUID begins with %02x\n", description,
	       mad_read_field(reply->data, 0, IB_NODE_GUID_F),
	       (unsigned)mad_read_field(reply->data, 0, IB_NODE_NPORTS_F), guid[0]);
}

int main(void)
{
	mad_async_fn *callback = node_info_came;

	return !callback;
}
