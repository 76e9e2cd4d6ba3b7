import { openApiDocument } from '@tollgate/kit/open-api';
import packageJson from '../../package.json' with { type: 'json' };
import { type ListOptions, operations } from './operations.ts';
import { schemas } from './schemas.ts';

const tag = 'Counters';

export function counterApiDocument(): object {
  return openApiDocument({
    title: 'Tollgate counter API',
    version: packageJson.version,
    server: 'http://127.0.0.1:6071',
    tags: { [tag]: 'Counters, overrides and reservations of the rate limit service.' },
    operations: Object.fromEntries(
      Object.entries(operations).map(([id, operation]) => [
        id,
        { ...operation, tag, query: 'list' in operation ? listQuery(operation.list) : {} },
      ]),
    ),
    schemas,
    token: 'A token with the right that the operation names, or an API key of the auth server.',
    failed: 'The store or the rules are not available. Try again later.',
    examples: {
      domain: 'shop',
      key: 'user',
      value: 'ann',
      reason: 'sale',
      unit: 'hour',
      rule: 'user',
      setBy: 'support',
      outcome: 'limited',
      id: 'eyJkb21haW4iOiJzaG9wIn0.Zx3c',
      requestsPerUnit: 100,
      prefixes: ['shop_user_ann_'],
    },
  });
}

function listQuery({ byDefault, max, hasPages }: ListOptions) {
  return {
    domain: { type: 'string', description: 'All domains by default.' },
    limit: { type: 'integer', minimum: 1, maximum: max, default: byDefault, description: 'Most items.' },
    ...(hasPages === true && pageQuery),
  };
}

const pageQuery = {
  search: { type: 'string', description: 'Items whose path has this text.' },
  after: { type: 'string', description: '`next` of the page before.' },
};
