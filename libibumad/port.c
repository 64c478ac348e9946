/* SPDX-License-Identifier: BSD-2-Clause */

/* Opens and closes ports, and selects the header layout. */

#include "devices.h"
#include "export.h"
#include "kernel_abi.h"
#include "log.h"
#include "packet.h"
#include "sys.h"

#include <fcntl.h>
#include <string.h>

/* From this ABI version on, the header always has a P_Key index. */
#define ABI_WITH_PKEY_INDEX 6

EXPORT int umad_init(void)
{
	return 0;
}

EXPORT int umad_done(void)
{
	return 0;
}

static int open_port(const char *ca_name, int portnum, bool smi_only)
{
	char path[SYSFS_PATH_MAX];
	struct port_choice choice;
	int abi, err, fd;

	err = select_port(ca_name, portnum, smi_only, &choice);
	choice_log(ca_name, portnum, err, &choice);
	if (!err)
		err = cdev_find(CDEV_UMAD, &choice, path);
	/* read last: finding the device may have loaded the module that provides the version */
	abi = cdev_abi_version();
	if (sysfs_shortage(err) || sysfs_shortage(abi)) {
		err = sysfs_shortage(err) ? err : abi;
		log_info("cannot look for a port: %s", strerror(-err));
		return fail_lookup(err);
	}
	if (abi < 0) {
		log_warning("%s/%s cannot be read (%s): is ib_umad loaded?", IB_UMAD_ABI_DIR,
			    IB_UMAD_ABI_FILE, strerror(-abi));
		return fail_errno(-EOPNOTSUPP);
	}
	if (abi < IB_UMAD_ABI_VERSION) {
		log_info("the kernel's user_mad ABI is %d, the oldest supported is %d", abi,
			 IB_UMAD_ABI_VERSION);
		return fail_errno(-EOPNOTSUPP);
	}
	if (err) {
		log_info("no port to open for %s port %d: %s", ca_name ? ca_name : "(any)",
			 portnum, strerror(-err));
		return fail_lookup(err);
	}

	fd = sys_open(path, O_RDWR | O_NONBLOCK);
	if (fd < 0) {
		log_info("%s cannot be opened: %s", path, strerror(-fd));
		return fail_io(fd);
	}
	if (abi < ABI_WITH_PKEY_INDEX)
		err = sys_ioctl(fd, IB_USER_MAD_ENABLE_PKEY, NULL);
	if (sysfs_shortage(err)) {
		sys_close(fd);
		return fail_lookup(err);
	}
	packet_set_layout(!err);
	log_info("%s port %d is open as %s, handle %d", choice.ca_name, choice.portnum, path,
		 fd);
	return fd;
}

EXPORT int umad_open_port(const char *ca_name, int portnum)
{
	return open_port(ca_name, portnum, false);
}

EXPORT int umad_open_smi_port(const char *ca_name, int portnum)
{
	return open_port(ca_name, portnum, true);
}

EXPORT int umad_close_port(int portid)
{
	return sys_close(portid) == -EBADF ? fail_errno(-EINVAL) : 0;
}

EXPORT int umad_get_fd(int portid)
{
	return portid < 0 ? fail_errno(-EINVAL) : portid;
}
