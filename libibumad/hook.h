/* SPDX-License-Identifier: BSD-2-Clause */

/* A program's functions that the library calls: of messages and of packets. */
#ifndef LIBIBUMAD_HOOK_H
#define LIBIBUMAD_HOOK_H

/* A function of any type, and the argument that belongs to it. */
struct hook {
	void (*function)(void);
	void *user;
};

/*
 * Sets a hook and reads a hook, under one lock, which nobody holds while the function is
 * called: the function may run once more in another thread while it is replaced.
 */
void hook_set(struct hook *hook, struct hook value);
struct hook hook_get(const struct hook *hook);

#endif
