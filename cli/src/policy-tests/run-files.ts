import { dirname, join } from 'node:path';
import type { Source } from '@tollgate/policies/files/documents';
import type { Finding } from '@tollgate/policies/files/finding';
import { loadPolicies } from '@tollgate/policies/files/load';
import { readSources } from '../policies/sources.ts';
import { readTests } from './read.ts';
import { runTest, type TestResult } from './run.ts';

/** The results of a file of tests. */
export interface FileResult {
  readonly file: string;
  /** Problems of the file and of its policies, which keep the tests from running. */
  readonly problems: readonly Finding[];
  readonly results: readonly TestResult[];
  /** Files and folders that the tests read. */
  readonly policies: readonly string[];
}

/**
 * Runs the tests of all files.
 *
 * @param paths files, or folders of which files of other kinds are ignored
 * @throws CommandFailure when a file cannot be read
 */
export async function runTestFiles(
  paths: readonly string[],
  readInput: () => Promise<string>,
): Promise<readonly FileResult[]> {
  const results: FileResult[] = [];
  for (const source of await readSources(paths, readInput)) results.push(...(await runSource(source)));
  return results;
}

async function runSource(source: Source): Promise<readonly FileResult[]> {
  const { tests: documents, findings, counts } = loadPolicies([source]);
  const file = source.path;
  const none = { file, results: [], policies: [] };
  if (documents.length === 0) {
    if (!source.isNamed) return [];
    const message = 'the file has no tests: expected `tests`, and `policies` with the files to test';
    return [{ ...none, problems: counts.size > 0 ? [{ severity: 'problem', file, message }] : findings }];
  }
  const results: FileResult[] = [];
  for (const document of documents) {
    const read = readTests(document);
    if (!read.ok) {
      results.push({ ...none, problems: read.findings });
      continue;
    }
    const policies = read.policies.map((path) => join(dirname(file), path));
    const loaded = loadPolicies(await readSources(policies, async () => ''));
    const problems = loaded.findings.filter(({ severity }) => severity === 'problem');
    const tests: TestResult[] = [];
    if (problems.length === 0) for (const test of read.tests) tests.push(await runTest(loaded, test));
    results.push({ file, problems, results: tests, policies });
  }
  return results;
}
