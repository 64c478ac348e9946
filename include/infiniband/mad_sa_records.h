/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * mad_sa_records.h - attributes of the subnet administrator (SA), in wire layout, and their
 * component masks (IBA 15.2.5).
 *
 * Members are in network order, masks (mad_sa_query:component_mask) in host order. The
 * specification numbers components in the order of fields, reserved ones included. Records are
 * padded to a multiple of 8 bytes, as in an SA response. MCMemberRecord is struct
 * umad_sa_mcmember_record (umad_sa_mcm.h).
 *
 * MTU, rate and lifetime bytes have a selector in their upper 2 bits, see
 * umad_sa_set_rate_mtu_or_life() in umad_sa.h.
 */
#ifndef INFINIBAND_MAD_SA_RECORDS_H
#define INFINIBAND_MAD_SA_RECORDS_H

#include <infiniband/mad_link.h>
#include <infiniband/umad_sa_mcm.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- InformInfo ------------------------------------------------------------------ */

/** InformInfo (IBA 13.4.8.3), 36 bytes: subscribes to notices. */
struct mad_sa_inform_info {
	uint8_t gid[16];  /**< producer; zeros: lid_begin to lid_end */
	__be16 lid_begin; /**< 0xffff: all */
	__be16 lid_end;
	__be16 reserved;
	uint8_t is_generic;   /**< 0: vendor-specific */
	uint8_t subscribe;    /**< 0: unsubscribe */
	__be16 type;          /**< 0xffff: all */
	__be16 trap_number;   /**< or a vendor's device; 0xffff: all */
	__be32 qpn_resp_time; /**< QPN (24 bits), reserved (3), RespTime (5) */
	__be32 producer_type; /**< or the vendor; 24 bits */
};

#define MAD_SA_INFORM_GID           (UINT64_C(1) << 0)
#define MAD_SA_INFORM_LID_BEGIN     (UINT64_C(1) << 1)
#define MAD_SA_INFORM_LID_END       (UINT64_C(1) << 2)
#define MAD_SA_INFORM_IS_GENERIC    (UINT64_C(1) << 4)
#define MAD_SA_INFORM_SUBSCRIBE     (UINT64_C(1) << 5)
#define MAD_SA_INFORM_TYPE          (UINT64_C(1) << 6)
#define MAD_SA_INFORM_TRAP_NUMBER   (UINT64_C(1) << 7)
#define MAD_SA_INFORM_QPN           (UINT64_C(1) << 8)
#define MAD_SA_INFORM_RESP_TIME     (UINT64_C(1) << 10)
#define MAD_SA_INFORM_PRODUCER_TYPE (UINT64_C(1) << 12)

/** InformInfoRecord (IBA 15.2.5.12). */
struct mad_sa_inform_info_record {
	uint8_t subscriber_gid[16];
	__be16 number; /**< among the subscriber's subscriptions */
	uint8_t reserved[6];
	struct mad_sa_inform_info info;
	uint8_t pad[4];
};

#define MAD_SA_INFORM_RECORD_SUBSCRIBER_GID  (UINT64_C(1) << 0)
#define MAD_SA_INFORM_RECORD_NUMBER          (UINT64_C(1) << 1)
/** of info, such as MAD_SA_INFORM_TYPE */
#define MAD_SA_INFORM_RECORD_INFO(component) ((component) << 3)

/* --- paths ---------------------------------------------------------------------- */

/** PathRecord (IBA 15.2.5.16). */
struct mad_sa_path_record {
	__be64 service_id;
	uint8_t dgid[16];
	uint8_t sgid[16];
	__be16 dlid;
	__be16 slid;
	__be32 flow_hop; /**< raw traffic (1 bit), 0 (3), flow label (20), hop limit (8) */
	uint8_t tclass;
	uint8_t reversible_num; /**< Reversible (1 bit), NumbPath (7) */
	__be16 pkey;
	__be16 qos_sl; /**< QoS class (12 bits), SL (4) */
	uint8_t mtu;   /**< with selector, as are rate and pkt_life */
	uint8_t rate;
	uint8_t pkt_life;
	uint8_t preference;
	uint8_t reserved[6];
};

#define MAD_SA_PATH_SERVICE_ID_MSB (UINT64_C(1) << 0) /* upper 8 bits */
#define MAD_SA_PATH_SERVICE_ID_LSB (UINT64_C(1) << 1) /* lower 56 bits */
#define MAD_SA_PATH_SERVICE_ID     (MAD_SA_PATH_SERVICE_ID_MSB | MAD_SA_PATH_SERVICE_ID_LSB)
#define MAD_SA_PATH_DGID           (UINT64_C(1) << 2)
#define MAD_SA_PATH_SGID           (UINT64_C(1) << 3)
#define MAD_SA_PATH_DLID           (UINT64_C(1) << 4)
#define MAD_SA_PATH_SLID           (UINT64_C(1) << 5)
#define MAD_SA_PATH_RAW_TRAFFIC    (UINT64_C(1) << 6)
#define MAD_SA_PATH_FLOW_LABEL     (UINT64_C(1) << 8)
#define MAD_SA_PATH_HOP_LIMIT      (UINT64_C(1) << 9)
#define MAD_SA_PATH_TCLASS         (UINT64_C(1) << 10)
#define MAD_SA_PATH_REVERSIBLE     (UINT64_C(1) << 11)
#define MAD_SA_PATH_NUMB_PATH      (UINT64_C(1) << 12)
#define MAD_SA_PATH_PKEY           (UINT64_C(1) << 13)
#define MAD_SA_PATH_QOS_CLASS      (UINT64_C(1) << 14)
#define MAD_SA_PATH_SL             (UINT64_C(1) << 15)
#define MAD_SA_PATH_MTU_SELECTOR   (UINT64_C(1) << 16)
#define MAD_SA_PATH_MTU            (UINT64_C(1) << 17)
#define MAD_SA_PATH_RATE_SELECTOR  (UINT64_C(1) << 18)
#define MAD_SA_PATH_RATE           (UINT64_C(1) << 19)
#define MAD_SA_PATH_LIFE_SELECTOR  (UINT64_C(1) << 20)
#define MAD_SA_PATH_LIFE           (UINT64_C(1) << 21)
#define MAD_SA_PATH_PREFERENCE     (UINT64_C(1) << 22)

/** MultiPathRecord (IBA 15.2.5.20); sgid_count and dgid_count GIDs of 16 bytes follow. */
struct mad_sa_multi_path_record {
	__be32 flow_hop;
	uint8_t tclass;
	uint8_t reversible_num;
	__be16 pkey;
	__be16 qos_sl;
	uint8_t mtu;
	uint8_t rate;
	uint8_t pkt_life;
	uint8_t service_id_msb; /**< upper 8 bits of the service ID */
	uint8_t independence;   /**< IndependenceSelector (2 bits), reserved (6) */
	uint8_t sgid_count;
	uint8_t dgid_count;
	uint8_t service_id_lsb[7]; /**< lower 56 bits of the service ID */
};

#define MAD_SA_MULTI_PATH_RAW_TRAFFIC    (UINT64_C(1) << 0)
#define MAD_SA_MULTI_PATH_FLOW_LABEL     (UINT64_C(1) << 2)
#define MAD_SA_MULTI_PATH_HOP_LIMIT      (UINT64_C(1) << 3)
#define MAD_SA_MULTI_PATH_TCLASS         (UINT64_C(1) << 4)
#define MAD_SA_MULTI_PATH_REVERSIBLE     (UINT64_C(1) << 5)
#define MAD_SA_MULTI_PATH_NUMB_PATH      (UINT64_C(1) << 6)
#define MAD_SA_MULTI_PATH_PKEY           (UINT64_C(1) << 7)
#define MAD_SA_MULTI_PATH_QOS_CLASS      (UINT64_C(1) << 8)
#define MAD_SA_MULTI_PATH_SL             (UINT64_C(1) << 9)
#define MAD_SA_MULTI_PATH_MTU_SELECTOR   (UINT64_C(1) << 10)
#define MAD_SA_MULTI_PATH_MTU            (UINT64_C(1) << 11)
#define MAD_SA_MULTI_PATH_RATE_SELECTOR  (UINT64_C(1) << 12)
#define MAD_SA_MULTI_PATH_RATE           (UINT64_C(1) << 13)
#define MAD_SA_MULTI_PATH_LIFE_SELECTOR  (UINT64_C(1) << 14)
#define MAD_SA_MULTI_PATH_LIFE           (UINT64_C(1) << 15)
#define MAD_SA_MULTI_PATH_SERVICE_ID_MSB (UINT64_C(1) << 16)
#define MAD_SA_MULTI_PATH_INDEPENDENCE   (UINT64_C(1) << 17)
#define MAD_SA_MULTI_PATH_SGID_COUNT     (UINT64_C(1) << 19)
#define MAD_SA_MULTI_PATH_DGID_COUNT     (UINT64_C(1) << 20)
#define MAD_SA_MULTI_PATH_SERVICE_ID_LSB (UINT64_C(1) << 21)

/* --- services ------------------------------------------------------------------- */

/** ServiceRecord (IBA 15.2.5.14). */
struct mad_sa_service_record {
	__be64 id;
	uint8_t gid[16];
	__be16 pkey;
	__be16 reserved;
	__be32 lease; /**< seconds; 0xffffffff: no limit */
	uint8_t key[16];
	uint8_t name[64]; /**< UTF-8, zero-padded */
	uint8_t data8[16];
	__be16 data16[8];
	__be32 data32[4];
	__be64 data64[2];
};

#define MAD_SA_SERVICE_ID        (UINT64_C(1) << 0)
#define MAD_SA_SERVICE_GID       (UINT64_C(1) << 1)
#define MAD_SA_SERVICE_PKEY      (UINT64_C(1) << 2)
#define MAD_SA_SERVICE_LEASE     (UINT64_C(1) << 4)
#define MAD_SA_SERVICE_KEY       (UINT64_C(1) << 5)
#define MAD_SA_SERVICE_NAME      (UINT64_C(1) << 6)
#define MAD_SA_SERVICE_DATA8(i)  (UINT64_C(1) << (7 + (i)))
#define MAD_SA_SERVICE_DATA16(i) (UINT64_C(1) << (23 + (i)))
#define MAD_SA_SERVICE_DATA32(i) (UINT64_C(1) << (31 + (i)))
#define MAD_SA_SERVICE_DATA64(i) (UINT64_C(1) << (35 + (i)))

/* --- nodes, ports and links ----------------------------------------------------- */

/** NodeRecord (IBA 15.2.5.2). */
struct mad_sa_node_record {
	__be16 lid;
	__be16 reserved;
	uint8_t node_info[40]; /**< IB_NODE_*_F */
	uint8_t node_description[64];
	uint8_t pad[4];
};

#define MAD_SA_NODE_LID               (UINT64_C(1) << 0)
#define MAD_SA_NODE_BASE_VERSION      (UINT64_C(1) << 2)
#define MAD_SA_NODE_CLASS_VERSION     (UINT64_C(1) << 3)
#define MAD_SA_NODE_TYPE              (UINT64_C(1) << 4)
#define MAD_SA_NODE_PORT_COUNT        (UINT64_C(1) << 5)
#define MAD_SA_NODE_SYSTEM_IMAGE_GUID (UINT64_C(1) << 6)
#define MAD_SA_NODE_GUID              (UINT64_C(1) << 7)
#define MAD_SA_NODE_PORT_GUID         (UINT64_C(1) << 8)
#define MAD_SA_NODE_PARTITION_CAP     (UINT64_C(1) << 9)
#define MAD_SA_NODE_DEVICE_ID         (UINT64_C(1) << 10)
#define MAD_SA_NODE_REVISION          (UINT64_C(1) << 11)
#define MAD_SA_NODE_LOCAL_PORT        (UINT64_C(1) << 12)
#define MAD_SA_NODE_VENDOR_ID         (UINT64_C(1) << 13)
#define MAD_SA_NODE_DESCRIPTION       (UINT64_C(1) << 14)

/** PortInfoRecord (IBA 15.2.5.3). */
struct mad_sa_port_info_record {
	__be16 lid;
	uint8_t port;
	uint8_t options;
	uint8_t port_info[64]; /**< IB_PORT_*_F */
	uint8_t pad[4];
};

#define MAD_SA_PORT_INFO_LID               (UINT64_C(1) << 0)
#define MAD_SA_PORT_INFO_PORT              (UINT64_C(1) << 1)
#define MAD_SA_PORT_INFO_OPTIONS           (UINT64_C(1) << 2)
#define MAD_SA_PORT_INFO_M_KEY             (UINT64_C(1) << 3)
#define MAD_SA_PORT_INFO_GID_PREFIX        (UINT64_C(1) << 4)
#define MAD_SA_PORT_INFO_BASE_LID          (UINT64_C(1) << 5)
#define MAD_SA_PORT_INFO_SM_LID            (UINT64_C(1) << 6)
#define MAD_SA_PORT_INFO_CAPABILITIES      (UINT64_C(1) << 7)
#define MAD_SA_PORT_INFO_DIAG_CODE         (UINT64_C(1) << 8)
#define MAD_SA_PORT_INFO_M_KEY_LEASE       (UINT64_C(1) << 9)
#define MAD_SA_PORT_INFO_LOCAL_PORT        (UINT64_C(1) << 10)
#define MAD_SA_PORT_INFO_WIDTH_ENABLED     (UINT64_C(1) << 11)
#define MAD_SA_PORT_INFO_WIDTH_SUPPORTED   (UINT64_C(1) << 12)
#define MAD_SA_PORT_INFO_WIDTH_ACTIVE      (UINT64_C(1) << 13)
#define MAD_SA_PORT_INFO_SPEED_SUPPORTED   (UINT64_C(1) << 14)
#define MAD_SA_PORT_INFO_STATE             (UINT64_C(1) << 15)
#define MAD_SA_PORT_INFO_PHYSICAL_STATE    (UINT64_C(1) << 16)
#define MAD_SA_PORT_INFO_LINK_DOWN_DEFAULT (UINT64_C(1) << 17)
#define MAD_SA_PORT_INFO_M_KEY_PROTECTION  (UINT64_C(1) << 18)
#define MAD_SA_PORT_INFO_LMC               (UINT64_C(1) << 20)
#define MAD_SA_PORT_INFO_SPEED_ACTIVE      (UINT64_C(1) << 21)
#define MAD_SA_PORT_INFO_SPEED_ENABLED     (UINT64_C(1) << 22)
#define MAD_SA_PORT_INFO_NEIGHBOR_MTU      (UINT64_C(1) << 23)
#define MAD_SA_PORT_INFO_MASTER_SM_SL      (UINT64_C(1) << 24)
#define MAD_SA_PORT_INFO_VL_CAP            (UINT64_C(1) << 25)
#define MAD_SA_PORT_INFO_INIT_TYPE         (UINT64_C(1) << 26)
#define MAD_SA_PORT_INFO_VL_HIGH_LIMIT     (UINT64_C(1) << 27)
#define MAD_SA_PORT_INFO_VL_ARB_HIGH_CAP   (UINT64_C(1) << 28)
#define MAD_SA_PORT_INFO_VL_ARB_LOW_CAP    (UINT64_C(1) << 29)
#define MAD_SA_PORT_INFO_INIT_TYPE_REPLY   (UINT64_C(1) << 30)
#define MAD_SA_PORT_INFO_MTU_CAP           (UINT64_C(1) << 31)
#define MAD_SA_PORT_INFO_VL_STALL_COUNT    (UINT64_C(1) << 32)
#define MAD_SA_PORT_INFO_HOQ_LIFE          (UINT64_C(1) << 33)
#define MAD_SA_PORT_INFO_OPERATIONAL_VLS   (UINT64_C(1) << 34)
#define MAD_SA_PORT_INFO_PARTITION_IN      (UINT64_C(1) << 35)
#define MAD_SA_PORT_INFO_PARTITION_OUT     (UINT64_C(1) << 36)
#define MAD_SA_PORT_INFO_FILTER_RAW_IN     (UINT64_C(1) << 37)
#define MAD_SA_PORT_INFO_FILTER_RAW_OUT    (UINT64_C(1) << 38)
#define MAD_SA_PORT_INFO_M_KEY_VIOLATIONS  (UINT64_C(1) << 39)
#define MAD_SA_PORT_INFO_P_KEY_VIOLATIONS  (UINT64_C(1) << 40)
#define MAD_SA_PORT_INFO_Q_KEY_VIOLATIONS  (UINT64_C(1) << 41)
#define MAD_SA_PORT_INFO_GUID_CAP          (UINT64_C(1) << 42)
#define MAD_SA_PORT_INFO_CLIENT_REREGISTER (UINT64_C(1) << 43)
#define MAD_SA_PORT_INFO_SUBNET_TIMEOUT    (UINT64_C(1) << 45)
#define MAD_SA_PORT_INFO_RESPONSE_TIME     (UINT64_C(1) << 47)
#define MAD_SA_PORT_INFO_LOCAL_PHY_ERRORS  (UINT64_C(1) << 48)
#define MAD_SA_PORT_INFO_OVERRUN_ERRORS    (UINT64_C(1) << 49)
#define MAD_SA_PORT_INFO_MAX_CREDIT_HINT   (UINT64_C(1) << 50)
#define MAD_SA_PORT_INFO_LINK_LATENCY      (UINT64_C(1) << 52)

/** SMInfoRecord. */
struct mad_sa_sm_info_record {
	__be16 lid;
	__be16 reserved;
	uint8_t sm_info[21]; /**< IB_SMINFO_*_F */
	uint8_t pad[7];
};

#define MAD_SA_SM_INFO_LID       (UINT64_C(1) << 0)
#define MAD_SA_SM_INFO_GUID      (UINT64_C(1) << 2)
#define MAD_SA_SM_INFO_KEY       (UINT64_C(1) << 3)
#define MAD_SA_SM_INFO_ACT_COUNT (UINT64_C(1) << 4)
#define MAD_SA_SM_INFO_PRIORITY  (UINT64_C(1) << 5)
#define MAD_SA_SM_INFO_STATE     (UINT64_C(1) << 6)

/** LinkRecord (IBA 15.2.5.15). */
struct mad_sa_link_record {
	__be16 from_lid;
	uint8_t from_port;
	uint8_t to_port;
	__be16 to_lid;
	uint8_t pad[2];
};

#define MAD_SA_LINK_FROM_LID  (UINT64_C(1) << 0)
#define MAD_SA_LINK_FROM_PORT (UINT64_C(1) << 1)
#define MAD_SA_LINK_TO_PORT   (UINT64_C(1) << 2)
#define MAD_SA_LINK_TO_LID    (UINT64_C(1) << 3)

/* --- tables of ports and switches ----------------------------------------------- */

/** GUIDInfoRecord (IBA 15.2.5.18). */
struct mad_sa_guid_info_record {
	__be16 lid;
	uint8_t block;
	uint8_t reserved;
	uint8_t reserved2[4];
	__be64 guids[8];
};

#define MAD_SA_GUID_INFO_LID     (UINT64_C(1) << 0)
#define MAD_SA_GUID_INFO_BLOCK   (UINT64_C(1) << 1)
#define MAD_SA_GUID_INFO_GUID(i) (UINT64_C(1) << (4 + (i)))

/** P_KeyTableRecord (IBA 15.2.5.11). */
struct mad_sa_pkey_table_record {
	__be16 lid;
	__be16 block;
	uint8_t port;
	uint8_t reserved[3];
	__be16 pkeys[32];
};

#define MAD_SA_PKEY_TABLE_LID   (UINT64_C(1) << 0)
#define MAD_SA_PKEY_TABLE_BLOCK (UINT64_C(1) << 1)
#define MAD_SA_PKEY_TABLE_PORT  (UINT64_C(1) << 2)

/** SLtoVLMappingTableRecord (IBA 15.2.5.4). */
struct mad_sa_sl_to_vl_record {
	__be16 lid;
	uint8_t input_port;
	uint8_t output_port;
	uint8_t reserved[4];
	uint8_t vls[8]; /**< 4 bits per SL, that of SL 0 first */
};

#define MAD_SA_SL_TO_VL_LID         (UINT64_C(1) << 0)
#define MAD_SA_SL_TO_VL_INPUT_PORT  (UINT64_C(1) << 1)
#define MAD_SA_SL_TO_VL_OUTPUT_PORT (UINT64_C(1) << 2)

/** VLArbitrationTableRecord (IBA 15.2.5.9). */
struct mad_sa_vl_arbitration_record {
	__be16 lid;
	uint8_t output_port;
	uint8_t block; /**< 1, 2: low priority; 3, 4: high priority */
	uint8_t reserved[4];
	uint8_t table[64]; /**< 32 pairs of VL and weight */
};

#define MAD_SA_VL_ARBITRATION_LID         (UINT64_C(1) << 0)
#define MAD_SA_VL_ARBITRATION_OUTPUT_PORT (UINT64_C(1) << 1)
#define MAD_SA_VL_ARBITRATION_BLOCK       (UINT64_C(1) << 2)

/** SwitchInfoRecord (IBA 15.2.5.5). */
struct mad_sa_switch_info_record {
	__be16 lid;
	__be16 reserved;
	uint8_t switch_info[20]; /**< IB_SW_*_F */
};

#define MAD_SA_SWITCH_INFO_LID                   (UINT64_C(1) << 0)
#define MAD_SA_SWITCH_INFO_LINEAR_CAP            (UINT64_C(1) << 2)
#define MAD_SA_SWITCH_INFO_RANDOM_CAP            (UINT64_C(1) << 3)
#define MAD_SA_SWITCH_INFO_MULTICAST_CAP         (UINT64_C(1) << 4)
#define MAD_SA_SWITCH_INFO_LINEAR_TOP            (UINT64_C(1) << 5)
#define MAD_SA_SWITCH_INFO_DEFAULT_PORT          (UINT64_C(1) << 6)
#define MAD_SA_SWITCH_INFO_MULTICAST_PRIMARY     (UINT64_C(1) << 7)
#define MAD_SA_SWITCH_INFO_MULTICAST_NOT_PRIMARY (UINT64_C(1) << 8)
#define MAD_SA_SWITCH_INFO_LIFE_TIME             (UINT64_C(1) << 9)
#define MAD_SA_SWITCH_INFO_PORT_STATE_CHANGE     (UINT64_C(1) << 10)

/** LinearForwardingTableRecord (IBA 15.2.5.6). */
struct mad_sa_linear_table_record {
	__be16 lid;
	__be16 block;
	uint8_t reserved[4];
	uint8_t ports[64]; /**< of LIDs from 64 * block */
};

#define MAD_SA_LINEAR_TABLE_LID   (UINT64_C(1) << 0)
#define MAD_SA_LINEAR_TABLE_BLOCK (UINT64_C(1) << 1)

/** MulticastForwardingTableRecord (IBA 15.2.5.8). */
struct mad_sa_multicast_table_record {
	__be16 lid;
	__be16 position_block; /**< position (4 bits), reserved (3), block (9) */
	uint8_t reserved[4];
	__be16 port_masks[32]; /**< of LIDs from 0xc000 + 32 * block */
};

#define MAD_SA_MULTICAST_TABLE_LID      (UINT64_C(1) << 0)
#define MAD_SA_MULTICAST_TABLE_POSITION (UINT64_C(1) << 1)
#define MAD_SA_MULTICAST_TABLE_BLOCK    (UINT64_C(1) << 3)

/* --- the meaning of codes ------------------------------------------------------- */

/** Gb/s of a rate byte, 0 if unknown. For MTUs, use mad_link_mtu(mtu & 0x3f). */
double mad_sa_rate_gbps(uint8_t rate);

/** Microseconds of a lifetime byte: 4.096 times a power of 2. */
double mad_sa_lifetime_us(uint8_t pkt_life);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_MAD_SA_RECORDS_H */
