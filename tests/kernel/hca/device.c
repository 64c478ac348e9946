// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

/* The InfiniBand device: its attributes, ports, tables, events, counters. */
#include <linux/slab.h>

#include "sim_hca.h"

#define PKEYS_PER_BLOCK 32
#define GUIDS_PER_BLOCK 8

/* --- queries --------------------------------------------------------------------- */

static int query_device(struct ib_device *device, struct ib_device_attr *attr,
			struct ib_udata *udata)
{
	const struct sim_hca_create *create = &hca_of(device)->create;

	memset(attr, 0, sizeof(*attr));
	attr->sys_image_guid = cpu_to_be64(create->system_guid);
	attr->vendor_id = create->vendor_id;
	attr->vendor_part_id = create->device_id;
	attr->hw_ver = create->hardware_version;
	attr->max_qp = 2 * create->port_count;
	attr->max_qp_wr = MOST_WORK;
	attr->max_send_sge = 8;
	attr->max_recv_sge = 1;
	attr->max_cq = 4 * create->port_count;
	attr->max_cqe = MOST_COMPLETIONS;
	attr->max_pd = 1 << 16;
	attr->max_ah = 1 << 16;
	attr->max_pkeys = hca_of(device)->pkey_count;
	attr->kernel_cap_flags = IBK_LOCAL_DMA_LKEY;
	return 0;
}

static u16 extended_speed(u8 active)
{
	return active & 8   ? IB_SPEED_NDR
	       : active & 4 ? IB_SPEED_HDR
	       : active & 2 ? IB_SPEED_EDR
			    : IB_SPEED_FDR;
}

/* LinkSpeedActive, LinkSpeedExtActive, and FDR10, which has no code in PortInfo: the vendor's
 * attribute tells it (IBA 14.2.5.6). */
static u16 active_speed(struct hca *hca, u32 port, const u8 *data)
{
	u8 vendor[IB_SMP_DATA_SIZE];
	u8 extended = data[62] >> 4;

	if (data[56] >> 5 & 3)
		return SPEED_XDR;
	if (extended)
		return extended_speed(extended);
	if (data[35] >> 4 == IB_SPEED_QDR &&
	    !hca_get(hca, port, cpu_to_be16(0xff90), port, vendor) && vendor[15] & 1)
		return IB_SPEED_FDR10;
	return data[35] >> 4;
}

static int query_port(struct ib_device *device, u32 port, struct ib_port_attr *attr)
{
	struct hca *hca = hca_of(device);
	union {
		u8 data[IB_SMP_DATA_SIZE];
		struct ib_port_info info;
	} port_info;
	const struct ib_port_info *info = &port_info.info;
	int error = hca_get(hca, port, IB_SMP_ATTR_PORT_INFO, port, port_info.data);

	if (error)
		return error;
	attr->state = info->linkspeed_portstate & 15;
	attr->phys_state = info->portphysstate_linkdown >> 4;
	attr->max_mtu = info->inittypereply_mtucap & 15;
	attr->active_mtu = info->neighbormtu_mastersmsl >> 4;
	attr->gid_tbl_len = info->guid_cap;
	attr->pkey_tbl_len = hca->pkey_count;
	attr->port_cap_flags = be32_to_cpu(info->cap_mask);
	attr->port_cap_flags2 = port_info.data[60] << 8 | port_info.data[61];
	attr->max_msg_sz = 1U << 31;
	attr->bad_pkey_cntr = be16_to_cpu(info->pkey_violations);
	attr->qkey_viol_cntr = be16_to_cpu(info->qkey_violations);
	attr->lid = be16_to_cpu(info->lid);
	attr->sm_lid = be16_to_cpu(info->sm_lid);
	attr->lmc = info->mkeyprot_resv_lmc & 7;
	attr->sm_sl = info->neighbormtu_mastersmsl & 15;
	attr->max_vl_num = info->vlcap_inittype >> 4;
	attr->init_type_reply = info->inittypereply_mtucap >> 4;
	attr->subnet_timeout = info->clientrereg_resv_subnetto & 31;
	attr->active_width = info->link_width_active;
	attr->active_speed = active_speed(hca, port, port_info.data);
	return 0;
}

static int query_pkey(struct ib_device *device, u32 port, u16 index, u16 *pkey)
{
	__be16 pkeys[PKEYS_PER_BLOCK];
	int error;

	if (index >= hca_of(device)->pkey_count)
		return -EINVAL;
	error = hca_get(hca_of(device), port, IB_SMP_ATTR_PKEY_TABLE, index / PKEYS_PER_BLOCK,
			(u8 *)pkeys);
	if (!error)
		*pkey = be16_to_cpu(pkeys[index % PKEYS_PER_BLOCK]);
	return error;
}

static int query_gid(struct ib_device *device, u32 port, int index, union ib_gid *gid)
{
	__be64 guids[GUIDS_PER_BLOCK];
	union {
		u8 data[IB_SMP_DATA_SIZE];
		struct ib_port_info info;
	} port_info;
	int error = hca_get(hca_of(device), port, IB_SMP_ATTR_PORT_INFO, port, port_info.data);

	if (!error && index >= port_info.info.guid_cap)
		error = -EINVAL;
	if (!error)
		error = hca_get(hca_of(device), port, IB_SMP_ATTR_GUID_INFO,
				index / GUIDS_PER_BLOCK, (u8 *)guids);
	if (error)
		return error;
	gid->global.subnet_prefix = port_info.info.gid_prefix;
	gid->global.interface_id = guids[index % GUIDS_PER_BLOCK];
	return 0;
}

static enum rdma_link_layer get_link_layer(struct ib_device *device, u32 port)
{
	return IB_LINK_LAYER_INFINIBAND;
}

static int get_port_immutable(struct ib_device *device, u32 port,
			      struct ib_port_immutable *immutable)
{
	struct ib_port_attr attr = {};
	int error = query_port(device, port, &attr);

	if (error)
		return error;
	immutable->pkey_tbl_len = attr.pkey_tbl_len;
	immutable->gid_tbl_len = attr.gid_tbl_len;
	immutable->core_cap_flags = RDMA_CORE_PORT_IBA_IB;
	immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}

static void get_firmware(struct ib_device *device, char *text)
{
	snprintf(text, IB_FW_VERSION_NAME_MAX, "%s", hca_of(device)->create.firmware);
}

/* --- changes --------------------------------------------------------------------- */

static int perform(struct hca *hca, u32 port, const struct sim_hca_command *request)
{
	struct command *command = kzalloc(sizeof(*command), GFP_KERNEL);
	int error;

	if (!command)
		return -ENOMEM;
	command->request = *request;
	error = command_perform(hca, port, command);
	kfree(command);
	return error;
}

static int modify_port(struct ib_device *device, u32 port, int mask,
		       struct ib_port_modify *modify)
{
	struct sim_hca_command request = {
		.operation = SIM_HCA_CAPABILITIES,
		.set = modify->set_port_cap_mask,
		.clear = modify->clr_port_cap_mask,
	};

	if (mask)
		return -EOPNOTSUPP;
	return perform(hca_of(device), port, &request);
}

static int modify_device(struct ib_device *device, int mask, struct ib_device_modify *modify)
{
	struct sim_hca_command request = {.operation = SIM_HCA_DESCRIPTION};
	int error;

	if (mask & ~IB_DEVICE_MODIFY_NODE_DESC)
		return -EOPNOTSUPP;
	if (!(mask & IB_DEVICE_MODIFY_NODE_DESC))
		return 0;
	memcpy(request.data, modify->node_desc, IB_DEVICE_NODE_DESC_MAX);
	error = perform(hca_of(device), 1, &request);
	if (!error)
		memcpy(device->node_desc, modify->node_desc, IB_DEVICE_NODE_DESC_MAX);
	return error;
}

void hca_event(struct hca *hca, u32 port, u32 number)
{
	static const enum ib_event_type types[] = {
		[SIM_HCA_LID_CHANGE] = IB_EVENT_LID_CHANGE,
		[SIM_HCA_SM_CHANGE] = IB_EVENT_SM_CHANGE,
		[SIM_HCA_REREGISTER] = IB_EVENT_CLIENT_REREGISTER,
		[SIM_HCA_PKEY_CHANGE] = IB_EVENT_PKEY_CHANGE,
		[SIM_HCA_GID_CHANGE] = IB_EVENT_GID_CHANGE,
		[SIM_HCA_PORT_ACTIVE] = IB_EVENT_PORT_ACTIVE,
		[SIM_HCA_PORT_ERROR] = IB_EVENT_PORT_ERR,
	};
	struct ib_event event = {.device = &hca->ib, .element.port_num = port};

	if (number < SIM_HCA_LID_CHANGE || number >= ARRAY_SIZE(types) ||
	    !READ_ONCE(hca->wire->registered))
		return;
	event.event = types[number];
	count(hca, port, COUNT_EVENTS);
	ib_dispatch_event(&event);
}

/* --- sysfs ----------------------------------------------------------------------- */

static ssize_t hw_rev_show(struct device *device, struct device_attribute *attribute,
			   char *text)
{
	struct hca *hca = rdma_device_to_drv_device(device, struct hca, ib);

	return sysfs_emit(text, "%x\n", hca->create.hardware_version);
}
static DEVICE_ATTR_RO(hw_rev);

static ssize_t hca_type_show(struct device *device, struct device_attribute *attribute,
			     char *text)
{
	struct hca *hca = rdma_device_to_drv_device(device, struct hca, ib);

	return sysfs_emit(text, "%s\n", hca->create.type);
}
static DEVICE_ATTR_RO(hca_type);

static ssize_t board_id_show(struct device *device, struct device_attribute *attribute,
			     char *text)
{
	struct hca *hca = rdma_device_to_drv_device(device, struct hca, ib);

	return sysfs_emit(text, "%s\n", hca->create.board);
}
static DEVICE_ATTR_RO(board_id);

static struct attribute *attributes[] = {
	&dev_attr_hw_rev.attr,
	&dev_attr_hca_type.attr,
	&dev_attr_board_id.attr,
	NULL,
};

static const struct attribute_group attribute_group = {.attrs = attributes};

/* The parent, as the PCI device of an adapter: the folder "device" of the InfiniBand device. */
struct adapter {
	struct device device;
	u32 vendor_id;
	u32 device_id;
};

static ssize_t vendor_show(struct device *device, struct device_attribute *attribute,
			   char *text)
{
	return sysfs_emit(text, "0x%04x\n",
			  container_of(device, struct adapter, device)->vendor_id & 0xffff);
}
static DEVICE_ATTR_RO(vendor);

static ssize_t device_show(struct device *device, struct device_attribute *attribute,
			   char *text)
{
	return sysfs_emit(text, "0x%04x\n",
			  container_of(device, struct adapter, device)->device_id & 0xffff);
}
static DEVICE_ATTR_RO(device);

static struct attribute *adapter_attributes[] = {
	&dev_attr_vendor.attr,
	&dev_attr_device.attr,
	NULL,
};
static const struct attribute_group adapter_group = {.attrs = adapter_attributes};
static const struct attribute_group *adapter_groups[] = {&adapter_group, NULL};

static void adapter_release(struct device *device)
{
	kfree(container_of(device, struct adapter, device));
}

static int add_adapter(struct hca *hca)
{
	struct adapter *adapter = kzalloc(sizeof(*adapter), GFP_KERNEL);
	int error;

	if (!adapter)
		return -ENOMEM;
	adapter->vendor_id = hca->create.vendor_id;
	adapter->device_id = hca->create.device_id;
	device_initialize(&adapter->device);
	adapter->device.release = adapter_release;
	adapter->device.groups = adapter_groups;
	error = dev_set_name(&adapter->device, "sim_hca:%s", hca->create.name);
	if (!error)
		error = device_add(&adapter->device);
	if (error) {
		put_device(&adapter->device);
		return error;
	}
	hca->adapter = &adapter->device;
	hca->ib.dev.parent = hca->adapter;
	return 0;
}

/* --- counters -------------------------------------------------------------------- */

static const struct rdma_stat_desc count_names[COUNTS] = {
	[COUNT_SENT].name = "sent_pkts",
	[COUNT_SENDS_DROPPED].name = "send_dropped",
	[COUNT_RECEIVED].name = "rcvd_pkts",
	[COUNT_MALFORMED].name = "rcv_malformed",
	[COUNT_WRONG_QP].name = "rcv_wrong_qp",
	[COUNT_WRONG_QKEY].name = "rcv_wrong_qkey",
	[COUNT_NO_BUFFER].name = "rcv_no_buffer",
	[COUNT_COMMANDS].name = "commands",
	[COUNT_COMMANDS_FAILED].name = "commands_failed",
	[COUNT_EVENTS].name = "events",
};

static struct rdma_hw_stats *alloc_stats(struct ib_device *device, u32 port)
{
	return rdma_alloc_hw_stats_struct(count_names, COUNTS, 0);
}

static int get_stats(struct ib_device *device, struct rdma_hw_stats *stats, u32 port, int index)
{
	if (!port || !stats)
		return -EINVAL;
	for (int i = 0; i < COUNTS; i++)
		stats->value[i] = atomic64_read(&hca_of(device)->ports[port].counts[i]);
	return COUNTS;
}

/* --- the device ------------------------------------------------------------------ */

static struct ib_mr *reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 address,
				 int access, REG_USER_MR_LAST)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static const struct ib_device_ops operations = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.device_group = &attribute_group,
	.alloc_hw_port_stats = alloc_stats,
	.get_dev_fw_str = get_firmware,
	.get_hw_stats = get_stats,
	.get_link_layer = get_link_layer,
	.get_port_immutable = get_port_immutable,
	.modify_device = modify_device,
	.modify_port = modify_port,
	.process_mad = hca_process_mad,
	.query_device = query_device,
	.query_gid = query_gid,
	.query_pkey = query_pkey,
	.query_port = query_port,
	.reg_user_mr = reg_user_mr,
};

static bool is_text(const char *text, size_t room)
{
	return strnlen(text, room) < room;
}

/* The name becomes that of folders: no pattern, and no path. */
static bool is_sensible(const struct sim_hca_create *create)
{
	return create->version == SIM_HCA_VERSION && create->port_count >= 1 &&
	       create->port_count <= MOST_PORTS &&
	       is_text(create->name, sizeof(create->name)) && create->name[0] &&
	       create->name[0] != '.' && !strpbrk(create->name, "%/\n") &&
	       is_text(create->firmware, sizeof(create->firmware)) &&
	       is_text(create->board, sizeof(create->board)) &&
	       is_text(create->type, sizeof(create->type));
}

int hca_create(struct wire *wire, const struct sim_hca_create *create)
{
	struct hca *hca;

	if (!is_sensible(create))
		return -EINVAL;
	hca = ib_alloc_device(hca, ib);
	if (!hca)
		return -ENOMEM;
	hca->create = *create;
	hca->wire = wire;
	hca->ib.node_type = RDMA_NODE_IB_CA;
	hca->ib.phys_port_cnt = create->port_count;
	hca->ib.num_comp_vectors = 1;
	hca->ib.node_guid = cpu_to_be64(create->node_guid);
	memcpy(hca->ib.node_desc, create->node_description, sizeof(create->node_description));
	ib_set_device_ops(&hca->ib, &operations);
	ib_set_device_ops(&hca->ib, &queue_operations);
	smp_store_release(&wire->hca, hca);
	return 0;
}

int hca_register(struct hca *hca)
{
	union {
		u8 data[IB_SMP_DATA_SIZE];
		struct ib_node_info info;
	} node_info;
	int error = hca_get(hca, 1, IB_SMP_ATTR_NODE_INFO, 0, node_info.data);

	if (error)
		return error;
	hca->pkey_count = be16_to_cpu(node_info.info.partition_cap);
	error = add_adapter(hca);
	if (error)
		return error;
	error = ib_register_device(&hca->ib, hca->create.name, NULL);
	if (error)
		device_unregister(hca->adapter);
	return error;
}

void hca_unregister(struct hca *hca)
{
	ib_unregister_device(&hca->ib);
	device_unregister(hca->adapter);
}
