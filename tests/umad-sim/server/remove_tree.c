/* SPDX-License-Identifier: BSD-2-Clause */

#include <ftw.h>
#include <stdio.h>

#include "remove_tree.h"

static int remove_entry(const char *path, const struct stat *status, int type,
			struct FTW *place)
{
	(void)status;
	(void)type;
	(void)place;
	remove(path);
	return 0;
}

void remove_tree(const char *folder)
{
	/* more descriptors would be faster, but only one may be free */
	nftw(folder, remove_entry, 1, FTW_DEPTH | FTW_PHYS);
}
