/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Tests on top of cmocka. A test adds itself to the list of its program. The program needs no
 * table of tests and no main():
 *
 *	FIXTURE(port_setup, port_teardown);
 *
 *	TEST(a_response_ends_its_request)
 *	{
 *		...
 *	}
 *
 * Tests run in the order in which they stand in their file.
 *
 *	FIXTURE(setup, teardown)	of each TEST() of the file, at most once in a file
 *	TEST_WITH(name, setup, teardown)	a test with another fixture; NULL: none
 *	PLAIN_TEST(name)	a test without a fixture
 *	TEST_ON(name, parameter, make, drop)	a test with a parameter, a pointer that make()
 *		returns and that drop() gets: TEST_ON(name, struct subnet *subnet, make, drop)
 *	TEST_ROWS(run, rows);	a TEST() for each element of the array rows. Its name is the
 *		element's member behaviour; run() gets the address of the element.
 *	test_seed()	the seed of a random test
 *	assert_fails(call, EINVAL), assert_fails_minus_1(), assert_fails_null()	and errno
 *	GROUP(setup, teardown)	before the first test, and after the last one
 *
 * A fixture function is "int setup(void)" and returns 0. A program with arguments defines
 * OWN_MAIN before it includes this file, and its main() calls run_all_tests(). A program may
 * have several files with tests: definitions are weak.
 */
#ifndef TESTS_UNIT_TEST_H
#define TESTS_UNIT_TEST_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define TESTS_MAX 512

struct test {
	const char *name, *file;
	int line;
	void (*run)(void);
	int (*setup)(void), (*teardown)(void);
	/* or, for TEST_ON() */
	void (*run_on)(void *object);
	void *(*make)(void);
	void (*drop)(void *object);
	void *object;
	/* or, for TEST_ROWS() */
	void (*run_row)(const void *row);
	const void *row;
};

struct test_list {
	struct test tests[TESTS_MAX];
	size_t count;
	int (*setup)(void), (*teardown)(void);
};

void test_add(struct test test);
int run_all_tests(void);

struct test_list __attribute__((weak)) test_list;

/* Constructors run in no order that a compiler guarantees. */
void __attribute__((weak)) test_add(struct test test)
{
	size_t i = test_list.count++;

	if (i == TESTS_MAX) {
		fprintf(stderr, "a program has more than %d tests\n", TESTS_MAX);
		abort();
	}
	for (; i && test_list.tests[i - 1].line > test.line &&
	       !strcmp(test_list.tests[i - 1].file, test.file);
	     i--)
		test_list.tests[i] = test_list.tests[i - 1];
	test_list.tests[i] = test;
}

static inline int test_setup(void **state)
{
	struct test *test = (struct test *)*state;

	if (test->make)
		return (test->object = test->make()) ? 0 : -1;
	return test->setup ? test->setup() : 0;
}

static inline void test_run(void **state)
{
	struct test *test = (struct test *)*state;

	if (test->run_on)
		test->run_on(test->object);
	else if (test->run_row)
		test->run_row(test->row);
	else
		test->run();
}

static inline int test_teardown(void **state)
{
	struct test *test = (struct test *)*state;

	if (test->drop)
		test->drop(test->object);
	return test->teardown ? test->teardown() : 0;
}

static inline int test_group_setup(void **state)
{
	(void)state;
	return test_list.setup ? test_list.setup() : 0;
}

static inline int test_group_teardown(void **state)
{
	(void)state;
	return test_list.teardown ? test_list.teardown() : 0;
}

/* Returns the number of tests that failed. */
int __attribute__((weak)) run_all_tests(void)
{
	static struct CMUnitTest tests[TESTS_MAX];

	for (size_t i = 0; i < test_list.count; i++)
		tests[i] = (struct CMUnitTest){
			.name = test_list.tests[i].name,
			.test_func = test_run,
			.setup_func = test_setup,
			.teardown_func = test_teardown,
			.initial_state = &test_list.tests[i],
		};
	return _cmocka_run_group_tests("tests", tests, test_list.count, test_group_setup,
				       test_group_teardown);
}

#ifndef OWN_MAIN
int __attribute__((weak)) main(void)
{
	return run_all_tests();
}
#endif

/* The seed of a random test, which it prints. TEST_SEED in the environment repeats a run. */
static inline unsigned test_seed(void)
{
	const char *chosen = getenv("TEST_SEED");
	unsigned seed = chosen ? (unsigned)strtoul(chosen, NULL, 0) : (unsigned)time(NULL);

	print_message("TEST_SEED=%u\n", seed);
	return seed;
}

/* The call fails with this errno, and returns the negative errno, -1, or NULL. */
#define assert_fails(call, error)         assert_errno(assert_int_equal(call, -(error)), error)
#define assert_fails_minus_1(call, error) assert_errno(assert_int_equal(call, -1), error)
#define assert_fails_null(call, error)    assert_errno(assert_null(call), error)

#define assert_errno(assertion, error)          \
	do {                                    \
		errno = 0;                      \
		assertion;                      \
		assert_int_equal(errno, error); \
	} while (0)

#define TEST_ADD(test_name, ...)                                                               \
	static void __attribute__((constructor)) add_##test_name(void)                         \
	{                                                                                      \
		test_add((struct test){                                                        \
			.name = #test_name, .file = __FILE__, .line = __LINE__, __VA_ARGS__}); \
	}

#define TEST_WITH(test_name, setup_test, teardown_test)                                       \
	static void test_name(void);                                                          \
	TEST_ADD(test_name, .run = test_name, .setup = setup_test, .teardown = teardown_test) \
	static void test_name(void)

#define TEST(test_name)       TEST_WITH(test_name, file_setup, file_teardown)
#define PLAIN_TEST(test_name) TEST_WITH(test_name, NULL, NULL)

/* The fixture of a file without FIXTURE(). */
static int (*file_setup)(void) __attribute__((unused));
static int (*file_teardown)(void) __attribute__((unused));

#define FIXTURE(setup, teardown)                \
	static int (*file_setup)(void) = setup; \
	static int (*file_teardown)(void) = teardown

#define TEST_ON(test_name, parameter, make_object, drop_object)                  \
	static void test_name(parameter);                                        \
	static void *make_##test_name(void)                                      \
	{                                                                        \
		return make_object();                                            \
	}                                                                        \
	static void run_##test_name(void *object)                                \
	{                                                                        \
		test_name(object);                                               \
	}                                                                        \
	static void drop_##test_name(void *object)                               \
	{                                                                        \
		drop_object(object);                                             \
	}                                                                        \
	TEST_ADD(test_name, .run_on = run_##test_name, .make = make_##test_name, \
		 .drop = drop_##test_name)                                       \
	static void test_name(parameter __attribute__((unused)))

#define TEST_ROWS(run_one, rows)                                              \
	static void run_##rows(const void *test_row)                          \
	{                                                                     \
		run_one(test_row);                                            \
	}                                                                     \
	static void __attribute__((constructor)) add_##rows(void)             \
	{                                                                     \
		for (size_t i = 0; i < sizeof(rows) / sizeof((rows)[0]); i++) \
			test_add((struct test){                               \
				.name = (rows)[i].behaviour,                  \
				.file = __FILE__,                             \
				.line = __LINE__,                             \
				.run_row = run_##rows,                        \
				.row = &(rows)[i],                            \
				.setup = file_setup,                          \
				.teardown = file_teardown,                    \
			});                                                   \
	}                                                                     \
	struct test_list

#define GROUP(setup_group, teardown_group)                       \
	static void __attribute__((constructor)) add_group(void) \
	{                                                        \
		test_list.setup = setup_group;                   \
		test_list.teardown = teardown_group;             \
	}                                                        \
	struct test_list

#endif
