/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * umad_ext.h - calls beyond rdma-core's umad.h: IsSM, a hot-plug monitor, hooks for messages
 * and packets.
 *
 *   umad_set_log_hook(keep_message, NULL);  // messages of both libraries, not on stderr
 *
 *   if (umad_monitor_open(&monitor, 1000) == 0)
 *           while (poll(&pollfd, 1, -1) > 0)  // pollfd.fd = umad_monitor_get_fd(monitor)
 *                   while (!umad_monitor_next_event(monitor, &event, sizeof(event)))
 *                           printf("%s port %d: %d\n", event.ca_name, event.portnum,
 * event.type);
 *
 * Thread-safe, but only one thread at a time may use a monitor. Hooks run in the thread that
 * has the message or packet, several at once, with no lock held. Calls return 0 or more, or a
 * negative errno, which they also store in errno.
 */
#ifndef INFINIBAND_UMAD_EXT_H
#define INFINIBAND_UMAD_EXT_H

#include <infiniband/umad.h>

#ifdef __cplusplus
extern "C" {
#endif

/** As umad_poll(), also waiting for fd, such as an eventfd. Returns 1 if only fd is ready. */
int umad_poll_with(int portid, int fd, int timeout_ms);

/** Flags of umad_open_issm(). */
enum {
	/** fail with -EAGAIN if another program holds the port */
	UMAD_ISSM_NONBLOCK = 1 << 0
};

/** Sets IsSM until umad_close_issm() or exit, waiting for a program that holds the port. */
int umad_open_issm(const char *ca_name, int portnum, int flags);

/** Clears IsSM. */
int umad_close_issm(int fd);

enum umad_event_type {
	UMAD_EVENT_CA_ADDED = 1,
	UMAD_EVENT_CA_REMOVED = 2, /**< or renamed */
	UMAD_EVENT_PORT_ADDED = 3, /**< umad_open_port() can open it */
	UMAD_EVENT_PORT_REMOVED = 4,
	UMAD_EVENT_OVERRUN = 5,     /**< events were lost: list the devices again */
	UMAD_EVENT_PORT_CHANGED = 6 /**< only if ports are watched */
};

/** An event; unused members are 0. */
struct umad_event {
	enum umad_event_type type;
	char ca_name[UMAD_CA_NAME_LEN];
	int portnum;   /**< of PORT events */
	char node[32]; /**< of PORT events: "umad0" */
};

struct umad_monitor;

/**
 * Opens a monitor for devices and ports that come and go and, every watch_interval_ms (0:
 * never), for changes of port state, LID, SM, P_Keys and so on. To miss nothing, open it before
 * listing devices.
 */
int umad_monitor_open(struct umad_monitor **monitor, int watch_interval_ms);

/** Returns the monitor's descriptor, to poll for POLLIN. */
int umad_monitor_get_fd(const struct umad_monitor *monitor);

/**
 * Stores the next event; repeat until -EAGAIN. After other errors, UMAD_EVENT_OVERRUN follows.
 */
int umad_monitor_next_event(struct umad_monitor *monitor, struct umad_event *event,
			    size_t size);

/** NULL is a no-op. */
void umad_monitor_free(struct umad_monitor *monitor);

/* --- messages ------------------------------------------------------------------- */

/** Levels of umad_debug(). */
enum umad_log_level {
	UMAD_LOG_WARNING = 0, /**< what rdma-core always reports */
	UMAD_LOG_INFO = 1,    /**< choices, causes of failures */
	UMAD_LOG_DEBUG = 2    /**< packets */
};

/** text is one line without newline, valid during the call. */
typedef void umad_log_fn(enum umad_log_level level, const char *text, void *user);

/**
 * Sets a function for messages of libibumad and libibmad; NULL: stderr. Warnings always come,
 * others depend on umad_debug() and ibdebug. A replaced hook may be called once more by another
 * thread.
 */
void umad_set_log_hook(umad_log_fn *hook, void *user);

/** Passes a message to the hook and returns 1, or returns 0 without a hook. Keeps errno. */
int umad_log(enum umad_log_level level, const char *text);

/* --- packets -------------------------------------------------------------------- */

enum umad_packet_direction {
	UMAD_PACKET_SENT = 1,
	UMAD_PACKET_RECEIVED = 2
};

/** A MAD that was sent or received, valid during the hook. */
struct umad_packet_info {
	enum umad_packet_direction direction;
	int portid;  /**< port handle */
	int agentid; /**< that sent or receives it */
	int length;
	/** CLOCK_REALTIME in ns, before it was written or after it was read */
	int64_t time;
	/** header with destination or source; status ETIMEDOUT: a request without a response */
	const struct ib_user_mad *umad;
	const void *mad;
};

typedef void umad_packet_fn(const struct umad_packet_info *packet, void *user);

/**
 * Sets a function to call after each MAD sent or received, or NULL. It must not change the MAD.
 * A replaced hook may be called once more by another thread.
 */
void umad_set_packet_hook(umad_packet_fn *hook, void *user);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_UMAD_EXT_H */
