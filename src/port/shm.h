/* Memory that two lanes of one host share: each lane's requests to the other and its answers go through rings here.
 * There are a ring of descriptors and one of answers each way, each with a heap for the bytes beside its records, and a
 * word by which a sleeper says that it wants to be woken. This moves records and decides nothing; local/local.h says
 * what they mean.
 *
 * A turn at one end:
 *
 *   n = vb_shm_see_descriptors(shm, descriptors, max);           first the requests are seen,
 *   m = vb_shm_take_answers(shm, answers, max);  vb_local_answered(...);  vb_shm_free_answers(shm, m);
 *   vb_shm_room(shm, VB_SHM_ANSWERING, &room);                   then earlier answers are taken note of,
 *   vb_shm_free_descriptors(shm, vb_local_receive(..., n, ...)); then the requests are executed
 *   vb_shm_publish(shm, &room);
 *   vb_shm_room(shm, VB_SHM_ASKING, &room);  vb_local_transmit(...);  vb_shm_publish(shm, &room);
 *
 *   if (vb_shm_must_wake(shm)) ...                               the other end sleeps: wake it, once
 *
 * Holds: the other end may be another user's. So everything is read once, and copied before it is looked at, and no
 * index of the other end is used that our own counts do not confirm. One thread at a time uses an end. Sizes are bytes.
 */
#ifndef VB_PORT_SHM_H
#define VB_PORT_SHM_H

#include <stdbool.h>
#include <stddef.h>
#include "local/local.h"

#define VB_SHM_RING  256u     /* records of each */
#define VB_SHM_HEAP  1048576u /* only as much of it is touched as is under way at once */
#define VB_SHM_BATCH 32u      /* records that leave at once, */
#define VB_SHM_LIST  8u       /* and descriptors: the other end executes them while the next are put together */

struct vb_shm;

size_t vb_shm_bytes(void); /* how much memory a pair has */
/* Maps memory of at least vb_shm_bytes, which both ends have and no process can shrink; side is 0 or 1, one for each
 * end. memory -1: for a lane with itself, whose two directions are one. -errno, -EINVAL: the memory is shorter. */
int vb_shm_open(int memory, unsigned side, struct vb_shm **shm);
void vb_shm_close(struct vb_shm *shm);

/* The other end's requests. A descriptor stays until it is freed, and is seen again. */
unsigned vb_shm_see_descriptors(struct vb_shm *shm, struct vb_descriptor *descriptors, unsigned max);
void vb_shm_free_descriptors(struct vb_shm *shm, unsigned count);
unsigned vb_shm_take_answers(struct vb_shm *shm, struct vb_answer *answers, unsigned max);
void vb_shm_free_answers(struct vb_shm *shm, unsigned count);
bool vb_shm_has_news(const struct vb_shm *shm); /* descriptors or answers wait */

/* The other end's heaps: bytes beside its descriptors, and beside its answers. */
struct vb_local_heap vb_shm_heap_of_descriptors(const struct vb_shm *shm);
struct vb_local_heap vb_shm_heap_of_answers(const struct vb_shm *shm);

/* Which of our heaps the room has. The room's records of both kinds are as many as the rings take. */
enum vb_shm_use { VB_SHM_ASKING, VB_SHM_ANSWERING };
void vb_shm_room(struct vb_shm *shm, enum vb_shm_use use, struct vb_local_room *room);
/* Publishes the records that were put into that room: answers first. */
void vb_shm_publish(struct vb_shm *shm, enum vb_shm_use use, const struct vb_local_room *room);
/* Something was published since vb_shm_must_wake was asked last, for which the other end is to be woken. */
bool vb_shm_has_published(const struct vb_shm *shm);
/* Answers that the other end does not wait for, by its word, and may be sleeping on: it is woken for them once
 * vb_shm_urge says so. */
bool vb_shm_has_told(const struct vb_shm *shm);
void vb_shm_urge(struct vb_shm *shm);
/* To be asked after all that was freed and published, and before anything waits for its effect: one fence for all. */
bool vb_shm_must_wake(struct vb_shm *shm);

bool vb_shm_dozes(const struct vb_shm *shm); /* the other end is asleep now */
/* From now on the other end is to wake us when it has published something, and with wants_room when it has freed
 * something. The caller must look once more before it sleeps. */
void vb_shm_doze(struct vb_shm *shm, bool wants_room);
void vb_shm_rouse(struct vb_shm *shm);

#endif
