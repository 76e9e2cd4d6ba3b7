import { createConfig, lint } from '@redocly/openapi-core';

/** The address of the server is a setting, and some operations only redirect. */
const notApplied = { 'no-server-example.com': 'off', 'operation-2xx-response': 'off' } as const;

/** Problems of an OpenAPI document by the recommended rules of the library, warnings included. */
export async function findOpenApiProblems(path: string): Promise<readonly string[]> {
  const config = await createConfig({ extends: ['recommended'], rules: notApplied });
  const problems = await lint({ ref: path, config });
  return problems.map(
    ({ ruleId, message, location }) => `${path}${location[0]?.pointer ?? ''}: ${message} (${ruleId})`,
  );
}
