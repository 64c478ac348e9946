/* SPDX-License-Identifier: BSD-2-Clause */

#include "attribute_name.h"

#include <endian.h>
#include <stddef.h>

#include <infiniband/mad.h>
#include <infiniband/umad_str.h>

/* Attributes for which umad_attribute_str() has no name. */
static const struct {
	uint8_t mgmt_class;
	uint16_t attribute;
	const char *name;
} names[] = {
	{IB_SMI_CLASS, IB_ATTR_LINKSPEEDWIDTHPAIRSTBL, "LinkSpeedWidthPairsTable"},
	{IB_SMI_CLASS, IB_ATTR_VENDORMADSTBL, "VendorSpecificMadsTable"},
	{IB_SMI_CLASS, IB_ATTR_PORT_INFO_EXT, "PortInfoExtended"},
	{IB_SMI_CLASS, IB_ATTR_MLNX_EXT_PORT_INFO, "MlnxExtPortInfo"},
	{IB_PERFORMANCE_CLASS, IB_GSI_PORT_SAMPLES_CONTROL, "PortSamplesControl"},
	{IB_PERFORMANCE_CLASS, IB_GSI_PORT_SAMPLES_RESULT, "PortSamplesResult"},
	{IB_PERFORMANCE_CLASS, IB_GSI_PORT_COUNTERS, "PortCounters"},
	{IB_PERFORMANCE_CLASS, IB_GSI_PORT_RCV_ERROR_DETAILS, "PortRcvErrorDetails"},
	{IB_PERFORMANCE_CLASS, IB_GSI_PORT_XMIT_DISCARD_DETAILS, "PortXmitDiscardDetails"},
	{IB_PERFORMANCE_CLASS, IB_GSI_PORT_PORT_OP_RCV_COUNTERS, "PortOpRcvCounters"},
	{IB_PERFORMANCE_CLASS, IB_GSI_PORT_PORT_FLOW_CTL_COUNTERS, "PortFlowCtlCounters"},
	{IB_PERFORMANCE_CLASS, IB_GSI_PORT_PORT_VL_OP_PACKETS, "PortVLOpPackets"},
	{IB_PERFORMANCE_CLASS, IB_GSI_PORT_PORT_VL_OP_DATA, "PortVLOpData"},
	{IB_PERFORMANCE_CLASS, IB_GSI_PORT_PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS,
	 "PortVLXmitFlowCtlUpdateErrors"},
	{IB_PERFORMANCE_CLASS, IB_GSI_PORT_PORT_VL_XMIT_WAIT_COUNTERS,
	 "PortVLXmitWaitCounters"},
	{IB_PERFORMANCE_CLASS, IB_GSI_PORT_COUNTERS_EXT, "PortCountersExtended"},
	{IB_PERFORMANCE_CLASS, IB_GSI_PORT_EXT_SPEEDS_COUNTERS, "PortExtendedSpeedsCounters"},
	{IB_PERFORMANCE_CLASS, IB_GSI_SW_PORT_VL_CONGESTION, "SwPortVLCongestion"},
	{IB_PERFORMANCE_CLASS, IB_GSI_PORT_RCV_CON_CTRL, "PortRcvConCtrl"},
	{IB_PERFORMANCE_CLASS, IB_GSI_PORT_SL_RCV_FECN, "PortSLRcvFECN"},
	{IB_PERFORMANCE_CLASS, IB_GSI_PORT_SL_RCV_BECN, "PortSLRcvBECN"},
	{IB_PERFORMANCE_CLASS, IB_GSI_PORT_XMIT_CON_CTRL, "PortXmitConCtrl"},
	{IB_PERFORMANCE_CLASS, IB_GSI_PORT_VL_XMIT_TIME_CONG, "PortVLXmitTimeCong"},
	{IB_PERFORMANCE_CLASS, IB_GSI_PORT_XMIT_DATA_SL, "PortXmitDataSL"},
	{IB_PERFORMANCE_CLASS, IB_GSI_PORT_RCV_DATA_SL, "PortRcvDataSL"},
	{IB_BOARD_MGMT_CLASS, IB_BM_ATTR_BKEYINFO, "BKeyInfo"},
	{IB_BOARD_MGMT_CLASS, IB_BM_ATTR_WRITE_VPD, "WriteVPD"},
	{IB_BOARD_MGMT_CLASS, IB_BM_ATTR_READ_VPD, "ReadVPD"},
	{IB_BOARD_MGMT_CLASS, IB_BM_ATTR_RESET_IBML, "ResetIBML"},
	{IB_BOARD_MGMT_CLASS, IB_BM_ATTR_SET_MODULE_PM_CONTROL, "SetModulePMControl"},
	{IB_BOARD_MGMT_CLASS, IB_BM_ATTR_GET_MODULE_PM_CONTROL, "GetModulePMControl"},
	{IB_BOARD_MGMT_CLASS, IB_BM_ATTR_SET_UNIT_PM_CONTROL, "SetUnitPMControl"},
	{IB_BOARD_MGMT_CLASS, IB_BM_ATTR_GET_UNIT_PM_CONTROL, "GetUnitPMControl"},
	{IB_BOARD_MGMT_CLASS, IB_BM_ATTR_SET_IOC_PM_CONTROL, "SetIOCPMControl"},
	{IB_BOARD_MGMT_CLASS, IB_BM_ATTR_GET_IOC_PM_CONTROL, "GetIOCPMControl"},
	{IB_BOARD_MGMT_CLASS, IB_BM_ATTR_SET_MODULE_STATE, "SetModuleState"},
	{IB_BOARD_MGMT_CLASS, IB_BM_ATTR_SET_MODULE_ATTENTION, "SetModuleAttention"},
	{IB_BOARD_MGMT_CLASS, IB_BM_ATTR_GET_MODULE_STATUS, "GetModuleStatus"},
	{IB_BOARD_MGMT_CLASS, IB_BM_ATTR_IB2IBML, "IB2IBML"},
	{IB_BOARD_MGMT_CLASS, IB_BM_ATTR_IB2CME, "IB2CME"},
	{IB_BOARD_MGMT_CLASS, IB_BM_ATTR_IB2MME, "IB2MME"},
	{IB_BOARD_MGMT_CLASS, IB_BM_ATTR_OEM, "OEM"},
	{IB_CC_CLASS, IB_CC_ATTR_CONGESTION_INFO, "CongestionInfo"},
	{IB_CC_CLASS, IB_CC_ATTR_CONGESTION_KEY_INFO, "CongestionKeyInfo"},
	{IB_CC_CLASS, IB_CC_ATTR_CONGESTION_LOG, "CongestionLog"},
	{IB_CC_CLASS, IB_CC_ATTR_SWITCH_CONGESTION_SETTING, "SwitchCongestionSetting"},
	{IB_CC_CLASS, IB_CC_ATTR_SWITCH_PORT_CONGESTION_SETTING, "SwitchPortCongestionSetting"},
	{IB_CC_CLASS, IB_CC_ATTR_CA_CONGESTION_SETTING, "CACongestionSetting"},
	{IB_CC_CLASS, IB_CC_ATTR_CONGESTION_CONTROL_TABLE, "CongestionControlTable"},
	{IB_CC_CLASS, IB_CC_ATTR_TIMESTAMP, "TimeStamp"},
};

static const char *find_name(uint8_t mgmt_class, uint16_t attribute)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].mgmt_class == mgmt_class && names[i].attribute == attribute)
			return names[i].name;
	return NULL;
}

const char *attribute_name(uint8_t mgmt_class, uint16_t attribute)
{
	const char *name = umad_attribute_str(mgmt_class, htobe16(attribute));
	const char *found = NULL;

	if (name[0] != '<')
		return name;
	switch (mgmt_class) {
	case IB_SMI_CLASS:
	case IB_SMI_DIRECT_CLASS:
		found = find_name(IB_SMI_CLASS, attribute);
		break;
	case IB_PERFORMANCE_CLASS:
	case IB_BOARD_MGMT_CLASS:
	case IB_CC_CLASS:
		found = find_name(mgmt_class, attribute);
		break;
	}
	return found ? found : name;
}
