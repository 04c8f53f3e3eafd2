/* CRC-32C (Castagnoli, RFC 3720 appendix B.4), by the processor's instruction or slicing by 8. It
 * detects flipped bits in rows. Thread-safe. */
#ifndef JOURNAL_CRC32C_H
#define JOURNAL_CRC32C_H

#include <stddef.h>
#include <stdint.h>

#include "protocol/base/str.h"

/* Continues from crc (0 at first) over n more bytes. */
uint32_t crc32c(uint32_t crc, const void *bytes, size_t n);
/* The same without the processor's instruction. */
uint32_t crc32c_portable(uint32_t crc, const void *bytes, size_t n);
/* The same over a number, least significant byte first. */
uint32_t crc32c_u64(uint32_t crc, uint64_t v);
/* Over the length and then the bytes, so that "ab" + "c" differs from "a" + "bc". */
uint32_t crc32c_bytes(uint32_t crc, const void *bytes, size_t n);
#endif
