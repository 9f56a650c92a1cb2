/* How fast rank 0 sends messages of so many bytes to rank 1, a window of them at once: the median over many windows,
 * each answered by one empty message. Prints "gbps=N". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { WINDOW = 16, ROUNDS = 60, WARM_UP = 6 };

static int by_value(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;
	return (a > b) - (a < b);
}

/* Rank 0 sends from where rank 1 receives into: a buffer a message. */
static void send_window(char *bytes, int size)
{
	MPI_Request requests[WINDOW];
	for (int i = 0; i < WINDOW; i++)
		MPI_Isend(bytes + (size_t)i * (size_t)size, size, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &requests[i]);
	MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
	MPI_Recv(bytes, 0, MPI_CHAR, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void receive_window(char *bytes, int size)
{
	MPI_Request requests[WINDOW];
	for (int i = 0; i < WINDOW; i++)
		MPI_Irecv(bytes + (size_t)i * (size_t)size, size, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &requests[i]);
	MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
	MPI_Send(bytes, 0, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	int rank, ranks, size = argc > 1 ? atoi(argv[1]) : 0;
	double took[ROUNDS];

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	char *bytes = size > 0 ? calloc(WINDOW, (size_t)size) : NULL;
	if (!bytes || ranks != 2) {
		fprintf(stderr, "usage: mpirun -n 2 mpi_bandwidth BYTES\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	for (int i = -WARM_UP; i < ROUNDS; i++) {
		double begin = MPI_Wtime();
		if (rank == 0)
			send_window(bytes, size);
		else
			receive_window(bytes, size);
		if (i >= 0)
			took[i] = MPI_Wtime() - begin;
	}
	qsort(took, ROUNDS, sizeof(took[0]), by_value);
	if (rank == 0)
		printf("gbps=%.3f\n", (double)size * WINDOW * 8 / took[ROUNDS / 2] / 1e9);
	MPI_Finalize();
	free(bytes);
	return 0;
}
