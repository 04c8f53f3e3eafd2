/* What cmocka's own header needs before it. */
#ifndef SUPPORT_CMOCKA_H
#define SUPPORT_CMOCKA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#endif
