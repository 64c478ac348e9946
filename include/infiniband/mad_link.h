/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * mad_link.h - a link, as PortInfo describes it: state, width, speed, rate, MTU.
 *
 *   struct mad_link link;
 *
 *   mad_link_decode(&link, sizeof(link), port_info, NULL, NULL);
 *   printf("%ux %s, %g Gb/s\n", link.width, mad_link_speed_name(link.speed), link.rate_gbps);
 *
 * Texts are constant. Any number of threads may call these; errno is not set.
 */
#ifndef INFINIBAND_MAD_LINK_H
#define INFINIBAND_MAD_LINK_H

#include <infiniband/mad.h>

#ifdef __cplusplus
extern "C" {
#endif

/** PortState (IBA 14.2.5.6), IB_PORT_STATE_F. */
enum mad_port_state {
	MAD_PORT_NO_CHANGE, /**< only in a Set */
	MAD_PORT_DOWN,
	MAD_PORT_INIT,
	MAD_PORT_ARMED,
	MAD_PORT_ACTIVE
};

/** PortPhysicalState, IB_PORT_PHYS_STATE_F. */
enum mad_port_physical_state {
	MAD_PHYSICAL_NO_CHANGE,
	MAD_PHYSICAL_SLEEP,
	MAD_PHYSICAL_POLLING,
	MAD_PHYSICAL_DISABLED,
	MAD_PHYSICAL_TRAINING,
	MAD_PHYSICAL_LINK_UP,
	MAD_PHYSICAL_ERROR_RECOVERY,
	MAD_PHYSICAL_PHY_TEST
};

/** LinkWidthActive, LinkWidthEnabled, LinkWidthSupported. */
enum mad_link_width {
	MAD_WIDTH_1X = 1,
	MAD_WIDTH_4X = 2,
	MAD_WIDTH_8X = 4,
	MAD_WIDTH_12X = 8,
	MAD_WIDTH_2X = 16
};

/** SDR 2.5 Gb/s per lane, DDR 5, QDR and FDR10 10, FDR 14, EDR 25, HDR 50, NDR 100, XDR 200. */
enum mad_link_speed {
	MAD_SPEED_NONE,
	MAD_SPEED_SDR,
	MAD_SPEED_DDR,
	MAD_SPEED_QDR,
	MAD_SPEED_FDR10, /**< Mellanox, in ExtendedPortInfo */
	MAD_SPEED_FDR,
	MAD_SPEED_EDR,
	MAD_SPEED_HDR,
	MAD_SPEED_NDR,
	MAD_SPEED_XDR
};

/** CapabilityMask (IBA 14.2.5.6), IB_PORT_CAPMASK_F. */
#define MAD_PORT_CAP_SM                          UINT32_C(0x00000002)
#define MAD_PORT_CAP_NOTICE                      UINT32_C(0x00000004)
#define MAD_PORT_CAP_TRAP                        UINT32_C(0x00000008)
#define MAD_PORT_CAP_OPTIONAL_IPD                UINT32_C(0x00000010)
#define MAD_PORT_CAP_AUTOMATIC_MIGRATION         UINT32_C(0x00000020)
#define MAD_PORT_CAP_SL_MAPPING                  UINT32_C(0x00000040)
#define MAD_PORT_CAP_MKEY_NVRAM                  UINT32_C(0x00000080)
#define MAD_PORT_CAP_PKEY_NVRAM                  UINT32_C(0x00000100)
#define MAD_PORT_CAP_LED_INFO                    UINT32_C(0x00000200)
#define MAD_PORT_CAP_SM_DISABLED                 UINT32_C(0x00000400)
#define MAD_PORT_CAP_SYSTEM_IMAGE_GUID           UINT32_C(0x00000800)
#define MAD_PORT_CAP_PKEY_EXTERNAL_PORT_TRAP     UINT32_C(0x00001000)
#define MAD_PORT_CAP_EXTENDED_SPEEDS             UINT32_C(0x00004000)
#define MAD_PORT_CAP_CAPABILITY_MASK2            UINT32_C(0x00008000)
#define MAD_PORT_CAP_COMMUNICATION_MANAGEMENT    UINT32_C(0x00010000)
#define MAD_PORT_CAP_SNMP_TUNNELING              UINT32_C(0x00020000)
#define MAD_PORT_CAP_REINIT                      UINT32_C(0x00040000)
#define MAD_PORT_CAP_DEVICE_MANAGEMENT           UINT32_C(0x00080000)
#define MAD_PORT_CAP_VENDOR_CLASS                UINT32_C(0x00100000)
#define MAD_PORT_CAP_DR_NOTICE                   UINT32_C(0x00200000)
#define MAD_PORT_CAP_CAPABILITY_MASK_NOTICE      UINT32_C(0x00400000)
#define MAD_PORT_CAP_BOOT_MANAGEMENT             UINT32_C(0x00800000)
#define MAD_PORT_CAP_ROUND_TRIP_LATENCY          UINT32_C(0x01000000)
#define MAD_PORT_CAP_CLIENT_REREGISTRATION       UINT32_C(0x02000000)
#define MAD_PORT_CAP_OTHER_LOCAL_CHANGES_NOTICE  UINT32_C(0x04000000)
#define MAD_PORT_CAP_SPEED_WIDTH_PAIRS_TABLE     UINT32_C(0x08000000)
#define MAD_PORT_CAP_VENDOR_SPECIFIC_MADS_TABLE  UINT32_C(0x10000000)
#define MAD_PORT_CAP_MCAST_PKEY_TRAP_SUPPRESSION UINT32_C(0x20000000)
#define MAD_PORT_CAP_MULTICAST_FDB_TOP           UINT32_C(0x40000000)
#define MAD_PORT_CAP_HIERARCHY_INFO              UINT32_C(0x80000000)

/** CapabilityMask2, IB_PORT_CAPMASK2_F. */
#define MAD_PORT_CAP2_SET_NODE_DESCRIPTION    0x0001
#define MAD_PORT_CAP2_PORT_INFO_EXTENDED      0x0002
#define MAD_PORT_CAP2_VIRTUALIZATION          0x0004
#define MAD_PORT_CAP2_SWITCH_PORT_STATE_TABLE 0x0008
#define MAD_PORT_CAP2_LINK_WIDTH_2X           0x0010
#define MAD_PORT_CAP2_LINK_SPEED_HDR          0x0020
#define MAD_PORT_CAP2_MKEY_PROTECT_BITS_EXT   0x0040
#define MAD_PORT_CAP2_ENHANCED_TRAP_128       0x0080
#define MAD_PORT_CAP2_PARTITION_TOP           0x0100
#define MAD_PORT_CAP2_ENHANCED_QOS_ARBITER    0x0200
#define MAD_PORT_CAP2_LINK_SPEED_NDR          0x0400
#define MAD_PORT_CAP2_EXTENDED_SPEEDS_2       0x0800
#define MAD_PORT_CAP2_LINK_SPEED_XDR          0x1000

/** A link; in sets of speeds, bit n is speed n of enum mad_link_speed. */
struct mad_link {
	uint8_t state;            /**< enum mad_port_state */
	uint8_t physical_state;   /**< enum mad_port_physical_state */
	uint8_t width;            /**< active lanes: 1, 2, 4, 8, 12; 0: down or unknown */
	uint8_t speed;            /**< enum mad_link_speed */
	uint8_t widths_supported; /**< enum mad_link_width, as in widths_enabled */
	uint8_t widths_enabled;
	uint16_t speeds_supported;
	uint16_t speeds_enabled;
	uint16_t mtu; /**< NeighborMTU and (mtu_supported) MTUCap in bytes; 0: invalid */
	uint16_t mtu_supported;
	double rate_gbps;
	uint8_t width_supported; /**< most lanes of the set; 0: none */
	uint8_t width_enabled;
	uint8_t speed_supported; /**< highest of the set */
	uint8_t speed_enabled;
};

/**
 * Decodes a PortInfo; size is sizeof(*link). switch_port0 is PortInfo of a switch's port 0
 * (else NULL), needed for extended speeds; mlnx_ext_port_info is Mellanox's ExtendedPortInfo or
 * NULL, needed for FDR10.
 */
void mad_link_decode(struct mad_link *link, size_t size, const void *port_info,
		     const void *switch_port0, const void *mlnx_ext_port_info);

/** Returns "SDR", "FDR10", ...; "" for MAD_SPEED_NONE, "?" for other numbers. */
const char *mad_link_speed_name(unsigned speed);

/** Returns the nominal rate in Gb/s, such as 40 for 4 lanes of QDR or FDR10; 0 if unknown. */
double mad_link_rate_gbps(unsigned lanes, unsigned speed);

/** Returns the bytes of an MTU code (IBA 14.2.5.6): 1 is 256, 5 is 4096; otherwise 0. */
unsigned mad_link_mtu(unsigned code);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_MAD_LINK_H */
