// cspell:ignore algoritm shadowmode detailedmetrics
/** An object that looks right and may not be, and what becomes of it when it is applied. */
export interface DoubtfulObject {
  /** Words that complete "an object with". */
  readonly name: string;
  /** The `spec` in YAML, as people write it; `domain` is added unless it is there. */
  readonly spec: string;
  /** `accepted` objects are valid, for the reason in `says` or with the warning in it. */
  readonly outcome: 'schema' | 'webhook' | 'accepted';
  /** In the output of kubectl; for accepted objects without a warning, the reason. */
  readonly says: RegExp | string;
}

const perMinute = '{ unit: Minute, requestsPerUnit: 10 }';

/** One descriptor with the fields. */
const descriptor = (fields: string) => `descriptors: [{ key: user, ${fields} }]`;

/** One descriptor whose limit has the fields, besides 10 requests a minute. */
const rateLimit = (fields: string) =>
  descriptor(`rateLimit: { unit: Minute, requestsPerUnit: 10, ${fields} }`);

/** One flat limit with the fields. */
const limit = (fields: string) =>
  `limits: [{ name: a, match: [{ key: user }], rateLimit: ${perMinute}, ${fields} }]`;

const nested = (levels: number, last: string): string =>
  levels === 1 ? `[{ key: a, ${last} }]` : `[{ key: a, descriptors: ${nested(levels - 1, last)} }]`;

const limited = `rateLimit: ${perMinute}`;

/** Namespace, name and domain of objects that exist before. */
export const existingObjects = [
  { namespace: 'bank', name: 'pay', domain: 'bank/pay', key: 'user' },
  { namespace: 'shop', name: 'older', domain: 'shop/shared', key: 'user' },
] as const;

export const doubtfulObjects: readonly DoubtfulObject[] = [
  // Misspelled keys on each level.
  {
    name: 'trail for trial',
    spec: `trail: true\n${descriptor(limited)}`,
    outcome: 'webhook',
    says: /spec\.trail: unknown field \(did you mean trial\?\)/,
  },
  {
    name: 'rateLimt',
    spec: descriptor(`rateLimt: ${perMinute}`),
    outcome: 'webhook',
    says: /spec\.descriptors\[0\]\.rateLimt: unknown field \(did you mean rateLimit\?\)/,
  },
  {
    name: 'rate_limit, as in rule files',
    spec: descriptor(`rate_limit: ${perMinute}`),
    outcome: 'webhook',
    says: /\.rate_limit: unknown field \(it is spelled rateLimit\)/,
  },
  {
    name: 'limit for rateLimit',
    spec: descriptor(`limit: ${perMinute}`),
    outcome: 'webhook',
    says: /\.limit: unknown field \(did you mean rateLimit\?\)/,
  },
  {
    name: 'shadow for shadowMode',
    spec: descriptor(`${limited}, shadow: true`),
    outcome: 'webhook',
    says: /\.shadow: unknown field \(did you mean shadowMode\?\)/,
  },
  {
    name: 'algoritm in rateLimit',
    spec: rateLimit('algoritm: TokenBucket'),
    outcome: 'webhook',
    says: /\.rateLimit\.algoritm: unknown field \(did you mean algorithm\?\)/,
  },
  {
    name: 'unit beside key',
    spec: descriptor(`${limited}, unit: Hour`),
    outcome: 'webhook',
    says: /\.unit: unknown field \(it belongs in rateLimit\)/,
  },
  {
    name: 'a misspelled key on the eighth level',
    spec: `descriptors: ${nested(8, `${limited}, shadowmode: true`)}`,
    outcome: 'webhook',
    says: /shadowmode: unknown field \(it is spelled shadowMode\)/,
  },
  {
    name: 'an unknown key in replaces',
    spec: rateLimit('replaces: [{ name: b, why: c }]'),
    outcome: 'webhook',
    says: /replaces\[0\]\.why: unknown field/,
  },
  {
    name: 'a misspelled key in limits',
    spec: limit('detailedmetrics: true'),
    outcome: 'webhook',
    says: /spec\.limits\[0\]\.detailedmetrics: unknown field \(did you mean detailedMetric\?\)/,
  },
  {
    name: 'a misspelled key in match',
    spec: `limits: [{ name: a, match: [{ key: user, vale: x }], ${limited} }]`,
    outcome: 'webhook',
    says: /match\[0\]\.vale: unknown field \(did you mean value\?\)/,
  },
  {
    name: 'shareThreshold beside match',
    spec: limit('shareThreshold: true'),
    outcome: 'webhook',
    says: /shareThreshold: unknown field \(it belongs in an entry of match\)/,
  },
  {
    name: 'the name of a limit in rateLimit',
    spec: `limits: [{ name: a, match: [{ key: user }], rateLimit: { unit: Minute, requestsPerUnit: 1, name: a } }]`,
    outcome: 'webhook',
    says: /rateLimit\.name: unknown field \(it belongs beside rateLimit\)/,
  },
  // Units and numbers.
  {
    name: 'a unit in lower case',
    spec: descriptor('rateLimit: { unit: minute, requestsPerUnit: 10 }'),
    outcome: 'schema',
    says: /unit: Unsupported value: "minute"/,
  },
  {
    name: 'a unit in the plural',
    spec: descriptor('rateLimit: { unit: Minutes, requestsPerUnit: 10 }'),
    outcome: 'schema',
    says: /unit: Unsupported value: "Minutes"/,
  },
  {
    name: 'a limit of 0',
    spec: descriptor('rateLimit: { unit: Minute, requestsPerUnit: 0 }'),
    outcome: 'accepted',
    says: '0 refuses all requests, which is the way to block a key',
  },
  {
    name: 'a negative limit',
    spec: descriptor('rateLimit: { unit: Minute, requestsPerUnit: -1 }'),
    outcome: 'schema',
    says: /requestsPerUnit: Invalid value: -1/,
  },
  {
    name: 'a limit of more than 32 bits',
    spec: descriptor('rateLimit: { unit: Minute, requestsPerUnit: 4294967296 }'),
    outcome: 'schema',
    says: /less than or equal to 4294967295/,
  },
  {
    name: 'half a request',
    spec: descriptor('rateLimit: { unit: Minute, requestsPerUnit: 0.5 }'),
    outcome: 'schema',
    says: /requestsPerUnit/,
  },
  {
    name: 'a number in quotes',
    spec: descriptor('rateLimit: { unit: Minute, requestsPerUnit: "100" }'),
    outcome: 'schema',
    says: /must be of type integer: "string"/,
  },
  {
    name: 'a quantity',
    spec: descriptor('rateLimit: { unit: Minute, requestsPerUnit: 1k }'),
    outcome: 'schema',
    says: /must be of type integer: "string"/,
  },
  {
    name: 'a period without unit',
    spec: descriptor('rateLimit: { period: "300", requestsPerUnit: 1 }'),
    outcome: 'schema',
    says: /period: Invalid value: "300"/,
  },
  {
    name: 'a period of half a second',
    spec: descriptor('rateLimit: { period: 500ms, requestsPerUnit: 1 }'),
    outcome: 'webhook',
    says: /period: .*expected whole seconds from 1s/,
  },
  {
    name: 'unit and period',
    spec: rateLimit('period: 1m'),
    outcome: 'schema',
    says: /must not validate|should not be valid|period/,
  },
  {
    name: 'an unlimited limit',
    spec: rateLimit('unlimited: true'),
    outcome: 'schema',
    says: /unlimited: Unsupported value: true/,
  },
  {
    name: 'a limit without a number',
    spec: descriptor('rateLimit: { unit: Minute }'),
    outcome: 'schema',
    says: /requestsPerUnit: Required value/,
  },
  {
    name: 'an unknown time zone',
    spec: descriptor('rateLimit: { unit: Day, requestsPerUnit: 1, timeZone: Europe/Nowhere }'),
    outcome: 'webhook',
    says: /timeZone: unknown time zone 'Europe\/Nowhere'/,
  },
  // Algorithms.
  {
    name: 'an algorithm in the wrong case',
    spec: rateLimit('algorithm: tokenBucket'),
    outcome: 'schema',
    says: /algorithm: Unsupported value: "tokenBucket"/,
  },
  { name: 'a burst of fixed windows', spec: rateLimit('burst: 5'), outcome: 'webhook', says: /\.burst: / },
  {
    name: 'a debt without charge',
    spec: rateLimit('algorithm: TokenBucket, maxDebt: 5'),
    outcome: 'webhook',
    says: /maxDebt requires charge: Always/,
  },
  {
    name: 'a lease of a concurrency limit',
    spec: rateLimit('algorithm: Concurrency, lease: 5%'),
    outcome: 'webhook',
    says: /\.lease: /,
  },
  {
    name: 'a time zone for minutes',
    spec: rateLimit('timeZone: Europe/Berlin'),
    outcome: 'webhook',
    says: /timeZone/,
  },
  // Duplicates and conflicts.
  {
    name: 'a key and value twice',
    spec: `descriptors: [{ key: a, value: b, ${limited} }, { key: a, value: b, ${limited} }]`,
    outcome: 'webhook',
    says: /spec\.descriptors\[1\]\.key: duplicate/,
  },
  {
    name: 'two spellings of one key',
    spec: `descriptors: [{ key: a_b, ${limited} }, { key: a, value: b, ${limited} }]`,
    outcome: 'webhook',
    says: /duplicate descriptor composite key/,
  },
  {
    name: 'two limits of one name',
    spec: `limits: [{ name: a, match: [{ key: a }], ${limited} }, { name: a, match: [{ key: b }], ${limited} }]`,
    outcome: 'schema',
    says: /spec\.limits\[1\]: Duplicate value/,
  },
  {
    name: 'two limits of one match',
    spec: `limits: [{ name: a, match: [{ key: a }], ${limited} }, { name: b, match: [{ key: a }], ${limited} }]`,
    outcome: 'webhook',
    says: /limits 'a' and 'b' have the same match/,
  },
  {
    name: 'the domain of another namespace',
    spec: `domain: bank/pay\n${descriptor(limited)}`,
    outcome: 'webhook',
    says: /spec\.domain: 'bank\/pay' .*namespace '(?:bank|shop)'/,
  },
  {
    name: 'a rule that an older object has',
    spec: `domain: shop/shared\n${descriptor(limited)}`,
    outcome: 'webhook',
    says: /spec\.descriptors\[0\]: 'user' is already in shop\/older, which is older/,
  },
  {
    name: 'both descriptors and limits',
    spec: `descriptors: []\nlimits: []`,
    outcome: 'schema',
    says: /set exactly one of descriptors and limits/,
  },
  {
    name: 'neither descriptors nor limits',
    spec: 'trial: false',
    outcome: 'schema',
    says: /set exactly one of descriptors and limits/,
  },
  {
    name: 'an empty list of descriptors',
    spec: 'descriptors: []',
    outcome: 'accepted',
    says: 'a domain without rules is a beginning, and its status says 0 limits',
  },
  {
    name: 'a descriptor that limits nothing',
    spec: `descriptors: [{ key: a, ${limited} }, { key: b }]`,
    outcome: 'accepted',
    says: /Warning: .*has neither rateLimit nor descriptors/,
  },
  {
    name: 'replaces of an unknown limit',
    spec: rateLimit('name: a, replaces: [{ name: nowhere }]'),
    outcome: 'accepted',
    says: /Warning: .*nowhere/,
  },
  {
    name: 'replaces of itself',
    spec: rateLimit('name: a, replaces: [{ name: a }]'),
    outcome: 'webhook',
    says: /replaces: .*should not contain name of same descriptor/,
  },
  {
    name: 'replaces of one limit twice',
    spec: rateLimit('name: a, replaces: [{ name: b }, { name: b }]'),
    outcome: 'schema',
    says: /replaces\[1\]: Duplicate value/,
  },
  // Shape and texts.
  {
    name: 'nine levels',
    spec: `descriptors: ${nested(9, limited)}`,
    outcome: 'schema',
    says: /must have at most 0 items/,
  },
  {
    name: 'a key of 254 characters',
    spec: `descriptors: [{ key: ${'k'.repeat(254)}, ${limited} }]`,
    outcome: 'schema',
    says: /may not be more than 253|Too long/,
  },
  {
    name: 'an empty domain',
    spec: `domain: ""\n${descriptor(limited)}`,
    outcome: 'schema',
    says: /spec\.domain: Invalid value: ""/,
  },
  {
    name: 'a name of a limit with a space',
    spec: rateLimit('name: per user'),
    outcome: 'schema',
    says: /name: Invalid value: "per user"/,
  },
  {
    name: 'a control character in a key',
    spec: `descriptors: [{ key: "a\\u0007b", ${limited} }]`,
    outcome: 'accepted',
    says: 'texts are compared as they are, and statuses and pages escape them',
  },
  {
    name: 'a control character in the domain',
    spec: `domain: "shop/a\\nb"\n${descriptor(limited)}`,
    outcome: 'accepted',
    says: 'texts are compared as they are, and statuses and pages escape them',
  },
  {
    name: 'yes as a value, a boolean of YAML 1.1',
    spec: `descriptors: [{ key: premium, value: yes, ${limited} }]`,
    outcome: 'schema',
    says: /must be of type string: "boolean"/,
  },
  {
    name: 'a port as a value',
    spec: `descriptors: [{ key: port, value: 8080, ${limited} }]`,
    outcome: 'schema',
    says: /must be of type string: "integer"/,
  },
  {
    name: 'shadowMode in quotes',
    spec: descriptor(`${limited}, shadowMode: "true"`),
    outcome: 'schema',
    says: /must be of type boolean: "string"/,
  },
  {
    name: 'shadowMode: on, a boolean of YAML 1.1',
    spec: descriptor(`${limited}, shadowMode: on`),
    outcome: 'accepted',
    says: 'kubectl reads YAML 1.1, in which on is true',
  },
  {
    name: 'a shared threshold without wildcard',
    spec: descriptor(`value: a, shareThreshold: true, ${limited}`),
    outcome: 'schema',
    says: /should match '\\\*'/,
  },
  {
    name: 'a mapping for the list',
    spec: `descriptors: { key: a, ${limited} }`,
    outcome: 'schema',
    says: /unknown field "spec\.descriptors\.key"/,
  },
  {
    name: 'null for rateLimit',
    spec: 'descriptors: [{ key: a, rateLimit: null }]',
    outcome: 'accepted',
    says: /Warning: .*has neither rateLimit nor descriptors/,
  },
];
