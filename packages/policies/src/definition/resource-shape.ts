/** The API that an AccessPolicy belongs to. */
export const policyGroup = 'policy.tollgate.dev';

/** The kind of an AccessPolicy. */
export const policyKind = 'AccessPolicy';

/** `apiVersion` of every AccessPolicy. */
export const policyApiVersion = `${policyGroup}/v1alpha1`;

export const manifestFields: readonly string[] = ['apiVersion', 'kind', 'metadata', 'spec', 'status'];
