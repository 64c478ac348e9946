/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Requests to the kernel by netlink, with libnl-3. All return 0 or a negative errno:
 * -EOPNOTSUPP if the library was built without libnl-3 (netlink_none.c).
 */
#ifndef LIBIBUMAD_NETLINK_H
#define LIBIBUMAD_NETLINK_H

#include <stddef.h>

struct nl_sock;

/*
 * Reads the name of the umad device of a port. The request makes the kernel load ib_umad.
 * -ENODEV if the kernel does not know the CA, -ENOENT if the port has no umad device.
 */
int netlink_find_umad(const char *ca_name, int portnum, char *name, size_t size);

/* A non-blocking socket that receives the uevents of the kernel; its descriptor; closes it. */
int uevent_open(struct nl_sock **sock);
int uevent_fd(const struct nl_sock *sock);
void uevent_close(struct nl_sock *sock);

/*
 * Receives a uevent: "action@devpath", then "KEY=value" texts, each with its NUL. Returns its
 * length, and the text in *text, which the caller frees; -EAGAIN if no uevent is queued,
 * -ENOBUFS if uevents were lost, or -ENOMEM.
 */
int uevent_receive(struct nl_sock *sock, char **text);

#endif
