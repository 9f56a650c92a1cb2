/* How long an MPI_Allreduce of so many bytes takes: median over many, on rank 0. Prints "allreduce_us=N". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 200, LARGE_ROUNDS = 20, LARGE = 1 << 20 };

static int by_value(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;
	return (a > b) - (a < b);
}

int main(int argc, char **argv)
{
	int rank, count = argc > 1 ? atoi(argv[1]) / (int)sizeof(float) : 0;
	int rounds = count * (int)sizeof(float) >= LARGE ? LARGE_ROUNDS : ROUNDS;
	double took[ROUNDS];

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	float *own = calloc((size_t)count + 1, sizeof(*own)), *sum = calloc((size_t)count + 1, sizeof(*sum));
	if (count <= 0 || !own || !sum) {
		fprintf(stderr, "usage: allreduce BYTES\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	for (int i = -rounds / 10 - 1; i < rounds; i++) { /* the first make the connections */
		MPI_Barrier(MPI_COMM_WORLD);
		double begin = MPI_Wtime();
		MPI_Allreduce(own, sum, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
		if (i >= 0)
			took[i] = MPI_Wtime() - begin;
	}
	qsort(took, (size_t)rounds, sizeof(took[0]), by_value);
	if (rank == 0)
		printf("allreduce_us=%.2f\n", took[rounds / 2] * 1e6);
	MPI_Finalize();
	free(own);
	free(sum);
	return 0;
}
