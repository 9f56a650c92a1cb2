/* The presets beside the counts of published weights: models.csv, the first argument. */
#include "steps/model.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../unit.h"

static const char *published;

/* name,layers,hidden,heads,kv_heads,head_dim,ffn,vocab,experts,top_k,shared,seq,total,active,kv */
enum { NAME, TOTAL = 12, ACTIVE, KV, COLUMNS };

static unsigned split(char *line, char *columns[COLUMNS])
{
	unsigned count = 0;
	line[strcspn(line, "\r\n")] = 0;
	for (char *rest = line, *column; count < COLUMNS && (column = strsep(&rest, ","));)
		columns[count++] = column;
	return count;
}

static void presets__have_the_published_counts(void **state)
{
	char line[256], *columns[COLUMNS];
	unsigned count = 0;
	FILE *file = fopen(published, "r");
	assert_non_null(file);
	assert_non_null(fgets(line, sizeof(line), file));
	for (; fgets(line, sizeof(line), file); count++) {
		assert_int_equal(split(line, columns), COLUMNS);
		const struct model *model = model_find(columns[NAME]);
		assert_non_null(model);
		assert_int_equal(model_parameters(model), strtoull(columns[TOTAL], NULL, 10));
		if (*columns[ACTIVE])
			assert_int_equal(model_active_parameters(model), strtoull(columns[ACTIVE], NULL, 10));
		assert_int_equal(model_kv_bytes(model), strtoull(columns[KV], NULL, 10));
		const uint32_t numbers[] = { model->layers, model->hidden, model->heads, model->kv_heads,
			model->head_dim, model->ffn, model->vocabulary, model->experts, model->top_k, model->shared,
			model->sequence };
		for (unsigned i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
			assert_int_equal(numbers[i], strtoul(columns[NAME + 1 + i], NULL, 10));
	}
	fclose(file);
	assert_null(model_of(count));
	assert_non_null(model_of(count - 1));
}

/* arXiv 2412.19437: 37 B of 671 B are active, of which the input's embedding is not counted. */
static void deepseek__has_its_active_parameters(void **state)
{
	const struct model *model = model_find("deepseek-v3");
	assert_int_equal(model_active_parameters(model) / 10000000, 3755);
	assert_int_equal((model_active_parameters(model) - model_embedding_parameters(model, false)) / 100000000, 366);
	assert_false(model_layer_has_experts(model, 2));
	assert_true(model_layer_has_experts(model, 3));
}

/* arXiv 2104.04473, equation 3, without the forward pass that it counts twice: 72 B s L h^2 (1 + s/6h + V/12Lh). */
static void gpt__does_the_work_of_its_paper(void **state)
{
	const struct model *model = model_find("gpt3-175b");
	const double s = 2048, l = 96, h = 12288, v = 50257;
	const double wanted = 72 * s * l * h * h * (1 + s / (6 * h) + v / (12 * l * h));
	const double is = 3 * s * model_work(model, 2048, false);
	assert_true(fabs(is / wanted - 1) < 1e-9);
}

/* Attention over the tokens before adds 4.2% to 405B at 8,192. */
static void attention__is_a_small_part_of_large_models(void **state)
{
	const struct model *model = model_find("llama3-405b");
	const double weights = 2.0 * (double)(model_parameters(model) - model_embedding_parameters(model, false));
	const double ratio = model_work(model, 8192, true) / weights;
	assert_true(ratio > 1.040 && ratio < 1.044);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(presets__have_the_published_counts),
		cmocka_unit_test(deepseek__has_its_active_parameters),
		cmocka_unit_test(gpt__does_the_work_of_its_paper),
		cmocka_unit_test(attention__is_a_small_part_of_large_models),
	};
	assert_int_equal(argc, 2);
	published = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
