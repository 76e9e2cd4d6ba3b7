import type { Expectation } from './judge.ts';

/** A request as a user sends it through Envoy, and what is to become of it. */
export interface Row {
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly expect: Expectation;
}

/** A change to a manifest while everything runs, as one would make it in an editor. */
export interface RuleEdit {
  /** Name inside hack/demo/config. */
  readonly file: string;
  /** Found exactly once in the file. */
  readonly from: string;
  readonly to: string;
}

/** A few requests that show one thing. */
export interface Step {
  readonly title: string;
  /** Made before the first row, which is then sent again and again until it comes out as expected. */
  readonly edit?: RuleEdit;
  readonly rows: readonly Row[];
}

const hourSeconds = 3600;
const daySeconds = 86_400;

/** What the demo shows, in order. The counters are new with each start; the limits are those of config/. */
export const scenario: readonly Step[] = [
  {
    title: 'Three requests an hour for each tenant',
    rows: [
      asTenant('acme', passes({ limit: 3, remaining: 2, windowSeconds: hourSeconds })),
      asTenant('acme', passes({ limit: 3, remaining: 1, windowSeconds: hourSeconds })),
      asTenant('acme', passes({ limit: 3, remaining: 0, windowSeconds: hourSeconds })),
      asTenant('acme', refused('per-tenant', { limit: 3, remaining: 0, windowSeconds: hourSeconds })),
    ],
  },
  {
    title: 'Another tenant is counted apart',
    rows: [asTenant('globex', passes({ limit: 3, remaining: 2, windowSeconds: hourSeconds }))],
  },
  {
    title: 'A tenant with a rule of its own',
    rows: [asTenant('initech', passes({ limit: 100, remaining: 99, windowSeconds: daySeconds }))],
  },
  {
    title: 'No tenant, so no rule',
    rows: [{ path: '/orders', expect: passes() }],
  },
  {
    title: 'An unlimited route, and a closed one (requestsPerUnit: 0)',
    rows: [
      { path: '/open', expect: passes() },
      {
        path: '/closed',
        expect: refused('closed', { limit: 0, remaining: 0, windowSeconds: daySeconds }),
      },
    ],
  },
  {
    title: 'Shadow mode: one request a day, but the second one passes, too',
    rows: [
      { path: '/beta', expect: passes({ limit: 1, remaining: 0, windowSeconds: daySeconds }) },
      { path: '/beta', expect: passes({ limit: 1, remaining: 0, windowSeconds: daySeconds }) },
    ],
  },
  {
    title: 'A RateLimitConfig is edited while everything runs: acme has requests left again',
    edit: { file: 'tenants.yaml', from: 'requestsPerUnit: 3', to: 'requestsPerUnit: 1000' },
    rows: [asTenant('acme', passes({ limit: 1000, remaining: 'some', windowSeconds: hourSeconds }))],
  },
];

function asTenant(tenant: string, expect: Expectation): Row {
  return { path: '/orders', headers: { 'x-tenant': tenant }, expect };
}

function passes(counter?: Expectation['counter']): Expectation {
  return counter === undefined ? { status: 200 } : { status: 200, counter };
}

function refused(limitedBy: string, counter: NonNullable<Expectation['counter']>): Expectation {
  return { status: 429, limitedBy, counter };
}
