/* SPDX-License-Identifier: BSD-2-Clause */

/* The RMPP header: its fields and their values (IBA 13.6.2). */
#ifndef FABRIC_RMPP_H
#define FABRIC_RMPP_H

enum {
	RMPP_VERSION = 24,
	RMPP_TYPE = 25,
	RMPP_FLAGS = 26, /* the lower three bits; above them RRespTime */
	RMPP_STATUS = 27,
	RMPP_SEGMENT = 28,
	RMPP_PAYLOAD = 32, /* DATA: PayloadLength; ACK: NewWindowLast */
	RMPP_HEADER = 36
}; /* bytes of the MAD header and the RMPP header */

enum {
	RMPP_ACTIVE = 1,
	RMPP_FIRST = 2,
	RMPP_LAST = 4
};

enum {
	RMPP_DATA = 1,
	RMPP_ACK = 2,
	RMPP_STOP = 3,
	RMPP_ABORT = 4
};

#endif
