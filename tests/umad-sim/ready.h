/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * How a preloaded library tells launcher/child.c that it is loaded: it writes a byte to a
 * socket, given as "descriptor:inode" in an environment variable. A program without the library
 * passes both on to all its children, or may have another file at that descriptor.
 */
#ifndef UMAD_SIM_READY_H
#define UMAD_SIM_READY_H

#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* Returns the socket's descriptor, or -1. */
static inline int ready_descriptor(const char *text)
{
	unsigned long long inode;
	struct stat status;
	int fd;

	if (!text || sscanf(text, "%d:%llu", &fd, &inode) != 2 || fstat(fd, &status) ||
	    !S_ISSOCK(status.st_mode) || status.st_ino != inode)
		return -1;
	return fd;
}

/* Only the first report is received; then the launcher closes its end. */
#define READY_SEND_FLAGS (MSG_NOSIGNAL | MSG_DONTWAIT)

#endif
