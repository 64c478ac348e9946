/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Sends MADs that a check of a site must not send, and one Get. With guard.c preloaded, all
 * except the Get fail with EPERM; exits with 1 if one does not.
 */
#include <infiniband/umad.h>
#include <infiniband/umad_types.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static int fd, agent;

static int send_mad(uint8_t mgmt_class, uint8_t method)
{
	uint8_t *umad = umad_alloc(1, umad_size() + 256), *mad;
	int result;

	if (!umad)
		exit(1);
	mad = umad_get_mad(umad);
	mad[0] = 1;
	mad[1] = mgmt_class;
	mad[2] = 1;
	mad[3] = method;
	mad[17] = 0x11;
	umad_set_addr(umad, 0xffff, 0, 0, 0);
	errno = 0;
	result = umad_send(fd, agent, umad, 256, 0, 0);
	umad_free(umad);
	return result;
}

int main(void)
{
	static const struct {
		uint8_t mgmt_class, method;
	} wrong[] = {
		{UMAD_CLASS_SUBN_DIRECTED_ROUTE, UMAD_METHOD_SET},
		{UMAD_CLASS_SUBN_LID_ROUTED, UMAD_METHOD_SET},
		{UMAD_CLASS_SUBN_LID_ROUTED, UMAD_METHOD_TRAP},
		{UMAD_CLASS_PERF_MGMT, UMAD_METHOD_SET},
		{UMAD_CLASS_SUBN_ADM, UMAD_METHOD_SET},
		{UMAD_CLASS_SUBN_ADM, 0x12 /* GetTable */},
		{UMAD_CLASS_SUBN_ADM, 0x15 /* Delete */},
		{UMAD_CLASS_CM, UMAD_METHOD_GET},
		{0x3a, UMAD_METHOD_GET},
	};

	fd = umad_open_port(NULL, 0);
	agent = umad_register(fd, UMAD_CLASS_SUBN_DIRECTED_ROUTE, 1, 0, NULL);
	if (fd < 0 || agent < 0)
		return 77;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		if (send_mad(wrong[i].mgmt_class, wrong[i].method) != -EIO || errno != EPERM) {
			printf("class 0x%02x method 0x%02x is not refused\n",
			       wrong[i].mgmt_class, wrong[i].method);
			return 1;
		}
	}
	if (send_mad(UMAD_CLASS_SUBN_DIRECTED_ROUTE, UMAD_METHOD_GET)) {
		puts("a Get is refused");
		return 1;
	}
	return 0;
}
