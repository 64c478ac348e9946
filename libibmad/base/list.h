/* SPDX-License-Identifier: BSD-2-Clause */

/* An intrusive circular list. */
#ifndef LIBIBMAD_LIST_H
#define LIBIBMAD_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
	struct list *next;
	struct list *prev;
};

static inline void list_init(struct list *list)
{
	list->next = list->prev = list;
}

static inline bool list_is_empty(const struct list *list)
{
	return list->next == list;
}

/* NULL if the list is empty. */
static inline struct list *list_first(const struct list *list)
{
	return list_is_empty(list) ? NULL : list->next;
}

static inline void list_insert(struct list *before, struct list *entry)
{
	struct list *after = before->prev;

	entry->prev = after;
	after->next = entry;
	entry->next = before;
	before->prev = entry;
}

static inline void list_add_first(struct list *list, struct list *entry)
{
	list_insert(list->next, entry);
}

static inline void list_add_last(struct list *list, struct list *entry)
{
	list_insert(list, entry);
}

static inline void list_remove(struct list *entry)
{
	entry->prev->next = entry->next;
	entry->next->prev = entry->prev;
}

/* Like list_remove(), but a no-op if the entry is in no list. */
static inline void list_leave(struct list *entry)
{
	list_remove(entry);
	list_init(entry);
}

/* Moves an entry to the end of the same or another list. */
static inline void list_move_last(struct list *list, struct list *entry)
{
	list_remove(entry);
	list_add_last(list, entry);
}

/* Removes and returns the first entry; NULL if the list is empty. */
static inline struct list *list_pop(struct list *list)
{
	struct list *first = list->next;

	if (first == list)
		return NULL;
	list->next = first->next;
	list->next->prev = list;
	return first;
}

/* The body must not remove the current entry. */
#define list_for_each(entry, head) \
	for (struct list *entry = (head)->next; entry != (head); entry = entry->next)

#define list_entry(entry, type, member) \
	((type *)(void *)((char *)(entry)-offsetof(type, member)))

#endif
