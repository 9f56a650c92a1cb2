/* Makes dma-bufs of the process's own memory, by the kernel's udmabuf. Not every kernel has that device, and not every
 * user may open it. */
#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "base/invariant.h"
#include "host/host.h"

#define UDMABUF "/dev/udmabuf"

static int open_device(void)
{
	int device = open(UDMABUF, O_RDWR | O_CLOEXEC);
	if (device >= 0)
		return device;
	return errno == ENOENT || errno == ENODEV || errno == ENXIO ? -EOPNOTSUPP : -errno;
}

int vb_host_can_make_dmabufs(void)
{
	int device = open_device();
	if (device < 0)
		return device;
	close(device);
	return 0;
}

int vb_host_make_dmabuf(int file, size_t length)
{
	assert(file >= 0);
	int device = open_device();
	if (device < 0)
		return device;
	struct udmabuf_create wanted = { .memfd = (uint32_t)file, .flags = UDMABUF_FLAGS_CLOEXEC, .size = length };
	int fd = ioctl(device, UDMABUF_CREATE, &wanted);
	int err = fd < 0 ? errno : 0;
	close(device);
	return err ? -err : fd;
}
