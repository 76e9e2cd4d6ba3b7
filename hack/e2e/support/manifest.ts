/** What a test wants a RateLimitConfig to say. */
export interface ManifestOptions {
  readonly name: string;
  readonly namespace?: string;
  readonly domain: string;
  /** Requests for each `key` of `limits`. */
  readonly limits: Readonly<Record<string, number>>;
  /** Of time, for all of them. Default `Hour`; a `Year` hardly ends amidst a test that counts. */
  readonly unit?: 'Hour' | 'Year';
}

/** A RateLimitConfig as JSON, which kubectl takes like YAML. */
export function manifest({
  name,
  namespace = 'default',
  domain,
  limits,
  unit = 'Hour',
}: ManifestOptions): string {
  return JSON.stringify({
    apiVersion: 'ratelimit.tollgate.dev/v1alpha1',
    kind: 'RateLimitConfig',
    metadata: { name, namespace },
    spec: {
      domain,
      descriptors: Object.entries(limits).map(([key, requestsPerUnit]) => ({
        key,
        rateLimit: { unit, requestsPerUnit },
      })),
    },
  });
}
