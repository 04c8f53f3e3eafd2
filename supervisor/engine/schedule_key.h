/* The clientKeys of plans that schedules make: schedule/NAME/TIME, and schedule/NAME/trigger/KEY.
 */
#ifndef ENGINE_SCHEDULE_KEY_H
#define ENGINE_SCHEDULE_KEY_H

#include <stdbool.h>

#include "protocol/base/str.h"

#define SCHEDULE_KEYS "schedule/" /* clientKeys that begin so are not for clients */

/* The name and the time in the clientKey of a plan as it is stored (access_client_key). False: no
 * schedule made it. The time of a plan that was triggered is empty. */
bool schedule_of_key(struct str client_key, struct str *ret_name, struct str *ret_time);
#endif
