/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * umad.h - send and receive management datagrams (MADs) through the kernel's umad devices,
 * /dev/infiniband/umadN; devices and ports as sysfs describes them.
 *
 *   int fd = umad_open_port("mlx5_0", 1);
 *   int agent = umad_register(fd, UMAD_CLASS_PERF_MGMT, 1, 0, NULL);
 *   void *umad = umad_alloc(1, umad_size() + 256);
 *   ... fill umad_get_mad(umad), then umad_set_addr() ...
 *   umad_send(fd, agent, umad, 256, 1000, 0);
 *   umad_recv(fd, umad, &length, 2000);
 *
 * Calls return 0 or more unless stated otherwise. On failure they return a negative errno and
 * set errno to the same number; after -EIO, errno is the cause. Passing NULL where a pointer is
 * required gives -EINVAL.
 *
 * Thread-safe, but do not share a buffer or structure, or close a port that is in use. __be16,
 * __be32 and __be64 are big-endian (network order), everything else is in host order. Each call
 * has a manual page: see libibumad(7).
 */
#ifndef INFINIBAND_UMAD_H
#define INFINIBAND_UMAD_H

/* rdma-core's umad.h includes these, and programs rely on it. */
#include <endian.h>
#include <stdint.h>
#include <stdlib.h>
#include <arpa/inet.h>
#include <linux/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Deprecated: use __be16, __be32 and __be64. */
typedef __be16 be16_t __attribute__((deprecated));
typedef __be32 be32_t __attribute__((deprecated));
typedef __be64 be64_t __attribute__((deprecated));

/** A port GID (IBA 4.1.1): the subnet prefix and the port's GUID. */
union umad_gid {
	uint8_t raw[16];
	__be16 raw_be16[8];
	struct {
		__be64 subnet_prefix;
		__be64 interface_id;
	} global;
} __attribute__((packed, aligned(4)));

/** Size of a device name, including the NUL. */
#define UMAD_CA_NAME_LEN   20
/** Entries of umad_ca.ports: ports 0 to 9. */
#define UMAD_CA_MAX_PORTS  10
/** Agents per open port (kernel limit). */
#define UMAD_CA_MAX_AGENTS 32
/** Array sizes for programs. The library has no such limits. */
#define UMAD_MAX_DEVICES   128
#define UMAD_MAX_PORTS     192

/** In place of a port number: the library chooses a port. */
#define UMAD_ANY_PORT 0

#define SYS_INFINIBAND   "/sys/class/infiniband"
#define SYS_NODE_TYPE    "node_type"
#define SYS_CA_FW_VERS   "fw_ver"
#define SYS_CA_HW_VERS   "hw_rev"
#define SYS_CA_TYPE      "hca_type"
#define SYS_CA_NODE_GUID "node_guid"
#define SYS_CA_SYS_GUID  "sys_image_guid"
#define SYS_CA_PORTS_DIR "ports"

#define SYS_PORT_LMC        "lid_mask_count"
#define SYS_PORT_SMLID      "sm_lid"
#define SYS_PORT_SMSL       "sm_sl"
#define SYS_PORT_LID        "lid"
#define SYS_PORT_STATE      "state"
#define SYS_PORT_PHY_STATE  "phys_state"
#define SYS_PORT_CAPMASK    "cap_mask"
#define SYS_PORT_RATE       "rate"
#define SYS_PORT_GUID       "port_guid"
#define SYS_PORT_GID        "gids/0"
#define SYS_PORT_LINK_LAYER "link_layer"

#define SYS_INFINIBAND_MAD  "/sys/class/infiniband_mad"
#define SYS_IB_MAD_PORT     "port"
#define SYS_IB_MAD_DEV      "ibdev"
#define IB_UMAD_ABI_DIR     "/sys/class/infiniband_mad"
#define IB_UMAD_ABI_FILE    "abi_version"
/** The oldest kernel ABI supported. */
#define IB_UMAD_ABI_VERSION 5

/* The ioctls of a umad device; see <rdma/ib_user_mad.h>. Include <sys/ioctl.h> to use them. */
#define IB_IOCTL_MAGIC               0x1b
#define IB_USER_MAD_REGISTER_AGENT   _IOC(_IOC_READ | _IOC_WRITE, IB_IOCTL_MAGIC, 1, 28)
#define IB_USER_MAD_UNREGISTER_AGENT _IOC(_IOC_WRITE, IB_IOCTL_MAGIC, 2, 4)
#define IB_USER_MAD_ENABLE_PKEY      _IOC(_IOC_NONE, IB_IOCTL_MAGIC, 3, 0)
#define IB_USER_MAD_REGISTER_AGENT2  _IOC(_IOC_READ | _IOC_WRITE, IB_IOCTL_MAGIC, 4, 40)

/** Destination of a MAD to send, source of a received one. */
typedef struct ib_mad_addr {
	__be32 qpn;  /**< 0 for SMPs, 1 for GMPs */
	__be32 qkey; /**< 0 in a received MAD */
	__be16 lid;
	uint8_t sl;
	uint8_t path_bits;
	uint8_t grh_present; /**< if not 0, gid_index to flow_label are valid */
	uint8_t gid_index;   /**< of the source GID in the local port's table */
	uint8_t hop_limit;
	uint8_t traffic_class;
	__extension__ union {
		uint8_t gid[16]; /**< of the remote port */
		union umad_gid ib_gid;
	};
	__be32 flow_label;
	uint16_t pkey_index; /**< in the local port's P_Key table */
	uint8_t reserved[6];
} ib_mad_addr_t;

/** A umad buffer: this header, then the MAD; old kernels have a shorter one (umad_size()). */
typedef struct ib_user_mad {
	uint32_t agent_id;
	uint32_t status; /**< see umad_status() */
	uint32_t timeout_ms;
	uint32_t retries;
	uint32_t length; /**< of header and MAD, in a received message */
	ib_mad_addr_t addr;
	__extension__ uint8_t data[0];
} ib_user_mad_t;

/** A port, from sysfs. */
typedef struct umad_port {
	char ca_name[UMAD_CA_NAME_LEN];
	int portnum;
	unsigned base_lid;
	unsigned lmc;
	unsigned sm_lid;
	unsigned sm_sl;
	unsigned state;      /**< PortState (IBA 14.2.5.6): 4 is Active */
	unsigned phys_state; /**< PortPhysicalState: 3 Disabled, 5 LinkUp */
	unsigned rate;       /**< Gb/s, fraction dropped; 0: unknown */
	__be32 capmask;
	__be64 gid_prefix;
	__be64 port_guid;
	unsigned pkeys_size;
	uint16_t *pkeys;                   /**< freed by the release calls */
	char link_layer[UMAD_CA_NAME_LEN]; /**< "InfiniBand", "Ethernet", or "IB" if unknown */
} umad_port_t;

/** A device, from sysfs. */
typedef struct umad_ca {
	char ca_name[UMAD_CA_NAME_LEN];
	unsigned node_type; /**< NodeType (IBA 14.2.5.3): 1 CA, 2 switch, 3 router */
	int numports;       /**< the highest port number */
	char fw_ver[20];
	char ca_type[40];
	char hw_ver[20];
	__be64 node_guid;
	__be64 system_guid;
	umad_port_t *ports[UMAD_CA_MAX_PORTS]; /**< by port number; NULL: no such port */
} umad_ca_t;

/** The devices that carry a port's SMPs and GMPs; an empty name means none. */
struct umad_ca_pair {
	char smi_name[UMAD_CA_NAME_LEN];
	uint32_t smi_preferred_port;
	char gsi_name[UMAD_CA_NAME_LEN];
	uint32_t gsi_preferred_port;
};

struct umad_device_node {
	struct umad_device_node *next;
	const char *ca_name;
};

/** Does nothing; returns 0. */
int umad_init(void);

/** Does nothing; returns 0. Open ports stay open. */
int umad_done(void);

/** Stores up to max device names, sorted. Returns their number. */
int umad_get_cas_names(char cas[][UMAD_CA_NAME_LEN], int max);

/** Stores PortGUIDs by port number, or 0. Returns the highest port number plus 1. */
int umad_get_ca_portguids(const char *ca_name, __be64 *portguids, int max);

/** Reads a device (NULL: the default); free it with umad_release_ca(). -EIO: a port above 9. */
int umad_get_ca(const char *ca_name, umad_ca_t *ca);

/** May be called twice. NULL gives -ENODEV. */
int umad_release_ca(umad_ca_t *ca);

/** Reads a port, chosen as by umad_open_port(); umad_release_port() frees what it allocates. */
int umad_get_port(const char *ca_name, int portnum, umad_port_t *port);

/** May be called twice. NULL gives -ENODEV. */
int umad_release_port(umad_port_t *port);

/**
 * Stores the path of a port's issm device; holding the device open sets IsSM, which
 * umad_open_issm() does for you. -EINVAL if the port has none, -ENOSPC if the path does not
 * fit.
 */
int umad_get_issm_path(const char *ca_name, int portnum, char path[], int max);

/**
 * Opens a port. Returns a port handle: a non-blocking, close-on-exec file descriptor.
 *
 * ca_name  portnum  opens
 * name     1, ...   this port
 * name     0        the first InfiniBand port that is Active, else LinkUp, else not disabled
 * NULL     0        the same, on the first device with an Active port, else with a usable port
 * NULL     1, ...   the same, considering only this port number; Ethernet ports last
 *
 * A switch's port is port 0. Loads ib_umad if necessary. -ENODEV: no such device or no usable
 * port; -EINVAL: the port has no umad device; -EOPNOTSUPP: not supported by the kernel.
 */
int umad_open_port(const char *ca_name, int portnum);

/** As umad_open_port(), but never chooses a port with IsSMDisabled, and Ethernet ports last. */
int umad_open_smi_port(const char *ca_name, int portnum);

/** Closes a port and unregisters its agents. Returns 0. */
int umad_close_port(int portid);

/** Returns the MAD in a umad buffer; NULL for NULL. */
void *umad_get_mad(void *umad);

/** Returns the size of the header in front of the MAD. Call it after umad_open_port(). */
size_t umad_size(void);

/** Returns 0 for a received message, ETIMEDOUT for a timed-out request, or another errno. */
int umad_status(void *umad);

/** Returns the address in a umad buffer; NULL for NULL. */
ib_mad_addr_t *umad_get_mad_addr(void *umad);

/** Sets the GRH from a struct ib_mad_addr, with network-order flow label. NULL: no GRH. */
int umad_set_grh_net(void *umad, void *mad_addr);

/** The same with the flow label in host order. */
int umad_set_grh(void *umad, void *mad_addr);

/** Sets the destination, in network order or (umad_set_addr()) in host order. */
int umad_set_addr_net(void *umad, __be16 dlid, __be32 dqp, int sl, __be32 qkey);

int umad_set_addr(void *umad, int dlid, int dqp, int sl, int qkey);

/** Sets the P_Key index, 0 to 65535. -EOPNOTSUPP: not 0, on a kernel without P_Key indices. */
int umad_set_pkey(void *umad, int pkey_index);

/** Returns the P_Key index of a received MAD; 0 on kernels without P_Key indices. */
int umad_get_pkey(void *umad);

/**
 * Sends a MAD, or a longer message by RMPP. length excludes the umad header. The kernel retries
 * every timeout_ms, retries times, then umad_recv() returns the request with status ETIMEDOUT.
 * timeout_ms 0: expect no response; negative: wait for it forever. -EIO: rejected, see errno.
 */
int umad_send(int portid, int agentid, void *umad, int length, int timeout_ms, int retries);

/**
 * Receives a MAD or a reassembled RMPP message into a buffer of umad_size() + *length bytes
 * (*length at least 256) and sets *length. Returns the ID of the receiving agent. timeout_ms 0:
 * don't wait (-EWOULDBLOCK); negative: no limit. -ENOSPC: the message needs *length bytes and
 * can still be received. -EIO with errno EINTR: interrupted by a signal handler.
 */
int umad_recv(int portid, void *umad, int *length, int timeout_ms);

/** Waits like umad_recv() but receives nothing: another thread may take the message first. */
int umad_poll(int portid, int timeout_ms);

/** Returns a descriptor for poll(2), readable when a message can be received. */
int umad_get_fd(int portid);

/**
 * Registers an agent for a class (IBA 13.4.4) and returns its ID. Without method_mask it
 * receives responses only, with it also the requests whose method n has bit n set. rmpp_version
 * 1: the kernel does RMPP. Vendor range 2 gets OpenIB's OUI. -EPERM: the kernel refused, see
 * errno.
 */
int umad_register(int portid, int mgmt_class, int mgmt_version, uint8_t rmpp_version,
		  long method_mask[16 / sizeof(long)]);

/** As umad_register() for vendor range 2, with this OUI, most significant byte first. */
int umad_register_oui(int portid, int mgmt_class, uint8_t rmpp_version, uint8_t oui[3],
		      long method_mask[16 / sizeof(long)]);

/** Unregisters an agent. */
int umad_unregister(int portid, int agentid);

enum {
	/** the program does RMPP itself: segments are passed unchanged */
	UMAD_USER_RMPP = 1 << 0
};

struct umad_reg_attr {
	uint8_t mgmt_class;
	uint8_t mgmt_class_version;
	uint32_t flags;
	uint64_t method_mask[2]; /**< bit n of the 128: method n; all 0: a client */
	uint32_t oui;            /**< 24 bits, for vendor range 2 */
	uint8_t rmpp_version;
};

/** Returns 0 or a POSITIVE errno; EINVAL may set attr->flags to what the kernel knows. */
int umad_register2(int port_fd, struct umad_reg_attr *attr, uint32_t *agent_id);

/** Returns the devices sorted by name. NULL with errno 0 means that there are none. */
struct umad_device_node *umad_get_ca_device_list(void);

/** NULL is a no-op. */
void umad_free_ca_device_list(struct umad_device_node *head);

/** Sorts a list by name. A POSITIVE EINVAL if it does not have size nodes (0: any number). */
int umad_sort_ca_device_list(struct umad_device_node **head, size_t size);

/**
 * Stores up to max pairs, by device name, with preferred ports 0, and returns their number. The
 * devices of a pair differ only for planarized ports, where the one with IsSMDisabled carries
 * GMPs.
 */
int umad_get_smi_gsi_pairs(struct umad_ca_pair cas[], size_t max);

/**
 * Stores the pair of a device (NULL: the default device) and ports with the same PortGUID:
 * portnum or, if it is 0, the first port not Down, else not disabled, else the first. With
 * enforce_smi, only pairs with an SMI device count. -ENODEV if there is no such pair.
 */
int umad_get_smi_gsi_pair_by_ca_name(const char *devname, uint8_t portnum,
				     struct umad_ca_pair *ca_pair, unsigned enforce_smi);

/** Sets and returns the level: 0 warnings, 1 also failures and choices, 2 also packets. */
int umad_debug(int level);

/** These two print to stderr. */
void umad_addr_dump(ib_mad_addr_t *addr);

void umad_dump(void *umad);

/** Allocates num zeroed buffers of size bytes; NULL on OOM. */
static inline void *umad_alloc(int num, size_t size)
{
	return num < 0 ? NULL : calloc((size_t)num, size);
}

static inline void umad_free(void *umad)
{
	free(umad);
}

/* Deprecated: use <endian.h>. be64toh() is not declared under -std=c99, so not called here. */
#ifndef ntohll
__attribute__((deprecated)) static inline uint64_t ntohll(uint64_t x)
{
	return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? x : __builtin_bswap64(x);
}
#define ntohll ntohll
#endif

#ifndef htonll
__attribute__((deprecated)) static inline uint64_t htonll(uint64_t x)
{
	return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? x : __builtin_bswap64(x);
}
#define htonll htonll
#endif

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_UMAD_H */
