/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * mad_server.h - servers on an engine: a callback for the requests of a class, responses of any
 * size at any time later.
 *
 *   static void answer(struct mad_server *server, struct mad_request *request, void *arg)
 *   {
 *           if (mad_request_respond(request, 0, arg, strlen(arg)) < 0)
 *                   mad_request_drop(request);
 *   }
 *
 *   struct mad_server_options options = {
 *           .mgmt_class = IB_VENDOR_OPENIB_PING_CLASS,
 *           .oui = IB_OPENIB_OUI,
 *           .methods = {MAD_SERVER_METHOD(IB_MAD_METHOD_GET)},
 *   };
 *   mad_server_start(async, &options, answer, "name", &server);
 *
 * Each server has an agent of its own, beside the client agent of its class. So a port may have
 * both, and servers of several classes, OUIs and methods. Requests for these agents do not
 * reach mad_receive_via().
 *
 * Requests. The callback gets each request once, in the order in which they came. A request
 * belongs to the program from the callback on, until mad_request_respond() succeeds or
 * mad_request_drop() is called: in the callback or at any time later, in any thread. A request
 * that its sender sends again meanwhile (the same transaction ID, sender, method and attribute)
 * is not handed out again.
 *
 * The limit. A server keeps "limit" requests and 64 MiB at most, those that the program holds
 * and those that wait for the callback. A request beyond that gets a response with status BUSY.
 * A Send, a Trap or a Report is dropped instead: its sender may send it again.
 *
 * Threads. Callbacks run as those of mad_async.h do, one at a time for an engine, with no lock
 * held. All calls may be made from any thread.
 *
 * The end. mad_async_destroy() stops the servers of its engine. When the port is closed or the
 * device is gone, no more requests come. In all cases a request that the program holds stays
 * valid until the program drops it; mad_request_respond() fails. The port's memory is freed
 * after its last request. In a child of fork() the servers are stopped: the agents are the
 * parent's.
 *
 * Calls return 0 or more, or a negative errno.
 */
#ifndef INFINIBAND_MAD_SERVER_H
#define INFINIBAND_MAD_SERVER_H

#include <infiniband/mad_async.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mad_server;

/** The bit of a method below 64 in mad_server_options:methods[0]. */
#define MAD_SERVER_METHOD(method) (UINT64_C(1) << (method))

/** What a server serves. All that is not set is 0. */
struct mad_server_options {
	int mgmt_class;
	uint32_t oui;          /**< of a class of vendor range 2 (0x30 to 0x4f); otherwise 0 */
	uint64_t methods[2];   /**< bit n % 64 of methods[n / 64]: method n */
	unsigned rmpp_version; /**< 1: requests and responses may be longer than a MAD */
	/**
	 * Where the data of requests and responses begin: 24 to 192, 36 to 192 with RMPP, 40
	 * to 192 in vendor range 2. 0: at byte 56 of the SA's class, 40 of vendor range 2, 24
	 * of vendor range 1, 64 of all other classes.
	 */
	unsigned data_offset;
	unsigned limit;       /**< of requests, 65536 at most; 0: 1024 */
	uint64_t reserved[4]; /**< 0 */
};

/** A request. It does not change. */
struct mad_request {
	struct mad_server *server;
	const uint8_t *mad;  /**< the whole request, as on the wire */
	size_t length;       /**< of mad: 256, or the length of an RMPP message */
	const uint8_t *data; /**< the bytes from the data offset on; NULL without any */
	size_t data_size;
	ib_portid_t from; /**< the sender, with its GID if the request had a GRH */
	unsigned mgmt_class;
	unsigned method;
	unsigned attribute;
	uint32_t modifier;
	uint64_t tid; /**< the transaction ID, in host order */
};

/** Called once for each request. arg is that of mad_server_start(). */
typedef void mad_server_fn(struct mad_server *server, struct mad_request *request, void *arg);

/**
 * Starts a server. mad_async_run() goes on while a server of its engine is started and the port
 * is open.
 *
 * -EINVAL           an argument is wrong
 * -EADDRINUSE       another agent on the port has a method of the class (and OUI), of this
 *                   process or of another one: the kernel gives each method to one agent
 * -EPROTONOSUPPORT  the port has no SMPs, as ports of RoCE
 * -ENOMEM           out of memory, or the port handle has too many agents
 * -ENODEV           the device is gone
 * -ECANCELED        the port is closed, or the engine is being destroyed
 */
int mad_server_start(struct mad_async *async, const struct mad_server_options *options,
		     mad_server_fn *callback, void *arg, struct mad_server **server);

/**
 * Stops a server, which does not exist any more afterwards. mad_async_destroy() does the same
 * with all servers of the engine: stop none of them later. When the call returns, the callback
 * does not run, unless it is the caller, and is not called again. Requests that wait for the
 * callback are dropped without a response. Requests that the program holds stay valid until it
 * drops them. Responses by RMPP that are being sent may be lost. NULL is allowed.
 */
void mad_server_stop(struct mad_server *server);

/**
 * Responds to a request, and frees it. size bytes of data go to the data offset, and zeros
 * behind them. If data is NULL, the request's own first MAD goes back. The response goes
 * to the request's sender, on the same partition. Data that do not fit into one MAD are sent by
 * RMPP, if the server has it, and so are tables of the SA's class. Then the call returns before
 * the data are at the receiver; mad_server_stats:failed counts the responses that did not
 * arrive. Each window of 64 segments in which a MAD is lost takes 2 s longer, because the
 * kernel waits so long for an acknowledgement. If the requester sends its request again
 * meanwhile, the callback gets the request again, and the second response fails with -EINVAL.
 *
 * If the call fails, the request is still the program's, which may respond otherwise or drop
 * it:
 * -EINVAL     an argument is wrong, or the request is a Send, which has no response; or a
 *             response to the same transaction is still being sent by RMPP
 * -EMSGSIZE   neither a MAD nor RMPP can carry the data
 * -ENOMEM     out of memory
 * -ENODEV     the device is gone
 * -ECANCELED  the server was stopped, the port is closed, or the process has forked
 * and the errors of umad_send()
 */
int mad_request_respond(struct mad_request *request, unsigned status, const void *data,
			size_t size);

/** Frees a request without a response. NULL is allowed. */
void mad_request_drop(struct mad_request *request);

/** Counts since the server was started; queued and held are the present state. */
struct mad_server_stats {
	uint64_t received;   /**< requests that were kept for the callback */
	uint64_t responded;  /**< responses of mad_request_respond() */
	uint64_t dropped;    /**< requests that were neither kept nor got BUSY */
	uint64_t busy;       /**< responses with status BUSY */
	uint64_t duplicates; /**< requests that came again before they were responded to */
	uint64_t failed;     /**< responses that were not sent, or by RMPP did not arrive */
	uint32_t queued;     /**< requests that wait for the callback */
	uint32_t held;       /**< requests that the program holds */
};

/** size is sizeof(*stats), so that members can be added. -EINVAL. */
int mad_server_get_stats(struct mad_server *server, struct mad_server_stats *stats,
			 size_t size);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_MAD_SERVER_H */
