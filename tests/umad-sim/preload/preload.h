/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The library that umad-sim preloads into programs. It replaces calls of the C library: paths
 * below /sys/class/infiniband* and /dev/infiniband lead into the program's view, and an open
 * umad device is a socket to the fabric. Everything else goes to the C library unchanged.
 */
#ifndef UMAD_SIM_PRELOAD_H
#define UMAD_SIM_PRELOAD_H

#include <alloca.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "protocol.h"

#define EXPORT __attribute__((visibility("default")))

/*
 * The replaced calls run on the program's stack: a thread may have PTHREAD_STACK_MIN bytes, a
 * signal handler little more than MINSIGSTKSZ. So they have no large arrays and look up no
 * symbols. Those that signal-safety(7) lists do not call malloc().
 */

/* A function of the C library. */
struct real_function {
	const char *name;
	_Atomic(uintptr_t) function; /* NULL: not found yet */
};

/* Finds all functions that REAL() names, at the start because dlsym() needs stack, and clears
 * dlerror()'s message. */
void find_real_functions(void);

/* Finds one, for a call before the start. Aborts the program if there is no such function. */
uintptr_t find_real_function(struct real_function *real);

#define REAL(name)                                                                     \
	({                                                                             \
		static struct real_function real_                                      \
			__attribute__((section("real_functions"), used)) = {#name, 0}; \
		uintptr_t found_ =                                                     \
			atomic_load_explicit(&real_.function, memory_order_relaxed);   \
                                                                                       \
		(__typeof__(&name))(found_ ? found_ : find_real_function(&real_));     \
	})

/* --- paths.c -------------------------------------------------------------------- */

#define PATH_BYTES 4096

/*
 * The path to use instead: `path` itself, or one on the caller's stack that leads into the
 * view. A relative path below an open folder stays as it is, unless it names a device.
 * Evaluates `path` once.
 */
#define REDIRECT_AT(folder, path)                                                         \
	({                                                                                \
		const char *path_ = (path);                                               \
		size_t bytes_ = redirect_bytes(folder, path_);                            \
                                                                                          \
		bytes_ ? redirect_path_at(folder, path_, alloca(bytes_), bytes_) : path_; \
	})
#define REDIRECT(path) REDIRECT_AT(AT_FDCWD, path)

/* The size of the buffer for redirect_path_at(); 0 if the path stays as it is. */
size_t redirect_bytes(int folder, const char *path);
const char *redirect_path_at(int folder, const char *path, char *buffer, size_t size);

/* Whether a path is empty or NULL, so that the call is for the descriptor. */
bool is_empty(const char *path);

bool leads_into_view(const char *redirected);

/* Whether a path into the view is one of sysfs, not of /dev. */
bool leads_into_sysfs(const char *redirected);

/*
 * Whether a file with this mode, on the device with these numbers, is a sysfs file of the view.
 */
bool is_sysfs_file(unsigned int mode, unsigned int major, unsigned int minor);

/* Appends a decimal number and a NUL. Returns the address of the NUL. */
char *append_number(char *text, unsigned long long number);

/* Converts a path in the view, in place, to the path that the program would use. */
void restore_path(char *path);

/* Whether a redirected path, or a name in the folder of devices, is a character device of the
 * view; stores its kind and number. */
enum device_kind {
	DEVICE_NONE,
	DEVICE_UMAD,
	DEVICE_ISSM,
	DEVICE_UEVENTS /* a socket that receives uevents: not a device, but in the same table */
};
enum device_kind device_of_path(const char *redirected, unsigned int *number);
enum device_kind device_of_name(const char *name, unsigned int *number);

/* The path of the view's /dev/infiniband, or NULL if umad-sim did not start the program; and
 * whether a descriptor refers to it. */
const char *folder_of_devices(void);
bool is_folder_of_devices(int fd);

const char *fabric_folder(void); /* NULL: the program was not started by umad-sim */
unsigned int view_number(void);

/* --- fabric.c: requests to the fabric -------------------------------------------- */

/*
 * Sends a request and waits for its reply. Stores the connection in `connection`, or closes it
 * if that is NULL. Stores the descriptor that comes with the reply in `fd`. Returns 0 or a
 * negative errno, possibly the reply's.
 */
int ask_fabric(struct request *request, struct reply *reply, int *connection, int *fd);

/* Must be called before the first request: sets the address of the fabric's socket. */
void fabric_begin_program(void);

/* --- handles.c: which descriptors are devices ----------------------------------- */

#define UMAD_MAJOR 231
#define ISSM_MINOR 64

struct device {
	enum device_kind kind;
	atomic_int references;
	unsigned int number; /* N of umadN, issmN */
	int flags; /* those of open() that F_SETFL does not change. O_PATH: the descriptor only
		      names the device */
	struct statx file;       /* the status of the device file */
	uint64_t handle;         /* the fabric's number for the device; uevents: the socket's
				  * port ID */
	struct shared *shared;   /* umad */
	pthread_mutex_t reading; /* held from looking at the first packet until it is taken */
	struct device *next;     /* in the list of unused ones */
};

/* Creates a device to which only the caller refers; NULL on OOM. */
struct device *device_new(enum device_kind kind);

/*
 * Returns the device of a descriptor, with a reference for device_put(), or NULL if it is not a
 * device of the fabric. device_get() ignores O_PATH descriptors: the kernel refuses to read or
 * write them.
 */
struct device *device_get(int fd);
struct device *device_get_any(int fd);
void device_put(struct device *device);

int device_note(int fd, struct device *device); /* 0 or -EMFILE */
void device_close(int fd);
void device_close_range(unsigned int first, unsigned int last);
void device_share(int fd, int copy); /* a descriptor was duplicated */

/* Writes the devices that a new program inherits as text, as many as fit. Returns the size of
 * the whole text with its NUL; 0 if there are none. */
size_t device_list(char *text, size_t size);

/* Whether the process has memory of its own, unlike a child of vfork(). */
bool owns_memory(void);

/*
 * Makes this process the owner of the table: when a program starts, and in a child of fork().
 */
void device_begin_process(void);

/* --- exec.c: programs that the program starts ----------------------------------- */

/* Saves the environment variables that name the fabric. */
void exec_begin_program(void);

/* --- device.c: calls on devices ------------------------------------------------- */

/* Opens the device of a path in the view. */
int device_open(enum device_kind kind, unsigned int number, int flags, const char *path);

/* Adopts a descriptor that stayed open across exec(). `like` has the kind, number, flags and
 * handle. Returns 0 or a negative errno. */
int device_inherit(int fd, const struct device *like);
ssize_t device_read(struct device *device, int fd, void *buffer, size_t count);
ssize_t device_write(struct device *device, int fd, const void *buffer, size_t count);
ssize_t device_readv(struct device *device, int fd, const struct iovec *parts, int count);
ssize_t device_writev(struct device *device, int fd, const struct iovec *parts, int count);
int device_ioctl(struct device *device, unsigned long code, void *argument);

/* What F_GETFL returns for a device whose socket has these flags. */
int device_flags(int fd, int flags);

/* Corrects the events that poll() returned: a removed device has an error and no data, and no
 * device has what only sockets have. Returns how many entries have no event left. */
int device_correct_poll(struct pollfd *fds, nfds_t count);

/* --- netlink.c: sockets for uevents ----------------------------------------------- */

/* recvmsg() and recvfrom() of a uevent; from and length may be NULL. */
ssize_t uevents_receive_message(int fd, struct msghdr *message, int flags);
ssize_t uevents_receive(int fd, void *buffer, size_t count, int flags, struct sockaddr *from,
			socklen_t *length);

#endif
