// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

/* The agents of the adapter: subnet management, performance, congestion control. */
#include <linux/slab.h>

#include "sim_hca.h"

#define CLASS_CONGESTION 0x21

/* Whether the adapter has the agent for a MAD. The others are for agents of the host. */
static bool is_for_adapter(const struct ib_mad_hdr *header)
{
	bool smp = header->mgmt_class == IB_MGMT_CLASS_SUBN_LID_ROUTED ||
		   header->mgmt_class == IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE;

	switch (header->method) {
	case IB_MGMT_METHOD_GET:
	case IB_MGMT_METHOD_SET:
		if (smp)
			return header->attr_id != IB_SMP_ATTR_SM_INFO;
		return header->mgmt_class == IB_MGMT_CLASS_PERF_MGMT ||
		       header->mgmt_class == CLASS_CONGESTION;
	case IB_MGMT_METHOD_TRAP_REPRESS:
		return smp;
	default:
		return false;
	}
}

int hca_process_mad(struct ib_device *device, int flags, u32 port, const struct ib_wc *wc,
		    const struct ib_grh *grh, const struct ib_mad *in, struct ib_mad *out,
		    size_t *out_size, u16 *out_pkey_index)
{
	struct command *command;
	int result = IB_MAD_RESULT_SUCCESS;

	if (!is_for_adapter(&in->mad_hdr))
		return result;
	command = kzalloc(sizeof(*command), GFP_KERNEL);
	if (!command)
		return IB_MAD_RESULT_FAILURE;
	command->request.operation = SIM_HCA_MAD;
	if (flags & IB_MAD_IGNORE_MKEY)
		command->request.flags = SIM_HCA_IGNORE_MKEY;
	memcpy(command->request.data, in, SIM_HCA_MAD_BYTES);
	if (command_perform(hca_of(device), port, command)) {
		result = IB_MAD_RESULT_FAILURE;
	} else if (command->reply.responds) {
		memcpy(out, command->reply.data, SIM_HCA_MAD_BYTES);
		result |= IB_MAD_RESULT_REPLY;
	} else {
		result |= IB_MAD_RESULT_CONSUMED;
	}
	kfree(command);
	return result;
}

int hca_get(struct hca *hca, u32 port, __be16 attribute, u32 modifier,
	    u8 data[IB_SMP_DATA_SIZE])
{
	struct command *command = kzalloc(sizeof(*command), GFP_KERNEL);
	struct ib_smp *smp;
	int error;

	if (!command)
		return -ENOMEM;
	smp = (struct ib_smp *)command->request.data;
	command->request.operation = SIM_HCA_MAD;
	command->request.flags = SIM_HCA_IGNORE_MKEY;
	ib_init_query_mad(smp);
	smp->attr_id = attribute;
	smp->attr_mod = cpu_to_be32(modifier);
	error = command_perform(hca, port, command);
	smp = (struct ib_smp *)command->reply.data;
	if (!error && (!command->reply.responds || smp->status))
		error = -EIO;
	if (!error)
		memcpy(data, smp->data, IB_SMP_DATA_SIZE);
	kfree(command);
	return error;
}
