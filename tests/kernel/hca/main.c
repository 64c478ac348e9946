// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

/* The module: /dev/sim_hca. */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>

#include "sim_hca.h"

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "sim_hca",
	.fops = &wire_operations,
	.mode = 0600,
};

module_misc_device(device);

MODULE_DESCRIPTION("InfiniBand devices for management, whose wire is a simulated fabric");
MODULE_LICENSE("Dual BSD/GPL");
