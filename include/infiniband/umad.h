/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * umad.h - management datagrams (MADs) from user space.
 *
 * Devices and ports come from sysfs, packets go through the kernel's user_mad devices
 * (/dev/infiniband/umadN, see Documentation/infiniband/user_mad in the kernel).
 *
 *   int fd = umad_open_port("mlx5_0", 1);
 *   int agent = umad_register(fd, UMAD_CLASS_PERF_MGMT, 1, 0, NULL);
 *   void *umad = umad_alloc(1, umad_size() + 256);
 *   ... fill umad_get_mad(umad), then umad_set_addr() ...
 *   umad_send(fd, agent, umad, 256, 1000, 0);
 *   umad_recv(fd, umad, &length, 2000);
 *
 * Errors. Calls that return int answer a negative errno where they fail, and set errno as
 * well: to the same number, or, under -EIO, to the cause. A NULL where a pointer is
 * demanded is -EINVAL unless a call says otherwise.
 *
 * Threads. Every call may be made from any number of threads at once, on one port or
 * many, as long as no two use one buffer or structure at the same time.
 *
 * Byte order. Members and parameters of type __be16, __be32 and __be64 are big-endian
 * (network order), everything else is in the host's.
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

/** Length of an array for a device's name, terminating NUL included. */
#define UMAD_CA_NAME_LEN   20
/** Entries of umad_ca.ports: port numbers run from 0 to 9. */
#define UMAD_CA_MAX_PORTS  10
/** Agents that the kernel registers on one open port. */
#define UMAD_CA_MAX_AGENTS 32
/** Sizes that programs give their arrays; the library itself has no such limit. */
#define UMAD_MAX_DEVICES   128
#define UMAD_MAX_PORTS     192

/** As a port number: let the library choose. */
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

/* sysfs: user_mad devices, umadN and issmN. */
#define SYS_INFINIBAND_MAD  "/sys/class/infiniband_mad"
#define SYS_IB_MAD_PORT     "port"
#define SYS_IB_MAD_DEV      "ibdev"
#define IB_UMAD_ABI_DIR     "/sys/class/infiniband_mad"
#define IB_UMAD_ABI_FILE    "abi_version"
/** The oldest kernel ABI that this library speaks. */
#define IB_UMAD_ABI_VERSION 5

/*
 * The ioctls of a user_mad device, by number, direction and size of the argument; the
 * argument's structures are in <rdma/ib_user_mad.h>. A program that uses these macros includes
 * <sys/ioctl.h>.
 */
#define IB_IOCTL_MAGIC               0x1b
#define IB_USER_MAD_REGISTER_AGENT   _IOC(_IOC_READ | _IOC_WRITE, IB_IOCTL_MAGIC, 1, 28)
#define IB_USER_MAD_UNREGISTER_AGENT _IOC(_IOC_WRITE, IB_IOCTL_MAGIC, 2, 4)
#define IB_USER_MAD_ENABLE_PKEY      _IOC(_IOC_NONE, IB_IOCTL_MAGIC, 3, 0)
#define IB_USER_MAD_REGISTER_AGENT2  _IOC(_IOC_READ | _IOC_WRITE, IB_IOCTL_MAGIC, 4, 40)

/** Where a MAD goes, or came from. */
typedef struct ib_mad_addr {
	__be32 qpn;  /**< destination or source QP: 0 for SMPs, 1 for GMPs */
	__be32 qkey; /**< to send with; 0 on what is received */
	__be16 lid;
	uint8_t sl;
	uint8_t path_bits;
	uint8_t grh_present; /**< the members from gid_index to flow_label count */
	uint8_t gid_index;   /**< index of the local GID to send from */
	uint8_t hop_limit;
	uint8_t traffic_class;
	__extension__ union {
		uint8_t gid[16]; /**< the other side's GID */
		union umad_gid ib_gid;
	};
	__be32 flow_label;
	uint16_t pkey_index; /**< index of the P_Key in the local port's table */
	uint8_t reserved[6];
} ib_mad_addr_t;

/**
 * A umad buffer: this header, then the MAD.
 *
 * Kernels that do not know P_Key indices use a header 8 bytes shorter; umad_size() and
 * umad_get_mad() tell where the MAD begins.
 */
typedef struct ib_user_mad {
	uint32_t agent_id;
	uint32_t status; /**< see umad_status() */
	uint32_t timeout_ms;
	uint32_t retries;
	uint32_t length; /**< header and MAD of what was received, in bytes */
	ib_mad_addr_t addr;
	__extension__ uint8_t data[0];
} ib_user_mad_t;

/** A port, as sysfs tells of it. */
typedef struct umad_port {
	char ca_name[UMAD_CA_NAME_LEN];
	int portnum;
	unsigned base_lid;
	unsigned lmc; /**< LID mask count */
	unsigned sm_lid;
	unsigned sm_sl;
	unsigned state;      /**< PortInfo:PortState (IBA 14.2.5.6): 4 is Active */
	unsigned phys_state; /**< PortInfo:PortPhysicalState: 3 is Disabled, 5 LinkUp */
	unsigned rate;       /**< Gb/s, its whole part; 0 where the kernel does not know */
	__be32 capmask;      /**< PortInfo:CapabilityMask */
	__be64 gid_prefix;
	__be64 port_guid;
	unsigned pkeys_size;
	uint16_t *pkeys; /**< pkeys_size entries, freed by the release calls */
	char link_layer[UMAD_CA_NAME_LEN]; /**< "InfiniBand" or "IB", or "Ethernet" */
} umad_port_t;

/** A device (channel adapter, switch or router), as sysfs tells of it. */
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
	umad_port_t *ports[UMAD_CA_MAX_PORTS]; /**< by port number; NULL where there is none */
} umad_ca_t;

/** The devices by which one port's SMPs (QP0) and GMPs (QP1) go; "" where there is none.
 */
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

/** Returns 0. Nothing needs to be set up: programs may call it or leave it. */
int umad_init(void);

/** Returns 0. Open ports stay open. */
int umad_done(void);

/**
 * The names of the devices, sorted, into cas[0..max-1].
 *
 * Returns how many were stored; 0 where there is no device. -EINVAL for a negative max,
 * -ENOMEM, -EIO where SYS_INFINIBAND cannot be read.
 */
int umad_get_cas_names(char cas[][UMAD_CA_NAME_LEN], int max);

/**
 * The port GUIDs of a device: portguids[i] is that of port i, 0 where there is no such
 * port.
 *
 * ca_name NULL is the default device, as for umad_open_port(). Returns how many entries
 * were stored (the highest port number and one), 0 for portguids NULL; -ENOMEM where max
 * is too small, -ENODEV no such device, -EIO an attribute cannot be read.
 */
int umad_get_ca_portguids(const char *ca_name, __be64 *portguids, int max);

/**
 * All there is to know about a device and its ports.
 *
 * ca_name NULL is the default device, as for umad_open_port(). What it allocates,
 * umad_release_ca() frees; after an error there is nothing to free.
 * Returns 0; -ENODEV no such device, -EIO an attribute cannot be read or makes no sense,
 * -ENOMEM.
 */
int umad_get_ca(const char *ca_name, umad_ca_t *ca);

/** Frees what umad_get_ca() allocated. Returns 0; -ENODEV for NULL. Twice does no harm.
 */
int umad_release_ca(umad_ca_t *ca);

/**
 * All there is to know about one port; ca_name NULL and portnum 0 leave the choice to the
 * library, as for umad_open_port().
 *
 * What it allocates, umad_release_port() frees. Returns 0; -ENODEV no such device or no
 * usable port, -EIO an attribute (or the port) cannot be read, -EINVAL a negative
 * portnum, -ENOMEM.
 */
int umad_get_port(const char *ca_name, int portnum, umad_port_t *port);

/** Frees what umad_get_port() allocated. Returns 0; -ENODEV for NULL. Twice does no harm.
 */
int umad_release_port(umad_port_t *port);

/**
 * The path of a port's issm device, the one whose opening sets IsSM in the port's
 * CapabilityMask (umad_open_issm() opens it, too).
 *
 * Returns 0; -ENODEV no such device or no usable port, -EINVAL no issm device for it, -ENOMEM,
 * -EIO sysfs cannot be read, -ENOSPC the path does not fit into max bytes (path is "" then).
 */
int umad_get_issm_path(const char *ca_name, int portnum, char path[], int max);

/**
 * Opens a port for sending and receiving.
 *
 * With both given, exactly that port. With portnum 0 a device's ports in their order: the first
 * Active InfiniBand port, else the first whose link is up, else the first that is not disabled.
 * With ca_name NULL the devices in the order of their names, each judged in that way: the first
 * with an Active port, else the first with a usable one. A switch is its port 0, and as good as
 * Active.
 *
 * Where the kernel has no user_mad device for the port because ib_umad is not loaded,
 * asking for it over RDMA netlink loads it.
 *
 * Returns the port's handle, a non-blocking close-on-exec file descriptor. -EOPNOTSUPP no
 * user_mad in this kernel or one older than IB_UMAD_ABI_VERSION, -ENODEV no such device
 * or no usable port, -EINVAL no umad device for that port, -ENOMEM, -EIO it (or sysfs) cannot
 * be opened (errno says why).
 */
int umad_open_port(const char *ca_name, int portnum);

/** As umad_open_port(), but does not choose a port whose subnet management is disabled.
 */
int umad_open_smi_port(const char *ca_name, int portnum);

/** Closes a port and unregisters its agents. Returns 0; -EINVAL a handle that is not
 * open. */
int umad_close_port(int portid);

/** Where the MAD begins in a umad buffer; NULL for NULL. */
void *umad_get_mad(void *umad);

/** Size of the header before the MAD, in bytes. Known for good once a port has been open.
 */
size_t umad_size(void);

/**
 * What became of a MAD: 0 received; ETIMEDOUT one's own request, back because nobody
 * answered it; another errno from the kernel.
 */
int umad_status(void *umad);

/** The address in a umad buffer; NULL for NULL. */
ib_mad_addr_t *umad_get_mad_addr(void *umad);

/**
 * Sets the GRH to send with from a struct ib_mad_addr whose members are as its
 * declaration says: flow label in network order. NULL sends without GRH. Returns 0.
 */
int umad_set_grh_net(void *umad, void *mad_addr);

/** As umad_set_grh_net(), with the flow label in host order. */
int umad_set_grh(void *umad, void *mad_addr);

/** Sets the destination, in network order. Returns 0. */
int umad_set_addr_net(void *umad, __be16 dlid, __be32 dqp, int sl, __be32 qkey);

/** Sets the destination, in host order. Returns 0. */
int umad_set_addr(void *umad, int dlid, int dqp, int sl, int qkey);

/**
 * Sets the index of the P_Key to send with, 0 to 65535.
 *
 * Returns 0; -EINVAL an index out of range, -EOPNOTSUPP an index other than 0 where the
 * kernel has no room for it.
 */
int umad_set_pkey(void *umad, int pkey_index);

/** The index of the P_Key that a MAD came with; 0 where the kernel does not tell. */
int umad_get_pkey(void *umad);

/**
 * Sends a MAD, or a message of several with RMPP.
 *
 * length is the MAD's, without the umad header. timeout_ms: 0 expects no answer; a
 * positive one lets the kernel repeat the request retries times, that long after each
 * other, and then hand it back with status ETIMEDOUT; a negative one waits for ever.
 *
 * Returns 0 once the kernel has taken it; -EINVAL a handle that is not open, a negative
 * agentid or length; -EIO what the kernel refused (errno says why).
 */
int umad_send(int portid, int agentid, void *umad, int length, int timeout_ms, int retries);

/**
 * Receives a MAD or a reassembled RMPP message.
 *
 * umad has room for umad_size() + *length bytes, *length being at least 256. timeout_ms:
 * 0 does not wait, a negative one waits for ever.
 *
 * Returns the id of the agent it is for, and the MAD's length in *length.
 * -EWOULDBLOCK nothing there, -ETIMEDOUT nothing came in time, -ENOSPC it is larger:
 * *length says how large, and it stays to be read; -EINVAL a handle that is not open, or
 * *length below 256; -EIO the device failed or has gone, or a signal handler ran (errno
 * EINTR).
 */
int umad_recv(int portid, void *umad, int *length, int timeout_ms);

/**
 * Waits for something to receive, for ever if timeout_ms is negative. Another thread
 * may be quicker to receive it.
 *
 * Returns 0; -ETIMEDOUT, -EINVAL a handle that is not open, -EIO the device has gone, or
 * a signal handler ran (errno EINTR).
 */
int umad_poll(int portid, int timeout_ms);

/** The descriptor behind a port, to poll: readable when something can be received. */
int umad_get_fd(int portid);

/**
 * Registers an agent for a management class (IBA 13.4.4).
 *
 * method_mask NULL makes a client, which receives answers to what it sends. With a mask
 * (128 bits, bit n for method n) it also receives requests of these methods. rmpp_version
 * 1 has the kernel do RMPP. A class of vendor range 2 gets OpenIB's OUI.
 *
 * Returns the agent's id; -EPERM the kernel refuses (errno says why), -EINVAL a handle
 * that is not open, or a class or version outside 0..255.
 */
int umad_register(int portid, int mgmt_class, int mgmt_version, uint8_t rmpp_version,
		  long method_mask[16 / sizeof(long)]);

/**
 * As umad_register(), for a class of vendor range 2 (0x30..0x4f), version 1, and its OUI,
 * most significant byte first. -EINVAL for other classes, too.
 */
int umad_register_oui(int portid, int mgmt_class, uint8_t rmpp_version, uint8_t oui[3],
		      long method_mask[16 / sizeof(long)]);

/** Returns 0; -EINVAL a handle that is not open or an id that is not registered. */
int umad_unregister(int portid, int agentid);

/** Flags of umad_reg_attr. */
enum {
	/** The program does RMPP itself: segments are passed as they are. */
	UMAD_USER_RMPP = 1 << 0
};

/** What an agent is registered for. */
struct umad_reg_attr {
	uint8_t mgmt_class;
	uint8_t mgmt_class_version;
	uint32_t flags;
	uint64_t method_mask[2]; /**< bit n of the 128 for method n; all 0 makes a client
				  */
	uint32_t oui;            /**< 24 bits, for classes of vendor range 2 */
	uint8_t rmpp_version;
};

/**
 * Registers an agent, with flags.
 *
 * Returns 0 and the agent's id; a POSITIVE errno where it fails: EINVAL arguments, or
 * vendor range 2 without an OUI; what the kernel answers otherwise. Where the kernel
 * refused the flags, attr->flags are those that it knows.
 */
int umad_register2(int port_fd, struct umad_reg_attr *attr, uint32_t *agent_id);

/**
 * The devices as a list, sorted by name, that umad_free_ca_device_list() frees.
 *
 * NULL with errno 0 where there is none; NULL with errno set on a failure.
 */
struct umad_device_node *umad_get_ca_device_list(void);

/** Frees a list, or nothing for NULL. */
void umad_free_ca_device_list(struct umad_device_node *head);

/**
 * Sorts a list by name. size is its length, or 0 to have it counted.
 * Returns 0; a POSITIVE EINVAL where the list is not that long (it stays as it is).
 */
int umad_sort_ca_device_list(struct umad_device_node **head, size_t size);

/**
 * Pairs of the devices that carry a port's SMPs and its GMPs, one for each port GUID, in
 * the order of the devices' names, into cas[0..max-1]. Preferred ports are 0.
 *
 * One device does both unless the port is planarized: then a device of its own, with
 * the same port GUID, carries the SMPs, and the other one has IsSMDisabled set.
 * Returns how many were stored; -EINVAL, -ENOMEM, -EIO.
 */
int umad_get_smi_gsi_pairs(struct umad_ca_pair cas[], size_t max);

/**
 * The pair in which a device has either part; devname NULL is the default device.
 *
 * The preferred ports are portnum, or with portnum 0 the device's only port, or its first
 * that is not Down, or 0. With enforce_smi a pair without an SMI device does not count.
 * Returns 0; -ENODEV no such pair, -EINVAL, -ENOMEM, -EIO.
 */
int umad_get_smi_gsi_pair_by_ca_name(const char *devname, uint8_t portnum,
				     struct umad_ca_pair *ca_pair, unsigned enforce_smi);

/**
 * Sets the level of diagnostics: 0 warnings only, 1 what happens, 2 every packet. A
 * negative level changes nothing. Returns the level in force. See also
 * umad_set_log_hook().
 */
int umad_debug(int level);

/** Prints an address on stderr. */
void umad_addr_dump(ib_mad_addr_t *addr);

/** Prints a umad buffer's header on stderr. */
void umad_dump(void *umad);

/** num zeroed buffers of size bytes, to be freed by umad_free(); NULL out of memory. */
static inline void *umad_alloc(int num, size_t size)
{
	return num < 0 ? NULL : calloc((size_t)num, size);
}

/** Frees what umad_alloc() gave. */
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
