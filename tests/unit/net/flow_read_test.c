#include <unistd.h>
#include "net/workloads.h"
#include "flow_reading.h"

static const char csv[] = "src,dst,bytes,start_ns\n0,15,2000000,0\n3,1,1,20.5\n";
static const char hpcc[] = "2\n0 15 3 100 2000000 2.000000000\n\n3 1 0 101 1 2.0000000205\n";

static void csv__is_read(void **state)
{
	accepted(csv, 2);
	is_flow(0, 0, 15, 2000000, 0, FLOW_NONE);
	is_flow(1, 3, 1, 1, 20500, FLOW_NONE);
	accepted("1,2,3,4", 1);
	is_flow(2, 1, 2, 3, 4000, FLOW_NONE);
	accepted("# a comment\r\n\r\nsrc, dst, bytes, start_ns\r\n1,2,1e3,9\r\n\t\r\n#\r\n5,6,1000.0,2.5e3\r\n\r\n", 2);
	is_flow(3, 1, 2, 1000, 9000, FLOW_NONE);
	is_flow(4, 5, 6, 1000, 2500000, FLOW_NONE);
	accepted("\xEF\xBB\xBF"
		 "1,2,3,4\n",
		1);
}

static void hpcc__is_read(void **state)
{
	accepted(hpcc, 2);
	is_flow(0, 0, 15, 2000000, 2 * VB_S, FLOW_NONE);
	is_flow(1, 3, 1, 1, 2 * VB_S + 20500, FLOW_NONE);
	assert_int_equal(list.flows[0].traffic_class, 3);
	assert_int_equal(list.flows[1].traffic_class, 0);
	accepted("0\n", 0);
	accepted("2\r\n3 1 0 101 1 5e-06\r\n0 15 3 100 7 0\r\n1 2 3 100 7 0\r\n\r\nFirst line: # of flows\r\n", 2);
	is_flow(2, 3, 1, 1, 5 * VB_US, FLOW_NONE);
}

static void lines__that_are_wrong_are_named(void **state)
{
	accepted("1,2,3,4", 1); /* stays whatever comes behind */
	refused("", "f: an empty file");
	refused("src,dst\n1,2,3\n", "f:1: the columns are src,dst, expected src,dst,bytes,start_ns");
	refused("start_ns,src,dst,bytes\n5,1,2,3\n",
		"f:1: the columns are start_ns,src,dst,bytes, expected src,dst,bytes,start_ns");
	refused("src,dst,bytes,start_us\n1,2,3,4\n",
		"f:1: the columns are src,dst,bytes,start_us, expected src,dst,bytes,start_ns");
	refused("-1,2,3,4\n1,2,3,4\n", "f:1: '-1' is no source");
	refused("\"1\",2,3,4\n1,2,3,4\n", "f:1: '\"1\"' is no source");
	refused("1,2,3\n", "f:1: '' is no start in ns, of whole ps up to 24 h");
	refused("1,2,3,4,5\n", "f:1: expected src,dst,bytes,start in ns, and no more");
	refused("1,2,3,-4\n", "f:1: '-4' is no start in ns, of whole ps up to 24 h");
	refused("1,2,3,1e14\n", "f:1: '1e14' is no start in ns, of whole ps up to 24 h");
	refused("1,2,99999999999999999,4\n", "f:1: '99999999999999999' is no number of bytes up to 2^44");
	refused("1,,3,4\n", "f:1: '' is no destination");
	refused("1,2,3,4\n1,16,3,4\n", "f:2: endpoint 16, yet the network's are 0 to 15");
	refused("99,1,3,4\n", "f:1: endpoint 99, yet the network's are 0 to 15");
	refused("2,2,3,4\n", "f:1: a flow from endpoint 2 to itself");
	refused("2,3,0,4\n", "f:1: a flow of no bytes");
	refused("2 3\n", "f:1: expected the number of flows, or \"src,dst,bytes,start\"");
	refused("2\n0 1 3 100 5 0\n", "f:2: 1 flows, yet the first line says 2");
	refused("1\n0 1 8 100 5 0\n", "f:2: '8' is no traffic class from 0 to 7");
	refused("1\n0 1 0 65536 5 0\n", "f:2: '65536' is no port");
	refused("1\n0 1 0 100 5 -1\n", "f:2: '-1' is no start in s, of whole ps up to 24 h");
	refused("1\n0 1 0 100 5 0 7\n", "f:2: expected \"src dst class port bytes start\", and no more");
	is_flow(0, 1, 2, 3, 4000, FLOW_NONE);
}

static void bytes__of_any_kind_are_survived(void **state)
{
	survived(csv);
	survived(hpcc);
}

static void file__is_read_from_disk(void **state)
{
	char path[] = "/tmp/flow_read_test.XXXXXX";
	int fd = mkstemp(path);
	assert_int_equal(write(fd, csv, strlen(csv)), strlen(csv));
	close(fd);
	assert_int_equal(flow_list_read(&list, path, 16, why, sizeof(why)), 0);
	unlink(path);
	assert_int_equal(list.count, 2);
	assert_int_equal(flow_list_read(&list, "/nowhere", 16, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "/nowhere: No such file or directory");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, NULL, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(csv__is_read),
		TEST(hpcc__is_read),
		TEST(lines__that_are_wrong_are_named),
		TEST(bytes__of_any_kind_are_survived),
		TEST(file__is_read_from_disk),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
