/*
 * Files of results that came here with a journal or an import: a result names a file by its path,
 * and the path is that of the state directory in which the step ran. What is stored stays as it
 * was; a reader gets the path that the file has here.
 */
#ifndef ARTIFACT_HERE_H
#define ARTIFACT_HERE_H

#include "protocol/wire/doc.h"

/*
 * Appends the result to out when it names files of another state directory that are here, below
 * root, under the same plan and name and with the same length; then with their paths here. Else
 * out stays empty. *ret_absent: it names such files that are not here (yet).
 */
BT_MUST_CHECK enum bt_code artifact_here(const char *root, struct doc result, struct buf *out,
                                         bool *ret_absent, struct bt_error *err);
#endif
