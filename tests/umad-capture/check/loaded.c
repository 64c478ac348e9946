/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * loaded mad|umad local|global
 *
 * Reads NodeInfo of LID 1 with a library loaded with dlopen(3), as a Python program does:
 * libibmad, or just libibumad. Exits with 0 if there is a response.
 */
#include <dlfcn.h>
#include <err.h>
#include <string.h>

#include <infiniband/mad.h>
#include <infiniband/umad.h>

/* The library's function with this declaration. */
#define FIND(library, name) ((__typeof__(&(name)))dlsym(library, #name))

static int ask_by_libibmad(void *library)
{
	int classes[] = {IB_SMI_CLASS};
	struct ibmad_port *port = FIND(library, mad_rpc_open_port)(NULL, 0, classes, 1);
	uint8_t data[IB_SMP_DATA_SIZE];

	if (!port)
		err(1, "mad_rpc_open_port");
	return !FIND(library, smp_query_via)(data, &(ib_portid_t){.lid = 1}, IB_ATTR_NODE_INFO,
					     0, 0, port);
}

static int ask_by_libibumad(void *library)
{
	uint8_t umad[sizeof(struct ib_user_mad) + 256] = {0};
	uint8_t *mad = umad + sizeof(struct ib_user_mad);
	int length = 256, agent, port = FIND(library, umad_open_port)(NULL, 0);

	if (port < 0)
		err(1, "umad_open_port");
	agent = FIND(library, umad_register)(port, IB_SMI_CLASS, 1, 0, NULL);
	mad[0] = 1;
	mad[1] = IB_SMI_CLASS;
	mad[2] = 1;
	mad[3] = IB_MAD_METHOD_GET;
	mad[15] = 7; /* of the transaction ID */
	mad[17] = IB_ATTR_NODE_INFO;
	FIND(library, umad_set_addr)(umad, 1, 0, 0, 0);
	if (FIND(library, umad_send)(port, agent, umad, 256, 1000, 10))
		err(1, "umad_send");
	return FIND(library, umad_recv)(port, umad, &length, 20000) != agent || mad[3] != 0x81;
}

int main(int argc, char **argv)
{
	void *library;
	int mode;

	if (argc != 3)
		errx(2, "usage: loaded mad|umad local|global");
	mode = strcmp(argv[2], "global") ? RTLD_LOCAL : RTLD_GLOBAL;
	if (!strcmp(argv[1], "mad")) {
		library = dlopen("libibmad.so.5", RTLD_LAZY | mode);
		return library ? ask_by_libibmad(library) : 3;
	}
	library = dlopen("libibumad.so.3", RTLD_LAZY | mode);
	return library ? ask_by_libibumad(library) : 3;
}
