/* Between vfork() and exec a child runs in its parent's memory, but has descriptors and a working directory of its own.
 * State in memory about these belongs to the parent, and the child must not change it. */
#ifndef VB_OS_BORROWER_H
#define VB_OS_BORROWER_H

#include <stdbool.h>

/* Is this process such a child? */
bool vb_is_borrower(void);

#endif
