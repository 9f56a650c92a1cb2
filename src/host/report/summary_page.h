/* The program's last summary so far, kept where a process that outlives the program reads it. The library writes
 * (summary.c), the program verbena-summary reads (broker/summary.c). The memory has no name: it is gone with the
 * two. */
#ifndef VB_HOST_SUMMARY_PAGE_H
#define VB_HOST_SUMMARY_PAGE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#define VB_SUMMARY_PROGRAM "verbena-summary"
#define VB_SUMMARY_BYTES   (192 * 1024) /* of text: a full table of peers and of processes, and the rest */

struct vb_summary_text {
	uint32_t length;
	char bytes[VB_SUMMARY_BYTES]; /* whole lines */
};

#define VB_SUMMARY_PATH 4096

#define VB_SUMMARY_NOTHING UINT32_MAX

struct vb_summary_page {
	/* Robust and shared. A thread of the program holds it as long as the program runs: the kernel gives it up when
	 * the thread ends, be it by exit, by a signal or by exec. No descriptor that the program might close is needed
	 * for that. */
	pthread_mutex_t alive;
	/* Which of the texts counts; or VB_SUMMARY_NOTHING: there is no summary, or the program has printed it. */
	_Atomic uint32_t current;
	struct vb_summary_text texts[2];
	struct vb_summary_text json[2];  /* as a line of JSON; empty: not asked for */
	char json_file[VB_SUMMARY_PATH]; /* to which it is appended */
};

#endif
