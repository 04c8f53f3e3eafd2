/* sd_notify(3) without libsystemd: one datagram to $NOTIFY_SOCKET; nothing happens when it is not
 * set. */
#ifndef SUPERVISOR_NOTIFY_H
#define SUPERVISOR_NOTIFY_H

void notify_service_manager(const char *state);
#endif
