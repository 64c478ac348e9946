/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * mad_server.h - servers on an engine: a callback for the requests of a class, responses of any
 * size at any time later.
 *
 *   static void answer(struct mad_server *server, struct mad_request *request, void *arg)
 *   {
 *           if (mad_request_respond(request, 0, arg, strlen(arg)) < 0)
 *                   mad_request_free(request);
 *   }
 *
 *   struct mad_server_options options = {
 *           .mgmt_class = IB_VENDOR_OPENIB_PING_CLASS,
 *           .oui = IB_OPENIB_OUI,
 *           .methods = {MAD_SERVER_METHOD(IB_MAD_METHOD_GET)},
 *   };
 *   mad_server_start(async, &options, answer, "name", &server);
 *
 * Each server has its own agent, in addition to the client agent of its class. So a port may
 * have both, and servers of several classes, OUIs and methods. Requests for these agents do not
 * reach mad_receive_via().
 *
 * Requests. The callback gets each request once, in the order in which they came. A request
 * belongs to the program from the callback on, until mad_request_respond() succeeds or
 * mad_request_free() is called: in the callback or at any time later, in any thread. If the
 * sender retransmits the request meanwhile (with the same transaction ID, sender, method and
 * attribute), the callback does not get the request again.
 *
 * The limit. A server keeps at most "limit" requests and 64 MiB, including the requests that
 * the program holds. The server responds to further requests with status BUSY. It drops further
 * Sends, Traps and Reports: their senders may send them again.
 *
 * Memory. mad_server_stop() stops and frees a server, and mad_async_free() those of its
 * engine. mad_request_respond() frees a request if it succeeds, mad_request_free() always.
 *
 * Threads. Any thread may call these functions. Callbacks run as those of mad_async.h do, one
 * at a time for an engine, with no lock held.
 *
 * The end. mad_async_free() stops the servers of its engine. When the port is closed or the
 * device is gone, no more requests come. In all cases a request that the program holds stays
 * valid until the program drops it; mad_request_respond() fails. The port's memory is freed
 * after its last request. In a child of fork() the servers are stopped, because the agents
 * belong to the parent. If the port is lost in the child (mad_async.h), calls fail with
 * -ECANCELED, and mad_server_stop() and mad_request_free() do nothing.
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

/** The requests that a server receives. A member that a program does not need must be 0. */
struct mad_server_options {
	int mgmt_class;
	uint32_t oui;          /**< of a class of vendor range 2 (0x30 to 0x4f); otherwise 0 */
	uint64_t methods[2];   /**< bit n % 64 of methods[n / 64]: method n */
	unsigned rmpp_version; /**< 1: requests and responses may be longer than a MAD */
	/**
	 * The offset of the data in requests and responses: 24 to 192, 36 to 192 with RMPP, 40
	 * to 192 in vendor range 2. 0 stands for the default of the class: 56 for the SA, 40
	 * for vendor range 2, 24 for vendor range 1, 64 for all other classes.
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

/** Called once for each request. arg is the argument of mad_server_start(). */
typedef void mad_server_fn(struct mad_server *server, struct mad_request *request, void *arg);

/**
 * Starts a server. mad_async_wait() does not return while a server of its engine is started and
 * the port is open.
 *
 * -EINVAL           an argument is wrong
 * -EADDRINUSE       another agent on the port, of this process or of another one, has a method
 *                   of the class (and OUI): the kernel gives each method to one agent
 * -EPROTONOSUPPORT  the class uses SMPs, and the port has none, such as a RoCE port
 * -ENOMEM           out of memory
 * -ENOMEM           the port handle has too many agents
 * -ENODEV           the device is gone
 * -ECANCELED        the port is closed, the engine is being destroyed, or the process has
 *                   forked
 */
int mad_server_start(struct mad_async *async, const struct mad_server_options *options,
		     mad_server_fn *callback, void *arg, struct mad_server **server);

/**
 * Stops and frees a server. mad_async_free() does the same with all servers of the engine,
 * so the program must not stop them again. The call waits until the callback has returned,
 * unless the callback calls it. The callback is not called again. Requests that wait for the
 * callback are dropped without a response. Requests that the program holds stay valid until the
 * program drops them. Responses by RMPP that are being sent may be lost. NULL is allowed.
 */
void mad_server_stop(struct mad_server *server);

/**
 * Responds to a request, and frees it. The response has size bytes of data at the data offset,
 * and zeros after them. If data is NULL, the response has the first MAD of the request. The
 * response is sent to the request's sender, on the same partition.
 *
 * If the server has RMPP, data that do not fit into one MAD are sent by RMPP, and tables of the
 * SA's class are always sent by RMPP. Then the call returns before the data have arrived;
 * mad_server_stats:failed counts the responses that did not arrive. Each window of 64 segments
 * in which a MAD is lost takes 2 s longer, because the kernel waits for an acknowledgement for
 * 2 s. If the requester retransmits the request meanwhile, the callback gets the request again,
 * and the second response fails with -EINVAL.
 *
 * If the call fails, the request still belongs to the program, which may respond again or drop
 * the request:
 * -EINVAL     an argument is wrong
 * -EINVAL     the request is a Send, which has no response
 * -EINVAL     another response to the same transaction is still being sent by RMPP
 * -EMSGSIZE   neither a MAD nor RMPP can carry the data
 * -ENOMEM     out of memory
 * -ENODEV     the device is gone
 * -ECANCELED  the server was stopped, the port is closed, or the process has forked
 * and the errors of umad_send()
 */
int mad_request_respond(struct mad_request *request, unsigned status, const void *data,
			size_t size);

/** Frees a request without a response. NULL is allowed. */
void mad_request_free(struct mad_request *request);

/** Counts since the server was started; queued and held are the present state. */
struct mad_server_stats {
	uint64_t received;   /**< requests that were kept for the callback */
	uint64_t responded;  /**< responses of mad_request_respond() */
	uint64_t dropped;    /**< requests that were neither kept nor got BUSY */
	uint64_t busy;       /**< responses with status BUSY */
	uint64_t duplicates; /**< retransmissions of requests that had no response yet */
	uint64_t failed;     /**< responses that were not sent, or did not arrive by RMPP */
	uint32_t queued;     /**< requests that wait for the callback */
	uint32_t held;       /**< requests that the program holds */
};

/**
 * size is sizeof(*stats), so that members can be added.
 *
 * -EINVAL     an argument is NULL
 * -ECANCELED  the port is lost in a child of fork()
 */
int mad_server_get_stats(struct mad_server *server, struct mad_server_stats *stats,
			 size_t size);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_MAD_SERVER_H */
