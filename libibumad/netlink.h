/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * What is asked of the kernel over netlink, on libnl-3. All return 0 or a negative errno;
 * -EOPNOTSUPP where the library was built without (netlink_none.c).
 */
#ifndef LIBIBUMAD_NETLINK_H
#define LIBIBUMAD_NETLINK_H

#include <stddef.h>

struct nl_sock;

/*
 * The name of a port's umad device. The request makes the kernel load ib_umad. -ENODEV if the
 * kernel does not know the CA, -ENOENT if it has no umad device for the port.
 */
int netlink_find_umad(const char *ca_name, int portnum, char *name, size_t size);

/* A non-blocking socket that receives the kernel's uevents, its descriptor, its end. */
int uevent_open(struct nl_sock **sock);
int uevent_fd(const struct nl_sock *sock);
void uevent_close(struct nl_sock *sock);

/*
 * One uevent of the kernel's: "action@devpath", then "KEY=value" texts, each with its
 * NUL. Returns its length, and the text in *text to be freed; -EAGAIN none there,
 * -ENOBUFS some were lost, -ENOMEM.
 */
int uevent_receive(struct nl_sock *sock, char **text);

#endif
