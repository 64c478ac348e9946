/* SPDX-License-Identifier: BSD-2-Clause */

#include "devices.h"
#include "export.h"
#include "sys.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct name_list {
	ca_name_t *names;
	size_t count, room;
};

static int add_name(const char *name, void *arg)
{
	struct name_list *list = arg;
	ca_name_t *grown;

	if (!node_name_valid(name))
		return 0;
	if (list->count == list->room) {
		if (list->room >= INT_MAX / 2)
			return -ENOMEM;
		list->room = list->room ? list->room * 2 : 16;
		grown = realloc(list->names, list->room * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		list->names = grown;
	}
	strcpy(list->names[list->count++], name);
	return 0;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

int devices_list(ca_name_t **names)
{
	struct name_list list = {0};
	int err = sys_list(SYS_INFINIBAND, add_name, &list);

	if (err == -ENOENT) /* no RDMA in this kernel */
		err = 0;
	if (err < 0) {
		free(list.names);
		return err;
	}
	*names = list.names;
	return (int)list.count;
}

int devices_sorted(ca_name_t **names)
{
	int listed = devices_list(names);

	if (listed > 0)
		qsort(*names, (size_t)listed, sizeof(**names), compare_names);
	return listed;
}

EXPORT int umad_get_cas_names(char cas[][UMAD_CA_NAME_LEN], int max)
{
	int i, type, listed, err = 0, stored = 0;
	ca_name_t *names;

	if (max < 0 || (!cas && max))
		return fail_errno(-EINVAL);
	listed = devices_sorted(&names);
	if (listed < 0)
		return fail_lookup(listed);
	for (i = 0; i < listed && stored < max && !err; i++) {
		type = node_type(names[i]);
		if (sysfs_shortage(type))
			err = type;
		else if (type > 0)
			memcpy(cas[stored++], names[i], sizeof(names[i]));
	}
	free(names);
	return err ? fail_lookup(err) : stored;
}

/* A node and the name it points to, in one allocation. */
struct device_node {
	struct umad_device_node node;
	ca_name_t name;
};

EXPORT struct umad_device_node *umad_get_ca_device_list(void)
{
	struct umad_device_node *head = NULL, **tail = &head;
	struct device_node *device;
	ca_name_t *names;
	int i, type, listed, err = 0;

	listed = devices_sorted(&names);
	if (listed < 0) {
		errno = -listed;
		return NULL;
	}
	for (i = 0; i < listed; i++) {
		type = node_type(names[i]);
		if (sysfs_shortage(type)) {
			err = -type;
			break;
		}
		if (type < 0)
			continue;
		device = calloc(1, sizeof(*device));
		if (!device) {
			err = ENOMEM;
			break;
		}
		memcpy(device->name, names[i], sizeof(device->name));
		device->node.ca_name = device->name;
		*tail = &device->node;
		tail = &device->node.next;
	}
	free(names);
	if (err) {
		umad_free_ca_device_list(head);
		head = NULL;
	}
	errno = err;
	return head;
}

EXPORT void umad_free_ca_device_list(struct umad_device_node *head)
{
	struct umad_device_node *next;

	for (; head; head = next) {
		next = head->next;
		free(head);
	}
}

EXPORT int umad_sort_ca_device_list(struct umad_device_node **head, size_t size)
{
	struct umad_device_node *node, *next, *sorted = NULL, **at;
	size_t length = 0;

	if (!head)
		return -fail_errno(-EINVAL);
	/* the exact length does not matter if it exceeds size */
	for (node = *head; node && (!size || length <= size); node = node->next)
		length++;
	if (size && length != size)
		return -fail_errno(-EINVAL);
	/* by insertion, behind equal names: a machine has few devices */
	for (node = *head; node; node = next) {
		next = node->next;
		at = &sorted;
		while (*at && strcmp((*at)->ca_name, node->ca_name) <= 0)
			at = &(*at)->next;
		node->next = *at;
		*at = node;
	}
	*head = sorted;
	return 0;
}
