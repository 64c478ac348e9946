/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A machine for libibumad to run on: linked in place of libibumad/sys.c (and malloc's
 * family wrapped), it maps sysfs into a temporary folder and plays the kernel's user_mad
 * devices. Everything it hands out is counted, so that a test can tell a leak.
 */
#ifndef TESTS_UNIT_FAKE_H
#define TESTS_UNIT_FAKE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <infiniband/umad.h>

/* --- the machine ---------------------------------------------------------------- */

/*
 * cmocka set-up and tear-down. The machine begins with no devices and no faults;
 * tear-down fails the test where a descriptor or a byte of memory is left.
 */
int fake_setup(void **state);
int fake_teardown(void **state);
#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)

/* --- sysfs: paths are the real ones, "/sys/class/infiniband/mlx5_0/node_type" --- */

/* Writes a file, folders made as needed. */
__attribute__((format(printf, 2, 3))) void fake_file(const char *path, const char *format, ...);
void fake_file_bytes(const char *path, const void *bytes, size_t size);
void fake_dir(const char *path);
/* target is as a link's content: relative, or a real path. */
void fake_link(const char *path, const char *target);
/* Removes a file, a link, or a whole folder. */
void fake_remove(const char *path);
/* Where a path really is. Valid until the next call. */
const char *fake_real_path(const char *path);

/*
 * A device and a port as mlx5 would show them: Active InfiniBand at 100 Gb/s, P_Keys
 * 0xffff and 0x7fff; its umad and issm device of that number, with abi_version 5. The
 * guid is the port GUID's low 32 bits.
 */
void fake_ca(const char *ca_name);
void fake_port(const char *ca_name, int portnum, uint32_t guid);
void fake_umad(int number, const char *ca_name, int portnum);

/* --- faults --------------------------------------------------------------------- */

/* The n-th call of the seam from now on (1 is the next) fails with that errno; 0 none. */
void fake_fail_call(unsigned n, int error);
/* The n-th allocation from now on fails; 0 none. */
void fake_fail_malloc(unsigned n);
/* Whether the fault that was asked for has happened. */
bool fake_failed(void);

/* Called before each opening of a file or folder, to change what is there. */
void fake_before_open(void (*hook)(const char *path));

/* --- devices: /dev/infiniband/<name> -------------------------------------------- */

struct fake_device {
	char name[32];
	int open_error;     /* what opening it gives, a positive errno; 0 opens */
	int opened;         /* how many descriptors are open */
	int open_flags;     /* of the last opening */
	bool no_pkey;       /* ENABLE_PKEY and REGISTER_AGENT2 are unknown: ENOTTY */
	bool gone;          /* the hardware was removed */
	int register_error; /* what registering gives, a positive errno */
	uint32_t next_id;   /* what registering gives otherwise; counts up */
	int poll_result;    /* if not 0: what poll answers, revents or a negative errno */
	int polls;          /* how often it was polled */
	int last_timeout;   /* of poll */
	int other_revents;  /* what poll answers for a second descriptor */
	int last_other;     /* the second descriptor of the last poll; -1 none */
	int write_error;    /* a positive errno */
	bool short_write;
	unsigned char registered[64]; /* the last registration's argument, as it came */
	unsigned long registered_by;  /* its ioctl; 0 none */
	uint32_t unregistered;        /* the last id; UINT32_MAX none */
	unsigned char *written;       /* the last packet, and how long it was */
	size_t written_size;
	bool overwritten; /* the program uses a packet's memory anew before write() returns */
};

/* Adds a device; fake_umad() does it for the two of a port. */
struct fake_device *fake_device(const char *name);

/*
 * Queues what read() gives: a header of header_size bytes and a MAD. Several are given in
 * that order, as the kernel does: one that does not fit gives ENOSPC (with the header and
 * the first 256 bytes) or EINVAL, and stays.
 */
void fake_deliver(struct fake_device *device, const void *header, size_t header_size,
		  const void *mad, size_t mad_size);

/* The next read's raw result instead: a count that is not true, or a negative errno. */
void fake_read_result(struct fake_device *device, long result);

/* Called when the device is polled, to change what there is to read. */
void fake_on_poll(struct fake_device *device, void (*hook)(struct fake_device *device));

/* How many calls of the seam there have been since set-up. */
unsigned fake_calls(void);

#endif
