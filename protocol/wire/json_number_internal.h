/* Prints a float so that a reader gets the same bits, in any locale. */
#ifndef WIRE_JSON_NUMBER_INTERNAL_H
#define WIRE_JSON_NUMBER_INTERNAL_H

#include <stddef.h>

enum { JSON_FLOAT_MAX = 40 };

/* Writes a finite number with '.' or 'e' in it and a terminating zero. Returns its length. */
size_t json_print_float(double v, char ret[JSON_FLOAT_MAX]);
#endif
