/* The C library's own functions, looked up at the first use of any. */
#include "rspreload/rspreload.h"

#include <dlfcn.h>
#include <pthread.h>

static struct vb_real real;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_all(void)
{
#define FIND(type, name, arguments) *(void **)&real.name = dlsym(RTLD_NEXT, #name);
	VB_REAL_FUNCTIONS(FIND)
#undef FIND
}

const struct vb_real *vb_real(void)
{
	pthread_once(&once, find_all);
	return &real;
}
