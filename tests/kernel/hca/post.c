// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

/*
 * Work requests: packets are sent, and received. DMA addresses are addresses of the kernel: the
 * device uses the core's virtual DMA.
 */
#include <rdma/ib_cache.h>

#include "sim_hca.h"

#define GRH_BYTES 40

/* --- sending --------------------------------------------------------------------- */

/* Copies the MAD, and adds zeros up to its full length. */
static int gather(u8 *mad, const struct ib_send_wr *wr)
{
	u32 at = 0;

	for (int i = 0; i < wr->num_sge; i++) {
		const struct ib_sge *sge = &wr->sg_list[i];

		if (sge->length > SIM_HCA_MAD_BYTES - at)
			return -EINVAL;
		memcpy(mad + at, (const void *)(uintptr_t)sge->addr, sge->length);
		at += sge->length;
	}
	memset(mad + at, 0, SIM_HCA_MAD_BYTES - at);
	return 0;
}

void queues_sent(struct send *send, enum ib_wc_status status)
{
	struct queue_pair *qp = send->qp;
	struct ib_wc wc = {.wr_cqe = send->cqe,
			   .status = status,
			   .opcode = IB_WC_SEND,
			   .qp = &qp->ib,
			   .port_num = qp->port};

	list_add_tail(&send->free, &qp->free_sends);
	if (send->signaled || status != IB_WC_SUCCESS)
		queue_complete(qp->init.send_cq, &wc);
}

/* With the lock held. */
static int post_one_send(struct queue_pair *qp, const struct ib_send_wr *wr)
{
	struct wire *wire = wire_of(qp->ib.device);
	const struct ib_ud_wr *ud = ud_wr(wr);
	struct send *send;
	u16 pkey = IB_DEFAULT_PKEY_FULL;
	u32 headers;

	if (wr->opcode != IB_WR_SEND || !ud->ah)
		return -EINVAL;
	send = list_first_entry_or_null(&qp->free_sends, struct send, free);
	if (!send)
		return -ENOMEM;
	if (qp->number == 1 &&
	    ib_get_cached_pkey(qp->ib.device, qp->port, ud->pkey_index, &pkey))
		return -EINVAL;
	headers = packet_build(send->packet, address_of(ud->ah), qp->number, ud->remote_qpn,
			       ud->remote_qkey & IB_QP_SET_QKEY ? qp->attributes.qkey
								: ud->remote_qkey,
			       pkey); /* IBA 10.2.5: the Q_Key of the queue pair */
	if (gather(send->packet + headers, wr))
		return -EINVAL;
	list_del(&send->free);
	send->cqe = wr->wr_cqe;
	send->signaled =
		qp->init.sq_sig_type == IB_SIGNAL_ALL_WR || wr->send_flags & IB_SEND_SIGNALED;
	send->posted = jiffies;
	send->item.message = (struct sim_hca_message){.kind = SIM_HCA_PACKET,
						      .port = qp->port,
						      .length = headers + SIM_HCA_MAD_BYTES};
	send->item.payload = send->packet;
	if (wire->dead || qp->state != IB_QPS_RTS)
		queues_sent(send, IB_WC_WR_FLUSH_ERR);
	else
		wire_send(wire, send);
	return 0;
}

int queue_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		    const struct ib_send_wr **bad)
{
	struct wire *wire = wire_of(ibqp->device);
	struct queue_pair *qp = qp_of(ibqp);
	unsigned long flags;
	int error = 0;

	spin_lock_irqsave(&wire->lock, flags);
	if (qp->state < IB_QPS_RTS)
		error = -EINVAL;
	for (; wr && !error; wr = wr->next) {
		error = post_one_send(qp, wr);
		if (error)
			break;
	}
	spin_unlock_irqrestore(&wire->lock, flags);
	if (error)
		*bad = wr;
	return error;
}

/* --- receiving ------------------------------------------------------------------- */

static int post_one_receive(struct queue_pair *qp, const struct ib_recv_wr *wr)
{
	u32 last;

	if (wr->num_sge != 1 || wr->sg_list[0].length < GRH_BYTES + SIM_HCA_MAD_BYTES)
		return -EINVAL;
	if (qp->count == qp->init.cap.max_recv_wr)
		return -ENOMEM;
	last = (qp->first + qp->count++) % qp->init.cap.max_recv_wr;
	qp->receives[last] = (struct receive){
		.cqe = wr->wr_cqe,
		.buffer = (u8 *)(uintptr_t)wr->sg_list[0].addr,
		.length = wr->sg_list[0].length,
	};
	return 0;
}

int queue_post_receive(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		       const struct ib_recv_wr **bad)
{
	struct wire *wire = wire_of(ibqp->device);
	struct queue_pair *qp = qp_of(ibqp);
	unsigned long flags;
	int error = 0;

	spin_lock_irqsave(&wire->lock, flags);
	if (qp->state == IB_QPS_RESET)
		error = -EINVAL;
	for (; wr && !error; wr = wr->next) {
		error = post_one_receive(qp, wr);
		if (error)
			break;
	}
	if (!error && qp->state == IB_QPS_ERR)
		queue_flush_receives(qp);
	spin_unlock_irqrestore(&wire->lock, flags);
	if (error)
		*bad = wr;
	return error;
}

/* With the lock held. Returns what is counted. */
static enum count deliver(struct queue_pair *qp, const struct arrived *arrived, u16 pkey_index,
			  u8 path_mask)
{
	const struct receive *receive;
	struct ib_wc wc = {
		.opcode = IB_WC_RECV,
		.byte_len = GRH_BYTES + SIM_HCA_MAD_BYTES,
		.src_qp = arrived->source_qp,
		.slid = arrived->slid,
		.sl = arrived->sl,
		.pkey_index = pkey_index,
		.dlid_path_bits = arrived->dlid & path_mask,
		.wc_flags = arrived->grh ? IB_WC_GRH : 0,
	};

	if (!qp || (qp->state != IB_QPS_RTR && qp->state != IB_QPS_RTS))
		return COUNT_WRONG_QP;
	if (qp->number == 1 && arrived->qkey != qp->attributes.qkey)
		return COUNT_WRONG_QKEY;
	if (!qp->count)
		return COUNT_NO_BUFFER;
	receive = &qp->receives[qp->first];
	qp->first = (qp->first + 1) % qp->init.cap.max_recv_wr;
	qp->count--;
	if (arrived->grh)
		memcpy(receive->buffer, arrived->grh, GRH_BYTES);
	else
		memset(receive->buffer, 0, GRH_BYTES);
	memcpy(receive->buffer + GRH_BYTES, arrived->mad, SIM_HCA_MAD_BYTES);
	wc.wr_cqe = receive->cqe;
	wc.qp = &qp->ib;
	wc.port_num = qp->port;
	queue_complete(qp->init.recv_cq, &wc);
	return COUNT_RECEIVED;
}

void queues_receive(struct hca *hca, u32 port, const u8 *packet, u32 length)
{
	struct arrived arrived;
	u16 pkey_index = 0;
	unsigned long flags;
	u8 lmc = 0;

	if (!packet_parse(packet, length, &arrived)) {
		count(hca, port, COUNT_MALFORMED);
		return;
	}
	if (arrived.qp > 1) {
		count(hca, port, COUNT_WRONG_QP);
		return;
	}
	spin_lock_irqsave(&hca->wire->lock, flags);
	if (hca->ports[port].qps[arrived.qp]) { /* so the core has its caches */
		if (arrived.qp == 1 &&
		    ib_find_cached_pkey(&hca->ib, port, arrived.pkey, &pkey_index))
			pkey_index = 0;
		ib_get_cached_lmc(&hca->ib, port, &lmc);
	}
	count(hca, port,
	      deliver(hca->ports[port].qps[arrived.qp], &arrived, pkey_index,
		      (1U << (lmc & 7)) - 1));
	spin_unlock_irqrestore(&hca->wire->lock, flags);
}
