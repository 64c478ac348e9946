/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * umad_ext.h - calls that rdma-core's umad.h does not have: the IsSM bit, a hot-plug monitor,
 * and hooks for the library's messages and for packets.
 *
 *   umad_set_log_hook(keep_message, NULL);  // messages of both libraries, not on stderr
 *
 *   if (umad_monitor_open(&monitor, 1000) == 0)
 *           while (poll(&pollfd, 1, -1) > 0)  // pollfd.fd = umad_monitor_get_fd(monitor)
 *                   while (!umad_monitor_next_event(monitor, &event, sizeof(event)))
 *                           printf("%s port %d: %d\n", event.ca_name, event.portnum,
 * event.type);
 *
 * Any thread may make these calls, but only one at a time may use a monitor. The thread that
 * has a message or a packet calls the hook, with no lock held; several may call it at once.
 * Calls return 0 or more; if they fail, a negative errno, and set errno.
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
 * thread ends the wait. Returns 0 if a message can be received, 1 if only fd is readable or has
 * an error; -ETIMEDOUT; -EIO, with errno EINTR after a signal.
 */
int umad_poll_with(int portid, int fd, int timeout_ms);

/* --- IsSM ----------------------------------------------------------------------- */

/** Flags of umad_open_issm(). */
enum {
	/** Do not wait for a port that another program holds. */
	UMAD_ISSM_NONBLOCK = 1 << 0
};

/**
 * Sets IsSM in a port's CapabilityMask until umad_close_issm(), or the end of the program.
 * Waits for another program that holds the port, unless flags has UMAD_ISSM_NONBLOCK
 * (-EAGAIN). Returns a descriptor for umad_close_issm() only.
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
	UMAD_EVENT_PORT_CHANGED = 6  /**< values of a port changed, if ports are watched */
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
 * Opens a monitor, which reports devices and ports that are added and removed. If
 * watch_interval_ms is not 0, it also reads each port every watch_interval_ms milliseconds, and
 * reports those whose state, LID, SM, P_Keys and so on have changed. Open it before you list
 * the devices: then no change is missed.
 */
int umad_monitor_open(struct umad_monitor **monitor, int watch_interval_ms);

/** The descriptor to poll for POLLIN. It belongs to the monitor. */
int umad_monitor_get_fd(const struct umad_monitor *monitor);

/**
 * Stores the next event, without waiting; size is sizeof(*event). One wakeup can have several:
 * repeat the call until it returns -EAGAIN. Other errors lose events: UMAD_EVENT_OVERRUN
 * follows.
 */
int umad_monitor_next_event(struct umad_monitor *monitor, struct umad_event *event,
			    size_t size);

/** Frees a monitor. NULL is a no-op. */
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
 * Sets a function that receives the messages of libibumad and libibmad, which otherwise go to
 * stderr; NULL: stderr again. It always gets warnings, and more with umad_debug() and ibdebug.
 * While a hook is replaced, another thread may call the old one once more.
 */
void umad_set_log_hook(umad_log_fn *hook, void *user);

/** Passes a message to the hook and returns 1; returns 0 if there is no hook. Keeps errno. */
int umad_log(enum umad_log_level level, const char *text);

/* --- packets -------------------------------------------------------------------- */

/** The direction of a MAD. */
enum umad_packet_direction {
	UMAD_PACKET_SENT = 1,    /**< umad_send() wrote it */
	UMAD_PACKET_RECEIVED = 2 /**< umad_recv() read it */
};

/** A MAD that was sent or received; lent until the hook returns. */
struct umad_packet_info {
	enum umad_packet_direction direction;
	int portid;  /**< the port handle */
	int agentid; /**< the agent that sent the MAD, or that the MAD is for */
	int length;  /**< of the MAD, in bytes */
	/** CLOCK_REALTIME in ns: before the MAD was written, or after it was read. */
	int64_t time;
	/** The header: destination or source. A MAD that was received with a status is a
	 * request of the program that the kernel returns: ETIMEDOUT, no response came. */
	const struct ib_user_mad *umad;
	const void *mad; /**< the MAD, or a whole RMPP message */
};

/** user is the argument of umad_set_packet_hook(). */
typedef void umad_packet_fn(const struct umad_packet_info *packet, void *user);

/**
 * Sets a function that is called after umad_send() has written a MAD, and after umad_recv() has
 * read one; NULL removes it. The hook must not change the MAD. errno is kept. While a hook is
 * replaced, another thread may call the old one once more.
 */
void umad_set_packet_hook(umad_packet_fn *hook, void *user);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_UMAD_EXT_H */
