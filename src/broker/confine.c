/* See confine.h. Calls that are not listed fail with EPERM: there is no exec, ptrace, bpf, mount or new namespace.
 * Files are opened for reading only. Processes are made by fork only, for the next worker or a forwarder.
 *
 * The filter compares the call with each entry in order, the most frequent first. Arguments are 64 bits in two words;
 * the flags that it checks are in the low word. */
#include "broker/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include "base/invariant.h"

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#undef ARCHITECTURE
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(undefined_behavior_sanitizer)
#undef ARCHITECTURE
#endif
#endif

#ifdef ARCHITECTURE

static const uint16_t allowed[] = {
	/* The loop. */
	SYS_clock_gettime,
	SYS_ppoll,
	SYS_recvmmsg,
	SYS_recvmsg,
	SYS_sendmsg,
	SYS_sendmmsg,
	SYS_recvfrom,
	SYS_sendto,
	SYS_read,
	SYS_write,
	SYS_readv,
	SYS_writev,
	SYS_close,
	SYS_fcntl,
	SYS_accept4,
	SYS_epoll_create1,
	SYS_epoll_ctl,
	SYS_epoll_pwait,
	SYS_eventfd2,
	/* Sockets of the group, and of its clients. */
	SYS_socket,
	SYS_socketpair,
	SYS_bind,
	SYS_connect,
	SYS_listen,
	SYS_shutdown,
	SYS_getsockopt,
	SYS_setsockopt,
	SYS_getsockname,
	SYS_getpeername,
	SYS_dup,
	SYS_dup3,
	SYS_pipe2,
	SYS_splice,
	SYS_close_range,
	/* Memory that two clients share. */
	SYS_memfd_create,
	SYS_ftruncate,
	/* Our processes, and reading about those of clients. */
	SYS_pidfd_open,
	SYS_pidfd_send_signal,
	SYS_kill,
	SYS_tgkill,
	SYS_wait4,
	SYS_waitid,
	SYS_exit,
	SYS_exit_group,
	SYS_getpid,
	SYS_gettid,
	SYS_getppid,
	SYS_getuid,
	SYS_geteuid,
	SYS_getgid,
	SYS_getegid,
	SYS_set_robust_list,
	SYS_set_tid_address,
	SYS_rt_sigaction,
	SYS_rt_sigprocmask,
	SYS_rt_sigreturn,
	SYS_rt_sigtimedwait,
	SYS_sigaltstack,
	SYS_sched_yield,
	SYS_sched_getaffinity,
	SYS_getrlimit,
	SYS_prlimit64,
	SYS_uname,
	SYS_lseek,
	SYS_fstat,
	SYS_newfstatat,
	SYS_statx,
	SYS_readlinkat,
	SYS_getdents64,
	SYS_faccessat,
	/* Memory and time. */
	SYS_mmap,
	SYS_munmap,
	SYS_mremap,
	SYS_mprotect,
	SYS_madvise,
	SYS_brk,
	SYS_futex,
	SYS_getrandom,
	SYS_nanosleep,
	SYS_clock_nanosleep,
	SYS_clock_getres,
	SYS_gettimeofday,
	SYS_restart_syscall,
	SYS_sysinfo,
#ifdef SYS_poll /* of x86-64 alone */
	SYS_poll,
	SYS_epoll_wait,
	SYS_time,
	SYS_stat,
	SYS_lstat,
	SYS_access,
	SYS_readlink,
	SYS_dup2,
#endif
#ifdef SYS_rseq
	SYS_rseq,
#endif
};

#define AT(member)         offsetof(struct seccomp_data, member)
#define LOAD(at)           ((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (at)))
#define RETURN(what)       ((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, (what)))
#define UNLESS(value, far) ((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (far)))
#define ANY_OF(bits, far)  ((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bits), 0, (far)))
#define LENGTH(list)       (sizeof(list) / sizeof((list)[0]))

#define ALLOW  RETURN(SECCOMP_RET_ALLOW)
#define FORBID RETURN(SECCOMP_RET_ERRNO | EPERM)

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the low word of an argument is taken to come first"
#endif

/* Open flags that write or create. */
#define WRITING (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND)
#define NAMESPACES                                                                                                     \
	(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP |   \
		CLONE_PTRACE)

static const struct sock_filter beginning[] = {
	LOAD(AT(arch)),
	UNLESS(ARCHITECTURE, 1),
	((struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, 1)),
	FORBID,
	LOAD(AT(nr)),
};

/* Reached with the call's number loaded, if no entry above matched. */
static const struct sock_filter end[] = {
	UNLESS(SYS_openat, 4),
	LOAD(AT(args[2])),
	ANY_OF(WRITING, 1),
	FORBID,
	ALLOW,
	UNLESS(SYS_ioctl, 8), /* for sockets only: on a terminal, ioctl can inject input */
	LOAD(AT(args[1])),
	UNLESS(SIOCOUTQ, 1),
	ALLOW,
	UNLESS(SIOCGIFINDEX, 1),
	ALLOW,
	UNLESS(SIOCGIFNAME, 1),
	ALLOW,
	FORBID,
	UNLESS(SYS_clone, 4),
	LOAD(AT(args[0])),
	ANY_OF(NAMESPACES, 1),
	FORBID,
	ALLOW,
	UNLESS(SYS_clone3, 1), /* its flags are in memory, where a filter cannot read them; glibc then uses clone */
	RETURN(SECCOMP_RET_ERRNO | ENOSYS),
	UNLESS(SYS_prctl, 5),
	LOAD(AT(args[0])),
	UNLESS(PR_SET_NAME, 1),
	ALLOW,
	UNLESS(PR_SET_PDEATHSIG, 1),
	ALLOW,
	FORBID,
};

void confine(void)
{
	struct sock_filter filter[LENGTH(beginning) + 2 * LENGTH(allowed) + LENGTH(end)];
	unsigned length = 0;
	for (unsigned i = 0; i < LENGTH(beginning); i++)
		filter[length++] = beginning[i];
	for (unsigned i = 0; i < LENGTH(allowed); i++) {
		filter[length++] = UNLESS(allowed[i], 1);
		filter[length++] = ALLOW;
	}
	for (unsigned i = 0; i < LENGTH(end); i++)
		filter[length++] = end[i];
	assert(length == LENGTH(filter));
	const struct sock_fprog program = { .len = (unsigned short)length, .filter = filter };
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

#else

void confine(void) {}

#endif
