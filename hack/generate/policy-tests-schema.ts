import { testFile } from '../../cli/src/policy-tests/format.ts';

/** The JSON schema of files of tests of policies, for editors. */
export function renderPolicyTestsSchema(): string {
  return JSON.stringify({
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Tests of policies for tollgate policy test',
    ...testFile,
  });
}
