/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A fake machine, linked in place of libibumad/sys.c (with malloc's family wrapped). It maps
 * sysfs into a temporary folder. Its user_mad devices do not wait, and accept what the fields
 * of struct fake_device do not make fail. It counts all that it hands out, so that a test
 * detects a leak.
 */
#ifndef TESTS_UNIT_FAKE_H
#define TESTS_UNIT_FAKE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "fake_memory.h"

#include <infiniband/umad.h>

/* --- the machine ---------------------------------------------------------------- */

/*
 * cmocka set-up and tear-down. The machine begins with no devices and no faults. Tear-down
 * fails the test if a descriptor or memory is left.
 */
int fake_setup(void);
int fake_teardown(void);

/* --- sysfs: paths are the real ones, "/sys/class/infiniband/mlx5_0/node_type" --- */

/* Writes a file, and makes its folders. */
__attribute__((format(printf, 2, 3))) void fake_file(const char *path, const char *format, ...);
void fake_file_bytes(const char *path, const void *bytes, size_t size);
void fake_dir(const char *path);
/* target is the content of the link: relative, or a real path. */
void fake_link(const char *path, const char *target);
/* Removes a file, a link, or a whole folder. */
void fake_remove(const char *path);
/* Folders are listed in the order of names, or in this order; NULL: of names again. */
void fake_order(bool (*before)(const char *name, const char *other));
/* The path of a file in the temporary folder. Valid until the next call. */
const char *fake_real_path(const char *path);

/*
 * A device and a port like those of mlx5: Active InfiniBand at 100 Gb/s, P_Keys 0xffff and
 * 0x7fff; its umad and issm device of that number, with abi_version 5. guid is the low 32 bits
 * of the port GUID.
 */
void fake_ca(const char *ca_name);
void fake_port(const char *ca_name, int portnum, uint32_t guid);
void fake_umad(int number, const char *ca_name, int portnum);

/* --- faults --------------------------------------------------------------------- */

/* The n-th call of the seam from now on (1 is the next) fails with that errno; 0 none. */
void fake_fail_call(unsigned n, int error);
/* The number of calls of the seam since set-up. */
unsigned fake_calls(void);
/* Whether the requested fault has occurred. */
bool fake_failed(void);

/* Called before each opening of a file or folder, to change what is there. */
void fake_before_open(void (*hook)(const char *path));

/* --- devices: /dev/infiniband/<name> -------------------------------------------- */

struct fake_device {
	char name[32];
	int open_error;     /* errno of open, positive; 0: opens */
	int opened;         /* number of open descriptors */
	int open_flags;     /* of the last opening */
	bool no_pkey;       /* ENABLE_PKEY and REGISTER_AGENT2 fail with ENOTTY */
	bool gone;          /* the hardware was removed; device_remove() wakes polls, too */
	int register_error; /* errno of registering, positive */
	uint32_t next_id;   /* id of the next agent */
	/* if not 0: the result of poll, revents or a negative errno */
	int poll_result;
	void (*on_poll)(struct fake_device *device); /* called by poll, without a lock */
	int polls;                                   /* number of calls of poll */
	int last_timeout;                            /* of poll */
	int other_revents;                           /* the revents of a second descriptor */
	int last_other;  /* the second descriptor of the last poll; -1 none */
	int write_error; /* a positive errno */
	bool short_write;
	unsigned char registered[64]; /* the last registration's argument */
	unsigned long registered_by;  /* its ioctl; 0 none */
	uint32_t unregistered;        /* the last unregistered id; UINT32_MAX none */
	bool overwritten; /* the program reuses the packet's memory before write() returns */
};

/* Adds a device; fake_umad() adds both devices of a port. */
struct fake_device *fake_device(const char *name);

/* The number of the next handles is this one, or the next that is free. */
void fake_first_handle(int number);

struct device_packet {
	size_t length; /* of the MAD */
	struct ib_user_mad header;
	uint8_t mad[];
};

/* How many packets were written; the n-th, counted from 0, valid until tear-down. */
unsigned device_written(void);
const struct device_packet *device_packet(unsigned n);
/* The handle receives a message. */
void device_queue(int fd, const struct ib_user_mad *header, const void *mad, size_t length);
/* The result of the next read: a wrong length, or a negative errno. */
void device_read_result(int fd, long result);

#endif
