/* Longer checks of doctor. Private to doctor.c and doctor_models.c. */
#ifndef CLI_DOCTOR_INTERNAL_H
#define CLI_DOCTOR_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

struct cJSON;

/*
 * Whether a connection to the model's provider (an item of "providers") can be opened within a
 * second. No request is sent and no key is read. Writes host, port and the error to detail, at most
 * cap bytes.
 */
bool doctor_check_model(const struct cJSON *provider, char *detail, size_t cap);
#endif
