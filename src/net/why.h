/* Reasons for people, why a description was refused. */
#ifndef NET_WHY_H
#define NET_WHY_H

/* Writes the text into why, as much as fits, and returns -EINVAL. */
__attribute__((format(printf, 3, 4))) int why_not(char *why, unsigned why_size, const char *format, ...);

#endif
