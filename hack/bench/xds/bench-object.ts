/** Rules of one object. */
export const rulesPerObject = 4;

/** Each object has a domain of its own, of the same name. */
export function objectName(index: number): string {
  return `app-${String(index).padStart(5, '0')}`;
}

/** The RateLimitConfig number `index`, in YAML. `userLimit` is what an edit changes. */
export function objectManifest(index: number, userLimit: number): string {
  const name = objectName(index);
  return `apiVersion: ratelimit.tollgate.dev/v1alpha1
kind: RateLimitConfig
metadata:
  name: ${name}
  namespace: default
spec:
  domain: ${name}
  descriptors:
    - key: user
      rateLimit:
        unit: Hour
        requestsPerUnit: ${userLimit}
    - key: route
      value: checkout
      rateLimit:
        unit: Second
        requestsPerUnit: 100
    - key: plan
      value: pro
      descriptors:
        - key: user
          rateLimit:
            unit: Minute
            requestsPerUnit: 600
    - key: remote_address
      rateLimit:
        unit: Second
        requestsPerUnit: 50
`;
}

/** The limit of all objects before the first edit; no run comes near it. */
const initialUserLimit = 1_000_000;

/** Makes limits that no object has had before, so that the one in force tells which edit it came from. */
export function createLimits(): { readonly initial: number; next(): number } {
  let last = initialUserLimit;
  return {
    initial: initialUserLimit,
    next() {
      last += 1;
      return last;
    },
  };
}
