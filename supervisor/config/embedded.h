/* Files that embed.cmake compiles into the program. */
#ifndef CONFIG_EMBEDDED_H
#define CONFIG_EMBEDDED_H

#include <stddef.h>

extern const unsigned char config_schema_json[];
extern const size_t config_schema_json_len;
#endif
