/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * How a preloaded library tells launcher/child.c that it is loaded: a byte to a socket. A
 * variable of the environment has "descriptor:inode" of the socket. A program without the
 * library passes on the variable and the descriptor to all its children, or has another file
 * with the number of the descriptor.
 */
#ifndef UMAD_SIM_READY_H
#define UMAD_SIM_READY_H

#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* The descriptor of the socket; -1: there is none. */
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

/* Only the first report is received: the launcher then closes its end. */
#define READY_SEND_FLAGS (MSG_NOSIGNAL | MSG_DONTWAIT)

#endif
