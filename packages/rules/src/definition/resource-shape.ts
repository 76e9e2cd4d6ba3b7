import { domainOptions, rows, type TextBounds } from './fields.ts';

/** The API that a RateLimitConfig belongs to. */
export const resourceGroup = 'ratelimit.tollgate.dev';

/** The only version. */
export const resourceVersion = 'v1alpha1';

/** The kind of a RateLimitConfig. */
export const resourceKind = 'RateLimitConfig';

/** `apiVersion` of every RateLimitConfig. */
export const resourceApiVersion = `${resourceGroup}/${resourceVersion}`;

/** A class of limiters, as objects and limiters name it. */
export const limiterClassBounds: TextBounds & Required<Pick<TextBounds, 'pattern' | 'form'>> = {
  min: 1,
  max: 63,
  pattern: /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/,
  form: 'a lower-case name such as edge-eu',
};

/** Metadata of the node of an ADS client: the class of the limiter. */
export const limiterClassKey = 'tollgate.dev/limiter-class';

const namesOf = (fields: readonly { readonly name: string }[]) => fields.map(({ name }) => name);

/** Fields of an entry of a `match`. */
export const matchFields = rows.descriptor.filter(({ part }) => part === 'match');

/** Fields of a descriptor that are fields of an item of `limits`. */
export const ruleFields = rows.descriptor.filter(({ part }) => part === 'limit');

/** Fields of the `rateLimit` of an item of `limits`, which has its name outside. */
export const unnamedLimitFields = rows.limit.filter(({ name }) => name !== 'name');

/** Fields of each part of a RateLimitConfig, for the CRD and the reader of manifests. */
export const resourceFields = {
  manifest: ['apiVersion', 'kind', 'metadata', 'spec', 'status'],
  spec: ['domain', 'descriptors', 'limits', 'trial', 'limiterClassName', ...namesOf(domainOptions)],
  descriptor: namesOf(rows.descriptor),
  rateLimit: namesOf(rows.limit),
  replaced: ['name'],
  limit: ['name', 'match', ...namesOf(ruleFields)],
  limitRateLimit: namesOf(unnamedLimitFields),
  match: namesOf(matchFields),
} as const;

/**
 * Levels of `descriptors`, and maximum entries of a `match`: schemas of Kubernetes cannot recurse.
 */
export const maxResourceDepth = 8;

/** Maximum items of lists. */
export const resourceLists = {
  /**
   * The limit is per level. So many take 0.5 MB as rules, and etcd stores 1.5 MB; a second object
   * of the domain can hold more.
   */
  descriptors: 4096,
  limits: 4096,
  match: maxResourceDepth,
} as const;
