/* SPDX-License-Identifier: BSD-2-Clause */

/* Replaces netlink.c in a build without libnl-3. */

#include "netlink.h"

#include <errno.h>

int netlink_find_umad(const char *ca_name, int portnum, char *name, size_t size)
{
	(void)ca_name;
	(void)portnum;
	(void)name;
	(void)size;
	return -EOPNOTSUPP;
}

int uevent_open(struct nl_sock **sock)
{
	(void)sock;
	return -EOPNOTSUPP;
}

int uevent_fd(const struct nl_sock *sock)
{
	(void)sock;
	return -EOPNOTSUPP;
}

void uevent_close(struct nl_sock *sock)
{
	(void)sock;
}

int uevent_receive(struct nl_sock *sock, char **text)
{
	(void)sock;
	(void)text;
	return -EOPNOTSUPP;
}
