/* Runs packet scripts. `runner FILE...`: each file in a process of its own, so that one failure does not hide
 * others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "script.h"

static const struct command {
	const char *name;
	void (*run)(struct line *line);
} commands[] = {
	/* The scene, before anything happens. */
	{ "nic", do_nic },
	{ "lane", do_lane },
	{ "mr", do_mr },
	{ "mw", do_mw },
	{ "cq", do_cq },
	{ "srq", do_srq },
	{ "xrc_srq", do_xrc_srq },
	{ "qp", do_qp },
	{ "peer", do_peer },
	/* What the program and the network do. */
	{ "<", do_arrive },
	{ "post", do_post },
	{ "recv", do_recv },
	{ "modify", do_modify },
	{ "arm", do_arm },
	{ "invalidate", do_invalidate },
	{ "mcast", do_mcast },
	{ "send_error", do_send_error },
	{ "flush_acks", do_flush_acks },
	{ "srq_limit", do_srq_limit },
	{ "destroy_srq", do_destroy_srq },
	{ "store", do_store },
	/* What must come of it. */
	{ ">", do_leave },
	{ "complete", do_complete },
	{ "poll", do_poll },
	{ "event", do_event },
	{ "state", do_state },
	{ "counter", do_counter },
	{ "deadline", do_deadline },
	{ "idle", do_idle },
	{ "quiet", do_quiet },
};

static void run_line(struct line *line)
{
	const char *word = line_word(line);
	for (unsigned i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(commands[i].name, word) == 0) {
			commands[i].run(line);
			line_end(line);
			if (stage.arriving_count == 0)
				memory_check(line);
			return;
		}
	}
	fail(line, "unknown command '%s'", word);
}

static void run_file(const char *file)
{
	FILE *in = fopen(file, "r");
	struct line *line = calloc(1, sizeof(*line));
	char text[1024];
	if (!in) {
		perror(file);
		exit(2);
	}
	line->file = file;
	while (fgets(text, sizeof(text), in)) {
		line->number++;
		line_parse(line, text);
		if (line->token_count)
			run_line(line);
	}
	fclose(in);
	line_parse(line, "(end of script)");
	stage_close(line);
	free(line);
}

int main(int argc, char **argv)
{
	int failed = 0;
	if (argc == 2) {
		run_file(argv[1]);
		return 0;
	}
	for (int i = 1; i < argc; i++) {
		int status;
		fflush(stdout);
		pid_t child = fork();
		if (child == 0) {
			run_file(argv[i]);
			exit(0);
		}
		if (child < 0 || waitpid(child, &status, 0) != child)
			return 2;
		bool is_bad = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
		printf("%s %s\n", is_bad ? "FAIL" : "ok  ", argv[i]);
		failed += is_bad;
	}
	printf("%d of %d scripts passed\n", argc - 1 - failed, argc - 1);
	return failed || argc < 2;
}
