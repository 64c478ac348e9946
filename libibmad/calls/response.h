/* SPDX-License-Identifier: BSD-2-Clause */

/* The header and the address of a response, made from those of its request. */
#ifndef LIBIBMAD_RESPONSE_H
#define LIBIBMAD_RESPONSE_H

#include <stdint.h>

/* The header of a request in "mad" becomes the header of its response. */
void response_write_header(uint8_t *mad, uint16_t status);

/* To the sender of the request, on the same partition, with a GRH if the request had one. */
void response_address(void *umad, const uint8_t *mad);

#endif
