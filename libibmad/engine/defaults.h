/* SPDX-License-Identifier: BSD-2-Clause */

/* What holds for ports that were not told otherwise: madrpc_set_*(). */
#ifndef LIBIBMAD_DEFAULTS_H
#define LIBIBMAD_DEFAULTS_H

#include <stdbool.h>

int default_timeout_ms(void);
int default_retries(void);
bool default_show_errors(void);

#endif
