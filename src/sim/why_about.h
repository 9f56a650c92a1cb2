/* Puts the subject in front of another room's error text. */
#ifndef SIM_WHY_ABOUT_H
#define SIM_WHY_ABOUT_H

#include <stddef.h>

/* -EINVAL. */
__attribute__((format(printf, 3, 4))) int why_about(char *why, size_t size, const char *format, ...);

#endif
