/** A manifest as a person writes it, with one limit for the key `k`. */
export function manifestText(name: string, requestsPerUnit = 10, namespace?: string): string {
  const where = namespace === undefined ? '' : `, namespace: ${namespace}`;
  return `apiVersion: ratelimit.tollgate.dev/v1alpha1
kind: RateLimitConfig
metadata: { name: ${name}${where} }
spec:
  domain: ${name}
  descriptors:
    - key: k
      rateLimit: { unit: Minute, requestsPerUnit: ${requestsPerUnit} }
`;
}

/** Several documents in one file. */
export const documents = (...texts: readonly string[]): string => texts.join('---\n');
