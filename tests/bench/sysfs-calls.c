/* SPDX-License-Identifier: BSD-2-Clause */

/* Makes one call of libibumad; tests/bench/syscalls counts its system calls. */

#include <infiniband/umad.h>

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	static char names[UMAD_MAX_DEVICES][UMAD_CA_NAME_LEN];
	static umad_ca_t ca;
	const char *call = argc > 1 ? argv[1] : "";
	int ret = -1;

	if (!strcmp(call, "none"))
		ret = umad_init();
	else if (!strcmp(call, "open_any"))
		ret = umad_open_port(NULL, 0);
	else if (!strcmp(call, "open_named"))
		ret = umad_open_port("mlx5_15", 1);
	else if (!strcmp(call, "get_cas_names"))
		ret = umad_get_cas_names(names, UMAD_MAX_DEVICES);
	else if (!strcmp(call, "get_ca"))
		ret = umad_get_ca("mlx5_15", &ca);
	if (ret < 0)
		fprintf(stderr, "%s: %d\n", call, ret);
	return ret < 0;
}
