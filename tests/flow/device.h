/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A umad device on the model of a fabric, in place of libibumad/sys.c, for one thread. Each
 * open handle is a host of the fabric. The device does what the kernel does: it holds the
 * transaction IDs in flight, drops responses that no request waits for, and reports timeouts.
 * The library's clock is the clock of the model (the program is linked with --wrap=clock_us).
 */
#ifndef TESTS_FLOW_DEVICE_H
#define TESTS_FLOW_DEVICE_H

#include "model.h"

/* What the device tells the program. */
struct device_hooks {
	/* sets packet->request, ->transmission and ->random */
	void (*written)(struct packet *packet);
	void (*read)(const struct packet *packet);
	void (*lost)(const struct packet *packet, enum fate fate);
	void (*arrived)(const struct packet *packet);
	/* called at each poll; true: the poll returns as if another thread woke it */
	bool (*polled)(void);
	/* a poll that no event would ever end */
	void (*stuck)(void);
};

/* The device of a new fabric. No handle is open. */
void device_start(const struct fabric *fabric, const struct device_hooks *hooks);
/* All handles are closed. */
void device_end(void);

/* Whether a message can be read on some handle. */
bool device_has_message(void);
/* Moves the clock to the next event, but not beyond that time. */
void device_wait(int64_t until);

#endif
