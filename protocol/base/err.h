/* Filling in a bt_error, and the error classes of steps (M040). Pure, no allocation. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "baton/error.h"

enum err_class {
#define CLASS(name, retryable, sentence) CLASS_##name,
#include "protocol/errors.def"
    CLASS_COUNT
};

/* Fills *err (may be NULL) and returns code, so that `return err_set(err, BT_INVALID, "...")` is
 * one line. */
enum bt_code err_set(struct bt_error *err, enum bt_code code, const char *fmt, ...) BT_PRINTF(3, 4);
/* Puts "prefix: " before the sentence in *err. Keeps and returns its code. */
enum bt_code err_wrap(struct bt_error *err, const char *fmt, ...) BT_PRINTF(2, 3);
/* Sets BT_NOT_FOUND for ENOENT, BT_NOMEM for ENOMEM, else BT_IO, and appends strerror(errnum). */
enum bt_code err_errno(struct bt_error *err, int errnum, const char *fmt, ...) BT_PRINTF(3, 4);

/* Maps "NOT_FOUND" to BT_NOT_FOUND. An unknown name gives BT_INTERNAL. */
enum bt_code err_code_from_name(const char *name, size_t len);
/* Whether a request that got this code may be sent again as it is. */
bool err_code_retryable(enum bt_code code);
/* How long to wait before that, when the sender of the error names no other time; 0 = no wait. */
uint32_t err_code_wait_ms(enum bt_code code);

/* Returns the wire name of a class, "NONE" for CLASS_NONE; never NULL. */
const char *err_class_name(enum err_class c);
/* An unknown name gives CLASS_UNKNOWN. */
enum err_class err_class_from_name(const char *name, size_t len);
/* Whether an attempt that failed with this class is retried when the agent does not decide. */
bool err_class_retryable(enum err_class c);
#endif
