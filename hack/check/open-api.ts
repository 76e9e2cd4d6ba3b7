import { createConfig, lint } from '@redocly/openapi-core';

/**
 * The address of the server is a setting, some operations only redirect, and schemas have their
 * parts inline.
 */
const notApplied = {
  'no-server-example.com': 'off',
  'operation-2xx-response': 'off',
  'no-unused-components': 'off',
} as const;

/** Problems of an OpenAPI document by the recommended rules of the library, warnings included. */
export async function findOpenApiProblems(path: string): Promise<readonly string[]> {
  const config = await createConfig({ extends: ['recommended'], rules: notApplied });
  const problems = await lint({ ref: path, config });
  return problems.map(
    ({ ruleId, message, location }) => `${path}${location[0]?.pointer ?? ''}: ${message} (${ruleId})`,
  );
}
