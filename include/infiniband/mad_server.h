/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * mad_server.h - servers on an engine: a callback for the requests of a class, responses of any
 * size at any time.
 *
 *   static void answer(struct mad_server *server, struct mad_request *request, int error,
 *                      void *arg)
 *   {
 *           if (request && mad_request_respond(request, 0, arg, strlen(arg)) < 0)
 *                   mad_request_free(request);
 *   }
 *   ...
 *   mad_server_start(async, &options, answer, "name", &server);
 *
 * A port may have several servers, besides clients of the same classes. Thread-safe; calls
 * return 0 or a negative errno. See mad_server_start(3).
 */
#ifndef INFINIBAND_MAD_SERVER_H
#define INFINIBAND_MAD_SERVER_H

#include <infiniband/mad_async.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mad_server;

/** The bit of a method below 64, for methods[0]. */
#define MAD_SERVER_METHOD(method) (UINT64_C(1) << (method))

/** What a server receives. Unused members must be 0. */
struct mad_server_options {
	int mgmt_class;
	uint32_t oui;          /**< for vendor range 2 (0x30 to 0x4f) */
	uint64_t methods[2];   /**< bit n % 64 of methods[n / 64] is method n */
	unsigned rmpp_version; /**< 1: messages may be longer than a MAD */
	unsigned data_offset;  /**< of the data in a MAD; 0: the class's */
	unsigned limit;        /**< of requests, up to 65536; 0: 1024. Others get BUSY. */
	uint64_t reserved[4];
};

/** Belongs to the program until mad_request_respond() succeeds or mad_request_free(). */
struct mad_request {
	struct mad_server *server;
	const uint8_t *mad;  /**< the whole request as on the wire */
	size_t length;       /**< 256 unless RMPP */
	const uint8_t *data; /**< mad + data offset; NULL if empty */
	size_t data_size;
	ib_portid_t from; /**< with a GID if the request had a GRH */
	unsigned mgmt_class;
	unsigned method;
	unsigned attribute;
	uint32_t modifier;
	uint64_t tid;
};

/**
 * Called once per request (retransmissions are dropped) with error 0, and finally with request
 * NULL: error is 0 after mad_server_stop(), -ENODEV, or -ECANCELED (port closed, engine freed,
 * forked). The server is freed after that.
 */
typedef void mad_server_fn(struct mad_server *server, struct mad_request *request, int error,
			   void *arg);

/** Starts a server. -EADDRINUSE: another agent on the port has one of the methods. */
int mad_server_start(struct mad_async *async, const struct mad_server_options *options,
		     mad_server_fn *callback, void *arg, struct mad_server **server);

/** Ends a server without waiting for the last callback. NULL is a no-op. */
void mad_server_stop(struct mad_server *server);

/**
 * Responds with status (0 or IB_MAD_STS_...) and data (NULL: the request's), by RMPP if long.
 * Frees the request on success. Does not wait.
 */
int mad_request_respond(struct mad_request *request, unsigned status, const void *data,
			size_t size);

/** Frees a request without responding. NULL is a no-op. */
void mad_request_free(struct mad_request *request);

/** Counts since the start, except queued and held. */
struct mad_server_stats {
	uint64_t received;
	uint64_t responded;
	uint64_t dropped; /**< requests neither kept nor BUSY */
	uint64_t busy;
	uint64_t duplicates; /**< retransmissions of pending requests */
	uint64_t failed;     /**< responses not sent, or not acknowledged by RMPP */
	uint32_t queued;     /**< waiting for the callback */
	uint32_t held;       /**< owned by the program */
};

/** Valid until the last callback returns. size is sizeof(*stats). */
int mad_server_get_stats(struct mad_server *server, struct mad_server_stats *stats,
			 size_t size);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_MAD_SERVER_H */
