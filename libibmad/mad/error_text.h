/* SPDX-License-Identifier: BSD-2-Clause */

/* The parts of texts of errors. */
#ifndef LIBIBMAD_ERROR_TEXT_H
#define LIBIBMAD_ERROR_TEXT_H

#include "fields/text.h"

/* Begins a text in a buffer, which may be NULL if its size is 0. */
struct text error_text_begin(char *buffer, size_t size);
/* Ends the text, and returns the result of the public call. */
const char *error_text_end(struct text *text, char *buffer);

/* "SA", "vendor class 0x0a", "class 0x60". */
void text_class(struct text *text, unsigned mgmt_class);
void text_status(struct text *text, unsigned mgmt_class, unsigned status);

#endif
