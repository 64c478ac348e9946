/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef UMAD_SIM_REMOVE_TREE_H
#define UMAD_SIM_REMOVE_TREE_H

/* Removes a folder and its contents, as far as possible. */
void remove_tree(const char *folder);

#endif
