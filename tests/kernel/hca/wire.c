// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

/* An open file of /dev/sim_hca: the messages to and from the process that has the wire. */
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "sim_hca.h"

#define BUFFER_BYTES  (32 * 1024) /* of one read() */
#define LONGEST_WRITE (64 * 1024)

/* --- from the kernel to the process ---------------------------------------------- */

static bool is_of_send(const struct item *item)
{
	return item->message.kind == SIM_HCA_PACKET;
}

static void enqueue(struct wire *wire, struct item *item)
{
	list_add_tail(&item->list, &wire->items);
	wake_up_interruptible(&wire->readable);
}

void wire_send(struct wire *wire, struct send *send)
{
	enqueue(wire, &send->item);
	schedule_delayed_work(&wire->watch, PATIENCE); /* no effect if it is scheduled */
}

/*
 * Work requests complete even if the process does not read: the core waits for their completion
 * when an agent is unregistered.
 */
static void drop_old_packets(struct work_struct *work)
{
	struct wire *wire = container_of(to_delayed_work(work), struct wire, watch);
	struct item *item, *next;
	bool more = false;
	unsigned long flags;

	spin_lock_irqsave(&wire->lock, flags);
	list_for_each_entry_safe(item, next, &wire->items, list)
	{
		struct send *send = container_of(item, struct send, item);

		if (!is_of_send(item))
			continue;
		if (time_before(jiffies, send->posted + PATIENCE)) {
			more = true;
			continue;
		}
		list_del_init(&item->list);
		count(wire->hca, item->message.port, COUNT_SENDS_DROPPED);
		queues_sent(send, IB_WC_SUCCESS);
	}
	spin_unlock_irqrestore(&wire->lock, flags);
	if (more)
		schedule_delayed_work(&wire->watch, HZ / 4);
}

int command_perform(struct hca *hca, u32 port, struct command *command)
{
	struct wire *wire = hca->wire;
	unsigned long flags;
	bool replied;

	command->item.message = (struct sim_hca_message){
		.kind = SIM_HCA_COMMAND, .port = port, .length = sizeof(command->request)};
	command->item.payload = &command->request;
	command->replied = false;
	init_completion(&command->done);
	count(hca, port, COUNT_COMMANDS);

	spin_lock_irqsave(&wire->lock, flags);
	if (wire->dead || (wire->stalled && time_before(jiffies, wire->retry_at))) {
		spin_unlock_irqrestore(&wire->lock, flags);
		count(hca, port, COUNT_COMMANDS_FAILED);
		return -ENODEV;
	}
	command->item.message.id = ++wire->next_id;
	list_add_tail(&command->list, &wire->commands);
	enqueue(wire, &command->item);
	spin_unlock_irqrestore(&wire->lock, flags);

	wait_for_completion_timeout(&command->done, PATIENCE);

	spin_lock_irqsave(&wire->lock, flags);
	replied = command->replied;
	if (!replied) {
		wire->stalled = true;
		wire->retry_at = jiffies + PATIENCE;
	}
	list_del_init(&command->item.list);
	list_del_init(&command->list);
	spin_unlock_irqrestore(&wire->lock, flags);
	if (replied && !command->reply.status)
		return 0;
	count(hca, port, COUNT_COMMANDS_FAILED);
	return replied ? -EIO : wire->dead ? -ENODEV : -ETIMEDOUT;
}

/* Copies as many messages as fit into wire->buffer. Returns their bytes. */
static size_t take_messages(struct wire *wire, size_t room)
{
	struct item *item, *next;
	unsigned long flags;
	size_t bytes = 0;

	spin_lock_irqsave(&wire->lock, flags);
	wire->stalled = false;
	list_for_each_entry_safe(item, next, &wire->items, list)
	{
		size_t length = sizeof(item->message) + item->message.length;

		if (length > room - bytes)
			break;
		memcpy(wire->buffer + bytes, &item->message, sizeof(item->message));
		memcpy(wire->buffer + bytes + sizeof(item->message), item->payload,
		       item->message.length);
		bytes += length;
		list_del_init(&item->list);
		if (is_of_send(item)) {
			count(wire->hca, item->message.port, COUNT_SENT);
			queues_sent(container_of(item, struct send, item), IB_WC_SUCCESS);
		}
	}
	spin_unlock_irqrestore(&wire->lock, flags);
	return bytes;
}

static bool has_messages(struct wire *wire)
{
	return !list_empty_careful(&wire->items);
}

static ssize_t wire_read(struct file *file, char __user *to, size_t room, loff_t *position)
{
	struct wire *wire = file->private_data;
	size_t bytes;
	int error;

	room = min_t(size_t, room, BUFFER_BYTES);
	for (;;) {
		if (!has_messages(wire) && file->f_flags & O_NONBLOCK)
			return -EAGAIN;
		error = wait_event_interruptible(wire->readable, has_messages(wire));
		if (error)
			return error;
		error = mutex_lock_interruptible(&wire->reading);
		if (error)
			return error;
		bytes = take_messages(wire, room);
		if (bytes || has_messages(wire))
			break;
		mutex_unlock(&wire->reading); /* another thread took them */
	}
	if (!bytes)
		error = -EMSGSIZE; /* the first message does not fit */
	else if (copy_to_user(to, wire->buffer, bytes))
		error = -EFAULT;
	mutex_unlock(&wire->reading);
	return error ? error : bytes;
}

static __poll_t wire_poll(struct file *file, poll_table *table)
{
	struct wire *wire = file->private_data;

	poll_wait(file, &wire->readable, table);
	return EPOLLOUT | EPOLLWRNORM | (has_messages(wire) ? EPOLLIN | EPOLLRDNORM : 0);
}

/* --- from the process to the kernel ---------------------------------------------- */

static void register_device(struct work_struct *work)
{
	struct wire *wire = container_of(work, struct wire, registering);
	int error = hca_register(wire->hca);
	unsigned long flags;

	wire->registered = !error;
	wire->created.message = (struct sim_hca_message){.kind = SIM_HCA_CREATED, .id = -error};
	spin_lock_irqsave(&wire->lock, flags);
	enqueue(wire, &wire->created);
	spin_unlock_irqrestore(&wire->lock, flags);
}

/*
 * The core queries the device while it registers it. So another thread registers it, and the
 * process replies to the queries.
 */
static int create(struct wire *wire, const void *payload, u32 length)
{
	int error;

	if (length != sizeof(struct sim_hca_create))
		return -EINVAL;
	mutex_lock(&wire->creating);
	error = wire->hca ? -EBUSY : hca_create(wire, payload);
	mutex_unlock(&wire->creating);
	if (!error)
		schedule_work(&wire->registering);
	return error;
}

static void take_reply(struct wire *wire, u32 id, const void *payload)
{
	struct command *command;
	unsigned long flags;

	spin_lock_irqsave(&wire->lock, flags);
	list_for_each_entry(command, &wire->commands, list)
	{
		if (command->item.message.id != id || command->replied)
			continue;
		memcpy(&command->reply, payload, sizeof(command->reply));
		command->replied = true;
		complete(&command->done);
		break;
	}
	spin_unlock_irqrestore(&wire->lock, flags);
}

static int take_message(struct wire *wire, const struct sim_hca_message *message,
			const u8 *payload)
{
	struct hca *hca = wire->hca;

	if (message->kind == SIM_HCA_CREATE)
		return create(wire, payload, message->length);
	if (!hca)
		return -ENODEV;
	switch (message->kind) {
	case SIM_HCA_REPLY:
		if (message->length != sizeof(struct sim_hca_reply))
			return -EINVAL;
		take_reply(wire, message->id, payload);
		return 0;
	case SIM_HCA_PACKET:
	case SIM_HCA_EVENT:
		if (message->port < 1 || message->port > hca->create.port_count)
			return -EINVAL;
		if (message->kind == SIM_HCA_PACKET)
			queues_receive(hca, message->port, payload, message->length);
		else
			hca_event(hca, message->port, message->id);
		return 0;
	default:
		return -EINVAL;
	}
}

/* Returns the bytes of the messages up to the first wrong one, or its error. */
static ssize_t wire_write(struct file *file, const char __user *from, size_t length,
			  loff_t *position)
{
	struct wire *wire = file->private_data;
	size_t done = 0;
	int error = 0;
	u8 *bytes;

	if (length < sizeof(struct sim_hca_message) || length > LONGEST_WRITE)
		return -EINVAL;
	bytes = memdup_user(from, length);
	if (IS_ERR(bytes))
		return PTR_ERR(bytes);
	while (done < length && !error) {
		struct sim_hca_message message;

		if (length - done < sizeof(message)) {
			error = -EINVAL;
			break;
		}
		memcpy(&message, bytes + done, sizeof(message));
		if (message.length > length - done - sizeof(message))
			error = -EINVAL;
		else
			error = take_message(wire, &message, bytes + done + sizeof(message));
		if (!error)
			done += sizeof(message) + message.length;
	}
	kfree(bytes);
	return done ? done : error;
}

/* --- open and close -------------------------------------------------------------- */

static int wire_open(struct inode *inode, struct file *file)
{
	struct wire *wire = kzalloc(sizeof(*wire), GFP_KERNEL);

	if (!wire)
		return -ENOMEM;
	wire->buffer = kmalloc(BUFFER_BYTES, GFP_KERNEL);
	if (!wire->buffer) {
		kfree(wire);
		return -ENOMEM;
	}
	spin_lock_init(&wire->lock);
	INIT_LIST_HEAD(&wire->items);
	INIT_LIST_HEAD(&wire->commands);
	init_waitqueue_head(&wire->readable);
	mutex_init(&wire->reading);
	mutex_init(&wire->creating);
	INIT_DELAYED_WORK(&wire->watch, drop_old_packets);
	INIT_WORK(&wire->registering, register_device);
	file->private_data = wire;
	return stream_open(inode, file);
}

/* From now on commands fail, and work requests complete at once: nothing waits for the process.
 */
static void die(struct wire *wire)
{
	struct item *item, *next;
	struct command *command;
	unsigned long flags;

	spin_lock_irqsave(&wire->lock, flags);
	wire->dead = true;
	list_for_each_entry_safe(item, next, &wire->items, list)
	{
		if (!is_of_send(item))
			continue;
		list_del_init(&item->list);
		queues_sent(container_of(item, struct send, item), IB_WC_WR_FLUSH_ERR);
	}
	list_for_each_entry(command, &wire->commands, list) complete(&command->done);
	spin_unlock_irqrestore(&wire->lock, flags);
}

static int wire_release(struct inode *inode, struct file *file)
{
	struct wire *wire = file->private_data;

	die(wire);
	flush_work(&wire->registering);
	if (wire->registered)
		hca_unregister(wire->hca);
	cancel_delayed_work_sync(&wire->watch);
	if (wire->hca)
		ib_dealloc_device(&wire->hca->ib);
	kfree(wire->buffer);
	kfree(wire);
	return 0;
}

const struct file_operations wire_operations = {
	.owner = THIS_MODULE,
	.open = wire_open,
	.release = wire_release,
	.read = wire_read,
	.write = wire_write,
	.poll = wire_poll,
	.llseek = noop_llseek,
};
