/* Whether the process at the other end of a connection of this machine may be told secrets of a
 * state directory: it is of this user, root, the owner of the directory, or BATON_ALLOW_UIDS. */
#ifndef CLIENT_LISTENER_H
#define CLIENT_LISTENER_H

#include <stdbool.h>
#include <stdint.h>

/* Of a connection; its addresses are numbers. False: not so, or its listener does not take it
 * within 2 s. */
bool listener_peer_is_ours(const char *dir, const char *peer, uint16_t peer_port, const char *own,
                           uint16_t own_port);
/* Of who listens at http://ADDRESS:PORT, where ADDRESS is a number: connects, and sends nothing.
 * True for other URLs and other machines' addresses. False: not so, or nobody listens. */
bool listener_is_ours(const char *dir, const char *url);
#endif
