/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The library that umad-sim preloads into programs. It replaces calls of the C library: paths
 * below /sys/class/infiniband* and /dev/infiniband lead into the program's view, and a umad
 * device that is opened is a socket to the fabric. All other calls go to the C library
 * unchanged.
 */
#ifndef UMAD_SIM_PRELOAD_H
#define UMAD_SIM_PRELOAD_H

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "protocol.h"

#define EXPORT __attribute__((visibility("default")))

/* The C library's function of that name, found once. */
void *real_function(const char *name);

#define REAL(name)                                                                    \
	({                                                                            \
		static _Atomic(uintptr_t) found;                                      \
		uintptr_t known = atomic_load_explicit(&found, memory_order_relaxed); \
                                                                                      \
		if (!known) {                                                         \
			known = (uintptr_t)real_function(#name);                      \
			atomic_store_explicit(&found, known, memory_order_relaxed);   \
		}                                                                     \
		(__typeof__(&name))known;                                             \
	})

/* --- paths.c -------------------------------------------------------------------- */

#define PATH_BYTES 4096

/* Returns the path to use instead: `path` itself, or a path in `buffer` that leads into the
 * view. A relative path below an open folder is not changed. */
const char *redirect_path(const char *path, char buffer[PATH_BYTES]);
const char *redirect_path_at(int folder, const char *path, char buffer[PATH_BYTES]);

bool leads_into_view(const char *redirected);

/* Converts a path in the view to the path that the program would use, in place. */
void restore_path(char *path);

/* Whether a redirected path is a character device of the view; stores its kind and number. */
enum device_kind {
	DEVICE_NONE,
	DEVICE_UMAD,
	DEVICE_ISSM,
	DEVICE_UEVENTS /* a socket that receives uevents: not a device, but in the same table */
};
enum device_kind device_of_path(const char *redirected, unsigned int *number);

const char *fabric_folder(void); /* NULL: the program was not started by umad-sim */
unsigned int view_number(void);

/* --- fabric.c: requests to the fabric -------------------------------------------- */

/*
 * Sends a request and waits for its reply. `connection` gets the connection; if it is NULL,
 * the connection is closed. `fd` gets the descriptor that comes with the reply. 0 or a
 * negative errno, which may be the reply's.
 */
int ask_fabric(struct request *request, struct reply *reply, int *connection, int *fd);

/* --- handles.c: which descriptors are devices ----------------------------------- */

struct device {
	enum device_kind kind;
	atomic_int references;
	uint64_t handle;         /* the fabric's number for the device; uevents: the socket's
				  * port ID */
	struct shared *shared;   /* umad */
	pthread_mutex_t reading; /* held from looking at the first packet until it is taken */
	struct device *next;     /* in the list of unused ones */
};

/* Makes a device to which only the caller refers; NULL without memory. */
struct device *device_new(enum device_kind kind);

/* The device of a descriptor, with a reference for device_put(); NULL: not a device of the
 * fabric. */
struct device *device_get(int fd);
void device_put(struct device *device);

int device_note(int fd, struct device *device); /* 0 or -EMFILE */
void device_close(int fd);
void device_close_range(unsigned int first, unsigned int last);
void device_share(int fd, int copy); /* a descriptor was duplicated */

/* The devices that a new program inherits, as text. 0; -ENOENT: none; -E2BIG. */
int device_list(char *text, size_t size);

/* Makes this process the owner of the table: at the start of a program, and in a child of
 * fork(). */
void device_begin_process(void);

/* --- exec.c: programs that the program starts ----------------------------------- */

/* Stores the variables of the environment that name the fabric. */
void exec_begin_program(void);

/* --- device.c: calls on devices ------------------------------------------------- */

int device_open(enum device_kind kind, unsigned int number, int flags);

/* Adopts a descriptor that stayed open across exec(). 0 or a negative errno. */
int device_inherit(int fd, enum device_kind kind, uint64_t handle);
ssize_t device_read(struct device *device, int fd, void *buffer, size_t count);
ssize_t device_write(struct device *device, int fd, const void *buffer, size_t count);
int device_ioctl(struct device *device, unsigned long code, void *argument);

/* The poll() events of a removed device: an error, no data. */
void device_correct_poll(struct pollfd *fds, nfds_t count);

/* --- netlink.c: sockets for uevents ----------------------------------------------- */

/* recvfrom() of a uevent; from and length may be NULL. */
ssize_t uevents_receive(int fd, void *buffer, size_t count, int flags, struct sockaddr *from,
			socklen_t *length);

#endif
