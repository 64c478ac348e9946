/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Calls that are exported for programs to link, and that nothing is behind yet: all fail
 * with ENOSYS. Each leaves this file when it is written.
 */

#include "export.h"

#include <infiniband/mad.h>
#include <errno.h>

EXPORT int mad_register_client(int mgmt, uint8_t rmpp_version)
{
	(void)mgmt;
	(void)rmpp_version;
	errno = ENOSYS;
	return -1;
}

EXPORT int mad_register_server(int mgmt, uint8_t rmpp_version,
			       long method_mask[16 / sizeof(long)], uint32_t class_oui)
{
	(void)mgmt;
	(void)rmpp_version;
	(void)method_mask;
	(void)class_oui;
	errno = ENOSYS;
	return -1;
}

EXPORT int mad_class_agent(int mgmt)
{
	(void)mgmt;
	errno = ENOSYS;
	return -1;
}

EXPORT int mad_send(ib_rpc_t *rpc, ib_portid_t *dport, ib_rmpp_hdr_t *rmpp, void *data)
{
	(void)rpc;
	(void)dport;
	(void)rmpp;
	(void)data;
	errno = ENOSYS;
	return -1;
}

EXPORT void *mad_receive(void *umad, int timeout)
{
	(void)umad;
	(void)timeout;
	errno = ENOSYS;
	return NULL;
}

EXPORT int mad_respond(void *umad, ib_portid_t *portid, uint32_t rstatus)
{
	(void)umad;
	(void)portid;
	(void)rstatus;
	errno = ENOSYS;
	return -1;
}

EXPORT uint8_t *ib_vendor_call(void *data, ib_portid_t *portid, ib_vendor_call_t *call)
{
	(void)data;
	(void)portid;
	(void)call;
	errno = ENOSYS;
	return NULL;
}

EXPORT uint8_t *ib_vendor_call_via(void *data, ib_portid_t *portid, ib_vendor_call_t *call,
				   struct ibmad_port *srcport)
{
	(void)data;
	(void)portid;
	(void)call;
	(void)srcport;
	errno = ENOSYS;
	return NULL;
}

EXPORT int madrpc_portid(void)
{
	errno = ENOSYS;
	return -1;
}

EXPORT void *madrpc(ib_rpc_t *rpc, ib_portid_t *dport, void *payload, void *rcvdata)
{
	(void)rpc;
	(void)dport;
	(void)payload;
	(void)rcvdata;
	errno = ENOSYS;
	return NULL;
}

EXPORT void *madrpc_rmpp(ib_rpc_t *rpc, ib_portid_t *dport, ib_rmpp_hdr_t *rmpp, void *data)
{
	(void)rpc;
	(void)dport;
	(void)rmpp;
	(void)data;
	errno = ENOSYS;
	return NULL;
}

EXPORT void madrpc_init(char *dev_name, int dev_port, int *mgmt_classes, int num_classes)
{
	(void)dev_name;
	(void)dev_port;
	(void)mgmt_classes;
	(void)num_classes;
	errno = ENOSYS;
}

EXPORT void madrpc_save_mad(void *madbuf, int len)
{
	(void)madbuf;
	(void)len;
	errno = ENOSYS;
}

EXPORT uint8_t *smp_query(void *buf, ib_portid_t *id, unsigned attrid, unsigned mod,
			  unsigned timeout)
{
	(void)buf;
	(void)id;
	(void)attrid;
	(void)mod;
	(void)timeout;
	errno = ENOSYS;
	return NULL;
}

EXPORT uint8_t *smp_set(void *buf, ib_portid_t *id, unsigned attrid, unsigned mod,
			unsigned timeout)
{
	(void)buf;
	(void)id;
	(void)attrid;
	(void)mod;
	(void)timeout;
	errno = ENOSYS;
	return NULL;
}

EXPORT uint8_t *smp_query_via(void *buf, ib_portid_t *id, unsigned attrid, unsigned mod,
			      unsigned timeout, const struct ibmad_port *srcport)
{
	(void)buf;
	(void)id;
	(void)attrid;
	(void)mod;
	(void)timeout;
	(void)srcport;
	errno = ENOSYS;
	return NULL;
}

EXPORT uint8_t *smp_set_via(void *buf, ib_portid_t *id, unsigned attrid, unsigned mod,
			    unsigned timeout, const struct ibmad_port *srcport)
{
	(void)buf;
	(void)id;
	(void)attrid;
	(void)mod;
	(void)timeout;
	(void)srcport;
	errno = ENOSYS;
	return NULL;
}

EXPORT uint8_t *smp_query_status_via(void *rcvbuf, ib_portid_t *portid, unsigned attrid,
				     unsigned mod, unsigned timeout, int *rstatus,
				     const struct ibmad_port *srcport)
{
	(void)rcvbuf;
	(void)portid;
	(void)attrid;
	(void)mod;
	(void)timeout;
	(void)rstatus;
	(void)srcport;
	errno = ENOSYS;
	return NULL;
}

EXPORT uint8_t *smp_set_status_via(void *data, ib_portid_t *portid, unsigned attrid,
				   unsigned mod, unsigned timeout, int *rstatus,
				   const struct ibmad_port *srcport)
{
	(void)data;
	(void)portid;
	(void)attrid;
	(void)mod;
	(void)timeout;
	(void)rstatus;
	(void)srcport;
	errno = ENOSYS;
	return NULL;
}

EXPORT void *cc_query_status_via(void *rcvbuf, ib_portid_t *portid, unsigned attrid,
				 unsigned mod, unsigned timeout, int *rstatus,
				 const struct ibmad_port *srcport, uint64_t cckey)
{
	(void)rcvbuf;
	(void)portid;
	(void)attrid;
	(void)mod;
	(void)timeout;
	(void)rstatus;
	(void)srcport;
	(void)cckey;
	errno = ENOSYS;
	return NULL;
}

EXPORT void *cc_config_status_via(void *payload, void *rcvbuf, ib_portid_t *portid,
				  unsigned attrid, unsigned mod, unsigned timeout, int *rstatus,
				  const struct ibmad_port *srcport, uint64_t cckey)
{
	(void)payload;
	(void)rcvbuf;
	(void)portid;
	(void)attrid;
	(void)mod;
	(void)timeout;
	(void)rstatus;
	(void)srcport;
	(void)cckey;
	errno = ENOSYS;
	return NULL;
}

EXPORT uint8_t *sa_call(void *rcvbuf, ib_portid_t *portid, ib_sa_call_t *sa, unsigned timeout)
{
	(void)rcvbuf;
	(void)portid;
	(void)sa;
	(void)timeout;
	errno = ENOSYS;
	return NULL;
}

EXPORT int ib_path_query(ibmad_gid_t srcgid, ibmad_gid_t destgid, ib_portid_t *sm_id, void *buf)
{
	(void)srcgid;
	(void)destgid;
	(void)sm_id;
	(void)buf;
	errno = ENOSYS;
	return -1;
}

EXPORT uint8_t *sa_rpc_call(const struct ibmad_port *srcport, void *rcvbuf, ib_portid_t *portid,
			    ib_sa_call_t *sa, unsigned timeout)
{
	(void)srcport;
	(void)rcvbuf;
	(void)portid;
	(void)sa;
	(void)timeout;
	errno = ENOSYS;
	return NULL;
}

EXPORT int ib_path_query_via(const struct ibmad_port *srcport, ibmad_gid_t srcgid,
			     ibmad_gid_t destgid, ib_portid_t *sm_id, void *buf)
{
	(void)srcport;
	(void)srcgid;
	(void)destgid;
	(void)sm_id;
	(void)buf;
	errno = ENOSYS;
	return -1;
}

EXPORT int ib_node_query_via(const struct ibmad_port *srcport, uint64_t guid,
			     ib_portid_t *sm_id, void *buf)
{
	(void)srcport;
	(void)guid;
	(void)sm_id;
	(void)buf;
	errno = ENOSYS;
	return -1;
}

EXPORT int ib_resolve_smlid(ib_portid_t *sm_id, int timeout)
{
	(void)sm_id;
	(void)timeout;
	errno = ENOSYS;
	return -1;
}

EXPORT int ib_resolve_portid_str(ib_portid_t *portid, char *addr_str, enum MAD_DEST dest,
				 ib_portid_t *sm_id)
{
	(void)portid;
	(void)addr_str;
	(void)dest;
	(void)sm_id;
	errno = ENOSYS;
	return -1;
}

EXPORT int ib_resolve_self(ib_portid_t *portid, int *portnum, ibmad_gid_t *gid)
{
	(void)portid;
	(void)portnum;
	(void)gid;
	errno = ENOSYS;
	return -1;
}

EXPORT int ib_resolve_smlid_via(ib_portid_t *sm_id, int timeout,
				const struct ibmad_port *srcport)
{
	(void)sm_id;
	(void)timeout;
	(void)srcport;
	errno = ENOSYS;
	return -1;
}

EXPORT int ib_resolve_guid_via(ib_portid_t *portid, uint64_t *guid, ib_portid_t *sm_id,
			       int timeout, const struct ibmad_port *srcport)
{
	(void)portid;
	(void)guid;
	(void)sm_id;
	(void)timeout;
	(void)srcport;
	errno = ENOSYS;
	return -1;
}

EXPORT int ib_resolve_gid_via(ib_portid_t *portid, ibmad_gid_t gid, ib_portid_t *sm_id,
			      int timeout, const struct ibmad_port *srcport)
{
	(void)portid;
	(void)gid;
	(void)sm_id;
	(void)timeout;
	(void)srcport;
	errno = ENOSYS;
	return -1;
}

EXPORT int ib_resolve_portid_str_via(ib_portid_t *portid, char *addr_str, enum MAD_DEST dest,
				     ib_portid_t *sm_id, const struct ibmad_port *srcport)
{
	(void)portid;
	(void)addr_str;
	(void)dest;
	(void)sm_id;
	(void)srcport;
	errno = ENOSYS;
	return -1;
}

EXPORT int ib_resolve_self_via(ib_portid_t *portid, int *portnum, ibmad_gid_t *gid,
			       const struct ibmad_port *srcport)
{
	(void)portid;
	(void)portnum;
	(void)gid;
	(void)srcport;
	errno = ENOSYS;
	return -1;
}

EXPORT uint8_t *pma_query_via(void *rcvbuf, ib_portid_t *dest, int port, unsigned timeout,
			      unsigned id, const struct ibmad_port *srcport)
{
	(void)rcvbuf;
	(void)dest;
	(void)port;
	(void)timeout;
	(void)id;
	(void)srcport;
	errno = ENOSYS;
	return NULL;
}

EXPORT uint8_t *performance_reset_via(void *rcvbuf, ib_portid_t *dest, int port, unsigned mask,
				      unsigned timeout, unsigned id,
				      const struct ibmad_port *srcport)
{
	(void)rcvbuf;
	(void)dest;
	(void)port;
	(void)mask;
	(void)timeout;
	(void)id;
	(void)srcport;
	errno = ENOSYS;
	return NULL;
}

EXPORT uint8_t *bm_call_via(void *data, ib_portid_t *portid, ib_bm_call_t *call,
			    struct ibmad_port *srcport)
{
	(void)data;
	(void)portid;
	(void)call;
	(void)srcport;
	errno = ENOSYS;
	return NULL;
}
