import type { PolicyEdit } from './policies.ts';
import type { GetOptions, Story } from './story.ts';
import { counted, limited, stockReader, tampered } from './story.ts';

/** An action of a user, with the expected result. */
export interface Row {
  readonly what: string;
  /** The expected result of `act`. */
  readonly expect: string;
  /** Returns the result in a few words. Rejects when there is no response. */
  act(story: Story): Promise<string>;
}

/** A change while everything runs. */
export interface Change {
  make(story: Story): Promise<unknown>;
  /** Completes "in force 12 ms after …". */
  after(story: Story): string;
}

export interface Step {
  readonly title: string;
  /** Made before the first row, which is then repeated until it comes out as expected. */
  readonly change?: Change;
  readonly rows: readonly Row[];
}

/** A higher limit for the plan `free`. */
export const morePerHour: PolicyEdit = {
  file: 'shop.yaml',
  from: 'requests: 5',
  to: 'requests: 500',
};

/**
 * Steps of the demo, in order. Users and counters are new with each start; limits and access are
 * those of config/.
 */
export const scenario: readonly Step[] = [
  {
    title: 'Without a token, only public pages are allowed',
    rows: [
      { ...get('/catalogue'), expect: '200 no user, 99 of 100 left' },
      { ...get('/orders'), expect: '401 no_authorization' },
    ],
  },
  {
    title: 'Ada signs up with @supabase/auth-js; her mail is in the mailbox of development mode',
    rows: [
      { what: 'sign up', expect: 'to be confirmed', act: ({ ada }) => ada.signUp() },
      { what: 'sign in', expect: '400 email_not_confirmed', act: ({ ada }) => ada.signIn() },
      { what: 'the link in the mail', expect: '303 confirmed', act: ({ ada }) => ada.confirm() },
      { what: 'sign in', expect: 'signed in', act: ({ ada }) => ada.signIn() },
    ],
  },
  {
    title: 'With her token, five requests an hour on the plan "free"',
    rows: [
      { ...asAda('/orders'), expect: '200 ada (free), 4 of 5 left' },
      { ...asAda('/orders'), expect: '200 ada (free), 3 of 5 left' },
      {
        what: 'GET /orders, forged headers',
        expect: '200 ada (free), 2 of 5 left',
        act: countedAsAda('/orders', { 'x-auth-user-id': 'bob', 'x-auth-plan': 'pro' }),
      },
      { ...asAda('/orders'), expect: '200 ada (free), 1 of 5 left' },
      { ...asAda('/orders'), expect: '200 ada (free), 0 of 5 left' },
      { ...asAda('/orders'), expect: '429 over_request_rate_limit' },
    ],
  },
  {
    title: 'Bob has separate counters',
    rows: [
      {
        what: 'an admin adds him; sign in',
        expect: 'signed in',
        act: async ({ admin, bob }) => {
          await admin.createUser({ email: bob.email, password: bob.password });
          return bob.signIn();
        },
      },
      { ...asBob('/orders'), expect: '200 bob (free), 4 of 5 left' },
    ],
  },
  {
    title: 'Changed tokens, missing roles and a missing second factor are rejected',
    rows: [
      {
        what: 'GET /orders, changed token',
        expect: '401 bad_jwt',
        act: async (story) =>
          counted(await story.get('/orders', { token: tampered(story.ada.token()) }), story.names()),
      },
      { ...asAda('/stock'), expect: '403 role_not_allowed' },
      { ...asAda('/billing'), expect: '401 insufficient_aal' },
    ],
  },
  {
    title: 'The shop reads /stock with a token of its own (@tollgate/oauth2-client)',
    rows: [
      {
        what: 'GET /catalogue',
        expect: '200 stock read as service',
        act: async ({ get: ask }) => stockReader(await ask('/catalogue')),
      },
    ],
  },
  {
    title: 'A limit in shadow mode: one request a day, but the second one is allowed',
    rows: [
      { ...get('/beta'), expect: '200 no user, 0 of 1 left' },
      { ...get('/beta'), expect: '200 no user, 0 of 1 left' },
    ],
  },
  {
    title: 'The access policy is edited while everything runs: more for the plan "free"',
    change: {
      make: ({ policies }) => policies.edit(morePerHour),
      after: () => 'the file was saved',
    },
    rows: [{ ...asAda('/orders', limited), expect: '200 ada (free), limit 500' }],
  },
  {
    title: 'Ada upgrades: app_metadata.plan becomes "pro". The token stays the same',
    change: appMetadata({ plan: 'pro' }),
    rows: [{ ...asAda('/orders', limited), expect: '200 ada (pro), limit 1000' }],
  },
  {
    title: 'A limit of her own: app_metadata.limit',
    change: appMetadata({ limit: { requests_per_unit: 5000, unit: 'hour' } }),
    rows: [{ ...asAda('/orders', limited), expect: '200 ada (pro), limit 5000' }],
  },
  {
    title: 'The members of an organization share its limit',
    rows: [
      {
        what: 'an admin adds both; Ada',
        expect: 'acts for it',
        act: async ({ admin, ada, bob }) => {
          const ids = [ada, bob].map((person) => person.userId() ?? '');
          const id = await admin.createOrganization('Acme', ids);
          await bob.actFor(id);
          return ada.actFor(id);
        },
      },
      { ...asAda('/orders'), expect: '200 ada (pro), 2 of 3 left' },
      { ...asBob('/orders'), expect: '200 bob (free), 1 of 3 left' },
      { ...asAda('/orders'), expect: '200 ada (pro), 0 of 3 left' },
      { ...asBob('/orders'), expect: '429 over_request_rate_limit' },
    ],
  },
  {
    title: 'Ada signs out: her token is rejected, although it has not expired',
    change: { make: ({ ada }) => ada.signOut(), after: () => 'she signed out' },
    rows: [{ ...asAda('/orders'), expect: '401 session_not_found' }],
  },
  {
    title: 'A program has an API key on the plan "pro": three requests an hour for each key',
    rows: [
      {
        what: 'a new key; GET /orders',
        expect: '200 no user, 2 of 3 left',
        act: async (story) => {
          await story.admin.createApiKey({ name: 'reports', plan: 'pro' });
          return countedByKey(story);
        },
      },
      ...[1, 0].map((left) => ({
        what: 'GET /orders',
        expect: `200 no user, ${left} of 3 left`,
        act: countedByKey,
      })),
      { what: 'GET /orders', expect: '429 over_request_rate_limit', act: countedByKey },
    ],
  },
  {
    title: 'The key is revoked',
    change: { make: ({ admin }) => admin.revokeApiKey(), after: () => 'the revocation' },
    rows: [{ what: 'GET /orders', expect: '401 invalid_api_key', act: countedByKey }],
  },
];

function get(path: string): Omit<Row, 'expect'> {
  return { what: `GET ${path}`, act: async (story) => counted(await story.get(path), story.names()) };
}

function asAda(path: string, tell = counted): Omit<Row, 'expect'> {
  return { what: `GET ${path}`, act: countedAsAda(path, {}, tell) };
}

async function countedByKey(story: Story): Promise<string> {
  const headers = { 'x-api-key': story.admin.apiKey() };
  return counted(await story.get('/orders', { headers }), story.names());
}

function asBob(path: string): Omit<Row, 'expect'> {
  return {
    what: `GET ${path}, as Bob`,
    act: async (story) => counted(await story.get(path, { token: story.bob.token() }), story.names()),
  };
}

function countedAsAda(path: string, headers: GetOptions['headers'] = {}, tell = counted): Row['act'] {
  return async (story) => tell(await story.get(path, { token: story.ada.token(), headers }), story.names());
}

function appMetadata(metadata: Readonly<Record<string, unknown>>): Change {
  return {
    make: ({ admin, ada }) => admin.setAppMetadata(ada.userId() ?? '', metadata),
    after: () => 'the admin API was called',
  };
}
