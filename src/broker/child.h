/* The start of a helper process that the worker forks. */
#ifndef VB_BROKER_CHILD_H
#define VB_BROKER_CHILD_H

/* Call in the child: closes all of the broker's descriptors but fd, whose new number is returned. Program and user
 * stay. */
int child_begin(const char *name, int fd);

#endif
