/* The beginning of a process that the worker forks for a task of its own. */
#ifndef VB_BROKER_CHILD_H
#define VB_BROKER_CHILD_H

/* In the child: of the broker nothing is left but its program, its user, and fd, whose new number is returned. */
int child_begin(const char *name, int fd);

#endif
