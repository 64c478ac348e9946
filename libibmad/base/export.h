/* SPDX-License-Identifier: BSD-2-Clause */

/* The visibility of public calls, and functions that are inlined or not. */
#ifndef LIBIBMAD_EXPORT_H
#define LIBIBMAD_EXPORT_H

#define EXPORT __attribute__((visibility("default")))

/* A function that is inlined into each of its callers, because one of them is often called. */
#define INLINE   inline __attribute__((always_inline))
/* A function that is not inlined, so that its caller saves no registers for it. */
#define NOINLINE __attribute__((noinline))
/* The same for a function that few requests need. */
#define RARE     __attribute__((noinline, cold))

#endif
