/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * mad_server.h - servers on an engine: a callback for the requests of a class, and responses of
 * any size at any time later.
 *
 *   static void answer(struct mad_server *server, struct mad_request *request, int error,
 *                      void *arg)
 *   {
 *           if (!request)
 *                   return; // the server has ended
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
 * A server has its own agent: several may run on one port, beside the clients of their classes.
 * Any thread may call these functions. Calls return 0 or a negative errno.
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
	unsigned data_offset;  /**< of the data in a MAD; 0: the default of the class */
	unsigned limit;        /**< of requests, 65536 at most; 0: 1024. Others get BUSY. */
	uint64_t reserved[4];  /**< 0 */
};

/**
 * A request. It belongs to the program from the callback on, until mad_request_respond()
 * succeeds or mad_request_free() is called: in any thread, at any time, also after the end of
 * the server and of the port.
 */
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

/**
 * Called once for each request, retransmissions left out, with error 0.
 *
 * Called for the last time, with request NULL, when the server has ended: error is 0 after
 * mad_server_stop(), -ENODEV if the device is gone, -ECANCELED if the port was closed, the
 * engine freed or the process forked. When it returns, the server does not exist any more.
 */
typedef void mad_server_fn(struct mad_server *server, struct mad_request *request, int error,
			   void *arg);

/**
 * Starts a server. -EADDRINUSE: another agent on the port, of any process, has one of the
 * methods. mad_async_wait() does not return before the server's last callback.
 */
int mad_server_start(struct mad_async *async, const struct mad_server_options *options,
		     mad_server_fn *callback, void *arg, struct mad_server **server);

/**
 * Ends a server, and does not wait for the last callback. Other servers may have the methods at
 * once. Requests that no callback got are dropped without a response. NULL is a no-op.
 */
void mad_server_stop(struct mad_server *server);

/**
 * Responds to a request and frees it: status (0, or IB_MAD_STS_... of mad.h), and size bytes at
 * the data offset; data NULL: those of the request. If rmpp_version is 1, long data goes by
 * RMPP, and the call does not wait for its end. On error, the program still has the request.
 */
int mad_request_respond(struct mad_request *request, unsigned status, const void *data,
			size_t size);

/** Frees a request without a response. NULL is a no-op. */
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

/** Until the last callback returns. size is sizeof(*stats). */
int mad_server_get_stats(struct mad_server *server, struct mad_server_stats *stats,
			 size_t size);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_MAD_SERVER_H */
