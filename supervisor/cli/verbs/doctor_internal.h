/* Looks of doctor that need more than a few lines. Private to verb_doctor.c. */
#ifndef CLI_DOCTOR_INTERNAL_H
#define CLI_DOCTOR_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

struct cJSON;

/* Whether something listens where a model of these settings ("providers": [...]) is said to be: a
 * connection, opened within a second and closed again. No request goes out, no key is read. Its
 * host and port stand in detail, and what is wrong. False: nobody there. */
bool doctor_check_model(const struct cJSON *provider, char *detail, size_t cap);
#endif
