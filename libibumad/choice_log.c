/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * UMAD_LOG_INFO messages about choosing a port: each candidate's current attributes, and the
 * choice.
 */

#include "devices.h"
#include "log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Appends ", WHAT NUMBER" or ", WHAT (error)". */
static void put_number(char *text, size_t size, const char *path, const char *name,
		       const char *what)
{
	size_t length = strlen(text);
	unsigned value;
	int err = sysfs_read_uint(path, name, &value);

	if (err)
		snprintf(text + length, size - length, ", %s (%s)", what, strerror(-err));
	else
		snprintf(text + length, size - length, ", %s %u", what, value);
}

static void log_port(const char *ca_name, int portnum)
{
	char path[SYSFS_PATH_MAX], layer[UMAD_CA_NAME_LEN], text[256] = "";
	unsigned capmask;

	node_port_path(path, ca_name, portnum);
	put_number(text, sizeof(text), path, SYS_PORT_STATE, "state");
	put_number(text, sizeof(text), path, SYS_PORT_PHY_STATE, "physical state");
	if (sysfs_read_text(path, SYS_PORT_LINK_LAYER, layer, sizeof(layer)) < 0)
		strcpy(layer, "not known");
	if (sysfs_read_uint(path, SYS_PORT_CAPMASK, &capmask))
		capmask = 0;
	log_info("%s port %d:%s, link layer %s%s", ca_name, portnum, text + 1, layer,
		 capmask & PORT_IS_SM_DISABLED ? ", no SMPs" : "");
}

static void log_device(const char *ca_name, int portnum, int type)
{
	bool ports[NODE_PORTS_MAX] = {false};
	int highest;

	if (type < 0) {
		log_info("%s is left out: its node type cannot be used (%s)", ca_name,
			 strerror(-type));
		return;
	}
	if (portnum) {
		log_port(ca_name, portnum);
		return;
	}
	highest = node_ports(ca_name, ports);
	if (highest < 0)
		log_info("%s is left out: its ports cannot be listed (%s)", ca_name,
			 strerror(-highest));
	for (int i = 0; i <= highest; i++)
		if (ports[i])
			log_port(ca_name, i);
}

void choice_log(const char *ca_name, int portnum, int err, const struct port_choice *choice)
{
	int saved_errno = errno, listed;
	ca_name_t *names;

	if (!log_wanted(UMAD_LOG_INFO) || portnum < 0 || (ca_name && portnum))
		return;
	if (ca_name) {
		if (node_name_valid(ca_name))
			log_device(ca_name, portnum, node_any_type(ca_name));
	} else {
		listed = devices_list(&names);
		for (int i = 0; i < listed; i++)
			log_device(names[i], portnum, node_type(names[i]));
		if (listed >= 0)
			free(names);
	}
	if (err)
		log_info("no port is chosen for %s port %d: %s", ca_name ? ca_name : "(any)",
			 portnum, strerror(-err));
	else
		log_info("%s port %d is chosen for %s port %d", choice->ca_name,
			 choice->portnum, ca_name ? ca_name : "(any)", portnum);
	errno = saved_errno;
}
