/* SPDX-License-Identifier: BSD-2-Clause */

/* TIDs (IBA 13.4.6.4), MAD headers (IBA 13.4.3), and packets in a umad buffer. */

#include "base/export.h"
#include "mad/packet.h"

#include "base/report.h"

#include <infiniband/mad.h>
#include <infiniband/umad.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/random.h>
#include <time.h>

/* --- transaction IDs ------------------------------------------------------------- */

/* trid_is_ours() recognizes this many of the latest TIDs. */
#define OUR_IDS_MAX (1u << 30)

/*
 * A process uses consecutive TIDs from a random start, so that a restarted program does not
 * accept late responses to its earlier requests, and programs don't collide. Upper half: the
 * first TID, or the oldest still recognized; lower half: the last one. 0: not started.
 */
static _Atomic uint64_t our_ids;

/* A fork()ed child must not reuse its parent's TIDs. */
static void forget_ids(void)
{
	atomic_store(&our_ids, 0);
}

static unsigned random_start(void)
{
	struct timespec now;
	unsigned start;

	pthread_atfork(NULL, NULL, forget_ids);
	if (getrandom(&start, sizeof(start), GRND_NONBLOCK) == sizeof(start))
		return start;
	clock_gettime(CLOCK_REALTIME, &now);
	return (unsigned)now.tv_nsec ^ (unsigned)now.tv_sec << 20 ^ (unsigned)getpid() << 8;
}

EXPORT uint64_t mad_trid(void)
{
	uint64_t before = atomic_load(&our_ids), after;
	uint32_t first, next;

	do {
		next = before ? (uint32_t)before + 1 : random_start();
		if (!next)
			next = 1;
		first = before ? (uint32_t)(before >> 32) : next;
		if (next - first >= OUR_IDS_MAX)
			first = next - OUR_IDS_MAX + 1;
		after = (uint64_t)first << 32 | next;
	} while (!atomic_compare_exchange_weak(&our_ids, &before, after));
	return next;
}

bool trid_is_ours(uint32_t tid)
{
	uint64_t ids = atomic_load(&our_ids);
	uint32_t first = (uint32_t)(ids >> 32);

	return ids && tid - first <= (uint32_t)ids - first;
}

/* --- headers and packets ---------------------------------------------------------- */

/* Writes the header's directed route (IBA 14.2.1.2). Returns 0, or -1 for an invalid route. */
static int put_route(uint8_t *mad, const ib_rpc_t *rpc, const ib_dr_path_t *path)
{
	if (!path) {
		report("mad_encode", "a MAD with a directed route needs a path");
		return -1;
	}
	if (path->cnt < 0 || path->cnt >= IB_SUBNET_PATH_HOPS_MAX) {
		report("mad_encode", "a directed route cannot have %d hops", path->cnt);
		return -1;
	}
	/* requests carry the initial path, responses the return path */
	if (rpc->method & IB_MAD_RESPONSE) {
		put16(mad, STATUS_OFFS, (uint16_t)(rpc->rstatus | DIRECTION));
		mad[6] = (uint8_t)(path->cnt + 1);
		memcpy(mad + RETURN_PATH_OFFS, path->p, sizeof(path->p));
	} else {
		put16(mad, STATUS_OFFS, (uint16_t)(rpc->rstatus & ~DIRECTION));
		mad[6] = 0;
		memcpy(mad + INITIAL_PATH_OFFS, path->p, sizeof(path->p));
	}
	mad[HOP_COUNT_OFFS] = (uint8_t)path->cnt;
	put16(mad, 32, path->drslid ? path->drslid : PERMISSIVE_LID);
	put16(mad, 34, path->drdlid ? path->drdlid : PERMISSIVE_LID);
	return 0;
}

/*
 * Writes everything but the data, using mgmt_class rather than rpc's. Returns 0, or -1 for an
 * invalid route.
 */
static int put_headers(uint8_t *mad, const ib_rpc_t *rpc, int mgmt_class, uint64_t trid,
		       const ib_dr_path_t *path)
{
	mad[0] = 1; /* base version */
	mad[1] = (uint8_t)mgmt_class;
	mad[2] = class_version(mgmt_class);
	mad[3] = (uint8_t)rpc->method;
	put16(mad, STATUS_OFFS, (uint16_t)rpc->rstatus);
	put64(mad, 8, trid);
	put16(mad, ATTRIBUTE_OFFS, (uint16_t)rpc->attr.id);
	put32(mad, MODIFIER_OFFS, rpc->attr.mod);
	if (mgmt_class == IB_SA_CLASS) {
		put64(mad, 36, rpc->mkey); /* SM_Key */
		put64(mad, 48, rpc->mask);
		return 0;
	}
	put64(mad, 24,
	      mgmt_class == IB_CC_CLASS ? ((const ib_rpc_cc_t *)rpc)->cckey : rpc->mkey);
	if (mgmt_class == IB_SMI_DIRECT_CLASS)
		return put_route(mad, rpc, path);
	if (mad_is_vendor_range2(mgmt_class))
		put32(mad, 36, (rpc->oui & 0xffffff) | (uint32_t)mad[36] << 24);
	return 0;
}

/* Whether the data fits into one MAD. */
static bool data_fits(const ib_rpc_t *rpc)
{
	return rpc->dataoffs >= 0 && rpc->dataoffs <= IB_MAD_SIZE && rpc->datasz >= 0 &&
	       rpc->datasz <= IB_MAD_SIZE - rpc->dataoffs;
}

/* Stores EINVAL as the failure, sets errno, and returns NULL. */
static void *encoding_refused(void)
{
	failure_refuse_call(MAD_FAILURE_OTHER, 0, EINVAL);
	return NULL;
}

EXPORT void *mad_encode(void *buf, ib_rpc_t *rpc, ib_dr_path_t *drpath, void *data)
{
	uint8_t *mad = buf;

	if (!buf || !rpc || (data && !data_fits(rpc)))
		return encoding_refused();
	if (!rpc->trid)
		rpc->trid = mad_trid();
	if (put_headers(mad, rpc, rpc->mgtclass & 0xff, rpc->trid, drpath))
		return encoding_refused();
	if (data)
		memcpy(mad + rpc->dataoffs, data, (size_t)rpc->datasz);
	return mad + IB_MAD_SIZE;
}

static void put_rmpp_header(uint8_t *mad, const ib_rmpp_hdr_t *rmpp)
{
	mad[RMPP_VERSION_OFFS] = RMPP_VERSION;
	mad[RMPP_TYPE_OFFS] = (uint8_t)rmpp->type;
	mad[RMPP_FLAGS_OFFS] = (uint8_t)(RMPP_RESP_TIME_NONE << 3 | (rmpp->flags & 7));
	mad[RMPP_STATUS_OFFS] = (uint8_t)rmpp->status;
	put32(mad, RMPP_DATA1_OFFS, rmpp->d1.u);
	put32(mad, RMPP_DATA2_OFFS, rmpp->d2.u);
}

/* Writes the destination into the umad header, and the RMPP header if there is one. */
static void put_address(void *umad, uint8_t *mad, int mgmt_class, const ib_portid_t *dport,
			const ib_rmpp_hdr_t *rmpp)
{
	int lid = dport->lid;

	if (!is_smp_class(mgmt_class)) {
		address_gmp(umad, dport, 0);
		if (rmpp)
			put_rmpp_header(mad, rmpp);
		return;
	}
	/* a directed route starts at this port, unless it has a LID part first */
	if (mgmt_class == IB_SMI_DIRECT_CLASS &&
	    (lid <= 0 || dport->drpath.drslid == PERMISSIVE_LID))
		lid = PERMISSIVE_LID;
	umad_set_addr(umad, lid, 0, 0, 0);
	umad_set_grh(umad, NULL);
	umad_set_pkey(umad, 0);
}

int packet_build(void *umad, uint8_t *mad, const ib_rpc_t *rpc, int mgmt_class, uint64_t trid,
		 const ib_portid_t *dport, const ib_rmpp_hdr_t *rmpp)
{
	if (put_headers(mad, rpc, mgmt_class, trid, &dport->drpath))
		return -EINVAL;
	put_address(umad, mad, mgmt_class, dport, rmpp);
	return 0;
}

void rmpp_mark(uint8_t *mad)
{
	mad[RMPP_VERSION_OFFS] = RMPP_VERSION;
	mad[RMPP_TYPE_OFFS] = IB_RMPP_TYPE_DATA;
	mad[RMPP_FLAGS_OFFS] = RMPP_RESP_TIME_NONE << 3 | IB_RMPP_FLAG_ACTIVE;
}

/* Offset of the data in each segment, for classes with RMPP. */
static int rmpp_data_offset(int mgmt_class)
{
	if (mgmt_class == IB_SA_CLASS)
		return IB_SA_DATA_OFFS;
	return mad_is_vendor_range2(mgmt_class) ? IB_VENDOR_RANGE2_DATA_OFFS : IB_SMP_DATA_OFFS;
}

/*
 * The announced length counts everything after the RMPP header in each segment, but the kernel
 * has joined the segments and kept only the first one's headers.
 */
bool rmpp_is_short(const uint8_t *mad, int length)
{
	int offset = rmpp_data_offset(mad[1]), segments = 1;

	if (length < RMPP_HEADER_END || mad[RMPP_TYPE_OFFS] != IB_RMPP_TYPE_DATA ||
	    !(mad[RMPP_FLAGS_OFFS] & IB_RMPP_FLAG_ACTIVE))
		return false;
	if (length > IB_MAD_SIZE)
		segments += (length - IB_MAD_SIZE - 1) / (IB_MAD_SIZE - offset) + 1;
	return get32(mad, RMPP_DATA2_OFFS) >
	       (int64_t)length - RMPP_HEADER_END +
		       (segments - INT64_C(1)) * (offset - RMPP_HEADER_END);
}

EXPORT int mad_build_pkt(void *umad, ib_rpc_t *rpc, ib_portid_t *dport, ib_rmpp_hdr_t *rmpp,
			 void *data)
{
	uint8_t *mad = umad_get_mad(umad);

	if (!dport) {
		encoding_refused();
		return -1;
	}
	if (!mad_encode(mad, rpc, &dport->drpath, data))
		return -1;
	put_address(umad, mad, rpc->mgtclass & 0xff, dport, rmpp);
	return IB_MAD_SIZE;
}

/* --- responses ------------------------------------------------------------------ */

static uint8_t response_method(uint8_t method)
{
	if (method == IB_MAD_METHOD_SET)
		method = IB_MAD_METHOD_GET;
	if (method == IB_MAD_METHOD_TRAP)
		return IB_MAD_METHOD_TRAP_REPRESS;
	return method == IB_MAD_METHOD_SEND ? method : method | IB_MAD_RESPONSE;
}

void response_write_header(uint8_t *mad, uint16_t status)
{
	int mgmt_class = mad[1];

	mad[3] = response_method(mad[3]);
	if (mgmt_class == IB_SMI_DIRECT_CLASS)
		status |= DIRECTION;
	put16(mad, STATUS_OFFS, status);
	/* return no key and no RMPP header; in vendor range 1 these bytes are data */
	if (!mad_is_vendor_range1(mgmt_class))
		memset(mad + RMPP_VERSION_OFFS, 0, 8);
	if (mgmt_class == IB_SA_CLASS)
		memset(mad + 48, 0, 8); /* nor a component mask */
}

void response_address(void *umad, const uint8_t *mad)
{
	const ib_mad_addr_t from = *umad_get_mad_addr(umad);

	umad_set_addr_net(umad, from.lid, from.qpn, from.sl,
			  is_smp_class(mad[1]) ? 0 : htobe32(IB_DEFAULT_QP1_QKEY));
	if (from.grh_present)
		umad_get_mad_addr(umad)->hop_limit = GRH_HOP_LIMIT;
}
