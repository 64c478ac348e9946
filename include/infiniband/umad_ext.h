/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * umad_ext.h - calls that rdma-core's umad.h does not have: the IsSM bit, a hot-plug monitor,
 * and hooks for the library's messages and for packets. (Version node IBUMAD_EXT_1.0.)
 *
 * Memory. umad_monitor_free() frees a monitor and its descriptors. umad_close_issm() closes an
 * issm device. The memory that the arguments of a hook point to is valid until the hook
 * returns.
 *
 * Threads. Any thread may make these calls. Two threads must not use one monitor at the same
 * time. The thread that has a message or a packet calls the hook, with no lock held, and
 * several threads may call it at once.
 *
 * The calls return 0 or more. If they fail, they return a negative errno, and set errno.
 */
#ifndef INFINIBAND_UMAD_EXT_H
#define INFINIBAND_UMAD_EXT_H

#include <infiniband/umad.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- waiting -------------------------------------------------------------------- */

/**
 * Waits as umad_poll(), and also for a second descriptor, such as an eventfd by which another
 * thread ends the wait. timeout_ms is as for umad_poll(); -1 is no limit.
 *
 * The port handle must be a descriptor of the kernel. A simulator that is preloaded may give
 * handles that the kernel does not know. poll(2) cannot poll them together with other
 * descriptors.
 *
 * Returns 0 if a message can be received, and 1 if only the second descriptor is readable or
 * has an error.
 * -ETIMEDOUT  the time is over
 * -EINVAL     the handle or the descriptor is not open
 * -EIO        errno is the cause: EINTR if a signal handler ran; otherwise the device failed
 *             or is gone
 */
int umad_poll_with(int portid, int fd, int timeout_ms);

/* --- IsSM ----------------------------------------------------------------------- */

/** Flags of umad_open_issm(). */
enum {
	/** Do not wait for a port that another program holds. */
	UMAD_ISSM_NONBLOCK = 1 << 0
};

/**
 * Sets IsSM in a port's CapabilityMask. The bit stays set until umad_close_issm() is called or
 * the program ends. One program at a time can hold the issm device of a port. The call waits
 * until no other program holds it: it makes an attempt every 50 ms. It does not wait in
 * open(2), because the kernel kills a program that waits there when the device is removed.
 *
 * The port is chosen as by umad_open_port(). Returns a descriptor that is closed on exec. Its
 * only use is umad_close_issm().
 * -EAGAIN  another program holds the port, and UMAD_ISSM_NONBLOCK is set
 * -EINTR   a signal handler ran during the wait
 * -EINVAL  the port has no issm device; from Linux 6.12 on, a port without QP0, such as a RoCE
 *          port, has none
 * -EINVAL  flags has an unknown flag
 * -ENODEV  there is no such device, or no usable port
 * -ENODEV  the device was removed during the wait
 * -EACCES  the program may not open the device
 * and the other errors of open(2)
 */
int umad_open_issm(const char *ca_name, int portnum, int flags);

/** Clears IsSM. Returns 0, or -EINVAL if the descriptor is not open. */
int umad_close_issm(int fd);

/* --- hot-plug ------------------------------------------------------------------- */

/** The type of an event. */
enum umad_event_type {
	UMAD_EVENT_CA_ADDED = 1,     /**< a device was added */
	UMAD_EVENT_CA_REMOVED = 2,   /**< a device was removed or renamed */
	UMAD_EVENT_PORT_ADDED = 3,   /**< umad_open_port(ca_name, portnum) can open the port */
	UMAD_EVENT_PORT_REMOVED = 4, /**< the port's umad device was removed */
	UMAD_EVENT_OVERRUN = 5,      /**< events are missing: list the devices again */
	UMAD_EVENT_PORT_CHANGED = 6  /**< values of a port changed; see
					umad_monitor_watch_ports() */
};

/** One event; members that do not apply are zero. */
struct umad_event {
	enum umad_event_type type;
	char ca_name[UMAD_CA_NAME_LEN];
	int portnum;   /**< of the PORT events */
	char node[32]; /**< of the PORT events: the umad device, "umad0" */
};

struct umad_monitor;

/**
 * Opens a monitor, which reports devices and ports that are added and removed, and on demand
 * ports that change (umad_monitor_watch_ports()). It receives the kernel's uevents. It does not
 * need udev, but it needs a network namespace to which the kernel sends uevents.
 *
 * Open the monitor before you list the devices: then no change is missed. An event may report a
 * device that is in the list already. umad_monitor_free() frees the monitor. Returns 0.
 * -EOPNOTSUPP  the library was built without netlink
 * -ENOMEM      out of memory
 * -EMFILE      no descriptor is left in the process
 * -ENFILE      no descriptor is left in the system
 * and other errors of the kernel
 */
int umad_monitor_open(struct umad_monitor **monitor);

/**
 * The descriptor to poll for POLLIN. It is the descriptor of an epoll instance and belongs to
 * the monitor: do not read, change or close it. -EINVAL for NULL.
 */
int umad_monitor_get_fd(const struct umad_monitor *monitor);

/**
 * From now on, the monitor reads each present port every interval_ms ms. It reports
 * UMAD_EVENT_PORT_CHANGED if the port has other values than at the last reading: state,
 * physical state, rate, LID, LMC, SM LID, SM SL, capability mask, first GID, P_Keys. Call
 * umad_get_port() for the values. Call this function before you list the devices: then no
 * change is missed.
 *
 * The kernel reports no change of a port, so the monitor compares values. Several changes
 * between two readings give one event. A value that changes and changes back between two
 * readings gives none, even if the program has read the value in between.
 *
 * umad_monitor_next_event() reads the ports if an interval is over. The descriptor of
 * umad_monitor_get_fd() then becomes readable. A reading of a port opens 13 files in sysfs, and
 * one more for each entry of its P_Key table. The device may execute a firmware command for
 * each of these files. So choose an interval of seconds for ports with long tables.
 *
 * A second call changes the interval. Returns 0.
 * -EINVAL  monitor is NULL, or interval_ms is less than 1
 * -ENOMEM  out of memory
 * -EMFILE  no descriptor is left in the process
 * -ENFILE  no descriptor is left in the system
 * and other errors of the kernel. If the first call fails, ports are not watched.
 */
int umad_monitor_watch_ports(struct umad_monitor *monitor, int interval_ms);

/**
 * Stores the next event, without waiting for one. Two threads must not use one monitor at the
 * same time.
 *
 * A uevent of the kernel can give no event, one or two. So repeat the call until it returns
 * -EAGAIN. The event is UMAD_EVENT_OVERRUN if the kernel dropped uevents, or if a device was
 * removed or renamed before its uevents were read. Later events report later changes.
 *
 * Returns 0.
 * -EAGAIN   there is no event
 * -EINVAL   a pointer is NULL
 * -ENOMEM   out of memory
 * -EMFILE   no descriptor is left in the process to read sysfs
 * -ENFILE   no descriptor is left in the system to read sysfs
 * and other errors of the kernel. After an error other than -EAGAIN and -EINVAL, events are
 * lost: the next call that can read sysfs returns UMAD_EVENT_OVERRUN. The descriptor does not
 * become readable for this event: call again after some time. If the monitor watches ports, the
 * descriptor becomes readable when the next interval is over.
 */
int umad_monitor_next_event(struct umad_monitor *monitor, struct umad_event *event);

/** Frees a monitor. NULL is allowed. */
void umad_monitor_free(struct umad_monitor *monitor);

/* --- messages ------------------------------------------------------------------- */

/** The level of a message, as for umad_debug(). */
enum umad_log_level {
	UMAD_LOG_WARNING = 0, /**< a failure that rdma-core reports at any level */
	UMAD_LOG_INFO = 1,    /**< events, choices, and the reasons why calls failed */
	UMAD_LOG_DEBUG = 2    /**< every packet */
};

/** text is one line without a newline, and valid only during the call. */
typedef void umad_log_fn(enum umad_log_level level, const char *text, void *user);

/**
 * Sets a function that receives the messages of libibumad and libibmad. With NULL, messages go
 * to stderr.
 *
 * The hook always gets warnings. It gets the other messages of libibumad if umad_debug() has
 * set their level, and those of libibmad, at UMAD_LOG_INFO, if ibdebug is 1 or more. The thread
 * that has a message calls the hook, with no lock held. Several threads may call it at once.
 * While the program replaces a hook, another thread may call the old hook once more.
 */
void umad_set_log_hook(umad_log_fn *hook, void *user);

/**
 * Passes a message of another library, such as libibmad, to the hook, and returns 1. If no hook
 * is set, it does nothing and returns 0. errno does not change.
 */
int umad_log(enum umad_log_level level, const char *text);

/* --- packets -------------------------------------------------------------------- */

/** The direction of a MAD. */
enum umad_packet_direction {
	UMAD_PACKET_SENT = 1,    /**< umad_send() wrote it */
	UMAD_PACKET_RECEIVED = 2 /**< umad_recv() read it */
};

/**
 * A MAD that was sent or received. The structure and the memory that it points to are valid
 * only during the call. A later version may add members at the end.
 */
struct umad_packet_info {
	enum umad_packet_direction direction;
	int portid;  /**< the port handle */
	int agentid; /**< the agent that sent the MAD, or that the MAD is for */
	int length;  /**< of the MAD, in bytes */
	/** CLOCK_REALTIME in ns: before the MAD was written, or after it was read. */
	int64_t time;
	/**
	 * The header. Its address is the destination of a MAD that was sent, or the source of a
	 * MAD that was received. A MAD that was received has a status. If the status is not 0,
	 * the MAD is a request of the program, which the kernel returns: ETIMEDOUT if no
	 * response came.
	 */
	const struct ib_user_mad *umad;
	const void *mad; /**< the MAD, or a whole RMPP message */
};

/** user is the argument of umad_set_packet_hook(). */
typedef void umad_packet_fn(const struct umad_packet_info *packet, void *user);

/**
 * Sets a function that is called after umad_send() has written a MAD, and after umad_recv() has
 * read a MAD. NULL removes the function. The function is not called if umad_send() or
 * umad_recv() fails. For a MAD that was sent, the function gets a copy, because the program may
 * change the buffer as soon as the kernel has the MAD.
 *
 * The thread that sends or receives calls the hook, with no lock held. Several threads may call
 * it at once. errno does not change. While the program replaces a hook, another thread may call
 * the old hook once more. The hook must not change the MAD. Without a hook, umad_send() and
 * umad_recv() need only one load and one branch more.
 */
void umad_set_packet_hook(umad_packet_fn *hook, void *user);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_UMAD_EXT_H */
