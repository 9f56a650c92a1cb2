#include <errno.h>
#include <math.h>
#include "base/random.h"
#include "net/sizes.h"
#include "../unit.h"

static char why[200];

static int read_sizes(const char *bytes, struct sizes *sizes)
{
	struct text text = text_of("f", bytes, strlen(bytes), why, sizeof(why));
	return sizes_read(&text, sizes);
}

static void refused(const char *bytes, const char *because)
{
	struct sizes sizes;
	assert_int_equal(read_sizes(bytes, &sizes), -EINVAL);
	assert_string_equal(why, because);
	assert_null(sizes.points);
}

static void built_ins__have_the_means_of_their_points(void **state)
{
	/* by hand: the sum of share x (low + high) / 2 */
	const struct {
		const char *name;
		double mean;
	} known[] = { { "WebSearch", 1711250 }, { "FB_Hadoop", 120420.75 }, { "AliStorage2019", 40869.8 } };
	for (uint32_t i = 0; i < COUNT_OF(known); i++) {
		struct sizes sizes;
		assert_string_equal(sizes_name(i), known[i].name);
		assert_int_equal(sizes_find(known[i].name, &sizes, why, sizeof(why)), 0);
		assert_true(fabs((double)sizes_mean_millibytes(&sizes) / 1000 - known[i].mean) < 0.01);
		sizes_free(&sizes);
	}
	assert_null(sizes_name(COUNT_OF(known)));
}

static void draws__follow_the_distribution(void **state)
{
	enum { DRAWS = 200000 };
	for (uint32_t i = 0; sizes_name(i); i++) {
		struct sizes sizes;
		assert_int_equal(sizes_find(sizes_name(i), &sizes, why, sizeof(why)), 0);
		struct vb_random random;
		vb_random_seed(&random, i);
		uint32_t up_to[32] = { 0 };
		double sum = 0;
		for (int draw = 0; draw < DRAWS; draw++) {
			uint64_t size = sizes_draw(&sizes, vb_random_u64(&random));
			assert_true(size >= 1 && size <= sizes.points[sizes.count - 1].bytes);
			sum += (double)size;
			for (uint32_t point = 0; point < sizes.count; point++)
				up_to[point] += size <= sizes.points[point].bytes;
		}
		for (uint32_t point = 1; point < sizes.count; point++)
			assert_true(fabs((double)up_to[point] / DRAWS - (double)sizes.points[point].share / SIZES_ALL) <
				    0.005);
		double mean = (double)sizes_mean_millibytes(&sizes) / 1000;
		assert_true(fabs(sum / DRAWS - mean) < 0.03 * mean);
	}
}

static void draw__of_a_jump_is_that_size(void **state)
{
	struct sizes sizes;
	assert_int_equal(read_sizes("bytes,cum_percent\n100,25\n100,50\n200,50\n200,100\n", &sizes), 0);
	uint64_t quarter = (uint64_t)1 << 62;
	assert_int_equal(sizes_draw(&sizes, 0), 100);
	assert_int_equal(sizes_draw(&sizes, quarter), 100);
	assert_int_equal(sizes_draw(&sizes, 2 * quarter), 200);
	assert_int_equal(sizes_draw(&sizes, UINT64_MAX), 200);
	assert_int_equal(sizes_mean_millibytes(&sizes), 150000);
	sizes_free(&sizes);
}

static void draw__lies_on_the_line_between_points(void **state)
{
	struct sizes sizes;
	assert_int_equal(read_sizes("0,0\n1000,100\n", &sizes), 0);
	assert_int_equal(sizes_draw(&sizes, (uint64_t)1 << 63), 500);
	assert_int_equal(sizes_draw(&sizes, 0), 1);
	assert_int_equal(sizes_draw(&sizes, UINT64_MAX), 999);
	sizes_free(&sizes);
}

static void files__that_are_wrong_name_the_line(void **state)
{
	refused("", "f:0: does not end with 100 percent");
	refused("bytes,percent\n", "f:1: does not end with 100 percent");
	refused("0,0\n10,50\n", "f:2: does not end with 100 percent");
	refused("0,0\n10,50\n5,100\n", "f:3: less than on the line before");
	refused("0,10\n10,5\n20,100\n", "f:2: less than on the line before");
	refused("0,0\n10,101\n", "f:2: expected bytes,percent");
	refused("0,0\nten,100\n", "f:2: expected bytes,percent");
	refused("0,0,0\n10,100\n", "f:1: expected bytes,percent");
	refused("0,100\n", "f:1: all flows would have no bytes");
	refused("99999999999999999,100\n", "f:1: expected bytes,percent");
}

static void name__that_is_no_file_either_is_refused(void **state)
{
	struct sizes sizes;
	assert_int_equal(sizes_find("Webserch", &sizes, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "Webserch: No such file or directory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(built_ins__have_the_means_of_their_points),
		cmocka_unit_test(draws__follow_the_distribution),
		cmocka_unit_test(draw__of_a_jump_is_that_size),
		cmocka_unit_test(draw__lies_on_the_line_between_points),
		cmocka_unit_test(files__that_are_wrong_name_the_line),
		cmocka_unit_test(name__that_is_no_file_either_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
