// Runs first in the process of every test (.taprc). tap would note each file that a test and the servers it starts load, and
// read the source maps of all packages to do so: a quarter of the CPU time of the tests, for `tap --changed` alone, which
// then would miss what a test reads without importing it. Here no file is noted.
process.env._TAPJS_PROCESSINFO_EXCLUDE_ = '/./';
// The servers that a test starts inherit the line above, and need not run this file, which they may not even find.
delete process.env.NODE_OPTIONS;
