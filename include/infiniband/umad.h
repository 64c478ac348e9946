/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * umad.h - management datagrams (MADs) from user space.
 *
 * The library reads devices and ports from sysfs. It sends and receives packets by the kernel's
 * umad devices, /dev/infiniband/umadN (kernel: Documentation/infiniband/user_mad).
 *
 *   int fd = umad_open_port("mlx5_0", 1);
 *   int agent = umad_register(fd, UMAD_CLASS_PERF_MGMT, 1, 0, NULL);
 *   void *umad = umad_alloc(1, umad_size() + 256);
 *   ... fill umad_get_mad(umad), then umad_set_addr() ...
 *   umad_send(fd, agent, umad, 256, 1000, 0);
 *   umad_recv(fd, umad, &length, 2000);
 *
 * Errors. A call that returns int returns a negative errno if it fails, and sets errno. errno
 * is the same number; if the call returns -EIO, errno is the cause. A pointer that must not be
 * NULL and is NULL gives -EINVAL, unless the call's comment says otherwise.
 *
 * Memory. The program owns all buffers and structures. umad_free() frees the buffers of
 * umad_alloc(). umad_release_ca() and umad_release_port() free the memory that umad_get_ca()
 * and umad_get_port() allocate. umad_free_ca_device_list() frees a list of devices.
 * umad_close_port() closes a port. Other pointers that calls return point into the buffer that
 * the call was given, or to constant texts.
 *
 * Threads. Any number of threads may make any calls at once, on one port or on several. Two
 * threads must not use one buffer or one structure at the same time. A thread must not close a
 * port while another thread is in a call for the port.
 *
 * Byte order. Members and parameters of type __be16, __be32 and __be64 are big-endian (network
 * order). All others are in host order.
 */
#ifndef INFINIBAND_UMAD_H
#define INFINIBAND_UMAD_H

/* The headers that rdma-core's umad.h includes, because programs rely on them. */
#include <endian.h>
#include <stdint.h>
#include <stdlib.h>
#include <arpa/inet.h>
#include <linux/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* For old programs; new ones use __be16, __be32 and __be64. */
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

/** Bytes of a device's name, the terminating NUL included. */
#define UMAD_CA_NAME_LEN   20
/** Entries of umad_ca.ports: ports 0 to 9. */
#define UMAD_CA_MAX_PORTS  10
/** How many agents the kernel registers on one open port. */
#define UMAD_CA_MAX_AGENTS 32
/** Sizes of programs' arrays. The library has no such limits. */
#define UMAD_MAX_DEVICES   128
#define UMAD_MAX_PORTS     192

/** Instead of a port number: the library chooses a port. */
#define UMAD_ANY_PORT 0

/* sysfs: devices, and their attributes. */
#define SYS_INFINIBAND   "/sys/class/infiniband"
#define SYS_NODE_TYPE    "node_type"
#define SYS_CA_FW_VERS   "fw_ver"
#define SYS_CA_HW_VERS   "hw_rev"
#define SYS_CA_TYPE      "hca_type"
#define SYS_CA_NODE_GUID "node_guid"
#define SYS_CA_SYS_GUID  "sys_image_guid"
#define SYS_CA_PORTS_DIR "ports"

/* sysfs: attributes of a port. */
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

/* sysfs: umad devices and issm devices. */
#define SYS_INFINIBAND_MAD  "/sys/class/infiniband_mad"
#define SYS_IB_MAD_PORT     "port"
#define SYS_IB_MAD_DEV      "ibdev"
#define IB_UMAD_ABI_DIR     "/sys/class/infiniband_mad"
#define IB_UMAD_ABI_FILE    "abi_version"
/** The oldest kernel ABI that the library supports. */
#define IB_UMAD_ABI_VERSION 5

/*
 * The ioctls of a umad device: number, direction, and size of the argument. The structures of
 * the arguments are in <rdma/ib_user_mad.h>. A program that uses these macros includes
 * <sys/ioctl.h>.
 */
#define IB_IOCTL_MAGIC               0x1b
#define IB_USER_MAD_REGISTER_AGENT   _IOC(_IOC_READ | _IOC_WRITE, IB_IOCTL_MAGIC, 1, 28)
#define IB_USER_MAD_UNREGISTER_AGENT _IOC(_IOC_WRITE, IB_IOCTL_MAGIC, 2, 4)
#define IB_USER_MAD_ENABLE_PKEY      _IOC(_IOC_NONE, IB_IOCTL_MAGIC, 3, 0)
#define IB_USER_MAD_REGISTER_AGENT2  _IOC(_IOC_READ | _IOC_WRITE, IB_IOCTL_MAGIC, 4, 40)

/** The destination of a MAD that is sent, or the source of a MAD that was received. */
typedef struct ib_mad_addr {
	__be32 qpn;  /**< destination or source QP: 0 for SMPs, 1 for GMPs */
	__be32 qkey; /**< of a MAD that is sent; a received MAD has 0 */
	__be16 lid;
	uint8_t sl;
	uint8_t path_bits;
	uint8_t grh_present; /**< not 0: gid_index to flow_label are valid */
	uint8_t gid_index;   /**< of the source GID, in the local port's table */
	uint8_t hop_limit;
	uint8_t traffic_class;
	__extension__ union {
		uint8_t gid[16]; /**< of the remote port */
		union umad_gid ib_gid;
	};
	__be32 flow_label;
	uint16_t pkey_index; /**< of the P_Key, in the local port's table */
	uint8_t reserved[6];
} ib_mad_addr_t;

/**
 * A umad buffer: this header, then the MAD.
 *
 * The header of kernels without P_Key indices is 8 bytes shorter. umad_size() and
 * umad_get_mad() tell where the MAD begins.
 */
typedef struct ib_user_mad {
	uint32_t agent_id;
	uint32_t status; /**< see umad_status() */
	uint32_t timeout_ms;
	uint32_t retries;
	uint32_t length; /**< of a received message: bytes of header and MAD */
	ib_mad_addr_t addr;
	__extension__ uint8_t data[0];
} ib_user_mad_t;

/** A port, as sysfs describes it. */
typedef struct umad_port {
	char ca_name[UMAD_CA_NAME_LEN];
	int portnum;
	unsigned base_lid;
	unsigned lmc; /**< LID mask count */
	unsigned sm_lid;
	unsigned sm_sl;
	unsigned state;      /**< PortInfo:PortState (IBA 14.2.5.6): 4 is Active */
	unsigned phys_state; /**< PortInfo:PortPhysicalState: 3 is Disabled, 5 LinkUp */
	unsigned rate;       /**< Gb/s without fraction; 0: the kernel does not know it */
	__be32 capmask;      /**< PortInfo:CapabilityMask */
	__be64 gid_prefix;
	__be64 port_guid;
	unsigned pkeys_size;
	uint16_t *pkeys; /**< pkeys_size entries; the release calls free them */
	char link_layer[UMAD_CA_NAME_LEN]; /**< "InfiniBand" or "IB", or "Ethernet" */
} umad_port_t;

/** A device (channel adapter, switch or router), as sysfs describes it. */
typedef struct umad_ca {
	char ca_name[UMAD_CA_NAME_LEN];
	unsigned node_type; /**< NodeInfo:NodeType (IBA 14.2.5.3): 1 CA, 2 switch, 3
			       router */
	int numports;       /**< the highest port number */
	char fw_ver[20];
	char ca_type[40];
	char hw_ver[20];
	__be64 node_guid;
	__be64 system_guid;
	umad_port_t *ports[UMAD_CA_MAX_PORTS]; /**< by port number; NULL: no such port */
} umad_ca_t;

/** The devices that carry the SMPs (QP0) and the GMPs (QP1) of one port; "": none. */
struct umad_ca_pair {
	char smi_name[UMAD_CA_NAME_LEN];
	uint32_t smi_preferred_port;
	char gsi_name[UMAD_CA_NAME_LEN];
	uint32_t gsi_preferred_port;
};

/** A list of devices. */
struct umad_device_node {
	struct umad_device_node *next;
	const char *ca_name;
};

/** Returns 0. The library needs no set-up, so the call is not necessary. */
int umad_init(void);

/** Returns 0. Open ports stay open. */
int umad_done(void);

/**
 * Stores the names of the devices, sorted, in cas[0] to cas[max - 1].
 *
 * Returns how many names were stored; 0 if there is no device.
 * -EINVAL  max is negative
 * -ENOMEM  out of memory
 * -EIO     SYS_INFINIBAND cannot be read
 */
int umad_get_cas_names(char cas[][UMAD_CA_NAME_LEN], int max);

/**
 * Stores the PortGUIDs of a device: portguids[i] is that of port i, 0 if there is no port i.
 *
 * ca_name NULL is the default device, as for umad_open_port().
 *
 * Returns how many entries were stored: the highest port number plus 1. Returns 0 if portguids
 * is NULL.
 * -ENOMEM  max is too small
 * -ENODEV  there is no such device
 * -EIO     an attribute cannot be read
 */
int umad_get_ca_portguids(const char *ca_name, __be64 *portguids, int max);

/**
 * Reads the attributes of a device and of its ports.
 *
 * ca_name NULL is the default device, as for umad_open_port(). umad_release_ca() frees the
 * memory that the call allocates. After an error nothing is allocated.
 *
 * Returns 0.
 * -ENODEV  there is no such device
 * -EIO     an attribute cannot be read, or is malformed; errno EOVERFLOW: too many ports
 * -ENOMEM  out of memory
 */
int umad_get_ca(const char *ca_name, umad_ca_t *ca);

/** Frees the memory of umad_get_ca(). It may be called twice. Returns 0; NULL: -ENODEV. */
int umad_release_ca(umad_ca_t *ca);

/**
 * Reads the attributes of a port. If ca_name is NULL or portnum is 0, the library chooses, as
 * in umad_open_port().
 *
 * umad_release_port() frees the memory that the call allocates.
 *
 * Returns 0.
 * -ENODEV  there is no such device, or no usable port
 * -EIO     the port or an attribute cannot be read, or is malformed
 * -EINVAL  portnum is negative
 * -ENOMEM  out of memory
 */
int umad_get_port(const char *ca_name, int portnum, umad_port_t *port);

/** Frees the memory of umad_get_port(). It may be called twice. Returns 0; NULL: -ENODEV. */
int umad_release_port(umad_port_t *port);

/**
 * Stores the path of a port's issm device. While a program holds this device open, IsSM is set
 * in the port's CapabilityMask. umad_open_issm() opens it.
 *
 * Returns 0.
 * -ENODEV  there is no such device, or no usable port
 * -EINVAL  the port has no issm device
 * -ENOSPC  the path needs more than max bytes; path becomes ""
 * -EIO     sysfs cannot be read
 * -ENOMEM  out of memory
 */
int umad_get_issm_path(const char *ca_name, int portnum, char path[], int max);

/**
 * Opens a port for sending and receiving.
 *
 * ca_name  portnum  the port
 * a name   1, ...   this port
 * a name   0        the device's first InfiniBand port that is Active; if there is none, the
 *                   first with a link that is up; otherwise the first that is not disabled
 * NULL     0        the port that the row above chooses: of the first device with an Active
 *                   port; if there is none, of the first device with a usable port. Devices are
 *                   in the order of the directory SYS_INFINIBAND
 * NULL     1, ...   the same, but only this port of each device is considered; an Ethernet port
 *                   is the last choice
 *
 * The port of a switch is port 0; it counts as Active. A port that cannot be read is not
 * chosen. See umad_get_port(3) for all rules.
 *
 * If the module ib_umad is not loaded, the library asks the kernel for the umad device by RDMA
 * netlink, and the kernel loads the module.
 *
 * Returns the port handle: a non-blocking file descriptor that is closed on exec.
 * -EOPNOTSUPP  the kernel has no umad devices, or an ABI older than IB_UMAD_ABI_VERSION
 * -ENODEV      there is no such device, or no usable port
 * -EINVAL      the port has no umad device
 * -EIO         the umad device or sysfs cannot be opened; errno is the cause
 * -ENOMEM      out of memory
 */
int umad_open_port(const char *ca_name, int portnum);

/**
 * As umad_open_port(), but a port with IsSMDisabled is not chosen, and an Ethernet port is the
 * last choice.
 */
int umad_open_smi_port(const char *ca_name, int portnum);

/** Closes a port and unregisters its agents. Returns 0. -EINVAL: the handle is not open. */
int umad_close_port(int portid);

/** Returns the address of the MAD in a umad buffer; NULL for NULL. */
void *umad_get_mad(void *umad);

/**
 * Returns the size of the header before the MAD, in bytes, as the port has it that was opened
 * last. Call it after umad_open_port().
 */
size_t umad_size(void);

/**
 * Returns the status of a message from umad_recv():
 * 0          it was received
 * ETIMEDOUT  it is a request of this program that got no response
 * and other numbers of the kernel
 */
int umad_status(void *umad);

/** Returns the address in a umad buffer; NULL for NULL. */
ib_mad_addr_t *umad_get_mad_addr(void *umad);

/**
 * Sets the GRH of a MAD that is to be sent. mad_addr is a struct ib_mad_addr, with its flow
 * label in network order; NULL: no GRH. Returns 0.
 */
int umad_set_grh_net(void *umad, void *mad_addr);

/** As umad_set_grh_net(), with the flow label in host order. */
int umad_set_grh(void *umad, void *mad_addr);

/** Sets the destination, in network order. Returns 0. */
int umad_set_addr_net(void *umad, __be16 dlid, __be32 dqp, int sl, __be32 qkey);

/** Sets the destination, in host order. Returns 0. */
int umad_set_addr(void *umad, int dlid, int dqp, int sl, int qkey);

/**
 * Sets the index of the P_Key of a MAD that is to be sent: 0 to 65535.
 *
 * Returns 0.
 * -EINVAL      the index is out of range
 * -EOPNOTSUPP  the index is not 0, and the kernel has no P_Key indices
 */
int umad_set_pkey(void *umad, int pkey_index);

/** Returns the index of a received MAD's P_Key; 0 if the kernel has no P_Key indices. */
int umad_get_pkey(void *umad);

/**
 * Sends a MAD, or a longer message by RMPP. length is in bytes, without the umad header.
 *
 * timeout_ms  the kernel
 * 0           expects no response
 * positive    sends the request again after each timeout, retries times; after the last timeout
 *             umad_recv() returns the request with status ETIMEDOUT
 * negative    waits for a response without limit
 *
 * Returns 0 if the kernel has accepted the MAD.
 * -EINVAL  the handle is not open, or agentid or length is negative
 * -EIO     the kernel did not accept the MAD; errno is the cause
 */
int umad_send(int portid, int agentid, void *umad, int length, int timeout_ms, int retries);

/**
 * Receives a MAD, or a message that the kernel has reassembled from RMPP segments.
 *
 * umad is a buffer of umad_size() + *length bytes; *length is at least 256. timeout_ms 0 does
 * not wait; a negative timeout_ms waits without limit.
 *
 * Returns the ID of the agent that the message is for, and its length in *length.
 * -EWOULDBLOCK  timeout_ms is 0, and no message can be received
 * -ETIMEDOUT    no message came in time
 * -ENOSPC       the message is larger than the buffer: *length becomes its length, and the next
 *               call can receive it
 * -EINVAL       the handle is not open, or *length is less than 256
 * -EIO          errno is EINTR: a signal handler ran; otherwise: the device failed or is gone
 */
int umad_recv(int portid, void *umad, int *length, int timeout_ms);

/**
 * Waits until a message can be received; without limit if timeout_ms is negative. Another
 * thread may receive the message first.
 *
 * Returns 0.
 * -ETIMEDOUT  no message came in time
 * -EINVAL     the handle is not open
 * -EIO        errno is EINTR: a signal handler ran; otherwise: the device is gone
 */
int umad_poll(int portid, int timeout_ms);

/** Returns the descriptor of a port for poll(2): readable when a message can be received. */
int umad_get_fd(int portid);

/**
 * Registers an agent for a management class (IBA 13.4.4).
 *
 * method_mask NULL: the agent is a client; it receives the responses to its requests. Otherwise
 * method_mask has 128 bits, bit n for method n: the agent receives requests with these methods,
 * too. rmpp_version 1: the kernel does RMPP; 0: no RMPP. A class of vendor range 2 gets
 * OpenIB's OUI.
 *
 * Returns the agent's ID.
 * -EPERM   the kernel does not register it; errno is the cause
 * -EINVAL  the handle is not open, or the class or version is not in 0 to 255
 */
int umad_register(int portid, int mgmt_class, int mgmt_version, uint8_t rmpp_version,
		  long method_mask[16 / sizeof(long)]);

/**
 * As umad_register(), for a class of vendor range 2 (0x30 to 0x4f), version 1. The OUI's most
 * significant byte is first. If the class is of another range, the call fails with -EINVAL.
 */
int umad_register_oui(int portid, int mgmt_class, uint8_t rmpp_version, uint8_t oui[3],
		      long method_mask[16 / sizeof(long)]);

/** Unregisters an agent. Returns 0. -EINVAL: no open handle, or no such agent. */
int umad_unregister(int portid, int agentid);

/** Flags of umad_reg_attr. */
enum {
	/** The program does RMPP itself: the kernel passes the segments unchanged. */
	UMAD_USER_RMPP = 1 << 0
};

/** An agent: its class, and the methods that it receives. */
struct umad_reg_attr {
	uint8_t mgmt_class;
	uint8_t mgmt_class_version;
	uint32_t flags;
	uint64_t method_mask[2]; /**< bit n of the 128: method n; all 0: a client */
	uint32_t oui;            /**< 24 bits; of classes of vendor range 2 */
	uint8_t rmpp_version;
};

/**
 * Registers an agent, with flags.
 *
 * Returns 0, and the agent's ID in *agent_id; or a POSITIVE errno:
 * EINVAL  an argument is wrong
 * EINVAL  a class of vendor range 2 has no OUI
 * EINVAL  the kernel does not know a flag: attr->flags becomes the flags that it knows
 * and other numbers of the kernel
 */
int umad_register2(int port_fd, struct umad_reg_attr *attr, uint32_t *agent_id);

/**
 * Returns a list of the devices, sorted by name. umad_free_ca_device_list() frees it.
 *
 * NULL: errno is 0 if there is no device, otherwise the error.
 */
struct umad_device_node *umad_get_ca_device_list(void);

/** Frees a list. NULL is allowed. */
void umad_free_ca_device_list(struct umad_device_node *head);

/**
 * Sorts a list by name. size is its length; 0: the call counts it.
 *
 * Returns 0. A POSITIVE EINVAL: the list does not have this length; the list is not changed.
 */
int umad_sort_ca_device_list(struct umad_device_node **head, size_t size);

/**
 * Stores the pairs of devices that carry a port's SMPs and its GMPs in cas[0] to cas[max - 1]:
 * each pair once, in the order of the devices' names. The preferred ports are 0.
 *
 * Usually one device carries both. A planarized port has two devices with the same PortGUID:
 * one carries the SMPs; the other one has IsSMDisabled set, and carries the GMPs.
 *
 * Returns the number of pairs that were stored.
 * -EINVAL  cas is NULL
 * -ENOMEM  out of memory
 * -EIO     sysfs cannot be read
 */
int umad_get_smi_gsi_pairs(struct umad_ca_pair cas[], size_t max);

/**
 * Stores the pair that a device belongs to; devname NULL is the default device.
 *
 * The preferred ports are ports of the pair's devices with the same PortGUID. The one of
 * devname is portnum; if portnum is 0, it is the first port that is not Down, otherwise the
 * first that is not disabled, otherwise the first one. If enforce_smi is not 0, only a pair
 * with an SMI device is found. See umad_get_smi_gsi_pairs(3) for all rules.
 *
 * Returns 0.
 * -ENODEV  there is no such pair, device or port
 * -EINVAL  ca_pair is NULL
 * -ENOMEM  out of memory
 * -EIO     sysfs cannot be read
 */
int umad_get_smi_gsi_pair_by_ca_name(const char *devname, uint8_t portnum,
				     struct umad_ca_pair *ca_pair, unsigned enforce_smi);

/**
 * Sets the level of messages: 0 warnings; 1 operations, the choice of a port and the causes of
 * failures, too; 2 each packet, too. A negative level changes nothing. Returns the level. See
 * umad_set_log_hook().
 */
int umad_debug(int level);

/** Prints an address to stderr. */
void umad_addr_dump(ib_mad_addr_t *addr);

/** Prints the header of a umad buffer to stderr. */
void umad_dump(void *umad);

/** Allocates num zeroed buffers of size bytes, for umad_free(). NULL: out of memory. */
static inline void *umad_alloc(int num, size_t size)
{
	return num < 0 ? NULL : calloc((size_t)num, size);
}

/** Frees the memory of umad_alloc(). */
static inline void umad_free(void *umad)
{
	free(umad);
}

/*
 * For old programs; new ones have be64toh() and htobe64() in <endian.h>. Programs test for the
 * macros (#ifndef htonll) before they define functions of their own.
 *
 * The functions do not call be64toh(): <endian.h> does not declare it under -std=c99 and later.
 */
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
