/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The library that umad-sim preloads into programs. It stands before the C library's calls:
 * paths below /sys/class/infiniband* and /dev/infiniband lead into the program's view, a umad
 * device opened there is a socket to the fabric. All else goes to the C library untouched.
 */
#ifndef UMAD_SIM_PRELOAD_H
#define UMAD_SIM_PRELOAD_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "protocol.h"

#define EXPORT __attribute__((visibility("default")))

/* The C library's function of that name, looked up once. */
void *real_function(const char *name);

#define REAL(name)                                                       \
	({                                                               \
		static __typeof__(&name) found;                          \
		if (!found)                                              \
			found = (__typeof__(&name))real_function(#name); \
		found;                                                   \
	})

/* --- paths.c -------------------------------------------------------------------- */

#define PATH_BYTES 4096

/* The path to use instead: `path` itself, or one in `buffer` that leads into the view. */
const char *redirect_path(const char *path, char buffer[PATH_BYTES]);

/* The path that a program would use for one in the view; in place. */
void restore_path(char *path);

/* Whether the path is a character device of the view: its kind and its number. */
enum device_kind {
	DEVICE_NONE,
	DEVICE_UMAD,
	DEVICE_ISSM
};
enum device_kind device_of_path(const char *path, unsigned int *number);

const char *fabric_folder(void); /* NULL: the program was not started by umad-sim */
unsigned int view_number(void);

/* --- fabric.c: asking it -------------------------------------------------------- */

/*
 * Sends a request and waits for its reply; the connection is stored, or closed where
 * `connection` is NULL. A descriptor that comes with the reply is stored in `fd`. 0 or a
 * negative errno, the reply's own among them.
 */
int ask_fabric(struct request *request, struct reply *reply, int *connection, int *fd);

/* --- device.c: open devices ----------------------------------------------------- */

struct device;

struct device *device_at(int fd); /* NULL: the descriptor is none of ours */
int device_open(enum device_kind kind, unsigned int number, int flags);
void device_close(int fd);
void device_share(int fd, int copy); /* a descriptor was duplicated */
ssize_t device_read(struct device *device, int fd, void *buffer, size_t count);
ssize_t device_write(struct device *device, int fd, const void *buffer, size_t count);
int device_ioctl(struct device *device, unsigned long code, void *argument);

/* What poll() says of a device that is gone: an error, no data. */
void device_correct_poll(struct pollfd *fds, nfds_t count);

#endif
