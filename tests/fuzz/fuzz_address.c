/* SPDX-License-Identifier: BSD-2-Clause */

/* Directed routes from any text, and addresses of any content as text. */

#include "fuzz.h"

#include <infiniband/mad.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	ib_dr_path_t path, again;
	size_t room = take(&input, 1);
	char *text = calloc(1, room + 1), *route, whole[512];
	ib_portid_t portid;
	int hops;

	take_bytes(&input, &portid, sizeof(portid));
	check(strlen(portid2str(&portid)) < 512);
	check(portid2portnum(&portid) >= -1 && portid2portnum(&portid) <= 255);
	check(drpath2str(&portid.drpath, text, room) == text);
	check(!room || strlen(text) < room);
	free(text);

	/* the rest of the input is a text */
	route = take_text(&input);
	hops = str2drpath(&path, route, 0, 0);
	check(hops >= -1 && hops < IB_SUBNET_PATH_HOPS_MAX);
	check(path.cnt == (hops < 0 ? 0 : hops));
	if (hops >= 0) {
		/* the printed route, parsed again, is the same */
		drpath2str(&path, whole, sizeof(whole));
		check(str2drpath(&again, strrchr(whole, ' ') + 1, 0, 0) == hops);
		check(!memcmp(path.p, again.p, (size_t)hops + 1));
	}
	free(route);
	return 0;
}
