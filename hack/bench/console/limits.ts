import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createLimiterClient, unwrap } from '@tollgate/admin-clients/clients';

/** Limits by route of a RateLimitConfig, which has one by user, too; an AccessPolicy has one. */
const limitsPerConfig = 8;
const limitsPerPair = limitsPerConfig + 2;

/** Requests that the limiter decides at the same time while it is filled. */
const inFlight = 32;

const objectName = (index: number) => `app-${String(index).padStart(5, '0')}`;

/**
 * Writes a folder with as many RateLimitConfigs as AccessPolicies, ten limits for each pair. One
 * object in ten is refused, and one config in ten is on trial.
 */
export function writePolicies(folder: string, limits: number): void {
  mkdirSync(folder, { recursive: true });
  const pairs = limits / limitsPerPair;
  const filesOf = 100;
  for (let first = 0; first < pairs; first += filesOf) {
    const manifests = Array.from({ length: Math.min(filesOf, pairs - first) }, (_, index) =>
      writePair(first + index),
    );
    writeFileSync(join(folder, `objects-${first}.yaml`), manifests.join('---\n'));
  }
}

function writePair(index: number): string {
  const name = objectName(index);
  const descriptors = Array.from(
    { length: limitsPerConfig },
    (_, limit) => `    - key: route
      value: r${limit}
      rateLimit: { unit: ${limit === 0 ? 'Day' : 'Hour'}, requestsPerUnit: ${limit === 0 ? 1 : 1000} }
`,
  );
  const trial = index % 10 === 1 ? '  trial: true\n' : '';
  const refused = index % 10 === 2 ? `  unknown: ${index}\n` : '';
  const users = `    - key: user
      rateLimit: { unit: Hour, requestsPerUnit: 100 }
`;
  return `apiVersion: ratelimit.tollgate.dev/v1alpha1
kind: RateLimitConfig
metadata: { name: ${name}, namespace: bench }
spec:
  domain: ${name}
${trial}${refused}  descriptors:
${descriptors.join('')}${users}---
apiVersion: policy.tollgate.dev/v1alpha1
kind: AccessPolicy
metadata: { name: ${name}, namespace: bench }
spec:
  hosts: [${name}.example.com]
  limits: [{ name: per-user, by: [User], requests: 100, per: Hour }]
`;
}

/** Uses the key of every limit of configs once, and that of the first limit of each twice. */
export async function useKeys(limiterUrl: string, limits: number): Promise<void> {
  const pairs = limits / limitsPerPair;
  const requests = Array.from({ length: pairs }, (_, index) =>
    [0, ...Array(limitsPerConfig).keys()].map((limit) => [objectName(index), `r${limit}`] as const),
  ).flat();
  const workers = Array.from({ length: inFlight }, async () => {
    for (let next = requests.pop(); next !== undefined; next = requests.pop()) {
      const [domain, value] = next;
      const body = JSON.stringify({ domain, descriptors: [{ entries: [{ key: 'route', value }] }] });
      const response = await fetch(`${limiterUrl}/json`, { method: 'POST', body });
      await response.text();
      if (response.status !== 200 && response.status !== 429)
        throw new Error(`the limiter answered ${response.status}`);
    }
  });
  await Promise.all(workers);
}

/** Sets overrides. */
export async function setOverrides(url: string, token: string): Promise<void> {
  const client = createLimiterClient({ url, token, timeoutMs: 20_000 });
  for (let index = 0; index < 200; index++) {
    const body = {
      domain: objectName(7),
      descriptors: [{ entries: [{ key: 'user', value: `user-${index}` }] }],
      ...{ requestsPerUnit: 10, ttlSeconds: 3600, reason: 'benchmark' },
    };
    await unwrap(client.PUT('/v1/overrides', { body }));
  }
}

/** Queries of pages about one object. */
export const limitQueries = {
  domain: objectName(7),
  descriptor: 'route=r1',
  object: `RateLimitConfig/bench/${objectName(7)}`,
  policy: `AccessPolicy/bench/${objectName(7)}`,
  host: `https://${objectName(7)}.example.com/orders`,
} as const;
