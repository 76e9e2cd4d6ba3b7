import { resourceApiVersion, resourceKind } from '@tollgate/rules/resource-shape';

/** A spec and what is to become of it, both here and in the API server. */
export interface ResourceCase {
  /** Case in words, as the end of a sentence. */
  readonly name: string;
  readonly spec: unknown;
}

/** A spec that is refused. */
export interface BadResource extends ResourceCase {
  /** JSON path of the first problem. */
  readonly field: string;
  /** Expected message. */
  readonly says: RegExp;
}

/** A manifest with a spec. */
export const manifestOf = (spec: unknown, name = 'web') => ({
  apiVersion: resourceApiVersion,
  kind: resourceKind,
  metadata: { name },
  spec,
});

const perMinute = { unit: 'Minute', requestsPerUnit: 10 };

/** A spec with one descriptor, which has a limit unless it is given another. */
const descriptor = (fields: object) => ({
  domain: 'shop/web',
  descriptors: [{ key: 'route', rateLimit: perMinute, ...fields }],
});

const rateLimit = (fields: object) => descriptor({ rateLimit: fields });

/** A spec with flat limits of a match each. */
const limits = (...items: readonly object[]) => ({
  domain: 'shop/web',
  limits: items.map((item, index) => ({
    name: `limit-${index}`,
    match: [{ key: 'route' }],
    rateLimit: perMinute,
    ...item,
  })),
});

/** A chain of descriptors, of which the last has the limit. */
function chain(levels: number, last: object = {}): object {
  const below = levels === 1 ? { rateLimit: perMinute, ...last } : { descriptors: [chain(levels - 1, last)] };
  return { key: `level-${levels}`, ...below };
}

/** Resources that the API server accepts and the reader reads. */
export const goodResources: readonly ResourceCase[] = [
  { name: 'a key with a limit', spec: descriptor({}) },
  {
    name: 'every field of a descriptor',
    spec: descriptor({
      value: 'api/*',
      rateLimit: {
        ...perMinute,
        unlimited: false,
        name: 'a.b_c-1',
        replaces: [{ name: 'x' }, { name: 'y' }],
      },
      descriptors: [{ key: 'user', rateLimit: { unlimited: true } }],
      shadowMode: true,
      quotaMode: false,
      detailedMetric: true,
      valueToMetric: true,
      shareThreshold: true,
      metadata: { tier: 1, tags: ['a', null, 1.5, true], deep: { er: {} } },
    }),
  },
  { name: 'no rules yet', spec: { domain: 'shop/web', descriptors: [] } },
  { name: 'no limits yet', spec: { domain: 'shop/web', limits: [] } },
  { name: 'eight levels', spec: { domain: 'd', descriptors: [chain(8)] } },
  {
    name: 'an empty list on the last level',
    spec: { domain: 'd', descriptors: [chain(8, { descriptors: [] })] },
  },
  { name: 'an empty list below a limit', spec: descriptor({ descriptors: [] }) },
  { name: 'a bare key', spec: { domain: 'd', descriptors: [{ key: 'route' }] } },
  {
    name: 'descriptors that limit nothing beside one that does',
    spec: {
      domain: 'd',
      descriptors: [
        { key: 'address', rateLimit: perMinute },
        { key: 'address', value: '10.0.0.1' },
        { key: 'address', value: '10.0.0.2', rateLimit: null, descriptors: [] },
      ],
    },
  },
  {
    name: 'null, which is as good as absent',
    spec: {
      ...descriptor({
        value: null,
        metadata: null,
        shadowMode: null,
        descriptors: null,
        rateLimit: { unlimited: true, unit: null },
      }),
      limits: null,
    },
  },
  {
    name: 'every unit',
    spec: {
      domain: 'd',
      descriptors: ['Second', 'Minute', 'Hour', 'Day', 'Week', 'Month', 'Year'].map((unit) => ({
        key: 'unit',
        value: unit,
        rateLimit: { unit, requestsPerUnit: 1 },
      })),
    },
  },
  { name: 'the smallest limit', spec: rateLimit({ unit: 'Second', requestsPerUnit: 0 }) },
  { name: 'the largest limit', spec: rateLimit({ unit: 'Second', requestsPerUnit: 4_294_967_295 }) },
  {
    name: 'the longest texts',
    spec: { ...descriptor({ key: 'k'.repeat(253), value: 'v'.repeat(1024) }), domain: 'd'.repeat(253) },
  },
  {
    name: 'texts of characters that take two units each',
    spec: { ...descriptor({}), domain: '🚦'.repeat(253) },
  },
  { name: 'a star that is not at the end', spec: descriptor({ value: '*/admin', shareThreshold: true }) },
  {
    name: 'one key with different values',
    spec: {
      domain: 'd',
      descriptors: [
        { key: 'a', rateLimit: perMinute },
        { key: 'a', value: '1', rateLimit: perMinute },
        { key: 'a', value: '2', rateLimit: perMinute },
      ],
    },
  },
  {
    name: 'every field of a limit',
    spec: limits(
      {
        match: [{ key: 'route', value: 'api/*', shareThreshold: true, valueToMetric: true }, { key: 'user' }],
        rateLimit: { ...perMinute, unlimited: false, replaces: [{ name: 'x' }] },
        shadowMode: true,
        quotaMode: true,
        detailedMetric: true,
        metadata: { a: [{}] },
      },
      { match: [{ key: 'other' }], rateLimit: { unlimited: true } },
    ),
  },
  {
    name: 'every algorithm',
    spec: limits(
      { rateLimit: { ...perMinute, algorithm: 'FixedWindow' } },
      { match: [{ key: 'a' }], rateLimit: { ...perMinute, algorithm: 'SlidingWindow' } },
      { match: [{ key: 'b' }], rateLimit: { ...perMinute, algorithm: 'TokenBucket', burst: 4_294_967_295 } },
      { match: [{ key: 'c' }], rateLimit: { ...perMinute, algorithm: 'Concurrency' } },
    ),
  },
  {
    name: 'leases',
    spec: limits(
      { rateLimit: { ...perMinute, requestsPerUnit: 200, lease: '1%' } },
      { match: [{ key: 'a' }], rateLimit: { ...perMinute, requestsPerUnit: 200, lease: '50%' } },
    ),
  },
  {
    name: 'every charge',
    spec: {
      ...limits(
        { rateLimit: { ...perMinute, charge: 'Allowed' } },
        {
          match: [{ key: 'a' }],
          rateLimit: { ...perMinute, algorithm: 'SlidingWindow', charge: 'Always', maxDebt: 0 },
        },
      ),
      atomic: true,
    },
  },
  {
    name: 'periods and calendars',
    spec: limits(
      { rateLimit: { period: '5m', requestsPerUnit: 10, algorithm: 'TokenBucket' } },
      { match: [{ key: 'a' }], rateLimit: { ...perMinute, unit: 'Month', timeZone: 'Europe/Berlin' } },
    ),
  },
  {
    name: 'every policy for a failing store',
    spec: {
      ...limits(
        { rateLimit: { ...perMinute, onStoreFailure: 'Allow' } },
        { match: [{ key: 'a' }], rateLimit: { ...perMinute, onStoreFailure: 'Deny' } },
      ),
      onStoreFailure: 'Local',
      atomic: true,
    },
  },
  {
    name: 'eight entries of a match',
    spec: limits({ match: Array.from({ length: 8 }, (_, index) => ({ key: `k${index}` })) }),
  },
];

const descriptorField = 'spec.descriptors[0]';
const limitField = 'spec.limits[0]';

/** Refused by the API server in any mode, and by the reader. */
export const badResources: readonly BadResource[] = [
  {
    name: 'an unknown algorithm',
    spec: rateLimit({ ...perMinute, algorithm: 'token_bucket' }),
    field: `${descriptorField}.rateLimit.algorithm`,
    says: /must be one of FixedWindow, SlidingWindow, TokenBucket, Concurrency, not 'token_bucket'/,
  },
  {
    name: 'a lease that is too large',
    spec: rateLimit({ ...perMinute, requestsPerUnit: 200, lease: '51%' }),
    field: `${descriptorField}.rateLimit.lease`,
    says: /'51%' is not allowed: must be a percentage from 1% to 50%/,
  },
  {
    name: 'an unknown charge',
    spec: rateLimit({ ...perMinute, charge: 'always' }),
    field: `${descriptorField}.rateLimit.charge`,
    says: /must be one of Always, Allowed, not 'always'/,
  },
  {
    name: 'a debt below zero',
    spec: rateLimit({ ...perMinute, algorithm: 'TokenBucket', charge: 'Always', maxDebt: -1 }),
    field: `${descriptorField}.rateLimit.maxDebt`,
    says: /must be a whole number from 0 to 4294967295/,
  },
  {
    name: 'both unit and period',
    spec: rateLimit({ ...perMinute, period: '1m' }),
    field: `${descriptorField}.rateLimit.unit`,
    says: /set either unit or period, not both/,
  },
  {
    name: 'a period without unit',
    spec: rateLimit({ period: '300', requestsPerUnit: 10 }),
    field: `${descriptorField}.rateLimit.period`,
    says: /'300' is not allowed: .*a duration such as 90s, 5m or 36h/,
  },
  {
    name: 'an unlimited period',
    spec: rateLimit({ period: '5m', unlimited: true }),
    field: `${descriptorField}.rateLimit.period`,
    says: /cannot be combined with unlimited: true/,
  },
  {
    name: 'an unknown policy for a failing store',
    spec: rateLimit({ ...perMinute, onStoreFailure: 'deny' }),
    field: `${descriptorField}.rateLimit.onStoreFailure`,
    says: /must be one of Allow, Deny, Local, not 'deny'/,
  },
  {
    name: 'an unknown policy of the domain',
    spec: { ...descriptor({}), onStoreFailure: 'Ignore' },
    field: 'spec.onStoreFailure',
    says: /must be one of Allow, Deny, Local, not 'Ignore'/,
  },
  {
    name: 'atomic as text',
    spec: { ...descriptor({}), atomic: 'yes' },
    field: 'spec.atomic',
    says: /must be true or false/,
  },
  { name: 'no domain', spec: { descriptors: [] }, field: 'spec.domain', says: /is required/ },
  {
    name: 'an empty domain',
    spec: { domain: '', descriptors: [] },
    field: 'spec.domain',
    says: /must not be empty/,
  },
  {
    name: 'a domain that is too long',
    spec: { domain: 'd'.repeat(254), descriptors: [] },
    field: 'spec.domain',
    says: /at most 253/,
  },
  {
    name: 'a number for a domain',
    spec: { domain: 5, descriptors: [] },
    field: 'spec.domain',
    says: /must be text, not 5: put it in quotes/,
  },
  {
    name: 'neither descriptors nor limits',
    spec: { domain: 'd' },
    field: 'spec',
    says: /exactly one of descriptors and limits, and has neither/,
  },
  {
    name: 'both descriptors and limits',
    spec: { domain: 'd', descriptors: [], limits: [] },
    field: 'spec',
    says: /and has both/,
  },
  {
    name: 'a mapping for the list',
    spec: { domain: 'd', descriptors: {} },
    field: 'spec.descriptors',
    says: /must be a list, not a mapping/,
  },
  {
    name: 'a text in the list',
    spec: { domain: 'd', descriptors: ['route'] },
    field: descriptorField,
    says: /must be a mapping, not 'route'/,
  },
  {
    name: 'a null in the list',
    spec: { domain: 'd', descriptors: [null] },
    field: descriptorField,
    says: /must be a mapping, not null/,
  },
  {
    name: 'a descriptor without key',
    spec: descriptor({ key: null }),
    field: `${descriptorField}.key`,
    says: /is required/,
  },
  {
    name: 'an empty key',
    spec: descriptor({ key: '' }),
    field: `${descriptorField}.key`,
    says: /must not be empty/,
  },
  {
    name: 'a key that is too long',
    spec: descriptor({ key: 'k'.repeat(254) }),
    field: `${descriptorField}.key`,
    says: /at most 253/,
  },
  {
    name: 'a boolean for a value',
    spec: descriptor({ value: true }),
    field: `${descriptorField}.value`,
    says: /must be text, not true: put it in quotes/,
  },
  {
    name: 'a value that is too long',
    spec: descriptor({ value: 'v'.repeat(1025) }),
    field: `${descriptorField}.value`,
    says: /at most 1024/,
  },
  {
    name: 'a limit that is a number',
    spec: descriptor({ rateLimit: 100 }),
    field: `${descriptorField}.rateLimit`,
    says: /must be a mapping, not 100/,
  },
  {
    name: 'an empty limit',
    spec: rateLimit({}),
    field: `${descriptorField}.rateLimit.unit`,
    says: /is required/,
  },
  {
    name: 'a limit without number',
    spec: rateLimit({ unit: 'Day' }),
    field: `${descriptorField}.rateLimit.requestsPerUnit`,
    says: /is required/,
  },
  {
    name: 'a limit without unit',
    spec: rateLimit({ requestsPerUnit: 3 }),
    field: `${descriptorField}.rateLimit.unit`,
    says: /is required/,
  },
  {
    name: 'a unit in lower case',
    spec: rateLimit({ unit: 'minute', requestsPerUnit: 3 }),
    field: `${descriptorField}.rateLimit.unit`,
    says: /one of Second, Minute, .*, not 'minute'/,
  },
  {
    name: 'an unlimited limit',
    spec: rateLimit({ ...perMinute, unlimited: true }),
    field: `${descriptorField}.rateLimit.unit`,
    says: /cannot be combined with unlimited: true/,
  },
  {
    name: 'an unlimited number',
    spec: rateLimit({ requestsPerUnit: 1, unlimited: true }),
    field: `${descriptorField}.rateLimit.requestsPerUnit`,
    says: /cannot be combined/,
  },
  {
    name: 'nothing but unlimited: false',
    spec: rateLimit({ unlimited: false }),
    field: `${descriptorField}.rateLimit.unit`,
    says: /is required/,
  },
  {
    name: 'a negative number',
    spec: rateLimit({ unit: 'Day', requestsPerUnit: -1 }),
    field: `${descriptorField}.rateLimit.requestsPerUnit`,
    says: /whole number from 0 to 4294967295, not -1/,
  },
  {
    name: 'half a request',
    spec: rateLimit({ unit: 'Day', requestsPerUnit: 0.5 }),
    field: `${descriptorField}.rateLimit.requestsPerUnit`,
    says: /whole number/,
  },
  {
    name: 'more than a uint32',
    spec: rateLimit({ unit: 'Day', requestsPerUnit: 4_294_967_296 }),
    field: `${descriptorField}.rateLimit.requestsPerUnit`,
    says: /whole number/,
  },
  {
    name: 'a number in quotes',
    spec: rateLimit({ unit: 'Day', requestsPerUnit: '5' }),
    field: `${descriptorField}.rateLimit.requestsPerUnit`,
    says: /whole number from 0 to 4294967295, and '5' is text: remove the quotes$/,
  },
  {
    name: 'a text for a number',
    spec: rateLimit({ unit: 'Day', requestsPerUnit: 'many' }),
    field: `${descriptorField}.rateLimit.requestsPerUnit`,
    says: /whole number from 0 to 4294967295, not the text 'many'$/,
  },
  {
    name: 'a name with a space',
    spec: rateLimit({ ...perMinute, name: 'a b' }),
    field: `${descriptorField}.rateLimit.name`,
    says: /'a b' is not allowed/,
  },
  {
    name: 'a name that is too long',
    spec: rateLimit({ ...perMinute, name: 'n'.repeat(64) }),
    field: `${descriptorField}.rateLimit.name`,
    says: /at most 63/,
  },
  {
    name: 'a replaced text',
    spec: rateLimit({ ...perMinute, replaces: ['x'] }),
    field: `${descriptorField}.rateLimit.replaces[0]`,
    says: /must be a mapping, not 'x'/,
  },
  {
    name: 'a replaced limit without name',
    spec: rateLimit({ ...perMinute, replaces: [{}] }),
    field: `${descriptorField}.rateLimit.replaces[0].name`,
    says: /is required/,
  },
  {
    name: 'a limit that is replaced twice',
    spec: rateLimit({ ...perMinute, replaces: [{ name: 'x' }, { name: 'x' }] }),
    field: `${descriptorField}.rateLimit.replaces[1].name`,
    says: /'x' is listed twice/,
  },
  {
    name: 'too many replaced limits',
    spec: rateLimit({
      ...perMinute,
      replaces: Array.from({ length: 17 }, (_, index) => ({ name: `n${index}` })),
    }),
    field: `${descriptorField}.rateLimit.replaces`,
    says: /at most 16 items, not 17/,
  },
  {
    name: 'a text for a boolean',
    spec: descriptor({ shadowMode: 'yes' }),
    field: `${descriptorField}.shadowMode`,
    says: /true or false, not the text 'yes'$/,
  },
  {
    name: 'a boolean in quotes',
    spec: descriptor({ shadowMode: 'true' }),
    field: `${descriptorField}.shadowMode`,
    says: /true or false, and 'true' is text: remove the quotes$/,
  },
  {
    name: 'a shared threshold without value',
    spec: descriptor({ shareThreshold: true }),
    field: `${descriptorField}.shareThreshold`,
    says: /needs a value with a wildcard/,
  },
  {
    name: 'a shared threshold without wildcard',
    spec: descriptor({ value: 'a', shareThreshold: true }),
    field: `${descriptorField}.shareThreshold`,
    says: /needs a value with a wildcard/,
  },
  {
    name: 'metadata that is a list',
    spec: descriptor({ metadata: [] }),
    field: `${descriptorField}.metadata`,
    says: /must be a mapping, not a list/,
  },
  {
    name: 'nine levels',
    spec: { domain: 'd', descriptors: [chain(9)] },
    field: `spec${'.descriptors[0]'.repeat(8)}.descriptors`,
    says: /deeper than 8 levels/,
  },
  {
    name: 'a limit without name',
    spec: limits({ name: null }),
    field: `${limitField}.name`,
    says: /is required/,
  },
  {
    name: 'two limits of one name',
    spec: limits({ name: 'x' }, { name: 'x', match: [{ key: 'b' }] }),
    field: 'spec.limits[1].name',
    says: /spec.limits\[0\] is named 'x' too/,
  },
  {
    name: 'a limit without match',
    spec: limits({ match: null }),
    field: `${limitField}.match`,
    says: /at least one entry/,
  },
  {
    name: 'a limit with an empty match',
    spec: limits({ match: [] }),
    field: `${limitField}.match`,
    says: /at least one entry/,
  },
  {
    name: 'a match that is too long',
    spec: limits({ match: Array.from({ length: 9 }, (_, index) => ({ key: `k${index}` })) }),
    field: `${limitField}.match`,
    says: /at most 8 items, not 9/,
  },
  {
    name: 'an entry of a match without key',
    spec: limits({ match: [{ value: 'x' }] }),
    field: `${limitField}.match[0].key`,
    says: /is required/,
  },
  {
    name: 'an entry that shares without wildcard',
    spec: limits({ match: [{ key: 'a', shareThreshold: true }] }),
    field: `${limitField}.match[0].shareThreshold`,
    says: /wildcard/,
  },
  {
    name: 'a limit without rateLimit',
    spec: limits({ rateLimit: null }),
    field: `${limitField}.rateLimit`,
    says: /is required/,
  },
];

/** Fields that the API server keeps, in any mode, for the reader to refuse. */
export const unknownFieldResources: readonly BadResource[] = [
  {
    name: 'rate_limit',
    spec: descriptor({ rate_limit: perMinute }),
    field: `${descriptorField}.rate_limit`,
    says: /unknown field/,
  },
  {
    name: 'requests_per_unit',
    spec: rateLimit({ ...perMinute, requests_per_unit: 3 }),
    field: `${descriptorField}.rateLimit.requests_per_unit`,
    says: /unknown field/,
  },
  {
    name: 'share_threshold',
    spec: descriptor({ share_threshold: true }),
    field: `${descriptorField}.share_threshold`,
    says: /unknown field/,
  },
  {
    name: 'rateLimits beside descriptors',
    spec: descriptor({ rateLimit: null, rateLimits: perMinute, descriptors: [chain(1)] }),
    field: `${descriptorField}.rateLimits`,
    says: /unknown field/,
  },
  {
    name: 'descriptor for descriptors',
    spec: descriptor({ descriptor: [chain(1)] }),
    field: `${descriptorField}.descriptor`,
    says: /unknown field/,
  },
  {
    name: 'rate_limit on the last level',
    spec: { domain: 'd', descriptors: [chain(8, { rate_limit: perMinute })] },
    field: `spec${'.descriptors[0]'.repeat(8)}.rate_limit`,
    says: /unknown field/,
  },
  {
    name: 'a limit that is named inside',
    spec: limits({ rateLimit: { ...perMinute, name: 'x' } }),
    field: `${limitField}.rateLimit.name`,
    says: /unknown field/,
  },
  {
    name: 'a limit that shares outside of its match',
    spec: limits({ shareThreshold: true }),
    field: `${limitField}.shareThreshold`,
    says: /unknown field/,
  },
  {
    name: 'shadow_mode in a limit',
    spec: limits({ shadow_mode: true }),
    field: `${limitField}.shadow_mode`,
    says: /unknown field/,
  },
  {
    name: 'an unknown field of the spec',
    spec: { ...descriptor({}), note: 'x' },
    field: 'spec.note',
    says: /unknown field/,
  },
  {
    name: 'an unknown field of a replaced limit',
    spec: rateLimit({ ...perMinute, replaces: [{ name: 'x', why: 'y' }] }),
    field: `${descriptorField}.rateLimit.replaces[0].why`,
    says: /unknown field/,
  },
  {
    name: 'a misspelled limit that leaves none',
    spec: descriptor({ rateLimit: null, rateLimt: perMinute }),
    field: `${descriptorField}.rateLimt`,
    says: /unknown field/,
  },
  {
    name: 'an unknown field beside a limit',
    spec: descriptor({ color: 'red' }),
    field: `${descriptorField}.color`,
    says: /unknown field/,
  },
];

/** Conflicts that no schema can express: found when the rules are read or merged. */
export const conflictingResources: readonly BadResource[] = [
  {
    name: 'an unknown time zone',
    spec: rateLimit({ unit: 'Day', timeZone: 'Europe/Nowhere', requestsPerUnit: 3 }),
    field: `${descriptorField}.rateLimit.timeZone`,
    says: /unknown time zone 'Europe\/Nowhere': expected UTC or an IANA name such as Europe\/Berlin/,
  },
  {
    name: 'a debt without charge',
    spec: rateLimit({ ...perMinute, algorithm: 'TokenBucket', maxDebt: 5 }),
    field: `${descriptorField}.rateLimit.maxDebt`,
    says: /requires charge/,
  },
  {
    name: 'a charge of allowed requests in windows that count all',
    spec: rateLimit({ ...perMinute, charge: 'Allowed' }),
    field: `${descriptorField}.rateLimit.charge`,
    says: /requires another algorithm, or atomic/,
  },
  {
    name: 'a period of half a second',
    spec: rateLimit({ period: '500ms', requestsPerUnit: 3 }),
    field: `${descriptorField}.rateLimit.period`,
    says: /expected whole seconds from 1s to 8784h/,
  },
  {
    name: 'the same key and value twice',
    spec: { domain: 'd', descriptors: [chain(1), chain(1)] },
    field: 'spec.descriptors[1].key',
    says: /duplicate descriptor composite key 'd.level-1'/,
  },
  {
    name: 'the same key twice, once with an empty value',
    spec: { domain: 'd', descriptors: [chain(1), { ...chain(1), value: '' }] },
    field: 'spec.descriptors[1].key',
    says: /duplicate/,
  },
  {
    name: 'two ways to write one descriptor',
    spec: {
      domain: 'd',
      descriptors: [
        { key: 'a_b', rateLimit: perMinute },
        { key: 'a', value: 'b', rateLimit: perMinute },
      ],
    },
    field: 'spec.descriptors[1].key',
    says: /duplicate descriptor composite key 'd.a_b'/,
  },
  {
    name: 'a limit that replaces itself',
    spec: rateLimit({ ...perMinute, name: 'x', replaces: [{ name: 'x' }] }),
    field: `${descriptorField}.rateLimit.replaces`,
    says: /should not contain name of same descriptor/,
  },
  {
    name: 'two limits of one match',
    spec: limits({ name: 'x' }, { name: 'y' }),
    field: 'spec.limits[1].match',
    says: /limits 'x' and 'y' have the same match/,
  },
  {
    name: 'limits that share an entry and differ in it',
    spec: limits(
      { match: [{ key: 'a', value: '*', shareThreshold: true }] },
      { match: [{ key: 'a', value: '*' }, { key: 'b' }] },
    ),
    field: 'spec.limits[1].match[0].shareThreshold',
    says: /differs between limits 'limit-0' and 'limit-1'/,
  },
];
