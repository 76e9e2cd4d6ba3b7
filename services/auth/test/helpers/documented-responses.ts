import type { TSchema } from 'typebox';
import { Value } from 'typebox/value';
import type { Operation } from '../../src/app/operations/operation.ts';
import { operations } from '../../src/app/operations.ts';
import { components } from '../../src/http/open-api-components.ts';

interface Received {
  readonly status: number;
  readonly body: unknown;
}

const routes = Object.entries(operations).map(([route, operation]) => ({
  route: new RegExp(`^${route.replaceAll(/[.]/g, '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`),
  operation,
}));

/**
 * Throws if a response has members that the OpenAPI document does not have for its route, or lacks
 * some. Errors and paths outside the document are not checked.
 */
export function checkDocumented(method: string, path: string, { status, body }: Received): void {
  const name = `${method} ${path.split('?')[0]}`;
  // A path without parameters takes precedence over one with them.
  const operation = operations[name] ?? routes.find(({ route }) => route.test(name))?.operation;
  if (operation?.response === undefined || status !== (operation.status ?? 200)) return;
  const problems = findProblems(operation.response, body);
  if (problems !== undefined)
    throw new Error(`the response of ${name} is not that of the OpenAPI document: ${problems}`);
}

function findProblems(response: NonNullable<Operation['response']>, body: unknown): string | undefined {
  if (typeof response === 'object' && 'oneOf' in response) {
    const all = response.oneOf.map((name) => findProblems(name, body));
    return all.includes(undefined) ? undefined : all.join(', or ');
  }
  if (typeof response === 'string') return compare(response, body);
  if (!Array.isArray(body)) return 'no list';
  return body.map((item) => compare(response[0], item)).find((problem) => problem !== undefined);
}

function compare(name: keyof typeof components, body: unknown): string | undefined {
  const errors = Value.Errors(closed(components[name]), body);
  return errors.length === 0
    ? undefined
    : `${name}: ${errors.map(({ instancePath, message }) => `${instancePath} ${message}`).join(', ')}`;
}

/** A schema that accepts known members only. */
function closed(schema: TSchema): TSchema {
  const { properties, items } = schema as { properties?: Record<string, TSchema>; items?: TSchema };
  return {
    ...schema,
    ...(items !== undefined && { items: closed(items) }),
    ...(properties !== undefined && {
      properties: Object.fromEntries(
        Object.entries(properties).map(([key, member]) => [key, closed(member)]),
      ),
      additionalProperties: false,
    }),
  };
}
