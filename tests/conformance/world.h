/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Where a check runs: on two ports that reach each other, whichever world they are of. A check
 * takes the first two ports of user_mad that there are, and learns from sysfs how to address
 * the one from the other.
 */
#ifndef CONFORMANCE_WORLD_H
#define CONFORMANCE_WORLD_H

#include <infiniband/umad.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAD 256

/* Vendor range 2, with an OUI: a class that nobody else's agents are registered for. */
#define CLASS       0x3a
#define OUI         0x001405
#define DATA        40           /* where its data begin */
#define SEGMENT     (MAD - DATA) /* bytes of data in an RMPP segment */
#define METHOD_GET  0x01
#define METHOD_SET  0x02
#define METHOD_SEND 0x03
#define METHOD_ANY  0x10 /* of no meaning: nobody's kernel answers it unasked */
#define RESPONSE    0x80

struct port {
	char ca_name[UMAD_CA_NAME_LEN];
	int portnum;
	uint16_t lid;
	uint8_t gid[16]; /* entry 0 of its table */
	bool ethernet;   /* RoCE: addressed by GRH, without QP0 */
};

/* The first two ports; ends the check where there are fewer. With CONFORMANCE_PORT="CA PORT" in
 * the environment, that port alone. */
extern struct port here, there;
void find_ports(void);

/* Opens a port, as libibumad does. */
int open_port(const struct port *port);

/* Opens its umad (or "issm") device, past the library. */
int open_device(const struct port *port, const char *kind, int flags);
void device_path(const struct port *port, const char *kind, char path[64]);

/* Whether sysfs has an issm device of the port. The kernel may make none for RoCE ports. */
bool has_issm(const struct port *port);

/* Ends a check of issm devices where there are none. */
void needs_issm(void);

/* A line of a file below the port's or the device's folder in sysfs. */
void read_port_file(const struct port *port, const char *name, char *text, size_t size);

/*
 * Has the world do what programs cannot: world_asked("remove", "rxe0"). False: it cannot,
 * either. The words: remove DEVICE, add DEVICE, unload, load, forbid, allow, uevents.
 * set_world() takes main()'s arguments, of which the first is the script that does it.
 */
void set_world(int argc, char **argv);
bool world_asked(const char *verb, const char *argument);

/*
 * A second argument, "brief", asks for less of what is only more of the same, and "long" for
 * all of it.
 */
bool world_is_brief(void);
bool world_is_long(void);

#endif
