/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The environment of a check: two ports that reach each other. A check uses the first two ports
 * with user_mad, and finds in sysfs how to address one from the other.
 */
#ifndef CONFORMANCE_ENVIRONMENT_H
#define CONFORMANCE_ENVIRONMENT_H

#include <infiniband/umad.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAD 256

/* Vendor range 2, with an OUI: a class without other agents. */
#define CLASS       0x3a
#define OUI         0x001405
#define DATA        40           /* offset of the data */
#define SEGMENT     (MAD - DATA) /* bytes of data in an RMPP segment */
#define METHOD_GET  0x01
#define METHOD_SET  0x02
#define METHOD_SEND 0x03
#define METHOD_ANY  0x10 /* a method without a meaning: no kernel responds to it */
#define RESPONSE    0x80

struct port {
	char ca_name[UMAD_CA_NAME_LEN];
	int portnum;
	uint16_t lid;
	uint8_t gid[16]; /* entry 0 of its table */
	bool ethernet;   /* RoCE: addressed by GRH, without QP0 */
};

/*
 * The first two ports; ends the check if there are fewer. If the environment variable
 * CONFORMANCE_PORT is "CA PORT", that port alone.
 */
extern struct port here, there;
void find_ports(void);

/* Opens a port with libibumad. */
int open_port(const struct port *port);

/* Opens its umad (or "issm") device without the library. */
int open_device(const struct port *port, const char *kind, int flags);
void device_path(const struct port *port, const char *kind, char path[64]);

/* Whether sysfs has an issm device of the port. Some kernels make none for RoCE ports. */
bool has_issm(const struct port *port);

/* Ends a check of issm devices if there are none. */
void needs_issm(void);

/* A line of a file below the port's or the device's folder in sysfs. */
void read_port_file(const struct port *port, const char *name, char *text, size_t size);

/*
 * Runs the script of the environment: environment_asked("remove", "rxe0"). Returns false if the
 * environment cannot do this. The words: remove DEVICE, add DEVICE, unload, load, forbid,
 * allow, uevents; disconnect DEVICE, connect DEVICE: the cable of its port; unload_driver,
 * load_driver: of all devices; kill, serve: the simulated wire of a real kernel's devices.
 * set_environment() takes main()'s arguments; the first one is the script.
 */
void set_environment(int argc, char **argv);
bool environment_asked(const char *verb, const char *argument);

/* The second argument: "brief" repeats a check less often, "long" checks all sizes. */
bool environment_is_brief(void);
bool environment_is_long(void);

#endif
