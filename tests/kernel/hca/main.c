// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

/* The module: /dev/sim_hca. */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <rdma/ib_verbs.h>

static const struct file_operations operations = {
	.owner = THIS_MODULE,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "sim_hca",
	.fops = &operations,
	.mode = 0600,
};

module_misc_device(device);

MODULE_DESCRIPTION("InfiniBand devices for management, whose wire is a simulated fabric");
MODULE_LICENSE("Dual BSD/GPL");
