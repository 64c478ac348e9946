/* SPDX-License-Identifier: BSD-2-Clause */

/* Registers agents (IBA 13.4.4: classes; kernel: user_mad, "Creating MAD agents"). */

#include "export.h"
#include "kernel_abi.h"
#include "log.h"
#include "packet.h"
#include "sys.h"

#include <infiniband/umad_types.h>
#include <limits.h>
#include <string.h>

#define OUI_MAX 0xffffff

static bool is_vendor_range2(int mgmt_class)
{
	return mgmt_class >= UMAD_CLASS_VENDOR_RANGE2_START &&
	       mgmt_class <= UMAD_CLASS_VENDOR_RANGE2_END;
}

/* SMPs use QP0, other MADs QP1 (IBA 13.5.1). */
static uint8_t qp_of(int mgmt_class)
{
	return mgmt_class != UMAD_CLASS_SUBN_LID_ROUTED &&
	       mgmt_class != UMAD_CLASS_SUBN_DIRECTED_ROUTE;
}

static void set_oui(struct ib_user_mad_reg_req *req, uint32_t oui)
{
	req->oui[0] = (uint8_t)(oui >> 16);
	req->oui[1] = (uint8_t)(oui >> 8);
	req->oui[2] = (uint8_t)oui;
}

/* Agent ID, checked to fit the type that callers use. */
static int checked_id(uint32_t id)
{
	return id > INT_MAX ? -EIO : (int)id;
}

/* Agent ID, or a negative errno. */
static int register_agent(int fd, struct ib_user_mad_reg_req *req)
{
	int err = sys_ioctl(fd, IB_USER_MAD_REGISTER_AGENT, req);

	if (err < 0) {
		log_info("class 0x%02x version %u cannot be registered on handle %d: %s",
			 req->mgmt_class, req->mgmt_class_version, fd, strerror(-err));
		return err;
	}
	return checked_id(req->id);
}

/* Result of umad_register() and umad_register_oui(): only errno has the cause. */
static int register_for(int fd, struct ib_user_mad_reg_req *req, const long *method_mask)
{
	int id;

	if (method_mask)
		memcpy(req->method_mask, method_mask, sizeof(req->method_mask));
	req->qpn = qp_of(req->mgmt_class);
	id = register_agent(fd, req);
	if (id >= 0)
		return id;
	if (id == -EBADF)
		return fail_errno(-EINVAL);
	errno = -id;
	return -EPERM;
}

EXPORT int umad_register(int portid, int mgmt_class, int mgmt_version, uint8_t rmpp_version,
			 long method_mask[16 / sizeof(long)])
{
	struct ib_user_mad_reg_req req = {.rmpp_version = rmpp_version};

	if (mgmt_class < 0 || mgmt_class > UINT8_MAX || mgmt_version < 0 ||
	    mgmt_version > UINT8_MAX)
		return fail_errno(-EINVAL);
	req.mgmt_class = (uint8_t)mgmt_class;
	req.mgmt_class_version = (uint8_t)mgmt_version;
	set_oui(&req, UMAD_OPENIB_OUI);
	return register_for(portid, &req, method_mask);
}

EXPORT int umad_register_oui(int portid, int mgmt_class, uint8_t rmpp_version, uint8_t oui[3],
			     long method_mask[16 / sizeof(long)])
{
	struct ib_user_mad_reg_req req = {
		.mgmt_class_version = 1,
		.rmpp_version = rmpp_version,
	};

	if (!is_vendor_range2(mgmt_class)) {
		log_info("class 0x%02x is not in vendor range 2", (unsigned)mgmt_class);
		return fail_errno(-EINVAL);
	}
	if (!oui)
		return fail_errno(-EINVAL);
	req.mgmt_class = (uint8_t)mgmt_class;
	memcpy(req.oui, oui, sizeof(req.oui));
	return register_for(portid, &req, method_mask);
}

/* The first ioctl, for kernels before 3.18. */
static int register_without_flags(int fd, const struct umad_reg_attr *attr)
{
	struct ib_user_mad_reg_req req = {
		.qpn = qp_of(attr->mgmt_class),
		.mgmt_class = attr->mgmt_class,
		.mgmt_class_version = attr->mgmt_class_version,
		.rmpp_version = attr->rmpp_version,
	};
	size_t bit;

	/* the kernel reads longs, of any size and byte order */
	for (bit = 0; bit < 128; bit++)
		if (attr->method_mask[bit / 64] >> bit % 64 & 1)
			req.method_mask[bit / (8 * sizeof(long))] |=
				1UL << bit % (8 * sizeof(long));
	set_oui(&req, attr->oui);
	return register_agent(fd, &req);
}

/* Agent ID, or a negative errno; attr->flags becomes what the kernel knows. */
static int register_with_flags(int fd, struct umad_reg_attr *attr)
{
	struct ib_user_mad_reg_req2 req = {
		.qpn = qp_of(attr->mgmt_class),
		.mgmt_class = attr->mgmt_class,
		.mgmt_class_version = attr->mgmt_class_version,
		.flags = attr->flags,
		.method_mask = {attr->method_mask[0], attr->method_mask[1]},
		.oui = attr->oui,
		.rmpp_version = attr->rmpp_version,
	};
	int err = sys_ioctl(fd, IB_USER_MAD_REGISTER_AGENT2, &req);

	if (err >= 0) {
		/* also enables the P_Key index */
		packet_set_layout(true);
		return checked_id(req.id);
	}
	if (err == -ENOTTY || err == -EINVAL) {
		if (!attr->flags)
			return register_without_flags(fd, attr);
		attr->flags = err == -ENOTTY ? 0 : req.flags;
	}
	log_info("class 0x%02x version %u flags 0x%x cannot be registered on handle %d: "
		 "%s",
		 attr->mgmt_class, attr->mgmt_class_version, (unsigned)req.flags, fd,
		 strerror(-err));
	return err;
}

EXPORT int umad_register2(int port_fd, struct umad_reg_attr *attr, uint32_t *agent_id)
{
	int id;

	if (!attr || !agent_id || attr->oui > OUI_MAX ||
	    (is_vendor_range2(attr->mgmt_class) && !attr->oui))
		return -fail_errno(-EINVAL);
	id = register_with_flags(port_fd, attr);
	if (id < 0)
		return -fail_errno(id == -EBADF ? -EINVAL : id);
	*agent_id = (uint32_t)id;
	return 0;
}

EXPORT int umad_unregister(int portid, int agentid)
{
	uint32_t id = (uint32_t)agentid;
	int err;

	if (agentid < 0)
		return fail_errno(-EINVAL);
	err = sys_ioctl(portid, IB_USER_MAD_UNREGISTER_AGENT, &id);
	if (err < 0)
		return fail_errno(err == -EBADF ? -EINVAL : err);
	return 0;
}
