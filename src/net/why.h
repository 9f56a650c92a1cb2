/* What is wrong with a description, for people. */
#ifndef NET_WHY_H
#define NET_WHY_H

/* Writes it into why, as much as fits, and returns -EINVAL. */
__attribute__((format(printf, 3, 4))) int why_not(char *why, unsigned why_size, const char *format, ...);

#endif
