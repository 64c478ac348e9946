/* SPDX-License-Identifier: BSD-2-Clause */

#include "sa/sa.h"

#include "base/report.h"
#include "engine/timers.h"
#include "mad/layout.h"

#include <infiniband/mad_fields.h>
#include <errno.h>

#define TRUSTED_MS 1000

/* One number has all parts, so that threads and children of fork() read them together. */
#define LID_BITS  16
#define SL_BITS   8
#define TIME_MASK ((UINT64_C(1) << (64 - LID_BITS - SL_BITS)) - 1)

/* Not 0, which the clock has when a machine starts. */
static uint64_t now_ms(void)
{
	return ((uint64_t)clock_us() / 1000 + TRUSTED_MS + 1) & TIME_MASK;
}

static void set_address(ib_portid_t *sa, unsigned lid, unsigned sl)
{
	*sa = (ib_portid_t){.lid = (int)lid, .sl = (uint8_t)sl};
	address_qp1(sa);
}

bool sa_address_known(const struct ibmad_port *port, ib_portid_t *sa)
{
	uint64_t address = port->sa_address;

	if (((now_ms() - (address >> (LID_BITS + SL_BITS))) & TIME_MASK) > TRUSTED_MS)
		return false;
	set_address(sa, address & 0xffff, address >> LID_BITS & 0xff);
	return true;
}

int sa_address_learn(const struct ibmad_port *port, const uint8_t *port_info, ib_portid_t *sa)
{
	unsigned lid = (uint32_t)mad_read_field(port_info, 0, IB_PORT_SMLID_F);
	unsigned sl = (uint32_t)mad_read_field(port_info, 0, IB_PORT_SMSL_F);

	if (!IB_LID_VALID(lid))
		return -ENXIO;
	port_of(port)->sa_address =
		now_ms() << (LID_BITS + SL_BITS) | (uint64_t)sl << LID_BITS | lid;
	set_address(sa, lid, sl);
	return 0;
}

int sa_address_read(const struct ibmad_port *port, int timeout_ms, ib_portid_t *sa)
{
	uint8_t port_info[IB_SMP_DATA_SIZE] = {0};
	ib_portid_t self = {0};
	int err;

	if (!smp_query_via(port_info, &self, IB_ATTR_PORT_INFO, 0, (unsigned)timeout_ms, port))
		return mad_last_failure()->error;
	err = sa_address_learn(port, port_info, sa);
	if (err)
		failure_refuse(IB_SA_CLASS, -err);
	return err;
}

bool sa_address_is_doubtful(int error, unsigned status)
{
	if (error == -ETIMEDOUT)
		return true;
	return error == -EIO && (status == IB_MAD_STS_METHOD_NOT_SUPPORTED ||
				 status == IB_MAD_STS_METHOD_ATTR_NOT_SUPPORTED);
}
