/* mpi_check: every kind of MPI traffic, each byte of it verified: allreduce of several sizes, a ring of messages, put,
 * get and accumulate into windows. Prints "done BYTES": what the payload of its point-to-point and one-sided transfers
 * amounts to. Status 1 when anything differs. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, ranks;
static long long moved;

static void fail(const char *what, int index)
{
	fprintf(stderr, "rank %d: %s is wrong at %d\n", rank, what, index);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static int *ints(int count)
{
	int *values = malloc((size_t)count * sizeof(*values));
	if (!values)
		fail("memory", count);
	return values;
}

static void check_allreduce(int count)
{
	int *own = ints(count), *sum = ints(count);
	for (int i = 0; i < count; i++)
		own[i] = i + rank;
	MPI_Allreduce(own, sum, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < count; i++)
		if (sum[i] != i * ranks + ranks * (ranks - 1) / 2)
			fail("allreduce", i);
	free(own);
	free(sum);
}

static void check_ring(int count)
{
	int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
	int *out = ints(count), *in = ints(count);
	for (int i = 0; i < count; i++)
		out[i] = rank * 1000003 + i;
	MPI_Sendrecv(out, count, MPI_INT, next, 7, in, count, MPI_INT, previous, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (int i = 0; i < count; i++)
		if (in[i] != previous * 1000003 + i)
			fail("message", i);
	moved += count * (long long)sizeof(int);
	free(out);
	free(in);
}

/* Each rank puts into its next's window, reads it back, and everybody adds to the first's. */
static void check_windows(int count)
{
	int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks, one = 1;
	int *window, *out = ints(count), *back = ints(count);
	MPI_Win win;

	MPI_Win_allocate(
		(count + 1) * (MPI_Aint)sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
	for (int i = 0; i < count; i++)
		out[i] = rank * 7919 + i;
	window[count] = 0;
	MPI_Win_fence(0, win);
	MPI_Put(out, count, MPI_INT, next, 0, count, MPI_INT, win);
	MPI_Win_fence(0, win);
	for (int i = 0; i < count; i++)
		if (window[i] != previous * 7919 + i)
			fail("put", i);
	MPI_Get(back, count, MPI_INT, next, 0, count, MPI_INT, win);
	MPI_Win_fence(0, win);
	for (int i = 0; i < count; i++)
		if (back[i] != out[i])
			fail("get", i);
	MPI_Accumulate(&one, 1, MPI_INT, 0, count, 1, MPI_INT, MPI_SUM, win);
	MPI_Win_fence(0, win);
	if (rank == 0 && window[count] != ranks)
		fail("accumulate", window[count]);
	moved += 2 * count * (long long)sizeof(int);
	MPI_Win_free(&win);
	free(out);
	free(back);
}

int main(int argc, char **argv)
{
	static const int counts[] = { 1, 256, 5000, 300000 };

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		check_allreduce(counts[i]);
		check_ring(counts[i]);
		check_windows(counts[i]);
	}
	MPI_Finalize();
	printf("done %lld\n", moved);
	return 0;
}
