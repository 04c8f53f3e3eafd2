/* Printing a float so that reading it gives the same bits, in any locale. */
#ifndef WIRE_JSON_NUMBER_INTERNAL_H
#define WIRE_JSON_NUMBER_INTERNAL_H

#include <stddef.h>

enum { JSON_FLOAT_MAX = 40 };

/* A finite number, with '.' or 'e' in it, terminated; returns its length. */
size_t json_print_float(double v, char ret[JSON_FLOAT_MAX]);
#endif
