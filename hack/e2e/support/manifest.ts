/** What a test wants a RateLimitConfig to say. */
export interface ManifestOptions {
  readonly name: string;
  readonly namespace?: string;
  readonly domain: string;
  /** Requests an hour for each `key` of `limits`. */
  readonly limits: Readonly<Record<string, number>>;
}

/** A RateLimitConfig as JSON, which kubectl takes like YAML. */
export function manifest({ name, namespace = 'default', domain, limits }: ManifestOptions): string {
  return JSON.stringify({
    apiVersion: 'ratelimit.tollgate.dev/v1alpha1',
    kind: 'RateLimitConfig',
    metadata: { name, namespace },
    spec: {
      domain,
      descriptors: Object.entries(limits).map(([key, requestsPerUnit]) => ({
        key,
        rateLimit: { unit: 'Hour', requestsPerUnit },
      })),
    },
  });
}
