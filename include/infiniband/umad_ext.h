/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * umad_ext.h - what this library adds to umad.h: the IsSM bit, a hot-plug monitor, and
 * hooks for the library's messages and for packets. (Version node IBUMAD_EXT_1.0.)
 *
 * The calls return 0 or more, or a negative errno (with errno set to it), and may be made
 * from any thread.
 */
#ifndef INFINIBAND_UMAD_EXT_H
#define INFINIBAND_UMAD_EXT_H

#include <infiniband/umad.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- waiting -------------------------------------------------------------------- */

/**
 * Waits as umad_poll(), and for a second descriptor, such as an eventfd with which another
 * thread wakes this one. timeout_ms is as for umad_poll(), -1 without a limit.
 *
 * The port handle must be a descriptor of the kernel: a simulator that is preloaded may
 * give numbers from 1024 on that poll(2) does not know together with others.
 *
 * Returns 0 if the port handle has something to read, whatever the second descriptor; 1 if
 * only the second one is readable, or has an error. -ETIMEDOUT. -EINVAL a handle or a
 * descriptor that is not open. -EIO the device is gone, or the cause is in errno, EINTR
 * among them.
 */
int umad_poll_with(int portid, int fd, int timeout_ms);

/* --- IsSM ----------------------------------------------------------------------- */

/** Flags of umad_open_issm(). */
enum {
	/** Do not wait for a port that another program holds. */
	UMAD_ISSM_NONBLOCK = 1 << 0
};

/**
 * Sets IsSM in a port's CapabilityMask, and keeps it set until umad_close_issm() or the
 * program's end. One program at a time can hold it; the call waits until the port is
 * free.
 *
 * The port is chosen as by umad_open_port(). Returns a close-on-exec descriptor, of no
 * use but to be closed. -EAGAIN held by someone, with UMAD_ISSM_NONBLOCK; -EINTR a
 * signal handler ran; -EINVAL no issm device for that port (from Linux 6.12 on, a port
 * without QP0, such as a RoCE port, has none), or unknown flags; -ENODEV no such device or no
 * usable port; -EACCES and what else open(2) gives.
 */
int umad_open_issm(const char *ca_name, int portnum, int flags);

/** Clears IsSM again. Returns 0; -EINVAL a descriptor that is not open. */
int umad_close_issm(int fd);

/* --- hot-plug ------------------------------------------------------------------- */

/** What happened. */
enum umad_event_type {
	UMAD_EVENT_CA_ADDED = 1,     /**< a device has appeared */
	UMAD_EVENT_CA_REMOVED = 2,   /**< a device has gone, or has got another name */
	UMAD_EVENT_PORT_ADDED = 3,   /**< umad_open_port(ca_name, portnum) can work now */
	UMAD_EVENT_PORT_REMOVED = 4, /**< the port's umad device has gone */
	UMAD_EVENT_OVERRUN = 5       /**< events are missing: list the devices anew */
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
 * Watches devices come and go, by the kernel's uevents (no udev needed; the network
 * namespace must be one that the kernel sends them to).
 *
 * Open it before listing the devices, and nothing can be missed between; an event may
 * then repeat what the list already showed. Stores the monitor, which
 * umad_monitor_close() frees. Returns 0; -EOPNOTSUPP built without netlink, -ENOMEM, -EMFILE
 * and -ENFILE no descriptor, or another error of the kernel.
 */
int umad_monitor_open(struct umad_monitor **monitor);

/** The descriptor to poll for POLLIN. It belongs to the monitor; -EINVAL for NULL. */
int umad_monitor_get_fd(const struct umad_monitor *monitor);

/**
 * Takes the next event, without waiting. One thread at a time.
 *
 * Call it until it says -EAGAIN: one message from the kernel can be none or two.
 * It returns UMAD_EVENT_OVERRUN when the kernel had to drop uevents, and when a device was
 * removed or renamed before its uevents were read. Later events report later changes.
 *
 * Returns 0; -EAGAIN nothing has happened, -EINVAL, -ENOMEM, -EMFILE and -ENFILE no descriptor
 * to read sysfs, or another error of the kernel. After an error other than -EAGAIN and -EINVAL,
 * events are lost: the next call that can read sysfs returns UMAD_EVENT_OVERRUN. Call again
 * after a while: the descriptor does not become readable for this event.
 */
int umad_monitor_next_event(struct umad_monitor *monitor, struct umad_event *event);

/** Stops watching. NULL does nothing. */
void umad_monitor_close(struct umad_monitor *monitor);

/* --- messages ------------------------------------------------------------------- */

/** How much a message matters; compare umad_debug(). */
enum umad_log_level {
	UMAD_LOG_WARNING = 0, /**< a failure that rdma-core reports at any level */
	UMAD_LOG_INFO = 1,    /**< what happens, and why a call failed */
	UMAD_LOG_DEBUG = 2    /**< every packet */
};

/** text is one line, without its end; it is the library's and gone after the call. */
typedef void umad_log_fn(enum umad_log_level level, const char *text, void *user);

/**
 * Sends the messages of libibumad and libibmad to a function; NULL sends them to stderr again.
 *
 * The hook gets warnings always, the rest as umad_debug() says. It is called on
 * the thread that had something to say, on several at once if they do, with no lock held;
 * it may run once more in another thread while this call replaces it.
 */
void umad_set_log_hook(umad_log_fn *hook, void *user);

/**
 * Passes a message of another library (libibmad, for instance) to the hook. Returns 1, or 0 if
 * no hook is set: then the call does nothing. errno stays as it is.
 */
int umad_log(enum umad_log_level level, const char *text);

/* --- packets -------------------------------------------------------------------- */

/** Which way a MAD went. */
enum umad_packet_direction {
	UMAD_PACKET_SENT = 1,    /**< umad_send() wrote it */
	UMAD_PACKET_RECEIVED = 2 /**< umad_recv() read it */
};

/**
 * A MAD that was sent or received. All of it is the library's or its caller's and gone after
 * the call. A later version may add members at the end.
 */
struct umad_packet_info {
	enum umad_packet_direction direction;
	int portid;  /**< the port handle */
	int agentid; /**< the agent that sent it, or that it is for */
	int length;  /**< of the MAD, in bytes */
	/** CLOCK_REALTIME in ns: before the MAD was written, or after it was read. */
	int64_t time;
	/**
	 * The header: the address (the destination of a MAD that was sent, the source of one
	 * that was received); the status of one that was received. If the status is not 0, the
	 * MAD is the program's own, which the kernel gives back: ETIMEDOUT without a response.
	 */
	const struct ib_user_mad *umad;
	const void *mad; /**< the MAD; a message of RMPP whole, as the program has it */
};

/** user is what umad_set_packet_hook() got. */
typedef void umad_packet_fn(const struct umad_packet_info *packet, void *user);

/**
 * Has a function called for each MAD that umad_send() wrote, after it was written, and for each
 * one that umad_recv() read; NULL for none. A call that fails has no packet. What umad_send()
 * wrote is a copy: by then the program may use the memory for something else.
 *
 * The hook is called on the thread that sends or receives, on several at once if they do, with
 * no lock held and errno kept; it may run once more in another thread while this call replaces
 * it. It must not change the MAD. Without a hook, a call of umad_send() or umad_recv() costs a
 * load and a branch more.
 */
void umad_set_packet_hook(umad_packet_fn *hook, void *user);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_UMAD_EXT_H */
