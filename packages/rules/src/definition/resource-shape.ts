import { durationPattern } from '@tollgate/kit/time';
import { type resourceNames, resourceValues } from './spelling.ts';

/** The API that a RateLimitConfig belongs to. */
export const resourceGroup = 'ratelimit.tollgate.dev';

/** The only version. */
export const resourceVersion = 'v1alpha1';

/** The kind of a RateLimitConfig. */
export const resourceKind = 'RateLimitConfig';

/** `apiVersion` of every RateLimitConfig. */
export const resourceApiVersion = `${resourceGroup}/${resourceVersion}`;

type ResourceName = (typeof resourceNames)[keyof typeof resourceNames];

const rateLimitFields = [
  'unit',
  'period',
  'timeZone',
  'requestsPerUnit',
  'unlimited',
  'algorithm',
  'burst',
  'lease',
  'charge',
  'maxDebt',
  'onStoreFailure',
  'replaces',
] as const satisfies readonly ResourceName[];

/** Fields of each part of a RateLimitConfig, for the CRD and the reader of manifests. */
export const resourceFields = {
  manifest: ['apiVersion', 'kind', 'metadata', 'spec', 'status'],
  spec: ['domain', 'descriptors', 'limits', 'trial', 'onStoreFailure', 'atomic'],
  descriptor: [
    'key',
    'value',
    'rateLimit',
    'descriptors',
    'shadowMode',
    'quotaMode',
    'detailedMetric',
    'valueToMetric',
    'shareThreshold',
    'metadata',
  ],
  rateLimit: [...rateLimitFields, 'name'],
  replaced: ['name'],
  limit: ['name', 'match', 'rateLimit', 'shadowMode', 'quotaMode', 'detailedMetric', 'metadata'],
  /** The `rateLimit` of a limit, which has its name outside. */
  limitRateLimit: rateLimitFields,
  match: ['key', 'value', 'valueToMetric', 'shareThreshold'],
} as const;

/** A field of one part of a RateLimitConfig. */
export type ResourceField<Part extends keyof typeof resourceFields> = (typeof resourceFields)[Part][number];

const { second, minute, hour, day, week, month, year } = resourceValues;

/** Units; other cases are refused. */
export const resourceUnits = [second, minute, hour, day, week, month, year] as const;

/** Algorithms, and how rules spell them. */
export const resourceAlgorithms = {
  [resourceValues.fixed_window]: 'fixed_window',
  [resourceValues.sliding_window]: 'sliding_window',
  [resourceValues.token_bucket]: 'token_bucket',
  [resourceValues.concurrency]: 'concurrency',
} as const;

/** Which hits are counted, and how rules spell it. */
export const resourceCharges = {
  [resourceValues.always]: 'always',
  [resourceValues.allowed]: 'allowed',
} as const;

/** Policies for a failing store, and how rules spell them. */
export const resourceStoreFailures = {
  [resourceValues.allow]: 'allow',
  [resourceValues.deny]: 'deny',
  [resourceValues.local]: 'local',
} as const;

/** Bounds of a text, in Unicode characters, and its form where it has one. */
export interface TextBounds {
  readonly min: number;
  readonly max: number;
  readonly pattern?: RegExp;
  /** Description of the pattern. */
  readonly form?: string;
}

/**
 * Names of limits have the form of Kubernetes labels, because they appear in response headers and
 * messages.
 */
const nameBounds: TextBounds = {
  min: 1,
  max: 63,
  pattern: /^[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?$/,
  form: 'letters, digits, - _ . between them',
};

/** A duration; whether it is possible is checked with the rules. */
const periodBounds: TextBounds = {
  min: 1,
  max: 64,
  pattern: new RegExp(durationPattern),
  form: 'a duration such as 90s, 5m or 36h',
};

/** Bounds of the texts of a RateLimitConfig. */
export const resourceTexts = {
  /** Length of a DNS name. */
  domain: { min: 1, max: 253 },
  key: { min: 1, max: 253 },
  /** For paths and tokens. */
  value: { min: 0, max: 1024 },
  name: nameBounds,
  lease: { min: 2, max: 3, pattern: /^([1-9]|[1-4][0-9]|50)%$/, form: 'a percentage from 1% to 50%' },
  period: periodBounds,
  timeZone: { min: 1, max: 64 },
} as const satisfies Record<string, TextBounds>;

/**
 * Levels of `descriptors`, and maximum entries of a `match`: schemas of Kubernetes cannot recurse.
 */
export const maxResourceDepth = 8;

/** Maximum items of lists. */
export const resourceLists = {
  /**
   * Per level. They take 0.5 MB as rules, and etcd stores 1.5 MB; a second object of the domain can
   * hold more.
   */
  descriptors: 4096,
  limits: 4096,
  match: maxResourceDepth,
  replaces: 16,
} as const;

/** Maximum of one window: a uint32. */
export const maxRequestsPerUnit = 4_294_967_295;
