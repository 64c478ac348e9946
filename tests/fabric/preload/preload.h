/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The library that umad-sim preloads into programs. It stands before the C library's calls:
 * paths below /sys/class/infiniband* and /dev/infiniband lead into the program's view, a umad
 * device opened there is a socket to the fabric. All else goes to the C library untouched.
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

/* The C library's function of that name, looked up once. */
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

/*
 * The path to use instead: `path` itself, or one in `buffer` that leads into the view. The name
 * of a file in an open folder stays as it is.
 */
const char *redirect_path(const char *path, char buffer[PATH_BYTES]);
const char *redirect_path_at(int folder, const char *path, char buffer[PATH_BYTES]);

bool leads_into_view(const char *redirected);

/* The path that a program would use for one in the view; in place. */
void restore_path(char *path);

/* Whether a redirected path is a character device of the view: its kind and its number. */
enum device_kind {
	DEVICE_NONE,
	DEVICE_UMAD,
	DEVICE_ISSM,
	DEVICE_UEVENTS /* a socket that receives uevents: no device, but the fabric's, too */
};
enum device_kind device_of_path(const char *redirected, unsigned int *number);

const char *fabric_folder(void); /* NULL: the program was not started by umad-sim */
unsigned int view_number(void);

/* --- fabric.c: asking it -------------------------------------------------------- */

/*
 * Sends a request and waits for its reply; the connection is stored, or closed where
 * `connection` is NULL. A descriptor that comes with the reply is stored in `fd`. 0 or a
 * negative errno, the reply's own among them.
 */
int ask_fabric(struct request *request, struct reply *reply, int *connection, int *fd);

/* --- handles.c: which descriptors are devices ----------------------------------- */

struct device {
	enum device_kind kind;
	atomic_int references;
	uint64_t handle;         /* the fabric's name for it; uevents: the socket's number */
	struct shared *shared;   /* umad */
	pthread_mutex_t reading; /* from looking at the first packet to taking it */
	struct device *next;     /* among unused ones */
};

/* A device that only the caller refers to; NULL without memory. */
struct device *device_new(enum device_kind kind);

/* The device of a descriptor, for device_put() to give back; NULL: it is none of ours. */
struct device *device_get(int fd);
void device_put(struct device *device);

int device_note(int fd, struct device *device); /* 0 or -EMFILE */
void device_close(int fd);
void device_close_range(unsigned int first, unsigned int last);
void device_share(int fd, int copy); /* a descriptor was duplicated */

/* The devices that a new program inherits, as text. 0; -ENOENT none, -E2BIG. */
int device_list(char *text, size_t size);

/* This process owns the table: at the start of a program, and in a child of fork(). */
void device_begin_process(void);

/* --- exec.c: programs that the program starts ----------------------------------- */

/* Stores the variables of the environment that name the fabric. */
void exec_begin_program(void);

/* --- device.c: calls on devices ------------------------------------------------- */

int device_open(enum device_kind kind, unsigned int number, int flags);

/* A descriptor that stayed open across exec(). 0 or a negative errno. */
int device_inherit(int fd, enum device_kind kind, uint64_t handle);
ssize_t device_read(struct device *device, int fd, void *buffer, size_t count);
ssize_t device_write(struct device *device, int fd, const void *buffer, size_t count);
int device_ioctl(struct device *device, unsigned long code, void *argument);

/* What poll() says of a device that is gone: an error, no data. */
void device_correct_poll(struct pollfd *fds, nfds_t count);

/* --- netlink.c: sockets for uevents ----------------------------------------------- */

/* What recvfrom() does; from and length may be NULL. */
ssize_t uevents_receive(int fd, void *buffer, size_t count, int flags, struct sockaddr *from,
			socklen_t *length);

#endif
