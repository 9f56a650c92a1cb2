/* How many CPUs the machine may come to have. */
#ifndef VB_HOST_CPUS_H
#define VB_HOST_CPUS_H

/* One more than the highest number of a possible CPU, so at least 1. Without /sys it may leave out CPUs that are
 * neither online nor allowed to this thread. Reads a file: for opening devices, not for hot paths. */
unsigned vb_cpus_possible(void);

#endif
