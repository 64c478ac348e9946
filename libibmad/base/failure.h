/* SPDX-License-Identifier: BSD-2-Clause */

/* The last failed call of each thread. */
#ifndef LIBIBMAD_FAILURE_H
#define LIBIBMAD_FAILURE_H

#include <infiniband/mad_errors.h>

void failure_store(const struct mad_failure *failure);
/* A call fails before it makes a request, or after: stores that, and sets errno. */
void failure_refuse(int mgmt_class, int error);

#endif
