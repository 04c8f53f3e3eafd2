/* How members share room. Pure. */
#ifndef BASE_SHARE_H
#define BASE_SHARE_H

#include <stddef.h>

/* The largest length to which all n members can be cut so that they fit the room together: short
 * ones stay whole (max-min fairness). The room itself when all fit; 0 when none can. */
size_t share_fair(const size_t *lens, size_t n, size_t room);
#endif
