/* SPDX-License-Identifier: BSD-2-Clause */

/* Visibility of public calls. */
#ifndef LIBIBMAD_EXPORT_H
#define LIBIBMAD_EXPORT_H

#define EXPORT __attribute__((visibility("default")))

#endif
