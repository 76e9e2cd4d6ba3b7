import packageJson from '../../package.json' with { type: 'json' };
import { type OperationId, operations } from './operations.ts';
import { schemas } from './schemas.ts';

const tag = {
  name: 'Counters',
  description: 'Counters, overrides and reservations of the rate limit service.',
};

/** The OpenAPI document of the counter API. @see https://spec.openapis.org/oas/v3.1.0 */
export function counterApiDocument(): object {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Tollgate counter API',
      version: packageJson.version,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: 'http://127.0.0.1:6071' }],
    tags: [
      { name: 'Counters', description: 'Counters, overrides and reservations of the rate limit service.' },
    ],
    paths: describePaths(),
    components: {
      schemas,
      responses: {
        Refused: { description: 'The request was refused.', ...json('Error') },
        Failed: {
          description: 'The store or the rules are not available. Try again later.',
          ...json('Error'),
        },
      },
      securitySchemes: {
        token: {
          type: 'http',
          scheme: 'bearer',
          description: 'A token with the right that the operation names, or an API key of the auth server.',
        },
      },
    },
  };
}

function describePaths(): Readonly<Record<string, object>> {
  const byPath = Object.groupBy(Object.entries(operations), ([, { path }]) => path);
  return Object.fromEntries(
    Object.entries(byPath).map(([path, ofPath = []]) => [path, Object.fromEntries(ofPath.map(describe))]),
  );
}

/** The method, and what the document says of it. */
function describe([id, operation]: [string, (typeof operations)[OperationId]]): [string, object] {
  const { method, summary, right, response } = operation;
  const description = {
    operationId: id,
    tags: [tag.name],
    summary,
    security: [{ token: [right] }],
    ...('list' in operation && { parameters: listParameters(operation.list) }),
    ...('request' in operation && { requestBody: { required: true, ...json(operation.request) } }),
    responses: {
      200: { description: 'Success.', ...json(response) },
      '4XX': { $ref: '#/components/responses/Refused' },
      '5XX': { $ref: '#/components/responses/Failed' },
    },
  };
  return [method.toLowerCase(), description];
}

function listParameters({ byDefault, max }: { readonly byDefault: number; readonly max: number }) {
  const limit = { type: 'integer', minimum: 1, maximum: max, default: byDefault };
  return [
    { name: 'domain', in: 'query', description: 'All domains by default.', schema: { type: 'string' } },
    { name: 'limit', in: 'query', description: 'Most items.', schema: limit },
  ];
}

function json(schema: keyof typeof schemas) {
  return { content: { 'application/json': { schema: { $ref: `#/components/schemas/${schema}` } } } };
}
