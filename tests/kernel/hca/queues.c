// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

/* Protection domains, address handles, completion queues, and the queue pairs QP0 and QP1. */
#include <linux/slab.h>
#include <rdma/uverbs_ioctl.h>

#include "sim_hca.h"

struct protection_domain { /* has no state */
	struct ib_pd ib;
};

static struct completion_queue *cq_of(struct ib_cq *cq)
{
	return container_of(cq, struct completion_queue, ib);
}

/* --- protection domains, memory -------------------------------------------------- */

static int alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return udata ? -EOPNOTSUPP : 0;
}

static int dealloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

static struct ib_mr *get_dma_mr(struct ib_pd *pd, int access)
{
	struct ib_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);

	return mr ? mr : ERR_PTR(-ENOMEM);
}

static int dereg_mr(struct ib_mr *mr, struct ib_udata *udata)
{
	kfree(mr);
	return 0;
}

/* --- address handles ------------------------------------------------------------- */

static int create_ah(struct ib_ah *ah, struct rdma_ah_init_attr *init, struct ib_udata *udata)
{
	struct address *address = address_of(ah);
	const struct rdma_ah_attr *attr = init->ah_attr;
	const struct ib_global_route *grh = rdma_ah_read_grh(attr);

	if (udata || attr->type != RDMA_AH_ATTR_TYPE_IB)
		return -EOPNOTSUPP;
	address->port = rdma_ah_get_port_num(attr);
	address->dlid = rdma_ah_get_dlid(attr);
	address->path_bits = rdma_ah_get_path_bits(attr);
	address->sl = rdma_ah_get_sl(attr) & 15;
	address->grh = rdma_ah_get_ah_flags(attr) & IB_AH_GRH;
	if (!address->grh)
		return 0;
	address->hop_limit = grh->hop_limit;
	address->traffic_class = grh->traffic_class;
	address->flow_label = grh->flow_label;
	address->dgid = grh->dgid;
	address->sgid_index = grh->sgid_index;
	address->sgid = grh->sgid_attr->gid;
	return 0;
}

/* The core compares the address of a request with that of a response. */
static int query_ah(struct ib_ah *ah, struct rdma_ah_attr *attr)
{
	const struct address *address = address_of(ah);

	memset(attr, 0, sizeof(*attr));
	attr->type = RDMA_AH_ATTR_TYPE_IB;
	rdma_ah_set_port_num(attr, address->port);
	rdma_ah_set_dlid(attr, address->dlid);
	rdma_ah_set_path_bits(attr, address->path_bits);
	rdma_ah_set_sl(attr, address->sl);
	if (!address->grh)
		return 0;
	rdma_ah_set_grh(attr, (union ib_gid *)&address->dgid, address->flow_label,
			address->sgid_index, address->hop_limit, address->traffic_class);
	return 0;
}

static int destroy_ah(struct ib_ah *ah, u32 flags)
{
	return 0;
}

/* --- completion queues ----------------------------------------------------------- */

static int create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *attr, CREATE_CQ_LAST)
{
	struct completion_queue *queue = cq_of(cq);

	if (attr->flags || attr->cqe < 1 || attr->cqe > MOST_COMPLETIONS)
		return -EINVAL;
	queue->ring = kvcalloc(attr->cqe, sizeof(*queue->ring), GFP_KERNEL);
	if (!queue->ring)
		return -ENOMEM;
	queue->size = attr->cqe;
	cq->cqe = attr->cqe;
	return 0;
}

static int destroy_cq(struct ib_cq *cq, struct ib_udata *udata)
{
	kvfree(cq_of(cq)->ring);
	return 0;
}

static int poll_cq(struct ib_cq *cq, int most, struct ib_wc *wc)
{
	struct completion_queue *queue = cq_of(cq);
	spinlock_t *lock = &wire_of(cq->device)->lock;
	unsigned long flags;
	int got = 0;

	spin_lock_irqsave(lock, flags);
	while (got < most && queue->count) {
		wc[got++] = queue->ring[queue->first];
		queue->first = (queue->first + 1) % queue->size;
		queue->count--;
	}
	spin_unlock_irqrestore(lock, flags);
	return got;
}

static int req_notify_cq(struct ib_cq *cq, enum ib_cq_notify_flags flags)
{
	struct completion_queue *queue = cq_of(cq);
	spinlock_t *lock = &wire_of(cq->device)->lock;
	unsigned long irq;
	int missed;

	spin_lock_irqsave(lock, irq);
	queue->armed = true;
	missed = flags & IB_CQ_REPORT_MISSED_EVENTS && queue->count;
	spin_unlock_irqrestore(lock, irq);
	return missed;
}

/* With the lock held. The queue is as large as the work queues that use it. */
void queue_complete(struct ib_cq *cq, const struct ib_wc *wc)
{
	struct completion_queue *queue = cq_of(cq);

	if (WARN_ON_ONCE(queue->count == queue->size))
		return;
	queue->ring[(queue->first + queue->count++) % queue->size] = *wc;
	if (!queue->armed)
		return;
	queue->armed = false;
	cq->comp_handler(cq, cq->cq_context);
}

/* With the lock held: a queue pair leaves nothing in a completion queue. */
static void forget_completions(struct completion_queue *queue, const struct ib_qp *qp)
{
	u32 kept = 0;

	for (u32 i = 0; i < queue->count; i++) {
		const struct ib_wc *wc = &queue->ring[(queue->first + i) % queue->size];

		if (wc->qp != qp)
			queue->ring[(queue->first + kept++) % queue->size] = *wc;
	}
	queue->count = kept;
}

/* --- queue pairs ----------------------------------------------------------------- */

static int make_queues(struct queue_pair *qp)
{
	const struct ib_qp_cap *cap = &qp->init.cap;

	qp->sends = kvcalloc(cap->max_send_wr, sizeof(*qp->sends), GFP_KERNEL);
	qp->receives = kvcalloc(cap->max_recv_wr, sizeof(*qp->receives), GFP_KERNEL);
	if (!qp->sends || !qp->receives)
		return -ENOMEM;
	INIT_LIST_HEAD(&qp->free_sends);
	for (u32 i = 0; i < cap->max_send_wr; i++) {
		INIT_LIST_HEAD(&qp->sends[i].item.list);
		qp->sends[i].qp = qp;
		list_add_tail(&qp->sends[i].free, &qp->free_sends);
	}
	return 0;
}

static void free_queues(struct queue_pair *qp)
{
	kvfree(qp->sends);
	kvfree(qp->receives);
}

/* Makes a queue pair the QP0 or QP1 of its port. */
static int take_place(struct hca *hca, struct queue_pair *qp)
{
	struct queue_pair **place = &hca->ports[qp->port].qps[qp->number];
	unsigned long flags;
	int error = 0;

	spin_lock_irqsave(&hca->wire->lock, flags);
	if (*place)
		error = -EBUSY;
	else
		*place = qp;
	spin_unlock_irqrestore(&hca->wire->lock, flags);
	return error;
}

static int create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	struct hca *hca = hca_of(ibqp->device);
	struct queue_pair *qp = qp_of(ibqp);
	int error;

	if (udata || (init->qp_type != IB_QPT_SMI && init->qp_type != IB_QPT_GSI))
		return -EOPNOTSUPP;
	if (init->port_num < 1 || init->port_num > hca->create.port_count || init->srq ||
	    !init->send_cq || !init->recv_cq || init->create_flags ||
	    init->cap.max_send_wr > MOST_WORK || init->cap.max_recv_wr > MOST_WORK ||
	    init->cap.max_send_wr < 1 || init->cap.max_recv_wr < 1 || init->cap.max_inline_data)
		return -EINVAL;
	qp->init = *init;
	qp->state = IB_QPS_RESET;
	qp->number = init->qp_type == IB_QPT_GSI;
	qp->port = init->port_num;
	error = make_queues(qp);
	if (!error)
		error = take_place(hca, qp);
	if (error)
		free_queues(qp);
	ibqp->qp_num = qp->number;
	return error;
}

/* With the lock held: takes back what was posted. */
static void empty(struct queue_pair *qp)
{
	INIT_LIST_HEAD(&qp->free_sends);
	for (u32 i = 0; i < qp->init.cap.max_send_wr; i++) {
		list_del_init(&qp->sends[i].item.list);
		list_add_tail(&qp->sends[i].free, &qp->free_sends);
	}
	qp->count = 0;
	forget_completions(cq_of(qp->init.send_cq), &qp->ib);
	forget_completions(cq_of(qp->init.recv_cq), &qp->ib);
}

static int destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct hca *hca = hca_of(ibqp->device);
	struct queue_pair *qp = qp_of(ibqp);
	unsigned long flags;

	spin_lock_irqsave(&hca->wire->lock, flags);
	hca->ports[qp->port].qps[qp->number] = NULL;
	empty(qp);
	spin_unlock_irqrestore(&hca->wire->lock, flags);
	free_queues(qp);
	return 0;
}

/* With the lock held: all posted receives complete with an error. */
void queue_flush_receives(struct queue_pair *qp)
{
	while (qp->count) {
		const struct receive *receive = &qp->receives[qp->first];
		struct ib_wc wc = {.wr_cqe = receive->cqe,
				   .status = IB_WC_WR_FLUSH_ERR,
				   .opcode = IB_WC_RECV,
				   .qp = &qp->ib,
				   .port_num = qp->port};

		qp->first = (qp->first + 1) % qp->init.cap.max_recv_wr;
		qp->count--;
		queue_complete(qp->init.recv_cq, &wc);
	}
}

static void flush_sends(struct queue_pair *qp)
{
	for (u32 i = 0; i < qp->init.cap.max_send_wr; i++)
		if (!list_empty(&qp->sends[i].item.list)) {
			list_del_init(&qp->sends[i].item.list);
			queues_sent(&qp->sends[i], IB_WC_WR_FLUSH_ERR);
		}
}

static int modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		     struct ib_udata *udata)
{
	struct wire *wire = wire_of(ibqp->device);
	struct queue_pair *qp = qp_of(ibqp);
	enum ib_qp_state next = mask & IB_QP_STATE ? attr->qp_state : qp->state;
	unsigned long flags;

	if (mask & ~IB_QP_ATTR_STANDARD_BITS)
		return -EOPNOTSUPP;
	if (!ib_modify_qp_is_ok(qp->state, next, qp->init.qp_type, mask))
		return -EINVAL;
	spin_lock_irqsave(&wire->lock, flags);
	if (mask & IB_QP_PKEY_INDEX)
		qp->attributes.pkey_index = attr->pkey_index;
	if (mask & IB_QP_QKEY)
		qp->attributes.qkey = attr->qkey;
	if (mask & IB_QP_SQ_PSN)
		qp->attributes.sq_psn = attr->sq_psn;
	qp->state = next;
	if (next == IB_QPS_RESET)
		empty(qp);
	if (next == IB_QPS_ERR) {
		flush_sends(qp);
		queue_flush_receives(qp);
	}
	spin_unlock_irqrestore(&wire->lock, flags);
	return 0;
}

static int query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		    struct ib_qp_init_attr *init)
{
	struct queue_pair *qp = qp_of(ibqp);

	*attr = qp->attributes;
	attr->qp_state = qp->state;
	attr->cur_qp_state = qp->state;
	attr->port_num = qp->port;
	attr->cap = qp->init.cap;
	*init = qp->init;
	return 0;
}

const struct ib_device_ops queue_operations = {
	.alloc_pd = alloc_pd,
	.create_ah = create_ah,
	.create_cq = create_cq,
	.create_qp = create_qp,
	.dealloc_pd = dealloc_pd,
	.dereg_mr = dereg_mr,
	.destroy_ah = destroy_ah,
	.destroy_cq = destroy_cq,
	.destroy_qp = destroy_qp,
	.get_dma_mr = get_dma_mr,
	.modify_qp = modify_qp,
	.poll_cq = poll_cq,
	.post_recv = queue_post_receive,
	.post_send = queue_post_send,
	.query_ah = query_ah,
	.query_qp = query_qp,
	.req_notify_cq = req_notify_cq,

	INIT_RDMA_OBJ_SIZE(ib_ah, address, ib),
	INIT_RDMA_OBJ_SIZE(ib_cq, completion_queue, ib),
	INIT_RDMA_OBJ_SIZE(ib_pd, protection_domain, ib),
	INIT_RDMA_OBJ_SIZE(ib_qp, queue_pair, ib),
};
