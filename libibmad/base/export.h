/* SPDX-License-Identifier: BSD-2-Clause */

/* The visibility of public calls. */
#ifndef LIBIBMAD_EXPORT_H
#define LIBIBMAD_EXPORT_H

#define EXPORT __attribute__((visibility("default")))

#endif
